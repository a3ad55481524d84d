"""Convergence of the estimates as samples are added: the data of the paper's Figures 2 and 4."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advrisk.core.errors import RiskError
from advrisk.core.numbers import size_text
from advrisk.core.plain import InJson, plain
from advrisk.core.tables import ESTIMATE, Columns, Row, Tabular
from advrisk.risk.damage import resampled_damage
from advrisk.risk.evasion import AverageEvasion, Evasion, Floats, as_curve, checked_sizes, paired_distances

DAMAGE, SMALLEST, MEAN = "damage", "minimal adversarial distance", "mean adversarial distance"


@dataclass(frozen=True, eq=False)
class ConvergenceBand:
    """Median and quantiles of the resamples at each number of samples, for one measure of one model.

    NaN where most resamples had nothing to measure, such as no success with a size.
    """

    middle: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class Convergence(Tabular):
    """Bands by model and measure: damage, attack success rates, minimal and mean adversarial distance."""

    n: NDArray[np.int64]  # numbers of samples, ascending
    models: tuple[str, ...]
    relative: bool  # whether damage is relative to these models
    bands: Mapping[str, Mapping[str, ConvergenceBand]]
    resamples: int
    band: tuple[float, float] = (0.05, 0.95)  # the quantiles of the resamples

    columns: ClassVar[Columns] = {"model": "text", "measure": "text", **ESTIMATE}
    in_json: ClassVar[InJson] = {"models": None, "band": None}

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the measures."""
        return tuple(next(iter(self.bands.values())))

    def rows(self) -> list[Row]:
        """The median of the resamples and their band, for each model, measure and number of samples."""
        return [
            {"model": model, "measure": measure, "value": middle, "low": low, "high": high}
            | {"level": round(self.band[1] - self.band[0], 12), "n": int(n), "method": f"{self.resamples} resamples"}
            for model, of_model in self.bands.items()
            for measure, band in of_model.items()
            for n, middle, low, high in zip(self.n, *plain([band.middle, band.low, band.high]), strict=True)
        ]


def convergence(
    distances_by_model: Mapping[str, ArrayLike],
    *,
    evasion: Evasion | None = None,
    damage: Mapping[str, ArrayLike] | None = None,
    thresholds: ArrayLike = (),
    written: Mapping[float, str] | None = None,
    points: int = 40,
    resamples: int = 50,
    band: tuple[float, float] = (0.05, 0.95),
    rng: np.random.Generator,
) -> Convergence:
    """Compute damage, attack success rates and distances over the first m of n resampled samples, for m up to n.

    Samples are drawn with replacement, so the band at m = n is as wide as chance makes it; otherwise it would close
    there. All models share the draws. Without `evasion`, damage is relative and each draw has its own curve. A fitted
    curve is used without its own uncertainty, since samples do not change it. `written` maps sizes to their spelling.
    `damage` gives the damage of each sample if a detector scored the attacks themselves.
    """
    models, matrix = paired_distances(distances_by_model)
    _check(models, evasion, points, resamples, band, relative=evasion is None and damage is None)
    limits = checked_sizes(thresholds, "thresholds").ravel()
    n = matrix.shape[1]
    counts = np.unique(np.geomspace(1, n, points).round().astype(np.int64))
    drawn = rng.integers(n, size=(resamples, n))
    each = _damage_of_each(models, matrix, evasion, damage)
    damages = resampled_damage(matrix, drawn, counts) if each is None else _running_means(each, drawn, counts)
    measures = {DAMAGE: damages} | _ratios(matrix, drawn, counts, limits, written or {}) | _sizes(matrix, drawn, counts)
    return Convergence(
        n=counts,
        models=models,
        relative=each is None,
        bands={
            model: {name: _band(values[j], band) for name, values in measures.items()} for j, model in enumerate(models)
        },
        resamples=resamples,
        band=band,
    )


def _damage_of_each(
    models: Sequence[str], matrix: Floats, evasion: Evasion | None, damage: Mapping[str, ArrayLike] | None
) -> Floats | None:
    """Damage of every sample, (models, samples); None if it is relative."""
    if damage is not None:
        return np.array([damage[model] for model in models], dtype=np.float64).reshape(matrix.shape)
    return None if evasion is None else as_curve(evasion)(matrix)


def _running_means(values: Floats, drawn: NDArray[np.int64], counts: NDArray[np.int64]) -> Floats:
    """Means over the first m draws, (models, resamples, counts)."""
    return np.stack([_running(np.cumsum, row, drawn, counts) / counts for row in values])


def _running(
    accumulate: Callable[[NDArray[Any]], NDArray[Any]],
    values: NDArray[Any],
    drawn: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> NDArray[Any]:
    """Running sum or minimum after the first m draws, (resamples, counts), with one resample in memory at a time."""
    return np.stack([accumulate(values[row])[counts - 1] for row in drawn])


def _ratios(
    matrix: Floats,
    drawn: NDArray[np.int64],
    counts: NDArray[np.int64],
    limits: Floats,
    written: Mapping[float, str],
) -> dict[str, Floats]:
    finite = np.isfinite(matrix)
    names = {tau: size_text(tau, written) for tau in limits.tolist()}
    return {
        f"attack success rate at {name}": _running_means(((matrix <= tau) & finite).astype(np.float64), drawn, counts)
        for tau, name in names.items()
    }


def _sizes(matrix: Floats, drawn: NDArray[np.int64], counts: NDArray[np.int64]) -> dict[str, Floats]:
    """Minimal and mean distance over 0 < d < inf of the first m draws; NaN if there is none."""
    smallest, mean = [], []
    for row in matrix:
        used = (row > 0) & np.isfinite(row)
        running = _running(np.minimum.accumulate, np.where(used, row, np.inf), drawn, counts)
        smallest.append(np.where(np.isfinite(running), running, np.nan))
        total = _running(np.cumsum, np.where(used, row, 0.0), drawn, counts)
        number = _running(np.cumsum, used, drawn, counts)
        mean.append(np.where(number > 0, total / np.maximum(number, 1), np.nan))
    return {SMALLEST: np.stack(smallest), MEAN: np.stack(mean)}


def _band(values: Floats, band: tuple[float, float]) -> ConvergenceBand:
    """Quantiles over the resamples, (resamples, counts) -> (counts,); NaN if fewer than half have a number."""
    enough = np.isfinite(values).mean(axis=0) >= 0.5
    quantiles = np.full((3, values.shape[1]), np.nan)
    if enough.any():
        quantiles[:, enough] = np.nanquantile(values[:, enough], [0.5, *band], axis=0)
    return ConvergenceBand(*quantiles)


def _check(
    models: Sequence[str],
    evasion: Evasion | None,
    points: int,
    resamples: int,
    band: tuple[float, float],
    *,
    relative: bool,
) -> None:
    if relative and len(models) == 1:
        raise RiskError(
            f"found only the model {models[0]!r}; without an evasion curve, damage is relative to the compared models; "
            "give two or more models, or a curve"
        )
    if isinstance(evasion, AverageEvasion):
        raise RiskError(
            "found the average of models as `evasion`; each draw has its own average, so leave `evasion` out"
        )
    if points < 1 or resamples < 1:
        raise RiskError(f"points and resamples must be at least 1, found {points} and {resamples}")
    if not 0 <= band[0] < band[1] <= 1:
        raise RiskError(f"band must be two quantiles, the smaller first, found {band}")
