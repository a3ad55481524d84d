"""What holds for every survival fit."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advrisk.risk.survival import FAMILIES, fit_survival, kaplan_meier
from advrisk.risk.survival.fit import CURE_ALPHA

SEEDS = st.integers(0, 10_000)


def table(seed: int, n: int = 60) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    t = np.exp(rng.normal() + rng.normal() * x + rng.uniform(0.2, 2) * rng.normal(size=n))
    stopped = np.quantile(t, rng.uniform(0.5, 1.0)) * rng.uniform(0.5, 1.5, n)
    return {"x": x, "t": np.minimum(t, stopped), "e": (t <= stopped).astype(float)}


@settings(deadline=None, max_examples=25)
@given(seed=SEEDS, family=st.sampled_from(FAMILIES))
def test_a_fit_is_a_maximum_and_its_predictions_are_in_order(seed: int, family: str) -> None:
    columns = table(seed)
    fit = fit_survival(columns, duration="t", event="e", covariates=["x"], family=family)
    assert np.linalg.eigvalsh(fit._covariance).min() > 0
    assert np.abs(fit._model.at(fit._theta).gradient).max() < 1e-4
    times = np.quantile(columns["t"], [0.1, 0.5, 0.9])
    curve = fit.curve(times, at={"x": 0.3})
    assert (np.diff(curve.survival) <= 0).all()
    assert ((curve.low >= 0) & (curve.low <= curve.survival) & (curve.survival <= curve.high) & (curve.high <= 1)).all()
    means = [fit.mean(until=float(time)).value for time in times]
    assert means == sorted(means)
    assert all(0 < mean <= time for mean, time in zip(means, times, strict=True))
    assert means[-1] <= fit.mean().value
    if fit.cure_p_value >= CURE_ALPHA:
        assert fit.quantile(0.2).value < fit.median().value < fit.quantile(0.8).value
    assert 0 <= fit.concordance <= 1


@settings(deadline=None, max_examples=25)
@given(seed=SEEDS, family=st.sampled_from(FAMILIES), units=st.floats(1e-6, 1e6), order=SEEDS)
def test_neither_units_nor_order_matter(seed: int, family: str, units: float, order: int) -> None:
    columns = table(seed)
    mixed = np.random.default_rng(order).permutation(60)
    other = {"x": columns["x"][mixed] / units, "t": columns["t"][mixed] * units, "e": columns["e"][mixed]}
    one, two = (
        fit_survival(frame, duration="t", event="e", covariates=["x"], family=family) for frame in (columns, other)
    )
    assert two.cure_p_value == pytest.approx(one.cure_p_value, abs=1e-6)
    if min(one.cure_p_value, two.cure_p_value) >= CURE_ALPHA:
        assert two.median().value == pytest.approx(one.median().value * units, rel=1e-7)
    assert two.coefficient("x").scaled.estimate.value == pytest.approx(
        one.coefficient("x").scaled.estimate.value, rel=1e-6, abs=1e-8
    )
    assert two.log_likelihood == pytest.approx(one.log_likelihood - columns["e"].sum() * np.log(units), rel=1e-7)
    assert two.concordance == pytest.approx(one.concordance, abs=1e-12)


@settings(deadline=None, max_examples=50)
@given(seed=SEEDS, level=st.floats(0.5, 0.99))
def test_a_kaplan_meier_curve_falls_within_its_band(seed: int, level: float) -> None:
    columns = table(seed)
    found = kaplan_meier(columns["t"], columns["e"], level=level)
    assert (np.diff(found.survival) <= 1e-15).all()
    assert ((found.low <= found.survival) & (found.survival <= found.high)).all()
    assert ((found.low >= 0) & (found.high <= 1)).all()
    assert found.events.sum() == columns["e"].sum()
    assert 0 < found.mean(found.longest).value <= found.longest
