"""Outcomes of arms on a model's samples and a detector's scores, from a run's ledger; vectorised over rows."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from advrisk.core.errors import RiskError
from advrisk.core.names import did_you_mean, matches, no_match
from advrisk.ledger import Ledger
from advrisk.risk.detection.entries import Scored
from advrisk.risk.detection.groups import ADAPTIVE, ScoredArm
from advrisk.risk.detection.roc import Flags, Floats, Integers

_ARMS = """
    SELECT model, arm, coalesce(repeats, 1) AS repeats, origin, kind, family, norm, eps, objective, params
    FROM arms WHERE origin IN ('study', 'import') AND kind IS DISTINCT FROM 'clean' ORDER BY model, arm
"""

_OUTCOMES = """
    SELECT cell, sample, outcome, (n_forward + n_backward)::DOUBLE AS passes
    FROM outcomes WHERE model = $model AND arm IN (SELECT unnest($arms))
"""

_CELLS = """
    SELECT c.cell, c.arm, coalesce(c.repeat, 0) AS repeat, a.kind
    FROM cells c JOIN arms a ON a.model = c.model AND a.arm = c.arm WHERE c.model = $model
"""

_SCORES = """
    SELECT cell, sample, score FROM scores
    WHERE detector = $detector AND cell IN (SELECT cell FROM cells WHERE model = $model)
"""

_SUCCESS, _RESISTED, _ALREADY_WRONG, _FAILED = 1, 2, 3, 4  # 0: no row
_VERDICTS = {"success": _SUCCESS, "resisted": _RESISTED, "already_wrong": _ALREADY_WRONG, "rejected": _RESISTED}


@dataclass(frozen=True, eq=False)
class Attacked:
    """The outcomes of all arms on the samples of one model; arms x samples."""

    model: str
    arms: tuple[ScoredArm, ...]
    samples: tuple[str, ...]  # those with a verdict of every arm except adaptive ones
    success: Flags
    judged: Flags  # the arm gave a verdict, which adaptive ones may lack
    attacked: Flags  # the arm ran, as the clean input is no natural error
    passes: Floats  # nan if passes were not counted
    n_samples: int  # of the evaluation split
    n_unfinished: int
    n_without_verdict: int
    _cells: pa.Array  # cells
    _rows: Integers  # index of each cell's arm; that of the clean inputs is the last

    @property
    def attackable(self) -> Flags:
        """The samples that some arm attacked: all but natural errors, or all with the criterion `prediction`."""
        return np.asarray(self.attacked.any(axis=0))


def chosen_arms(ledger: Ledger, arms: Sequence[str] | None, models: Sequence[str] | None) -> dict[str, list[ScoredArm]]:
    """Model -> arms that match; by default the study's own attacks, or the imported ones without a study."""
    table = ledger.query(_ARMS).to_pylist()
    for model in models or ():
        attacked = {row["model"] for row in table}
        if model not in attacked:
            raise RiskError(f"no model called {model!r} was attacked in this run; {did_you_mean(model, attacked)}")
    table = [row for row in table if models is None or row["model"] in models]
    if arms is None:
        own = "study" if any(row["origin"] == "study" for row in table) else "import"
        table = [row for row in table if row["kind"] == "attack" and row["origin"] == own]
        if not table:
            raise RiskError("this run holds no attack, so there is nothing to detect")
    for pattern in arms or ():
        if complaint := no_match(pattern, {row["arm"] for row in table}):
            raise RiskError(complaint)
    by_model: dict[str, list[ScoredArm]] = {}
    for row in table:
        if arms is None or matches(row["arm"], arms):
            by_model.setdefault(row["model"], []).extend(_repeats(row))
    return by_model


def _repeats(row: dict[str, Any]) -> list[ScoredArm]:
    against = json.loads(row["params"] or "{}").get("detector") if row["family"] == ADAPTIVE else None
    facts = {name: row[name] for name in ("family", "norm", "eps", "objective")}
    return [
        ScoredArm(row["arm"], repeat, **facts, repeated=row["repeats"] > 1, against=against)
        for repeat in range(row["repeats"])
    ]


