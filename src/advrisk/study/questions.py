"""The registry of assessments, and what each says of itself: its title, its options, and what may be required of it.

An assessment is registered once, built in or by a package with the entry point `advrisk.assessments`. Its spec gives
the keys below `assess:` in a study, the options of `advrisk show NAME` and the arguments of `run.assess("NAME")`.
Nothing here knows how a question is answered: `assess.protocol` does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from advrisk.core.names import did_you_mean
from advrisk.core.registry import Registry
from advrisk.study.fields import Strict, validated
from advrisk.study.source import Source

Kind = Literal["share", "number", "count", "yes"]  # what a limit may be: within [0, 1], any, a whole number, none


@dataclass(frozen=True)
class Quantity:
    """Something that can be required, and how it is written."""

    meaning: str
    kind: Kind
    of: Literal["model", "detector", "anything"] = "model"  # what stands behind the dot
    inside: tuple[str, ...] = ()  # what may stand in brackets
    size: Literal["needed", "allowed", "none"] = "none"
    compared: bool = False  # whether two models can be compared by it
    bound: bool = False  # it comes from attacks, and a better one would make it worse


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


assessments: Registry[AssessmentTraits] = Registry("assessments")


def further_quantities() -> dict[str, Quantity]:
    """What registered assessments add to the quantities that can be required."""
    return {name: quantity for part in assessments for name, quantity in part.traits.quantities.items()}


def assessment_of(quantity: str) -> str | None:
    """The registered assessment that a quantity is of."""
    return next((part.name for part in assessments if quantity in part.traits.quantities), None)


def check_questions(asked: Any, built_in: Mapping[str, Any], source: Source) -> None:
    """Refuse what stands below `assess:` and is no question, or is asked with options that it does not have."""
    for name, options in asked.items() if isinstance(asked, Mapping) else ():
        if name in built_in:
            continue
        if name not in assessments:
            known = [*built_in, *(part.name for part in assessments)]
            raise source.error(("assess", str(name)), f"unknown key; {did_you_mean(name, known)}")
        if not isinstance(options, Mapping | None):
            raise source.error(("assess", name), f"a mapping is needed, found {options!r}")
        validated(assessments.get(name).traits.spec, options or {}, source, within=("assess", name))
