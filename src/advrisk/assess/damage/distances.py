"""From outcome rows to d_A: the smallest distance at which any arm broke each sample of each model.

All arms together (`smallest_distances`), or each by itself on the same samples (`arm_distances`).
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from advrisk.core.errors import RiskError
from advrisk.core.names import counted, matches, no_match
from advrisk.core.traits import TRANSFER
from advrisk.ledger import Ledger
from advrisk.study import Norm

# The distance at which a row broke its sample: the one that the judge measured, or else that of the kept point.
DISTANCE = "CASE outcome WHEN 'success' THEN coalesce(near_{norm}, d_{norm}) WHEN 'already_wrong' THEN 0 END"

_REDUCE = f"""
    SELECT o.model, o.sample,
           min({DISTANCE}) AS distance,
           count(*) AS n_rows,
           count(*) FILTER (outcome IN ('error', 'timeout')) AS n_failed,
           count(*) FILTER (outcome = 'success' AND ({DISTANCE}) IS NULL) AS n_unmeasured
    FROM outcomes o
    WHERE o.arm IN (SELECT unnest($arms)) AND o.model IN (SELECT unnest($models))
    GROUP BY o.model, o.sample
"""

_BY_ARM = f"""
    SELECT o.model, o.arm, o.sample, {DISTANCE} AS distance, (n_forward + n_backward)::DOUBLE AS passes
    FROM outcomes o
    WHERE o.arm IN (SELECT unnest($arms)) AND o.model IN (SELECT unnest($models))
"""


@dataclass(frozen=True)
class Distances:
    """d_A of every model on the same samples, in the same order.

    A sample is left out for all models if a row is missing (the run is not finished) or an arm failed to give a
    verdict, even if another arm broke it: leaving out unbroken samples alone would bias damage upwards.
    """

    norm: Norm
    arms: tuple[str, ...]
    samples: tuple[str, ...]
    n_samples: int  # of the evaluation split
    by_model: Mapping[str, NDArray[np.float64]]
    n_unfinished: int
    n_without_verdict: int

    @property
    def too_few(self) -> bool:
        """Whether so many samples are left out that the others may not represent all."""
        return len(self.samples) < 0.95 * self.n_samples

    @property
    def left_out(self) -> list[str]:
        """Sentences on the samples that are left out."""
        sentences = []
        if self.n_unfinished:
            sentences.append(f"Not finished, and left out: {counted(self.n_unfinished, 'sample')}.")
        if self.n_without_verdict:
            sentences.append(
                f"Left out because an attack gave no verdict: {counted(self.n_without_verdict, 'sample')}. "
                "An error is never counted as robust."
            )
        return sentences


@dataclass(frozen=True)
class ArmDistances:
    """The distances of each arm alone, on the samples of all arms together (`envelope`).

    Models, arms and samples have the order of `envelope`; repeats of an arm are merged.
    """

    envelope: Distances
    distance: NDArray[np.float64]  # (models, arms, samples); inf where the arm broke nothing
    passes: NDArray[np.float64]  # (models, arms): forward and backward, mean per sample; nan if passes were not counted


def smallest_distances(ledger: Ledger, *, norm: Norm, arms: Sequence[str] | None = None) -> Distances:
    """d_A from the ledger's rows; `arms` are names or patterns, by default all attacks of the study with a norm."""
    chosen = chosen_arms(ledger, arms)
    names = sorted({row["model"] for row in chosen})
    arm_names = sorted({row["arm"] for row in chosen})
    _refuse_unlike(chosen, names, arm_names)
    expected = sum(row["repeats"] for row in chosen if row["model"] == names[0])
    samples = ledger.query("SELECT sample, weight FROM samples WHERE split = 'evaluate' ORDER BY sample")
    _refuse_weights(samples["weight"].to_numpy())
    order = {name: index for index, name in enumerate(samples["sample"].to_pylist())}
    rows = ledger.query(_REDUCE.format(norm=norm), {"arms": arm_names, "models": names})
    rows = rows.filter(pc.is_in(rows["sample"], samples["sample"]))  # cheaper than a join in SQL
    _refuse_unmeasured(rows, norm)
    shape = len(names), len(order)
    model, sample = _indices(rows["model"], names), _indices(rows["sample"], list(order))
    distance, n_rows, n_failed = np.full(shape, np.inf), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    distance[model, sample] = rows["distance"].to_numpy(zero_copy_only=False)
    distance[np.isnan(distance)] = np.inf
    n_rows[model, sample] = rows["n_rows"].to_numpy()
    n_failed[model, sample] = rows["n_failed"].to_numpy()
    unfinished = (n_rows < expected).any(0)
    without_verdict = (n_failed > 0).any(0) & ~unfinished
    used = ~unfinished & ~without_verdict
    if not used.any():
        empty = [name for index, name in enumerate(names) if not n_rows[index].any()]
        rowless = f"; {', '.join(empty)} {'has' if len(empty) == 1 else 'have'} no row of an attack" if empty else ""
        raise RiskError(
            f"no sample has a verdict from every arm ({int(unfinished.sum())} unfinished, "
            f"{int(without_verdict.sum())} with errors){rowless}; finish the run, or see `advrisk status`"
        )
    return Distances(
        norm=norm,
        arms=tuple(arm_names),
        samples=tuple(name for name, use in zip(order, used, strict=True) if use),
        n_samples=len(order),
        by_model={name: distance[index, used] for index, name in enumerate(names)},
        n_unfinished=int(unfinished.sum()),
        n_without_verdict=int(without_verdict.sum()),
    )


