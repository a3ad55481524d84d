"""An old run against a new one: is the new model worse by more than a margin in any number that both runs have?"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

from advrisk.api.paired import Comparing
from advrisk.assess.compare.pairing import paired_runs, refuse_unknown
from advrisk.assess.compare.records import DEFAULT_MARGIN, Compared, RunComparison
from advrisk.assess.damage.question import refuse_beyond_data
from advrisk.core.errors import RiskError
from advrisk.core.names import one_or_many
from advrisk.core.numbers import parse_number
from advrisk.core.sections import Unanswered
from advrisk.ledger.layout import EVASION_FILE
from advrisk.risk.evasion import Evasion, read_evasion, threshold
from advrisk.study import AVERAGE, OPTIONS, DamageSpec, Norm, validated

if TYPE_CHECKING:
    from advrisk.api.run import Run
    from advrisk.assess.damage.question import AnyEvasion


def compare_runs(
    old: "Run",
    new: "Run",
    *,
    margin: float | None = None,
    models: Mapping[str, str] | None = None,
    sizes: Sequence[float | str] | None = None,
    norm: Norm | None = None,
    arms: Sequence[str] | None = None,
    evasion: "AnyEvasion | None" = None,
    level: float | None = None,
) -> RunComparison:
    """Compare every number that both runs have, on the samples and under the arms that both hold."""
    by_default, margin = margin is None, DEFAULT_MARGIN if margin is None else margin
    _check(margin, level)
    sizes_read = None if sizes is None else _read_sizes(sizes)
    old = _named_like(old, new)
    pairing = paired_runs(old.ledger, new.ledger, models)
    arms = one_or_many(arms)
    refuse_unknown(pairing, arms or ())
    shared = _shared_norm(old, new, norm)
    refuse_beyond_data(new.folder, DamageSpec(norm=shared, thresholds=sizes_read or None))
    pending = _unfinished(old, new)
    curve = _curve(old, new, evasion, shared)

    def compared(at: float | None) -> tuple[Comparing, list[Compared]]:
        comparing = Comparing(old, new, pairing, margin, at, shared, arms=arms, pending=pending)
        return comparing, [one for pair in pairing.models for one in comparing.of(pair, sizes_read, curve)]

    comparing, results = compared(level)
    return RunComparison(
        old=old.name,
        new=new.name,
        margin=margin,
        level=comparing.level,
        n_samples=len(pairing.samples),
        arms={f"{one} -> {other}": [row["arm"] for row in rows] for (one, other), rows in pairing.arms.items()},
        results=tuple(results),
        notes=(*pairing.notes, *_differences(old, new), *pending, *dict.fromkeys(comparing.notes)),
        margin_is_default=by_default,
        improved=_improved(results, comparing.level, lambda at: compared(at)[1]),
    )


def _improved(
    results: Sequence[Compared], level: float, again: Callable[[float], Sequence[Compared]]
) -> tuple[Compared, ...]:
    """The numbers that are better with the error of `level` shared equally among all of them (Bonferroni).

    So the claim that the new run is better somewhere is wrong no more often than each number alone may be.
    """
    n = sum(one.worse_by is not None and not one.identical for one in results)
    if not any(one.word == "better" for one in results):
        return ()
    found = results if n == 1 else again(1 - (1 - level) / n)
    return tuple(one for one in found if one.word == "better")


def _named_like(old: "Run", new: "Run") -> "Run":
    """The old run with its arms and detectors by the new one's names: an arm that was renamed is still the same."""
    if old.ledger.ids == new.ledger.ids:
        return old
    renamed = copy(old)
    renamed.ledger = old.ledger.named(new.ledger)
    return renamed


def _check(margin: float, level: float | None) -> None:
    if not 0 <= margin < 1:
        raise RiskError(f"a margin is a share, at least 0 and less than 1, found {margin}; 2 % is 0.02")
    if level is not None and not 0 < level < 1:
        raise RiskError(f"level must lie between 0 and 1, found {level}")


def _read_sizes(sizes: Sequence[float | str]) -> list[float]:
    """Sizes within which samples may be broken, numbers or as written (`8/255`)."""
    given: Sequence[float | str] = one_or_many(sizes)
    found = []
    for size in given:
        try:
            number = parse_number(size)
        except ValueError:
            number = 0.0
        if number <= 0:
            shown = f"{size:g}" if isinstance(size, int | float) else repr(size)
            raise RiskError(f"a size within which samples may be broken (`--eps`) is a number above 0, found {shown}")
        found.append(number)
    return found


def _shared_norm(old: "Run", new: "Run", given: Norm | None) -> Norm:
    if given is not None:
        return given
    if old.norm != new.norm:
        raise RiskError(
            f"distances count in {old.norm} in the old run and in {new.norm} in the new one; say which norm (`--norm`)"
        )
    return new.norm


def _differences(old: "Run", new: "Run") -> list[str]:
    """What else is not the same in the two."""
    notes = []
    if old.seed != new.seed:
        notes.append(f"The seeds differ ({old.seed} and {new.seed}): random arms drew differently.")
    if old.study and new.study and old.study.success != new.study.success:
        raise RiskError(
            "success means something else in the two runs (another target); run both with the same `success`"
        )
    return notes


def _unfinished(old: "Run", new: "Run") -> list[str]:
    """Which of the two is not finished, and how far it is."""
    found = [(which, run.status()) for run, which in ((old, "old"), (new, "new"))]
    return [
        f"The {which} run is not finished: {state.so_far} are done."
        for which, state in found
        if state.n_cells < state.n_cells_expected
    ]


def _curve(old: "Run", new: "Run", given: "AnyEvasion | None", norm: Norm) -> Evasion | Unanswered | None:
    """The evasion curve that both go by: the one given, or that of both studies, if it is the same.

    `Unanswered` where a study asks for damage under a curve and there is none; None where no study does.
    """
    if given is not None:
        if given == AVERAGE:
            raise RiskError("relative damage depends on the compared models, and cannot be held against a margin")
        if callable(given):
            refuse_beyond_data(new.folder, DamageSpec(norm=norm), given)
            return given
        asked = validated(DamageSpec, {"norm": norm, "evasion": str(given)}, OPTIONS)
        refuse_beyond_data(new.folder, asked)
        if asked.evasion_file is None:
            return threshold(float(asked.evasion or 0.0))
        return read_evasion(Path(asked.evasion_file), norm=norm)
    told = [run.study.assess.damage.evasion if run.study else None for run in (old, new)]
    named = [one not in (None, AVERAGE) for one in told]
    if not any(named):
        return None
    files = [run.folder / EVASION_FILE for run in (old, new)]
    if all(named) and all(file.is_file() for file in files):
        if files[0].read_bytes() == files[1].read_bytes():
            return read_evasion(files[1], norm=norm)
    elif all(named) and told[0] == told[1] and isinstance(told[1], float):
        return threshold(told[1])
    return Unanswered("the two studies go by different evasion curves", "give one for both (`--evasion`)")
