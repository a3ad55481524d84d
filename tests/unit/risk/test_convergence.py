"""Bands against every number computed anew from the first draws."""

import time
import tracemalloc
from typing import Any

import numpy as np
import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.convergence import MEAN, SMALLEST, convergence
from advrisk.risk.damage import (
    damage_probability,
    detector_free_damage,
    mean_perturbation_size,
    minimal_perturbation_size,
    success_ratio,
)
from advrisk.risk.evasion import average, threshold

INF = np.inf


def distances(n: int, n_models: int = 2) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    matrix = rng.integers(0, 8, (n_models, n)) / 4
    matrix[rng.random(matrix.shape) < 0.2] = INF
    return {str(j): row for j, row in enumerate(matrix)}


def test_one_resample_is_the_numbers_of_its_first_draws() -> None:
    given = distances(60)
    found = convergence(given, thresholds=[0.5], points=12, resamples=1, rng=np.random.default_rng(3))
    drawn = np.random.default_rng(3).integers(60, size=(1, 60))[0]
    assert found.relative
    assert found.n[-1] == 60
    for place, m in enumerate(found.n):
        first = {model: row[drawn[:m]] for model, row in given.items()}
        damage = detector_free_damage(first, resamples=1, rng=np.random.default_rng(0))
        for model, row in first.items():
            bands = found.bands[model]
            assert bands["damage"].middle[place] == pytest.approx(damage.estimates[model].value, abs=1e-12)
            assert bands["attack success rate at 0.5"].middle[place] == pytest.approx(float(success_ratio(row, 0.5)))
            if ((row > 0) & (row < INF)).any():
                assert bands[SMALLEST].middle[place] == minimal_perturbation_size(row).value
                assert bands[MEAN].middle[place] == pytest.approx(mean_perturbation_size(row).value)
            else:
                assert np.isnan(bands[SMALLEST].middle[place])
                assert np.isnan(bands[MEAN].middle[place])


def test_with_a_curve_damage_is_that_of_the_curve() -> None:
    given = {"a": distances(40)["0"]}
    found = convergence(given, evasion=threshold(1.0), points=8, resamples=1, rng=np.random.default_rng(3))
    drawn = np.random.default_rng(3).integers(40, size=(1, 40))[0]
    for place, m in enumerate(found.n):
        value = damage_probability(given["a"][drawn[:m]], threshold(1.0), rng=np.random.default_rng(0)).value
        assert found.bands["a"]["damage"].middle[place] == pytest.approx(value)
    assert not found.relative


def test_the_band_is_as_wide_as_chance_makes_it() -> None:
    """The 5 and 95 % quantiles of a mean: 1.645 standard errors from the middle, at every n."""
    found = convergence({"a": [0.5] * 500 + [2.0] * 500}, evasion=threshold(1.0), resamples=4000, points=5,
                        rng=np.random.default_rng(0))  # fmt: skip
    band = found.bands["a"]["damage"]
    for place in (-1, -2):
        error = 0.5 / np.sqrt(found.n[place])
        assert band.middle[place] == pytest.approx(0.5, abs=0.2 * error)
        assert (band.high - band.low)[place] == pytest.approx(2 * 1.645 * error, rel=0.1)


def test_resamples_are_not_held_at_once() -> None:
    of_each = distances(4000, n_models=5)
    tracemalloc.start()
    convergence(of_each, thresholds=[0.1], rng=np.random.default_rng(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8e6, "running sums at all sizes of all resamples take 20 MB"


def test_ten_thousand_samples_take_seconds() -> None:
    start = time.perf_counter()
    convergence(distances(10_000, 4), thresholds=[0.5, 1.0], rng=np.random.default_rng(0))
    assert time.perf_counter() - start < 30  # about 2 on an idle machine


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "found only the model 'a'.*relative"),
        ({"evasion": average({"a": [1.0]})}, "each draw has its own average"),
        ({"evasion": threshold(1.0), "points": 0}, "points and resamples must be at least 1"),
        ({"evasion": threshold(1.0), "resamples": 0}, "points and resamples must be at least 1"),
        ({"evasion": threshold(1.0), "band": (0.9, 0.1)}, "two quantiles"),
        ({"evasion": threshold(1.0), "thresholds": [-1.0]}, "thresholds: found -1.0"),
    ],
)
def test_impossible_questions_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RiskError, match=message):
        convergence({"a": [1.0, 2.0]}, rng=np.random.default_rng(0), **options)
