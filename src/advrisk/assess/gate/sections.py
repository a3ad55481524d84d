"""Sections of a gate: every requirement with its verdict, and what would decide undecided ones."""

from collections.abc import Iterator, Sequence

from advrisk.assess.gate.cases import MEASURED, Case, Verdicts, measured, measured_text, verdict_sections
from advrisk.assess.gate.records import GateResult, RequirementResult
from advrisk.core.errors import StudyError
from advrisk.core.names import few
from advrisk.core.sections import Column, Headline, Kind, Section, Summary, Text
from advrisk.study import parse_requirement

_HOW = (
    "What the study requires. The interval decides, not the value: a requirement passes if its whole interval does, "
    "fails if none of it does, and is undecided otherwise. The gate passes only if every requirement does."
)


def sections(result: GateResult, models: Sequence[str] = ()) -> Iterator[Section]:
    """Every requirement, in the order of the study."""
    del models
    yield Headline(gate_headline(result))
    yield Summary("headlines", (gate_headline(result),))
    state = "passes" if result.passed else "fails" if result.failed else "is undecided"
    yield Summary("ship", (f"The study's gate {state} ({gate_counts(result)}).",))
    if undecided := _undecided(result):
        yield Summary("undecided", tuple(undecided))
    yield Text((_HOW,), how=True)
    rows = [(one.requirement, measured(one.estimate, _kind(one))) for one in result.results]
    yield from verdict_sections("Requirements", (Column("requirement"), MEASURED), rows, gate_verdicts(result))


def gate_verdicts(result: GateResult) -> Verdicts:
    """The verdicts of a gate, as cases."""
    return Verdicts(
        "advrisk.gate",
        gate_headline(result),
        result.verdict,
        tuple(_case(one) for one in result.results),
        (_on_origin(result), *result.notes),
    )


def gate_headline(result: GateResult) -> str:
    """`Gate of signs: undecided (3 pass, 1 undecided)`."""
    return f"Gate of {result.name}: {result.verdict} ({gate_counts(result)})"


def gate_counts(result: GateResult) -> str:
    """`3 pass, 1 undecided`."""
    return ", ".join(f"{n} {verdict}" for verdict, n in result.counts.items() if n)


def _on_origin(result: GateResult) -> str:
    own = sum(one.origin == "study" for one in result.results)
    return f"Requirements: {own} of the study, {len(result.results) - own} given in addition."


def _case(one: RequirementResult) -> Case:
    beside = ((one.settle,) if one.settle else ()) + one.cautions
    return Case(one.requirement, one.verdict, one.verdict, measured_text(one.estimate, _kind(one)), one.reason, beside)


def _kind(one: RequirementResult) -> Kind:
    """The format of the measured value: percent for a share, if the requirement can be parsed."""
    try:
        return "share" if parse_requirement(one.requirement).left.what.kind == "share" else "precise"
    except StudyError:  # of an assessment that is not installed here
        return "precise"


def _undecided(result: GateResult) -> list[str]:
    """The first undecided requirements, and the number of further ones."""
    sentences = [
        f"Required, {one.requirement}: {one.reason}{f'; {one.settle}' if one.settle else ''}."
        for one in result.results
        if one.verdict == "undecided"
    ]
    return few(sentences, "more requirements are undecided.")
