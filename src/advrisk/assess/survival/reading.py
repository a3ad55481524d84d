"""Durations from a run's outcome rows; rows and arms that are not fitted are counted or named with the reason."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from advrisk.assess.damage.clean import CLEAN_ROWS
from advrisk.core.errors import RiskError
from advrisk.core.names import did_you_mean, matches, no_match
from advrisk.ledger import Ledger
from advrisk.risk.survival.durations import (
    COUNTED,
    MEASURES,
    UNITS,
    Durations,
    Facts,
    Flags,
    NoDurationsError,
    RowValues,
    Tally,
    WorkMeasure,
)
from advrisk.risk.survival.frames import Floats

_ROWS = """
    SELECT o.model, o.arm, o.sample, o.outcome, o.n_forward, o.n_backward, o.n_forward_first, o.n_backward_first,
           o.n_forward - coalesce(o.n_confirm, 0) AS n_proposed, o.n_forward_before, o.n_backward_before,
           o.first_s, o.spent_s, c.wall_s, c.process_s, c.accounting
    FROM outcomes o JOIN cells c USING (cell) JOIN samples s USING (sample)
    WHERE s.split = 'evaluate' AND o.model IN (SELECT unnest($models)) AND o.arm IN (SELECT unnest($arms))
    ORDER BY o.model, o.arm, o.sample, o.repeat
"""
_INFERENCE = """
    SELECT model, sum(inference_s * n_samples ORDER BY inference_s * n_samples) / sum(n_samples) AS seconds
    FROM cells WHERE inference_s IS NOT NULL GROUP BY model