def read_attacked(ledger: Ledger, model: str, arms: Sequence[ScoredArm]) -> Attacked:
    """Read the outcomes; samples without a row, or with an error, of some arm are left out.

    Adaptive arms exclude no sample: they are in no group, and most concern another detector.
    """
    samples = _samples(ledger)
    cells = ledger.query(_CELLS, {"model": model})
    names, rows = cells["cell"].combine_chunks(), _arm_indices(cells, arms)
    outcomes = ledger.query(_OUTCOMES, {"model": model, "arms": sorted({arm.name for arm in arms})})
    row, sample = _positions(outcomes, names, rows, samples)
    used = (row >= 0) & (row < len(arms)) & (sample >= 0)
    verdict = np.zeros((len(arms), len(samples)), dtype=np.int8)
    passes = np.full(verdict.shape, np.nan)
    verdict[row[used], sample[used]] = _codes(outcomes["outcome"])[used]
    passes[row[used], sample[used]] = outcomes["passes"].to_numpy(zero_copy_only=False)[used]
    judged = (verdict != 0) & (verdict != _FAILED)
    usual = [index for index, arm in enumerate(arms) if arm.family != ADAPTIVE]
    kept = judged[usual].all(axis=0) & judged.any(axis=0)  # the latter matters if all arms are adaptive
    missing = ~kept & (verdict[usual or slice(None)] == 0).any(axis=0)
    failed = ~kept & ~missing
    if not kept.any():
        raise RiskError(
            f"no sample of {model} has a verdict from every arm ({int(missing.sum())} unfinished, "
            f"{int(failed.sum())} with errors); finish the run, or see `advrisk status`"
        )
    return Attacked(
        model=model,
        arms=tuple(arms),
        samples=tuple(pa.array(samples).filter(pa.array(kept)).to_pylist()),
        success=verdict[:, kept] == _SUCCESS,
        judged=judged[:, kept],
        attacked=judged[:, kept] & (verdict[:, kept] != _ALREADY_WRONG),
        passes=passes[:, kept],
        n_samples=len(samples),
        n_unfinished=int(missing.sum()),
        n_without_verdict=int(failed.sum()),
        _cells=names,
        _rows=rows,
    )


def read_scores(ledger: Ledger, detector: str, attacked: Attacked) -> Scored:
    """A detector's scores of these samples; nan if missing."""
    rows = ledger.query(_SCORES, {"detector": detector, "model": attacked.model})
    row, sample = _positions(rows, attacked._cells, attacked._rows, pa.array(attacked.samples))
    used = (row >= 0) & (sample >= 0)
    n_arms = len(attacked.arms)
    scores = np.full((n_arms + 1, len(attacked.samples)), np.nan)
    scores[row[used], sample[used]] = rows["score"].to_numpy(zero_copy_only=False)[used]
    return Scored(
        attacked.arms, attacked.success, scores[:n_arms], scores[n_arms], attacked.judged, attacked.attackable
    )


def n_unscored(scored: Scored) -> int:
    """The number of samples whose clean input or some success has no score."""
    missing = np.isnan(scored.clean) | (np.isnan(scored.score) & scored.success).any(axis=0)
    return int(missing.sum())


def _samples(ledger: Ledger) -> pa.Array:
    table = ledger.query("SELECT sample, weight FROM samples WHERE split = 'evaluate' ORDER BY sample")
    weights = table["weight"].to_numpy()
    if len(weights) and np.ptp(weights) > 0:
        raise RiskError("samples of different weights: detection weights all samples equally, so it is refused")
    return table["sample"].combine_chunks()


def _arm_indices(cells: pa.Table, arms: Sequence[ScoredArm]) -> Integers:
    """The index of each cell's arm and repeat; clean inputs have the index after the last, other arms -1."""
    index = {(arm.name, arm.repeat): number for number, arm in enumerate(arms)}
    rows = cells.select(["arm", "repeat", "kind"]).to_pylist()
    return np.array(
        [len(arms) if row["kind"] == "clean" else index.get((row["arm"], row["repeat"]), -1) for row in rows],
        dtype=np.int64,
    )


def _positions(table: pa.Table, cells: pa.Array, rows: Integers, samples: pa.Array) -> tuple[Integers, Integers]:
    """Row and column of each line of a table; -1 if it has none."""
    cell, sample = (_index(table[name], among) for name, among in (("cell", cells), ("sample", samples)))
    return np.where(cell >= 0, np.append(rows, -1)[cell], -1), sample


def _index(column: pa.ChunkedArray, among: pa.Array) -> Integers:
    indices = pc.fill_null(pc.index_in(column, value_set=among), -1).to_numpy()
    return np.asarray(indices, dtype=np.int64)


def _codes(outcomes: pa.ChunkedArray) -> Integers:
    """Outcomes as numbers; those without a verdict are failures."""
    names = pa.array(list(_VERDICTS))
    codes = np.array([*_VERDICTS.values(), _FAILED])
    return np.asarray(codes[_index(outcomes, names)], dtype=np.int64)
