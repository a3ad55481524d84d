"""The interface of assessments, built in or from packages, and their findings.

@assessments.register("leakiness", traits=AssessmentTraits("Leakiness", spec=LeakinessSpec))
class Leakiness(Assessment):
    def check(self, study, spec): ...         # refuse before a run what could not be answered after it
    def assess(self, context, spec): ...      # a frozen record, or Unanswered
    def sections(self, result, models): ...   # for people
    def quantities(self, result): ...         # for gate, JSON, CSV, MLflow and evidence
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from advrisk.assess.context import Context, asked_spec, assessment_named
from advrisk.core.containment import exits_as_errors
from advrisk.core.errors import AdvriskError, StudyError
from advrisk.core.estimate import NUMBERS, Estimate, NamedEstimate
from advrisk.core.sections import Section, Unanswered, every, headline_of, without_twins
from advrisk.core.tables import Columns, Row, Tabular
from advrisk.ledger import Ledger
from advrisk.study import StudySpec, validated
from advrisk.study.questions import AssessmentTraits
from advrisk.study.registered import assessments


class Assessment:
    """One question. `result` is the value of `assess`, the only method that reads the run."""

    kind: ClassVar[type[Tabular] | None] = None  # class of the result of a built-in one
    several: ClassVar[bool] = False  # the result is a tuple of `kind`

    def check(self, study: StudySpec, spec: Any) -> None:
        """Raise a StudyError if the study could not answer the question after the run.

        The checks of built-in questions need the plan, so they are in `run.checks`.
        """

    def assess(self, context: Context, spec: Any) -> Any:
        """The result, or `Unanswered`; a RiskError counts as `Unanswered`."""
        raise NotImplementedError(f"{type(self).__name__}.assess")

    def sections(self, result: Any, models: Sequence[str]) -> Iterable[Section]:
        """The answer for people, a `Headline` first; `models` are those of the run, in the order of their colours."""
        raise NotImplementedError(f"{type(self).__name__}.sections")

    def quantities(self, result: Any) -> Iterable[NamedEstimate]:
        """The answer for machines; the traits declare the name of each quantity."""
        del result
        return ()

    def question(self, context: Context, given: Mapping[str, Any]) -> Any:
        """The validated options that `assess` receives."""
        return asked_spec(context, given)

    def asked(self, context: Context) -> Mapping[str, Any] | Unanswered | None:
        """The options for the page; why it cannot be answered; or None if the study does not ask."""
        return {} if context.study is not None and context.name in context.study.assess.brought else None

    def missing(self, ledger: Ledger, why: str) -> str:
        """A note on what stays unknown without an answer; `why` is the reason, empty if the question was not asked."""
        del ledger, why
        return ""

    def illustrated(self, folder: Path, ledger: Ledger, result: Any) -> Any:
        """The result with pictures of kept inputs, for pages only."""
        del folder, ledger
        return result


@dataclass(frozen=True)
class Finding(Tabular):
    """The answer of an assessment on a run; as a table, its quantities."""

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


def ask(context: Context, name: str, **given: Any) -> Finding | Unanswered:
    """The finding of one assessment, or why it has no answer."""
    assessment = assessment_named(name)
    assessment.question(
        context.about(name, given.get("level")), given
    )  # a mistake in the options is an error, not a missing answer
    try:
        with exits_as_errors(name):
            result = context.attempt(name, **given)
            if isinstance(result, Unanswered):
                return result
            return _checked_finding(name, assessment, result, context.models)
    except AdvriskError as error:
        if name in assessments.built_in:
            raise
        return Unanswered(str(error))
    except Exception as error:  # an error in a package's code must not prevent other answers
        if name in assessments.built_in:
            raise
        return Unanswered(f"{name} failed with {type(error).__name__}: {error}", "report this to its authors")


def finding_of(name: str, result: Any, models: Sequence[str] = ()) -> Finding:
    """The finding of a result of a built-in question, or of one of several."""
    assessment = assessment_named(name)
    if assessment.several and not isinstance(result, tuple):
        result = (result,)
    return _new_finding(name, assessment, result, models)


def illustrated(finding: Finding, folder: Path, ledger: Ledger, models: Sequence[str]) -> Finding:
    """The finding with pictures of kept inputs, for pages only."""
    result = assessment_named(finding.name).illustrated(folder, ledger, finding.result)
    return finding if result is finding.result else finding_of(finding.name, result, models)


def _new_finding(name: str, assessment: Assessment, result: Any, models: Sequence[str]) -> Finding:
    sections, quantities = without_twins(assessment.sections(result, models)), tuple(assessment.quantities(result))
    return Finding(name, assessments.get(name).traits.title, result, sections, quantities)


def _checked_finding(name: str, assessment: Assessment, result: Any, models: Sequence[str]) -> Finding | Unanswered:
    finding = _new_finding(name, assessment, result, models)
    fault = fault_of(finding.sections, finding.quantities, assessments.get(name).traits)
    return Unanswered(f"{name} gave {fault}", "report this to its authors") if fault else finding


def fault_of(sections: tuple[Section, ...], quantities: tuple[NamedEstimate, ...], traits: AssessmentTraits) -> str:
    """Why an answer violates the interface, checked at runtime; empty if it does not."""
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
    """Refuse a study with questions that could not be answered after the run."""
    for name, options in study.assess.brought.items():
        part = assessments.get(name)
        spec = validated(part.traits.spec, options, study.where, within=("assess", name))
        try:
            with exits_as_errors(name, StudyError):
                part.function().check(study, spec)
        except StudyError as error:
            raise study.where.error(("assess", name), str(error)) from None