"""
_ONE_STEP = "fgsm"
_TWO_PASSES = 2  # of one step: where it begins, and where it ends
_NOT_BY_SAMPLE = {
    "batch": "its passes are counted for a batch as a whole",
    "none": "it does not query the model",
    "imported": "its passes were not counted here",
}


def read_durations(
    ledger: Ledger,
    *,
    measure: WorkMeasure = "forward",
    models: Sequence[str] | None = None,
    arms: Sequence[str] | None = None,
) -> Durations:
    """The durations of the study's own attacks, or of those that match the patterns, on the evaluation split.

    Not fitted, and named with the reason, are arms of one step, arms whose passes are not counted by sample and,
    for gradient passes, arms that use no gradient.
    """
    if measure not in MEASURES:
        raise RiskError(f"durations are measured in forward, gradient, seconds or process-seconds; found {measure!r}")
    chosen = _arm_rows(ledger, arms, models)
    table = ledger.query(
        _ROWS, {"models": sorted({row["model"] for row in chosen}), "arms": sorted({row["arm"] for row in chosen})}
    )
    rows = _Rows.of(table)
    arm_rows = {row["arm"]: row for row in chosen}
    left_out = {arm: why for arm in arm_rows if (why := _why_not(arm, arm_rows[arm], rows, measure))}
    fitted = np.array([arm not in left_out for arm in rows.arm], dtype=np.bool_)
    if not fitted.any():
        raise NoDurationsError(_nothing_to_fit(arm_rows, left_out, measure))
    rows = rows.kept(fitted)
    timed = _timed(rows, measure, {arm: row["keep"] for arm, row in arm_rows.items()})
    samples = ledger.query("SELECT sample, label, strata, weight FROM samples WHERE split = 'evaluate' ORDER BY sample")
    return Durations(
        measure=measure,
        columns=timed.columns,
        zero=timed.zero,
        seconds=timed.seconds,
        arms={arm: row for arm, row in arm_rows.items() if arm not in left_out},
        left_out=left_out,
        by_arm=timed.by_arm,
        facts=_facts(ledger, dict.fromkeys(model for model, _ in timed.by_arm)),
        samples=_samples(samples),
        n_missing=_n_missing(chosen, left_out, len(samples), rows.size),
        weighted=len(set(samples["weight"].to_pylist())) > 1,
    )


@dataclass(frozen=True, eq=False)
class _Rows:
    """Outcome rows as arrays; missing numbers are nan."""

    model: RowValues
    arm: RowValues
    sample: RowValues
    outcome: RowValues
    accounting: RowValues
    spent: Mapping[str, Floats]  # by measure
    first: Mapping[str, Floats]
    before: Mapping[str, Floats]  # of pass counts: up to the query before the one that succeeded first

    @classmethod
    def of(cls, table: pa.Table) -> "_Rows":
        def number(name: str) -> Floats:
            return np.asarray(table[name].cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)

        def text(name: str) -> RowValues:
            return np.asarray(table[name].cast(pa.string()).to_numpy(zero_copy_only=False), dtype=object)

        wall, process = number("wall_s"), number("process_s")
        share = np.divide(process, wall, out=np.full(wall.shape, np.nan), where=wall > 0)
        first_s, spent_s = number("first_s"), number("spent_s")
        names = ("model", "arm", "sample", "outcome", "accounting")
        return cls(
            **{name: text(name) for name in names},
            spent={
                "forward": number("n_proposed"),  # without passes that only confirmed a success
                "gradient": number("n_backward"),
                "seconds": spent_s,
                "process-seconds": spent_s * share,
            },
            first={
                "forward": number("n_forward_first"),
                "gradient": number("n_backward_first"),
                "seconds": first_s,
                "process-seconds": first_s * share,
            },
            before={"forward": number("n_forward_before"), "gradient": number("n_backward_before")},
        )

    @property
    def size(self) -> int:
        return len(self.model)

    def kept(self, rows: Flags) -> "_Rows":
        return _Rows(
            model=self.model[rows],
            arm=self.arm[rows],
            sample=self.sample[rows],
            outcome=self.outcome[rows],
            accounting=self.accounting[rows],
            spent={name: column[rows] for name, column in self.spent.items()},
            first={name: column[rows] for name, column in self.first.items()},
            before={name: column[rows] for name, column in self.before.items()},
        )


@dataclass(frozen=True, eq=False)
class _Timed:
    columns: dict[str, RowValues]
    zero: dict[str, RowValues]
    seconds: Floats
    by_arm: dict[tuple[str, str], Tally]


def _timed(rows: _Rows, measure: WorkMeasure, keep: Mapping[str, str | None]) -> _Timed:
    """Durations of all rows with one, the rows at zero, and a tally of all rows."""
    recorded, spent = np.isfinite(rows.first["forward"]), rows.spent[measure]
    last = np.array([keep[arm] == "last" for arm in rows.arm], dtype=np.bool_)
    success = rows.outcome == "success"
    wrong, error = rows.outcome == "already_wrong", rows.outcome == "error"
    broken = (success | (recorded & last)) & ~wrong & ~error
    resisted = ~broken & ~wrong & ~error
    duration = np.where(broken & recorded, rows.first[measure], spent)
    at_once = broken & (duration == 0)  # a random start that was wrong already needed no gradient
    worked = duration > 0
    event, censored = broken & worked, resisted & worked
    reasons = {
        "events": event,
        "resisted": censored & (rows.outcome == "resisted") & ~recorded,
        "rejected": censored & (rows.outcome == "rejected") & ~recorded,
        "timeout": censored & (rows.outcome == "timeout") & ~recorded,
        "unconfirmed": censored & recorded,
        "already_wrong": wrong,
        "without_work": at_once,
        "error": error,
        "not_attacked": (resisted | broken) & ~worked & ~at_once,
    }
    pairs = dict.fromkeys(zip(rows.model.tolist(), rows.arm.tolist(), strict=True))
    by_arm = {}
    for model, arm in pairs:
        own = (rows.model == model) & (rows.arm == arm)
        by_arm[model, arm] = Tally(**{name: int(flags[own].sum()) for name, flags in reasons.items()})
    fitted, zero = event | censored, wrong | at_once
    lower = _lower(rows, duration, measure)
    lower = np.where(broken & ~recorded, 0.0, lower)  # only the judge recorded the success: at some time before the end
    names = {"model": rows.model, "arm": rows.arm, "sample": rows.sample}
    seconds = np.where(broken & recorded, rows.first["seconds"], rows.spent["seconds"])
    columns = {name: column[fitted] for name, column in names.items()}
    columns |= {"duration": duration[fitted], "lower": lower[fitted], "event": event[fitted]}
    return _Timed(columns, {name: column[zero] for name, column in names.items()}, seconds[fitted], by_arm)


def _lower(rows: _Rows, duration: Floats, measure: WorkMeasure) -> Floats:
    """The time up to which there was certainly no success: the previous query, which may be several passes earlier.

    Ledgers before version 5 do not store it: there, a query is one pass.
    """
    if measure not in COUNTED:
        return duration
    one_pass = np.maximum(duration - 1, 0.0)
    return np.fmin(one_pass, rows.before[measure])  # fmin ignores nan


def _why_not(arm: str, arm_row: Mapping[str, Any], rows: _Rows, measure: WorkMeasure) -> str | None:
    """Why an arm cannot be fitted; None if it can."""
    own = rows.arm == arm
    if not own.any():
        return "it was not run yet"
    if others := set(rows.accounting[own]) - {"sample"}:
        return _NOT_BY_SAMPLE.get(others.pop() or "imported", _NOT_BY_SAMPLE["imported"])
    if _one_step(arm_row, rows, own):
        return "it takes one step, so it has no duration"
    spent = rows.spent[measure][own]
    if measure == "gradient" and not (spent > 0).any():
        return "it uses no gradient"
    attacked = own & ~np.isin(rows.outcome, ("already_wrong", "error")) & (rows.spent["forward"] > 0)
    if (
        measure not in COUNTED and np.isnan(rows.spent[measure][attacked]).any()
    ):  # also broken rows: leaving those out would be selective
        return "its rows were made before seconds were kept; run the study in another folder"
    return None


def _one_step(arm_row: Mapping[str, Any], rows: _Rows, own: Flags) -> bool:
    """Whether an arm takes one step: by its name, by its settings, or by its passes."""
    params = json.loads(arm_row["params"] or "{}")
    if arm_row["family"] == _ONE_STEP or (params.get("steps") == 1 and params.get("restarts", 1) == 1):
        return True
    resisted = own & (rows.outcome == "resisted") & (rows.spent["forward"] > 0)
    return bool(resisted.any() and rows.spent["forward"][own].max() <= _TWO_PASSES)


def _arm_rows(ledger: Ledger, patterns: Sequence[str] | None, models: Sequence[str] | None) -> list[dict[str, Any]]:
    """The attacks that match the patterns; by default the study's own, or the imported ones without a study."""
    table: list[dict[str, Any]] = ledger.query(
        "SELECT * FROM arms WHERE origin NOT IN ('dropped', 'surrogate') AND coalesce(kind, 'attack') = 'attack' "
        "ORDER BY model, arm"
    ).to_pylist()
    if not table:
        raise NoDurationsError("this run holds no attack, so there are no durations")
    for model in models or ():
        if model not in (names := {row["model"] for row in table}):
            raise RiskError(f"no model called {model!r} was attacked in this run; {did_you_mean(model, names)}")
    table = [row for row in table if models is None or row["model"] in models]
    if patterns is None:
        own = "study" if any(row["origin"] == "study" for row in table) else "import"
        return [row for row in table if row["origin"] == own]
    for pattern in patterns:
        if complaint := no_match(pattern, {row["arm"] for row in table}):
            raise RiskError(complaint)
    return [row for row in table if matches(row["arm"], patterns)]


