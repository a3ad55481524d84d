"""The traits of an assessment (title, options, quantities for requirements), and the registry of assessments.

Its spec gives the keys below `assess:` in a study, the options of `advrisk show NAME` and the arguments of
`run.assess("NAME")`. `study.registered` holds the registry; nothing here knows how a question is answered.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from advrisk.core.errors import RegistryError
from advrisk.core.registry import Function, Part, Registry
from advrisk.study.fields import Strict

LimitKind = Literal["share", "number", "count", "yes"]  # the limit: within [0, 1], any number, a whole number, none


@dataclass(frozen=True)
class Quantity:
    """A number for requirements, and its syntax."""

    meaning: str
    kind: LimitKind
    label: str = ""  # the field's term for it, if any
    of: Literal["model", "detector", "anything"] = "model"  # the kind of name after the dot
    inside: tuple[str, ...] = ()  # the kinds of names in brackets
    size: Literal["needed", "allowed", "none"] = "none"
    compared: bool = False  # whether requirements may compare two models by it
    bound: bool = False  # it comes from attacks, and a better attack would make it worse
    required: bool = True  # whether requirements may use it; others are only reported


@dataclass(frozen=True)
class AssessmentTraits:
    """The properties of an assessment.

    `quantities` names every number of its answers, for requirements such as `leak.MODEL <= 5 %` with the quantity
    `leak`. The answer has an estimate for each model under `leak.MODEL`, or under `leak` for a quantity of the whole
    run. `help` is a line of 80 columns, by default the first of the class's docstring. The report folds the answer
    under `question`, by default the title.
    """

    title: str
    spec: type[Strict]
    quantities: Mapping[str, Quantity] = field(default_factory=dict)
    use_when: str = ""
    options: type[Strict] | None = None  # options for a finished run, if there are more than the spec's
    follows: tuple[str, ...] = ()  # options of a part of a run (`run.part(norm=…)`) that apply to it
    help: str = ""  # of `advrisk show NAME`
    brief: str = ""  # its content in a few words; by default the title
    question: str = ""  # that it answers

    @property
    def required(self) -> dict[str, Quantity]:
        """The quantities for requirements."""
        return {name: one for name, one in self.quantities.items() if one.required}

    @property
    def accepts(self) -> type[Strict]:
        """Its Python arguments and options of the command."""
        return self.options or self.spec


# Commands, sections of the page, and files of the report that are no assessment.
_NO_QUESTION = frozenset(
    (
        *("arms", "certificates", "compare", "detectors", "figures", "flags", "health"),
        *("main", "models", "numbers", "provenance", "reasons", "summary", "glossary"),
    )
)
# Options that every assessment has.
_SHARED = frozenset(("as_json", "details", "folder", "level", "model", "name", "out_csv", "where"))


class Assessments(Registry[AssessmentTraits]):
    """The registered assessments; each has a name and quantities of its own.

    `built_in` has the traits of the built-in ones, in the order of the page: options and quantities are available
    before any class of an assessment is imported.
    """

    def __init__(self, kind: str, built_in: Mapping[str, AssessmentTraits]) -> None:
        super().__init__(kind)
        self.built_in = built_in

    def register(
        self, name: str, *, traits: AssessmentTraits | None = None, version: int = 1
    ) -> Callable[[Function], Function]:
        """Register the decorated class under a kebab-case name; a built-in one has its traits in `study.registered`."""
        if traits is None:
            if name not in self.built_in:
                raise RegistryError(f"{name}: an assessment needs traits: a title, a spec, its quantities")
            return super().register(name, traits=self.built_in[name], version=version)
        if name in _NO_QUESTION or name in self.built_in:
            raise RegistryError(f"advrisk itself uses the name {name!r}; choose another name")
        _refuse_traits(name, traits)
        for other, quantities in self._taken():
            if shared := sorted(traits.quantities.keys() & quantities):
                raise RegistryError(f"{name}: {other} already has the quantity {shared[0]!r}; choose another name")
        return super().register(name, traits=traits, version=version)

    def get(self, name: str) -> Part[AssessmentTraits]:
        """The part of this name; packages are loaded only for a name that is not built in."""
        return self._parts[name] if name in self.built_in and name in self._parts else super().get(name)

    def __contains__(self, name: object) -> bool:
        return name in self.built_in or super().__contains__(name)

    def __iter__(self) -> Iterator[Part[AssessmentTraits]]:
        """The built-in ones in the order of the page, then those of packages by name."""
        parts = {part.name: part for part in super().__iter__()}
        return iter([parts.pop(name) for name in self.built_in if name in parts] + list(parts.values()))

    def from_packages(self) -> list[Part[AssessmentTraits]]:
        """The assessments of packages, by name."""
        return [part for part in self if part.name not in self.built_in]

    def _taken(self) -> Iterator[tuple[str, Mapping[str, Quantity]]]:
        yield from ((name, traits.quantities) for name, traits in self.built_in.items())
        yield from ((name, part.traits.quantities) for name, part in self._parts.items() if name not in self.built_in)


def _refuse_traits(name: str, traits: AssessmentTraits) -> None:
    """Refuse traits of a package's assessment that `show` and the gate do not support."""
    options = traits.accepts
    if taken := sorted(_SHARED.intersection(options.model_fields)):
        raise RegistryError(f"{options.__name__}: every assessment already has {', '.join(taken)}; rename the field")
    for quantity, one in traits.quantities.items():
        if one.compared or one.inside or one.size != "none" or one.of == "detector":
            raise RegistryError(
                f"{name}: {quantity}: a registered quantity is of a model or of the run; it has no size, no brackets "
                "and no comparison of two models"
            )
