"""Verdicts on requirements or pairs of runs, for tables and for files that pipelines read."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from advrisk.assess.gate.records import Verdict
from advrisk.core.estimate import Estimate
from advrisk.core.sections import Cell, Column, Kind, Section, Table, Text, Value
from advrisk.core.values import number_text, value_text

MEASURED = Column("value", "precise")
_VERDICT, _WHY = Column("verdict"), Column("why", detail=True)


@dataclass(frozen=True)
class Case:
    """One verdict as text."""

    name: str
    verdict: Verdict
    word: str  # the displayed verdict
    value: str
    reason: str
    beside: tuple[str, ...] = ()  # what would decide it, and caveats


@dataclass(frozen=True)
class Verdicts:
    """All verdicts, with a heading."""

    suite: str  # `advrisk.gate`, `advrisk.compare`
    heading: str
    verdict: Verdict
    cases: tuple[Case, ...]
    notes: tuple[str, ...] = ()


def measured(estimate: Estimate | None, kind: Kind = "precise") -> Value:
    """The table cell of an estimate: counts and yes or no have no interval."""
    if estimate is None:
        return None
    if estimate.method == "certificate":
        return number_text(estimate.value, "flag")
    return number_text(estimate.value, "count") if estimate.method == "count" else Cell(estimate, kind=kind)


def measured_text(estimate: Estimate | None, kind: Kind = "precise") -> str:
    """`4.6 % [2.9, 6.8]`, a count, or yes and no."""
    return value_text(measured(estimate, kind), MEASURED)


def verdict_sections(
    title: str, columns: tuple[Column, ...], rows: Sequence[tuple[Value, ...]], of: Verdicts
) -> Iterator[Section]:
    """A table of `rows` with the verdict second and the reason last; below it, undecided cases and caveats.

    The first of `columns` names the case, the others the measured values.
    """
    first, *others = columns
    whole = (
        (name, _verdict(case), *values, Cell(case.reason, case.beside))
        for (name, *values), case in zip(rows, of.cases, strict=True)
    )
    yield Table(title, (first, _VERDICT, *others, _WHY), tuple(whole), of.notes)
    if sentences := (*_open(of.cases), *_cautions(of.cases)):
        yield Text(sentences)


def _verdict(case: Case) -> Cell:
    return Cell(case.word, mark="best" if case.verdict == "pass" else "")


def _open(cases: Sequence[Case]) -> list[str]:
    """Each case that does not pass, and what would decide it."""
    return [f"{case.name}: {_joined(case.reason, *case.beside)}." for case in cases if case.verdict != "pass"]


def _cautions(cases: Sequence[Case]) -> list[str]:
    """Caveats on the cases that pass, each once."""
    counts = Counter(text for case in cases if case.verdict == "pass" for text in case.beside)
    return [f"Beside what passes{f' ({n} times)' if n > 1 else ''}: {_joined(text)}." for text, n in counts.items()]


def _joined(*texts: str) -> str:
    """The parts joined to one sentence, without inner full stops."""
    return "; ".join(text.removesuffix(".") for text in texts)