def _nothing_to_fit(arms: Mapping[str, Any], left_out: Mapping[str, str], measure: WorkMeasure) -> str:
    reasons: dict[str, list[str]] = {}
    for arm in arms:
        reasons.setdefault(left_out.get(arm, "it has no row"), []).append(arm)
    explained = "; ".join(f"{', '.join(names)}: {why}" for why, names in reasons.items())
    return (
        f"no arm has a duration in {UNITS[measure]}. {explained}. Add an attack of several steps to the study, as in "
        "{attack: pgd, norm: linf, eps: [0.05, 0.1]}"
    )


def _facts(ledger: Ledger, models: Mapping[str, Any]) -> dict[str, Facts]:
    model_rows = {row["model"]: row for row in ledger.query("FROM models").to_pylist()}
    clean: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in ledger.query(f"{CLEAN_ROWS} ORDER BY o.model, o.sample").to_pylist():
        clean.setdefault(row["model"], {})[row["sample"]] = row
    inference = {row["model"]: row["seconds"] for row in ledger.query(_INFERENCE).to_pylist()}
    return {model: _fact(model_rows.get(model, {}), clean.get(model), inference.get(model)) for model in models}


def _fact(
    model_row: Mapping[str, Any], clean: Mapping[str, Mapping[str, Any]] | None, inference_s: float | None
) -> Facts:
    clean_rows = clean or {}
    return Facts(
        tags=json.loads(model_row.get("tags") or "{}"),
        train_s=model_row.get("train_s"),
        train_samples=model_row.get("train_samples"),
        inference_s=inference_s,
        right={name: row["correct"] for name, row in clean_rows.items()} or None,
        n_clean_rejected=sum(row["is_refused"] for row in clean_rows.values()),
        train_process_s=model_row.get("train_process_s"),
        train_cost=model_row.get("train_cost"),
        wrong={name: max(1 - row["correct"] - row["refused"], 0.0) for name, row in clean_rows.items()},
    )


def _samples(table: pa.Table) -> dict[str, dict[str, Any]]:
    strata = (json.loads(text or "{}") for text in table["strata"].to_pylist())
    labels: Iterator[Any] = iter(pc.fill_null(table["label"], -1).to_pylist())
    return {
        sample: {"class": label, **own}
        for sample, label, own in zip(table["sample"].to_pylist(), labels, strata, strict=True)
    }


def _n_missing(arms: Sequence[Mapping[str, Any]], left_out: Mapping[str, str], n_samples: int, n_rows: int) -> int:
    """The number of rows of the study that are missing; 0 for imported runs, where it is unknown."""
    if any(row["origin"] != "study" for row in arms):
        return 0
    expected = sum((row["repeats"] or 1) * n_samples for row in arms if row["arm"] not in left_out)
    return max(0, expected - n_rows)
