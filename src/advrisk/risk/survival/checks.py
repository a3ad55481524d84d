"""Checks before a fit: each error names the columns and the remedy."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from advrisk.core.errors import RiskError
from advrisk.core.names import counted, did_you_mean, one_or_many
from advrisk.core.numbers import parse_number
from advrisk.risk.survival.coding import Coding, TextCovariate
from advrisk.risk.survival.frames import Columns, Floats, numbers
from advrisk.risk.survival.likelihood import LawLikelihood

FEWEST_CLUSTERS = 30
EVENTS_EACH = 10  # for each coefficient, below which a note is due (Peduzzi et al. 1995)
_A_FEW = 100
_DERIVED = 10  # a covariate that orders this many distinct times exactly is computed from them


def checked_duration(columns: Columns, name: str) -> Floats:
    """The duration column: finite numbers above 0."""
    values = numbers(columns, name, "the duration")
    if (values < 0).any():
        raise RiskError(f"duration {name!r} is negative in row {int(np.argmax(values < 0))}: {values[values < 0][0]:g}")
    if (values == 0).any():
        raise RiskError(
            f"duration {name!r} is 0 in {counted(int((values == 0).sum()), 'row')}: a sample that is wrong before "
            "anything is done to it has no survival time; count these rows apart, and leave them out of the fit"
        )
    return values


def checked_event(columns: Columns, name: str) -> Floats:
    """The event column: 1 for an event, 0 for a censored row."""
    values = numbers(columns, name, "the event")
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        raise RiskError(
            f"event {name!r} must be 1 (seen) or 0 (censored); row {int(np.argmax(wrong))} has {values[wrong][0]:g}"
        )
    return values


def checked_lower(columns: Columns, name: str, duration: Floats, event: Floats) -> Floats:
    """The lower ends of the events' intervals; censored rows are not checked."""
    values = columns[name]
    if values.dtype.kind != "f":
        raise RiskError(f"column {name!r} (the lower end) must be of numbers, found text such as {str(values[0])!r}")
    with np.errstate(invalid="ignore"):
        wrong = (event > 0) & ~((values >= 0) & (values <= duration))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise RiskError(
            f"lower {name!r} must lie between 0 and the duration where the event was seen; "
            f"row {row} has {values[row]:g} and the duration {duration[row]:g}"
        )
    return values


def check_outcome(name: str, duration: Floats, event: Floats, n_coefficients: int) -> None:
    """Refuse too few events for the coefficients, and equal durations."""
    n_events = int(event.sum())
    if not n_events:
        raise RiskError(
            f"none of {counted(len(event), 'row')} has an event, all are censored: survival exceeds every duration by "
            "an unknown amount; use a Kaplan-Meier curve instead of a fit"
        )
    first = duration[event > 0]
    if first.min() == first.max() and duration.max() <= first.max():
        raise RiskError(
            f"duration {name!r} is single-valued: every event has {first[0]:g}, and nothing was watched for longer, so "
            "there is no spread to fit; measure in finer units, or let attacks go on for longer"
        )
    if n_events < n_coefficients:
        raise RiskError(
            f"{counted(n_events, 'event')} cannot carry {counted(n_coefficients, 'coefficient')} (intercepts and shape "
            "counted); drop covariates, merge levels, or gather more events"
        )