def arm_distances(ledger: Ledger, *, norm: Norm, arms: Sequence[str] | None = None) -> ArmDistances:
    """`smallest_distances` arm by arm, with the same arms, models and samples."""
    envelope = smallest_distances(ledger, norm=norm, arms=arms)
    models = list(envelope.by_model)
    return ledger.reduce(
        _BY_ARM.format(norm=norm), lambda rows: _by_arm(envelope, rows), arms=list(envelope.arms), models=models
    )


def _by_arm(envelope: Distances, pieces: Iterable[pa.RecordBatch]) -> ArmDistances:
    """Fill arrays batch by batch: grouping three million rows by name takes a gigabyte."""
    names = (list(envelope.by_model), list(envelope.arms), list(envelope.samples))
    shape = tuple(map(len, names))
    distance = np.full(math.prod(shape), np.inf)
    counted_at, total = np.zeros(distance.shape, np.bool_), np.zeros(shape[0] * shape[1])
    for rows in pieces:
        rows = rows.filter(pc.is_in(rows["sample"], pa.array(envelope.samples)))
        model, arm, sample = map(_indices, (rows["model"], rows["arm"], rows["sample"]), names)
        pair = model * shape[1] + arm
        index = pair * shape[2] + sample
        np.minimum.at(distance, index, pc.fill_null(rows["distance"], np.inf).to_numpy())
        counted_at[index[rows["passes"].is_valid().to_numpy(zero_copy_only=False)]] = True
        total += np.bincount(pair, pc.fill_null(rows["passes"], 0).to_numpy(), minlength=len(total))
    means = np.where(counted_at.reshape(shape).all(2), total.reshape(shape[:2]) / shape[2], np.nan)
    return ArmDistances(envelope, distance.reshape(shape), means)


def tried_sizes(ledger: Ledger, distances: Distances) -> list[float]:
    """Every eps of the arms of this norm, in ascending order."""
    sizes: list[float] = ledger.query(
        "SELECT DISTINCT eps FROM arms WHERE norm = $norm AND list_contains($arms, arm) AND eps > 0 ORDER BY eps",
        {"norm": distances.norm, "arms": list(distances.arms)},
    )["eps"].to_pylist()
    return sizes


def measured_nothing(ledger: Ledger, distances: Distances) -> bool:
    """Whether no arm of this norm minimised the distance: each stopped at a success within its eps."""
    measuring = ledger.query(
        "SELECT 1 FROM arms WHERE norm = $norm AND list_contains($arms, arm) AND (eps IS NULL OR keep = 'smallest') "
        "LIMIT 1",
        {"norm": distances.norm, "arms": list(distances.arms)},
    )
    return len(measuring) == 0


def surrogates(ledger: Ledger) -> dict[str, str]:
    """Transfer arm -> the model that its points were crafted on; imported arms do not record it."""
    rows = ledger.query("SELECT arm, params FROM arms WHERE family = $family", {"family": TRANSFER}).to_pylist()
    return {row["arm"]: str(json.loads(row["params"] or "{}").get("from")) for row in rows}


def _indices(column: pa.Array | pa.ChunkedArray, names: Sequence[str]) -> NDArray[np.int64]:
    """The index of each value in the names."""
    positions: NDArray[np.int64] = pc.index_in(column, pa.array(names)).to_numpy().astype(np.int64)
    return positions


def chosen_arms(ledger: Ledger, patterns: Sequence[str] | None) -> list[dict[str, Any]]:
    """The arms that match the patterns; by default the study's own attacks, or the imported ones without a study."""
    table: list[dict[str, Any]] = ledger.query(
        "SELECT model, arm, repeats, origin, kind = 'attack' AND norm IS NOT NULL AS has_size FROM arms "
        "WHERE origin IN ('study', 'import') AND kind IS DISTINCT FROM 'clean' ORDER BY ALL"
    ).to_pylist()
    if patterns is None:
        own = "study" if any(row["origin"] == "study" for row in table) else "import"
        chosen = [row for row in table if row["has_size"] and row["origin"] == own]
        if not chosen:
            raise RiskError("this run has no attack with a norm, so there are no distances")
        return chosen
    for pattern in patterns:
        if complaint := no_match(pattern, {row["arm"] for row in table}):
            raise RiskError(complaint)
    return [row for row in table if matches(row["arm"], patterns)]


def _refuse_unlike(chosen: list[dict[str, Any]], models: list[str], arms: list[str]) -> None:
    """Refuse models that met different arms: one that was attacked less would appear stronger."""
    attacked = {(row["model"], row["arm"]) for row in chosen}
    for model in models:
        missing = [arm for arm in arms if (model, arm) not in attacked]
        if missing:
            raise RiskError(
                f"{model} was not attacked by {', '.join(missing[:5])}, but other models were; "
                "name arms that all models share (`--arm`)"
            )


def _refuse_unmeasured(rows: pa.Table, norm: Norm) -> None:
    """Refuse successes of unknown distance: they must not count as resisted."""
    if len(missing := rows.filter(pc.greater(rows["n_unmeasured"], 0))):
        first = missing.slice(0, 1).to_pylist()[0]
        raise RiskError(
            f"{first['model']}, sample {first['sample']}: a success has no {norm} distance ({len(missing)} in all); "
            "assess a norm in which distances were measured (`--norm`)"
        )


def _refuse_weights(weights: NDArray[np.float64]) -> None:
    if len(weights) and np.ptp(weights) > 0:
        raise RiskError("samples of different weights: damage weights all samples equally, so it is refused")
