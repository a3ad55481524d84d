"""What an assessment is, and its finding: the same for those built in and those that packages bring.

@assessments.register("leakiness", traits=AssessmentTraits("Leakiness", spec=LeakinessSpec))
class Leakiness:
    def check(self, study, spec): ...                    # refuse before a run what could not be answered after it
    def assess(self, ledger, spec, *, level, rng): ...   # a frozen record, or Unanswered
    def sections(self, result, models): ...              # for people
    def quantities(self, result): ...                    # for gate, JSON, CSV, MLflow and evidence
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from advrisk.core.containment import exits_as_errors
from advrisk.core.errors import AdvriskError, RiskError, StudyError
from advrisk.core.estimate import NUMBERS, Estimate, NamedEstimate
from advrisk.core.sections import Section, Unanswered, every, headline_of, without_twins
from advrisk.core.seeds import generator
from advrisk.core.tables import Columns, Row, Tabular
from advrisk.ledger import Ledger
from advrisk.study import Source, StudySpec, validated
from advrisk.study.questions import AssessmentTraits, assessments

LEVEL = 0.95  # of intervals, where nobody says another


class Assessment(Protocol):
    """One question. `result` is whatever `assess` returned; no other method sees the ledger."""

    def check(self, study: StudySpec, spec: Any) -> None:
        """Raise a StudyError where the study could not answer the question once it has run."""

    def assess(self, ledger: Ledger, spec: Any, *, level: float, rng: np.random.Generator) -> Any:
        """The result, or `Unanswered`; a RiskError is an `Unanswered`, too."""

    def sections(self, result: Any, models: Sequence[str]) -> Iterable[Section]:
        """The answer for people, a `Headline` first; `models` are all of the run, in the order of their colours."""

    def quantities(self, result: Any) -> Iterable[NamedEstimate]:
        """The answer for machines; the name of each quantity stands in the traits."""


@dataclass(frozen=True)
class Finding(Tabular):
    """What an assessment says of a run; as a table, its quantities."""

    name: str
    title: str
    result: Any = field(repr=False)
    sections: tuple[Section, ...] = field(repr=False)
    quantities: tuple[NamedEstimate, ...] = ()

    columns: ClassVar[Columns] = NUMBERS

    @property
    def headline(self) -> str:
        return headline_of(self.sections)

    def rows(self) -> list[Row]:
        """A row for each quantity."""
        return [one.row() for one in self.quantities]


def ask(
    name: str,
    ledger: Ledger,
    options: Mapping[str, Any],
    *,
    models: Sequence[str] = (),
    level: float | None = None,
    seed: int = 0,
) -> Finding | Unanswered:
    """Ask one registered assessment; its random numbers depend on the study's seed and its name."""
    part = assessments.get(name)
    spec = validated(part.traits.spec, options, Source(), within=(name,))
    level = LEVEL if level is None else level
    if not 0 < level < 1:
        raise RiskError(f"level must lie between 0 and 1, found {level}")
    assessment: Assessment = part.function()
    try:
        with exits_as_errors(name):
            result = assessment.assess(ledger, spec, level=level, rng=generator("assessment", name, seed))
        if isinstance(result, Unanswered):
            return result
        sections, quantities = without_twins(assessment.sections(result, models)), tuple(assessment.quantities(result))
    except AdvriskError as error:
        return Unanswered(str(error))
    except Exception as error:  # a package's own code: it must not cost the other answers of the run
        return Unanswered(f"{name} failed with {type(error).__name__}: {error}", "report this to its authors")
    if fault := _fault(sections, quantities, part.traits):
        return Unanswered(f"{name} gave {fault}", "report this to its authors")
    return Finding(name, part.traits.title, result, sections, quantities)


def _fault(sections: tuple[Section, ...], quantities: tuple[NamedEstimate, ...], traits: AssessmentTraits) -> str:
    """What is wrong with an answer, whatever the types of its author's code say; empty if nothing is."""
    for one in every(sections):
        if not isinstance(one, Section):
            return f"{type(one).__name__} for a section"
    for number in quantities:
        if not isinstance(number, NamedEstimate):
            return f"{type(number).__name__} for a quantity, where a NamedEstimate is needed"
        if number.quantity not in traits.quantities:
            return f"the quantity {number.name!r}, which its traits do not name"
        if not isinstance(number.estimate, Estimate):
            return f"{type(number.estimate).__name__} for the quantity {number.name!r}, where an Estimate is needed"
        if not number.model and traits.quantities[number.quantity].of != "anything":
            return f'the quantity {number.name!r} without a model; its Quantity needs `of="anything"` for that'
    return ""


def check_assessments(study: StudySpec) -> None:
    """Refuse a study whose registered questions could not be answered once it has run."""
    for name, options in study.assess.further.items():
        part = assessments.get(name)
        spec = validated(part.traits.spec, options, study.where, within=("assess", name))
        try:
            part.function().check(study, spec)
        except StudyError as error:
            raise study.where.error(("assess", name), str(error)) from None
