"""The registry of assessments, and what each says of itself: its title, its options, and what may be required of it.

An assessment is registered once, built in or by a package with the entry point `advrisk.assessments`. Its spec gives
the keys below `assess:` in a study, the options of `advrisk show NAME` and the arguments of `run.assess("NAME")`.
Nothing here knows how a question is answered: `assess.protocol` does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from advrisk.core.errors import RegistryError
from advrisk.core.names import did_you_mean
from advrisk.core.registry import Function, Registry
from advrisk.study.fields import Strict, validated
from advrisk.study.source import Source

LimitKind = Literal["share", "number", "count", "yes"]  # what a limit may be: within [0, 1], any, a whole number, none


@dataclass(frozen=True)
class Quantity:
    """Something that can be required, and how it is written."""

    meaning: str
    kind: LimitKind
    of: Literal["model", "detector", "anything"] = "model"  # what stands behind the dot
    inside: tuple[str, ...] = ()  # what may stand in brackets
    size: Literal["needed", "allowed", "none"] = "none"
    compared: bool = False  # whether two models can be compared by it
    bound: bool = False  # it comes from attacks, and a better one would make it worse


# Names that commands, sections of the page and tables have already.
RESERVED = frozenset(
    [
        "arms",
        "attacks",
        "certificate",
        "certificates",
        "compare",
        "convergence",
        "damage",
        "detection",
        "detectors",
        "failures",
        "figures",
        "flags",
        "gate",
        "health",
        "indicators",
        "main",
        "models",
        "numbers",
        "provenance",
        "search",
        "summary",
        "survival",
    ]
)
RESERVED_QUANTITIES = frozenset(
    (
        *("auroc", "broken", "certificate", "certified_broken", "certified_wrong", "clean_accuracy", "clean_rejection"),
        *("cost", "damage", "error_rows", "flagged", "fpr", "risk", "robust_accuracy", "survival"),
    )
)
_TAKEN = frozenset(
    ("as_json", "details", "folder", "level", "model", "name", "out_csv", "where")
)  # options that every question has


@dataclass(frozen=True)
class AssessmentTraits:
    """What an assessment says of itself.

    `quantities` are the names that requirements may use: `leak` for `leak.MODEL <= 5 %`. Its answer gives an estimate
    for each model under `leak.MODEL`, or under `leak` for a quantity of the whole run.
    """

    title: str
    spec: type[Strict]
    quantities: Mapping[str, Quantity] = field(default_factory=dict)
    use_when: str = ""

    def __post_init__(self) -> None:
        if taken := sorted(_TAKEN.intersection(self.spec.model_fields)):
            raise RegistryError(
                f"{self.spec.__name__}: every question has {', '.join(taken)} already; rename the field"
            )
        for name, one in self.quantities.items():
            if one.compared or one.inside or one.size != "none" or one.of == "detector":
                raise RegistryError(
                    f"{name}: a registered quantity is of a model or of the run; it has no size, no brackets and no "
                    "comparison of two models"
                )


class Assessments(Registry[AssessmentTraits]):
    """The registered assessments; each has a name of its own."""

    def register(self, name: str, *, traits: AssessmentTraits, version: int = 1) -> Callable[[Function], Function]:
        """Register the decorated class under a kebab-case name."""
        if name in RESERVED:
            raise RegistryError(f"{name!r} is taken by advrisk itself; choose another name")
        if own := sorted(RESERVED_QUANTITIES.intersection(traits.quantities)):
            raise RegistryError(f"{name}: the quantity {own[0]!r} is advrisk's own; choose another name")
        held = {quantity for part in self._parts.values() for quantity in part.traits.quantities}
        if shared := sorted(held.intersection(traits.quantities)):
            raise RegistryError(f"{name}: another assessment has the quantity {shared[0]!r}; choose another name")
        return super().register(name, traits=traits, version=version)


assessments = Assessments("assessments")


def title_of(name: str) -> str:
    """The title of an assessment; its name where no installed package brings it."""
    return assessments.get(name).traits.title if name in assessments else name


def further_quantities() -> dict[str, Quantity]:
    """What registered assessments add to the quantities that can be required."""
    return {name: quantity for part in assessments for name, quantity in part.traits.quantities.items()}


def assessment_of(quantity: str) -> str | None:
    """The registered assessment that a quantity is of."""
    return next((part.name for part in assessments if quantity in part.traits.quantities), None)


def check_questions(asked: Any, built_in: Mapping[str, Any], source: Source, *, installed: bool = True) -> None:
    """Refuse what stands below `assess:` and is no question, or is asked with options that it does not have.

    With `installed=False`, questions of packages that are not installed are let through: a run can be read anywhere.
    """
    for name, options in asked.items() if isinstance(asked, Mapping) else ():
        if name in built_in:
            continue
        if name not in assessments:
            if not installed:
                continue
            known = [*built_in, *(part.name for part in assessments)]
            raise source.error(("assess", str(name)), f"unknown key; {did_you_mean(name, known)}")
        if not isinstance(options, Mapping | None):
            raise source.error(("assess", name), f"a mapping is needed, found {options!r}")
        validated(assessments.get(name).traits.spec, options or {}, source, within=("assess", name))
