"""Bets against their definition, one product after the other, and the bound against the p-values that it inverts."""

import itertools
import math

import numpy as np
import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.certificate import betting_certified_risk, betting_p_values, calibration_order
from advrisk.risk.certificate.betting import PARTS, SHARES, last_before_failures, log_wealth


def wealth_by_hand(losses: list[float], alpha: float) -> list[float]:
    """As one gambler: nu is the mean of the gamblers', weighted by what each owns before the loss is seen."""
    owned, total, nus = list(PARTS), [], SHARES / (1 - alpha)
    product = 1.0
    for loss in losses:
        nu = sum(own * n for own, n in zip(owned, nus, strict=True)) / sum(owned)
        assert 0 <= nu < 1 / (1 - alpha)
        product *= 1 + nu * (alpha - loss)
        owned = [own * (1 + n * (alpha - loss)) for own, n in zip(owned, nus, strict=True)]
        total.append(product)
    return total


@pytest.mark.parametrize("losses", [[0, 0, 1, 0, 0, 0, 1, 1, 0], [0.2, 0.0, 1.0, 0.05, 0.6], [1] * 5])
@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.7])
def test_wealth_is_the_product_of_predictable_bets(losses: list[float], alpha: float) -> None:
    by_hand = wealth_by_hand(losses, alpha)
    assert np.exp(log_wealth(np.array(losses, dtype=float), alpha)) == pytest.approx(by_hand, rel=1e-12)
    p = betting_p_values(losses, alpha)
    assert p == pytest.approx(np.minimum(1, 1 / np.maximum.accumulate(by_hand)), rel=1e-12)
    assert (np.diff(p) <= 0).all()


def test_at_a_risk_of_alpha_nobody_gets_richer_on_average() -> None:
    """Over all 2^10 sets of ten samples; at a larger risk everybody gets poorer."""
    sets = np.array(list(itertools.product((0.0, 1.0), repeat=10)))
    wealth = np.exp(log_wealth(sets, 0.3))
    for risk, compare in ((0.3, 1.0), (0.4, 0.99)):
        chances = np.prod(np.where(sets == 1, risk, 1 - risk), axis=1)
        expected = chances @ wealth
        assert (expected <= compare + 1e-12).all()
        assert expected[-1] == pytest.approx(1) or risk > 0.3


def test_p_is_valid_over_all_sets_of_samples_however_one_stops() -> None:
    sets = np.array(list(itertools.product((0.0, 1.0), repeat=12)))
    chances = np.full(len(sets), 0.5**12)
    least = np.exp(-log_wealth(sets, 0.5).max(axis=1))
    assert betting_p_values(sets[5], 0.5)[-1] == pytest.approx(least[5])
    for zeta in (0.02, 0.05, 0.1, 0.2, 0.5):
        assert chances[least <= zeta].sum() <= zeta
    assert chances[least <= 0.1].sum() > 0


@pytest.mark.parametrize("zeta", [0.01, 0.05, 0.3])
def test_the_bound_certifies_exactly_where_p_does(zeta: float) -> None:
    losses = (np.random.default_rng(1).random(300) < 0.1).astype(int)
    bounds = betting_certified_risk(losses, zeta)
    assert (np.diff(bounds) <= 0).all()
    for alpha in (0.05, 0.11, 0.15, 0.2, 0.4):
        assert ((betting_p_values(losses, alpha) <= zeta) == (bounds <= alpha)).all()


def test_losses_that_are_fractions_have_the_same_bound_at_their_looks() -> None:
    rng = np.random.default_rng(2)
    losses = rng.random(200) * 0.2
    times = [20, 100, 200]
    bounds = betting_certified_risk(losses, 0.05, at_n=times)
    for time, bound in zip(times, bounds, strict=True):
        wealth = [math.exp(log_wealth(losses, bound + shift)[time - 1]) for shift in (-1e-6, 1e-6)]
        assert wealth[0] < 20 < wealth[1]
    counted = (losses > 0.1).astype(float)
    nearly = np.where(counted == 1, 1 - 1e-15, 0.0)  # goes the way of fractions
    expected = betting_certified_risk(counted, 0.05, at_n=times)
    assert betting_certified_risk(nearly, 0.05, at_n=times) == pytest.approx(expected, abs=1e-9)


def test_no_failure_at_all_is_soon_enough() -> None:
    p = betting_p_values(np.zeros(60), 0.1)
    assert (p <= 0.05).argmax() + 1 == 46
    assert betting_certified_risk([1, 1, 1], 0.05).tolist() == [1, 1, 1]


def test_the_order_depends_on_the_contents_alone() -> None:
    samples = [f"mnist/{n:04d}" for n in range(200)]
    contents = {sample: f"{n:032x}" for n, sample in enumerate(samples)}
    order = calibration_order(contents)
    assert sorted(order) == samples
    assert order == calibration_order(dict(reversed(contents.items())))
    renamed = calibration_order({f"other/{sample}": content for sample, content in contents.items()})
    assert renamed == tuple(f"other/{sample}" for sample in order), "names do not count"
    assert order != calibration_order({sample: f"{n + 1:032x}" for n, sample in enumerate(samples)})
    kept = {sample: contents[sample] for sample in samples[:150]}
    assert [sample for sample in order if sample in kept] == list(calibration_order(kept))
    places = [samples.index(sample) for sample in order]
    assert abs(float(np.corrcoef(places, np.arange(200))[0, 1])) < 0.25


@pytest.mark.parametrize(
    ("losses", "says"),
    [
        ([], "shape"),
        ([[0, 1]], "shape"),
        ([0, 1.5], "sample 2 is 1.5"),
        ([0, -1], "sample 2"),
        ([0, math.nan], "sample 2 is nan"),
        (["a"], "numbers from 0 to 1"),
    ],
)
def test_losses_that_are_none_are_refused(losses: list[object], says: str) -> None:
    with pytest.raises(RiskError, match=says):
        betting_p_values(losses, 0.1)  # type: ignore[arg-type]


def test_other_mistakes_are_refused() -> None:
    with pytest.raises(RiskError, match="alpha"):
        betting_p_values([0], 1.0)
    with pytest.raises(RiskError, match="zeta"):
        betting_certified_risk([0], 0.0)
    for times in ([], [0], [3], [2, 1], [1.5]):
        with pytest.raises(RiskError, match="at_n must"):
            betting_certified_risk([0, 0], 0.05, at_n=times)  # type: ignore[arg-type]


def test_the_looks_before_failures_give_the_running_bound() -> None:
    rng = np.random.default_rng(5)
    for rate in (0.0, 0.03, 0.3, 1.0):
        for n in (1, 4, 120):
            failed = rng.random(n) < rate
            times = last_before_failures(failed)
            assert len(times) <= failed.sum() + 1
            assert betting_certified_risk(failed, 0.05, at_n=times)[-1] == betting_certified_risk(failed, 0.05)[-1]
