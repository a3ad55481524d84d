"""What is shown of two runs: every number, old and new, and whether the new one is worse."""

from collections.abc import Iterator, Sequence

from advrisk.assess.compare.records import Compared, RunComparison
from advrisk.assess.gate.cases import Case, Verdicts, measured_text, verdict_sections
from advrisk.core.names import counted, listed
from advrisk.core.numbers import level_text
from advrisk.core.sections import Cell, Column, Headline, Section, Value
from advrisk.core.values import number_text

_COLUMNS = (Column("number"), Column("old", "precise"), Column("new", "precise"), Column("worse by", "precise"))


def sections(result: RunComparison, models: Sequence[str] = ()) -> Iterator[Section]:
    """Every number of every pair of models."""
    del models
    verdicts, pairs = comparison_verdicts(result), _pairs(result)
    yield Headline(verdicts.heading)
    title = f"Every number{f' of {pairs[0]}' if len(pairs) == 1 else ''}, old and new"
    yield from verdict_sections(title, _COLUMNS, [_row(one, result) for one in result.results], verdicts)


def comparison_verdicts(result: RunComparison) -> Verdicts:
    """The numbers of a new run beside those of an old one."""
    return Verdicts(
        "advrisk.compare",
        f"{result.new} against {result.old}: {comparison_headline(result)}",
        result.verdict,
        tuple(_case(one) for one in result.results),
        (
            f"Paired on {counted(result.n_samples, 'sample')}; margin {result.margin_text}, level "
            f"{level_text(result.level)}. p is one-sided: the probability of so good a result if the new one were "
            "worse by the margin.",
            *result.notes,
        ),
    )


def comparison_headline(result: RunComparison) -> str:
    """In one sentence, without whom it is of."""
    margin = f" by more than {result.margin_text}" if result.margin else ""
    deciding = _named([one for one in result.results if one.verdict == result.verdict], result)
    if result.word in ("worse", "undecided") and result.improved:
        deciding += f"; better in {_named(result.improved, result)}"
    return {
        "identical": "identical: the same model",
        "better": f"better in {_named(result.improved, result)}, and in nothing worse{margin}",
        "worse": f"worse{margin} in {deciding}",
        "undecided": f"undecided whether it is worse{margin} in {deciding}",
    }.get(result.word, f"{result.word}{margin}")


def _named(rows: Sequence[Compared], result: RunComparison) -> str:
    """The numbers, with their models where several pairs were compared; what could not be compared comes last."""
    names = [
        f"{_name(one, result)}{' (not compared)' if one.worse_by is None else ''}"
        for one in sorted(rows, key=lambda one: one.worse_by is None)
    ]
    return listed(names)


def _name(one: Compared, result: RunComparison) -> str:
    return one.label if len(_pairs(result)) > 1 else one.quantity


def _pairs(result: RunComparison) -> list[str]:
    return list(dict.fromkeys(one.models for one in result.results))


def _row(one: Compared, result: RunComparison) -> tuple[Value, ...]:
    if one.worse_by is None:
        return _name(one, result), None, None, None
    return _name(one, result), one.old_value, one.new_value, Cell(one.worse_by, _p_text(one))


def _case(one: Compared) -> Case:
    value = measured_text(None)
    if one.worse_by is not None:
        old, new, worse = map(measured_text, (one.old_value, one.new_value, one.worse_by))
        value = ", ".join((f"{old} -> {new}; worse by {worse}", *_p_text(one)))
    beside = ((one.settle,) if one.settle else ()) + one.cautions
    return Case(one.label, one.verdict, one.word, value, one.reason, beside)


def _p_text(one: Compared) -> tuple[str, ...]:
    return () if one.p is None else (f"p {number_text(one.p, 'p-value')}",)