def check_level(level: float) -> None:
    """Refuse a level that is not a number between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, int | float | np.number) or not 0 < level < 1:
        raise RiskError(f"level must be a number between 0 and 1, found {level!r}")


def as_names(names: Sequence[str]) -> list[str]:
    """Names as a tuple; a single string is one name."""
    return [str(name) for name in one_or_many(names)]


def check_reference(reference: Mapping[str, str], covariates: Sequence[str]) -> None:
    """Refuse references of columns that are no covariates."""
    for name in reference:
        if name not in covariates:
            raise RiskError(f"reference names {name!r}, which is no covariate here; {did_you_mean(name, covariates)}")


def check_units(units: Mapping[str, float | str], covariates: Sequence[str]) -> None:
    """Refuse units that are not above 0, or belong to no covariate."""
    for name, unit in units.items():
        if name not in covariates:
            raise RiskError(f"units names {name!r}, which is no covariate here; {did_you_mean(name, covariates)}")
        try:
            size = parse_number(unit)
        except ValueError as error:
            raise RiskError(f"unit of {name!r}: {error}") from None
        if not size > 0:
            raise RiskError(f"unit of {name!r}: a number above 0 is needed, found {unit!r}")


def few_events(n_events: int, n_coefficients: int) -> str:
    """A note if there are few events for the number of coefficients, else empty."""
    if n_events >= EVENTS_EACH * n_coefficients:
        return ""
    return (
        f"Few events: {n_events} for {counted(n_coefficients, 'coefficient')} (intercepts and shape counted); below "
        f"about {EVENTS_EACH} for each, coefficients lean away from 0 and intervals are too narrow"
    )


def check_names(covariates: Sequence[str], outcome: Collection[str], forbidden: Collection[str]) -> None:
    """Refuse duplicate covariates, the outcome, and covariates that the caller marks as computed from it."""
    for name in covariates:
        if covariates.count(name) > 1:
            raise RiskError(f"covariate {name!r} is named twice")
        if name in outcome:
            raise RiskError(f"covariate {name!r} is part of the outcome; leave it out of the covariates")
        if name in forbidden:
            raise RiskError(
                f"covariate {name!r} is computed from the outcome, so it would explain survival by itself; leave it out"
            )


def check_copies(
    columns: Columns, covariates: Sequence[str], duration: Floats, event: Floats, by_time: NDArray[np.intp]
) -> None:
    """Refuse covariates that are equivalent to the duration or the event; `by_time` sorts rows by duration."""
    seen, rest = by_time[event[by_time] > 0], np.flatnonzero(event == 0)
    for name in covariates:
        values = _codes(columns[name])
        if _one_value(values, seen) and rest.size and _one_value(values, rest) and values[seen[0]] != values[rest[0]]:
            raise RiskError(f"covariate {name!r} says whether the event was seen: it is the outcome; leave it out")
    asked = [name for name in covariates if columns[name].dtype.kind == "f"]
    for rows in (rows for rows in (by_time, seen) if _distinct(duration[rows]) >= _DERIVED):
        for name in _rising(columns, _rising(columns, asked, duration, rows[:_A_FEW]), duration, rows):
            raise RiskError(
                f"covariate {name!r} orders the rows exactly as the duration does (rank correlation 1 or -1): it is "
                "computed from the outcome; leave it out"
            )


def check_collinear(x: Floats, coding: Coding) -> None:
    """Refuse a design column that is a linear combination of earlier ones."""
    gram = x.T @ x
    size = np.sqrt(np.diag(gram))
    if np.linalg.eigvalsh(gram / np.outer(size, size))[0] > 1e-9:
        return
    triangle: Floats = np.asarray(np.linalg.qr(x / size, mode="r"))
    owner = ["", *(one.name for one in coding.covariates for _ in one.columns)]
    for place in range(1, len(owner)):
        if abs(triangle[place, place]) < 1e-7:
            shares = np.linalg.lstsq(triangle[:, :place], triangle[:, place], rcond=1e-10)[0]
            others = dict.fromkeys(owner[i] for i in range(1, place) if abs(shares[i]) > 1e-6)
            named = [name for name in others if name and name != owner[place]]
            among = " and ".join(repr(name) for name in named) or "the others"
            raise RiskError(
                f"covariate {owner[place]!r} is collinear with {among} (column {coding.columns[place]!r} is a sum of "
                f"theirs), so their effects cannot be told apart; drop {owner[place]!r}, or {among}"
            )


def check_separated(model: LawLikelihood, coding: Coding, columns: Columns) -> None:
    """Refuse a covariate that separates events from censored rows, since its effect would be infinite."""
    for one in coding.covariates:
        values = columns[one.name]
        if isinstance(one, TextCovariate):
            for level in one.levels:
                is_level = (values == level).astype(np.float64)
                if _separates(model, is_level):
                    _refuse_separated(f"{one.name!r} = {level!r}", model, is_level > 0)
        elif _separates(model, values):
            raise RiskError(
                f"covariate {one.name!r} tells censored rows from events by itself, so its effect has no finite "
                "estimate; leave it out, or leave out the rows whose value settles the outcome"
            )


def _separates(model: LawLikelihood, values: Floats) -> bool:
    """Whether the likelihood grows without end along this column, the intercept making up for it.

    Rows with an event at a known time must stay where they are, so they must share one value; censored rows must all
    lie on one side of it, and events that may have come at any time before on the other.
    """
    rows = model.rows
    late = values[rows.intervals]
    any_time = np.isneginf(rows.log_lower)
    pinned = np.concatenate([values[rows.exact], late[~any_time]])
    right, left = values[rows.censored], late[any_time]
    if pinned.size:
        if pinned.min() < pinned.max():
            return False
        right, left = right - pinned[0], left - pinned[0]
        return any(
            bool((s * right >= 0).all() and (s * left <= 0).all() and ((right != 0).any() or (left != 0).any()))
            for s in (1, -1)
        )
    if not right.size or not left.size:
        return False
    return bool(right.min() >= left.max() or right.max() <= left.min())


def _refuse_separated(where: str, model: LawLikelihood, rows: NDArray[np.bool_]) -> None:
    inside = int(rows[model.rows.exact].sum() + rows[model.rows.intervals].sum())
    alone = rows if inside in (0, int(rows.sum())) else ~rows
    censored = not (alone[model.rows.exact].any() or alone[model.rows.intervals].any())
    side = where if alone is rows else f"every other value than {where}"
    what = (
        "no row has an event, all are censored"
        if censored
        else "every event may have come at any time before its first"
    )
    raise RiskError(
        f"where {side} ({counted(int(alone.sum()), 'row')}), {what}: the effect has no finite estimate; "
        "leave these rows out and report them apart, or merge the level with another"
    )


def clusters_of(columns: Columns, name: str) -> NDArray[np.intp]:
    """Index of each row's cluster; too few clusters are refused."""
    values = columns[name] if columns[name].dtype.kind != "f" else numbers(columns, name, "the cluster")
    found, inverse = np.unique(values, return_inverse=True)
    if len(found) < FEWEST_CLUSTERS:
        raise RiskError(
            f"cluster {name!r} has {counted(len(found), 'value')}; standard errors by cluster need about "
            f"{FEWEST_CLUSTERS} or more, with fewer they are too small; take more samples"
        )
    return inverse


def _codes(values: NDArray[np.generic]) -> Floats:
    if values.dtype.kind == "f":
        return np.asarray(values, dtype=np.float64)
    return np.asarray(np.unique(values, return_inverse=True)[1], dtype=np.float64)


def _one_value(values: Floats, rows: NDArray[np.intp]) -> bool:
    """Whether all these rows have one value; checks a few rows first, which usually suffices."""
    return all(bool((values[some] == values[rows[0]]).all()) for some in (rows[:_A_FEW], rows))


def _rising(columns: Columns, names: Sequence[str], duration: Floats, rows: NDArray[np.intp]) -> list[str]:
    """Columns that rise, or fall, exactly where the duration rises; rows are sorted by it."""
    if not names:
        return []
    rises = np.diff(duration[rows]) > 0
    change = np.sign(np.diff(np.stack([columns[name][rows] for name in names])))
    same = [(change == way * rises).all(axis=1) for way in (1, -1)]
    return [name for name, up, down in zip(names, *same, strict=True) if up or down]


def _distinct(ordered: Floats) -> int:
    return 1 + int((np.diff(ordered) > 0).sum()) if ordered.size else 0
