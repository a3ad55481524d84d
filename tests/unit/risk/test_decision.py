"""Samples that would decide: by simulation of larger studies, and by hand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.damage import compare_damage, detector_free_damage, samples_to_decide
from advrisk.risk.evasion import fit_bayesian, threshold


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def study(n: int, seed: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    own, common = generator.exponential(size=(2, n)), generator.exponential(size=n)
    a, b = np.where(generator.random(n) < 0.5, common, own)
    return {"a": a, "b": 1.1 * b}


def absolute(distances: Any) -> Any:
    return compare_damage(distances, lambda sizes: np.exp(-sizes), rng=rng())


def relative(distances: Any) -> Any:
    return detector_free_damage(distances, resamples=1, rng=rng())


@pytest.mark.parametrize("compare", [absolute, relative])
@pytest.mark.parametrize("power", [0.8, 0.9])
def test_that_many_samples_decide_as_often_as_said(compare: Callable[..., Any], power: float) -> None:
    """Larger studies are drawn from the one at hand, so what it shows is the truth."""
    seen = study(150)
    comparison = compare(seen)
    assert comparison.undecided("a", "b")
    further = samples_to_decide(comparison, "a", "b", power=power)
    assert further is not None
    assert share_decided(compare, seen, 150 + further) >= power - 0.08  # nearly three standard errors of 200 runs
    assert share_decided(compare, seen, 150 + further // 2) < power


def share_decided(compare: Callable[..., Any], seen: dict[str, np.ndarray], n: int) -> float:
    generator, runs, decided = np.random.default_rng(1), 200, 0
    for _ in range(runs):
        drawn = generator.integers(len(seen["a"]), size=n)
        decided += not compare({model: row[drawn] for model, row in seen.items()}).undecided("a", "b")
    return decided / runs


def test_a_decided_pair_needs_none() -> None:
    comparison = compare_damage({"a": [0.1] * 100, "b": [9.0] * 100}, threshold(1.0), rng=rng())
    assert samples_to_decide(comparison, "a", "b") == 0


def test_models_that_do_not_differ_are_never_decided() -> None:
    same = study(50)["a"]
    assert samples_to_decide(absolute({"a": same, "b": same}), "a", "b") is None


def test_a_curve_that_is_hardly_known_cannot_be_helped_by_samples() -> None:
    """Only sizes between the answers tell the models apart, and there Psi may be anything."""
    distances = {"a": [0.7] * 300, "b": [0.8] * 300}
    few = fit_bayesian([0.1, 0.1, 5.0, 5.0], [1, 1, 0, 0])
    many = fit_bayesian(
        np.repeat([0.5, 0.7, 0.8, 1.0], 500), np.tile(np.arange(500), 4) < np.repeat([480, 300, 200, 20], 500)
    )
    assert samples_to_decide(compare_damage(distances, few, rng=rng()), "a", "b") is None
    assert samples_to_decide(compare_damage(distances, many, rng=rng()), "a", "b") is not None


def test_more_power_needs_more_samples() -> None:
    comparison = absolute(study(150))
    numbers = [samples_to_decide(comparison, "a", "b", power=power) for power in (0.5, 0.8, 0.95)]
    assert numbers == sorted(numbers, key=lambda number: number or 0)
    assert len(set(numbers)) == 3


@pytest.mark.parametrize("power", [0.0, 1.0, np.nan])
def test_power_lies_between_zero_and_one(power: float) -> None:
    with pytest.raises(RiskError, match="power must lie between 0 and 1"):
        samples_to_decide(absolute(study(20)), "a", "b", power=power)
