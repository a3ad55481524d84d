"""p-values of counts against scipy, exact fractions and MAPIE, and their inverse."""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import binom, binomtest

from advrisk.core.errors import RiskError
from advrisk.risk.certificate import Count, certified_risk, log_p_value, most_failures, p_value
from advrisk.risk.certificate.p_values import METHODS

GOLDEN = Path(__file__).parents[3] / "golden" / "mapie_p_values.json"
ALPHAS = (0.001, 0.05, 0.1, 0.3, 0.5, 0.9, 0.999)


def fraction_tail(k: int, n: int, alpha: Fraction) -> Fraction:
    return sum((math.comb(n, i) * alpha**i * (1 - alpha) ** (n - i) for i in range(k + 1)), Fraction(0))


@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (0, 30), (7, 30), (29, 30), (30, 30), (3, 90)])
@pytest.mark.parametrize("alpha", [Fraction(1, 8), Fraction(1, 2), Fraction(63, 64)])
def test_exact_is_the_binomial_tail_in_exact_fractions(k: int, n: int, alpha: Fraction) -> None:
    assert p_value(k, n, float(alpha)) == pytest.approx(float(fraction_tail(k, n, alpha)), rel=1e-13)


@pytest.mark.parametrize("n", [1, 2, 13, 300, 20_000])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_exact_is_scipys_binomial_tail(n: int, alpha: float) -> None:
    k = np.unique(np.linspace(0, n, 200).astype(int))
    assert p_value(k, n, alpha) == pytest.approx(binom.cdf(k, n, alpha), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(("n", "alpha"), [(10**7, 0.1), (10**7, 0.5), (10**6, 0.999)])
@pytest.mark.parametrize("deviations", [1000, 60, 37.5, 36, 20, 2, 0, -3])
def test_logarithms_hold_for_ten_million_samples(n: int, alpha: float, deviations: float) -> None:
    k = int(n * alpha - deviations * math.sqrt(n * alpha * (1 - alpha)))
    i = np.arange(max(0, k - 60_000), k + 1)  # what lies below adds nothing
    masses = gammaln(n + 1) - gammaln(i + 1) - gammaln(n - i + 1) + i * np.log(alpha) + (n - i) * np.log1p(-alpha)
    assert log_p_value(k, n, alpha) == pytest.approx(float(logsumexp(masses)), rel=1e-7, abs=3e-8)


def test_a_tail_without_failures_is_a_power() -> None:
    assert log_p_value(0, 10**7, 0.1) == pytest.approx(10**7 * math.log(0.9), rel=1e-12)
    assert log_p_value(0, 10**7, 0.1, method="hoeffding-bentkus") == pytest.approx(10**7 * math.log(0.9), rel=1e-12)
    assert p_value(0, 10**7, 0.1) == 0


def test_logarithms_are_continuous_where_the_way_to_compute_them_changes() -> None:
    logs = log_p_value(np.arange(5_000), 10**5, 0.05)
    steps = np.diff(logs)
    assert logs.min() < -700 < logs.max()
    assert (steps > 0).all()
    assert (np.diff(steps) < 1e-6).all(), "a binomial tail is log-concave"


def test_hoeffding_bentkus_is_its_formula() -> None:
    k, n, alpha = np.arange(101), 100, 0.2
    r = np.minimum(k / n, alpha)
    with np.errstate(divide="ignore", invalid="ignore"):
        h = np.where(r > 0, r * np.log(r / alpha), 0) + (1 - r) * np.log((1 - r) / (1 - alpha))
    expected = np.minimum(np.exp(-n * h), np.e * binom.cdf(k, n, alpha))
    assert p_value(k, n, alpha, method="hoeffding-bentkus") == pytest.approx(np.minimum(expected, 1), rel=1e-12)


def test_hoeffding_bentkus_agrees_with_mapie() -> None:
    rows = [row for row in json.loads(GOLDEN.read_text())["rows"] if not row["binary"]]
    assert len(rows) == 20
    for row in rows:
        found = p_value(np.array(row["failures"]), row["n"], row["alpha"], method="hoeffding-bentkus")
        assert found == pytest.approx(np.minimum(row["p"], 1), rel=1e-9, abs=1e-300), (row["n"], row["alpha"])


def test_exact_agrees_with_mapie_where_that_takes_the_exact_tail() -> None:
    """Its version for binary losses is the smaller of Hoeffding's bound and the exact tail, that is, the tail."""
    for row in json.loads(GOLDEN.read_text())["rows"]:
        if row["binary"]:
            found = p_value(np.array(row["failures"]), row["n"], row["alpha"])
            assert found == pytest.approx(np.array(row["p"]), rel=1e-9, abs=1e-300), (row["n"], row["alpha"])


@pytest.mark.parametrize("alpha", ALPHAS)
def test_exact_is_never_above_hoeffding_bentkus(alpha: float) -> None:
    n, k = np.tril_indices(301)
    k, n = k[n > 0], n[n > 0]
    exact, paper = log_p_value(k, n, alpha), log_p_value(k, n, alpha, method="hoeffding-bentkus")
    assert (exact <= paper + 1e-12).all()
    assert (exact < paper - 1e-3).any()


@pytest.mark.parametrize("method", METHODS)
def test_p_falls_with_alpha_and_rises_with_failures(method: str) -> None:
    alphas = np.linspace(0.01, 0.99, 99)
    table = log_p_value(np.arange(51)[:, None], 50, alphas, method=method)  # type: ignore[arg-type]
    assert (np.diff(table, axis=1) <= 1e-12).all()
    assert (np.diff(table, axis=0) >= -1e-12).all()


def test_what_the_design_promises_of_a_thousand_samples() -> None:
    assert most_failures(1000, 0.1, 0.05) == 84
    assert most_failures(1000, 0.1, 0.05, method="hoeffding-bentkus") == 80


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("zeta", [0.001, 0.05, 0.5])
def test_most_failures_is_the_last_count_that_certifies(method: str, zeta: float) -> None:
    n = np.arange(1, 200)
    found = most_failures(n, 0.1, zeta, method=method)  # type: ignore[arg-type]
    for size, most in zip(n, found, strict=True):
        p = p_value(np.arange(size + 1), size, 0.1, method=method)  # type: ignore[arg-type]
        assert most == (p <= zeta).sum() - 1
    assert found[0] == -1 or zeta == 0.5
    assert most_failures(10**7, 0.1, zeta, method=method) > 990_000  # type: ignore[arg-type]


def test_all_failures_certify_nothing_even_where_alpha_is_high() -> None:
    assert most_failures(3, 0.999, 0.5) == 2
    assert most_failures(1, 0.6, 0.5) == 0


def test_the_exact_bound_is_clopper_and_pearsons() -> None:
    for k, n in ((0, 10), (3, 10), (84, 1000), (9, 10)):
        interval = binomtest(k, n, alternative="less").proportion_ci(0.95, method="exact")
        assert certified_risk(k, n, 0.05) == pytest.approx(interval.high, rel=1e-9)
    assert certified_risk(0, 100, 0.05) == pytest.approx(1 - 0.05 ** (1 / 100), rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("zeta", [1e-9, 0.05, 0.4])
def test_the_bound_is_where_p_is_zeta(method: str, zeta: float) -> None:
    n, k = np.tril_indices(41)
    k, n = k[k < n], n[k < n]
    bound = certified_risk(k, n, zeta, method=method)  # type: ignore[arg-type]
    inside = bound < 1 - 1e-12  # closer to 1 than a float can tell
    p = p_value(k[inside], n[inside], bound[inside], method=method)  # type: ignore[arg-type]
    assert p == pytest.approx(np.full(p.size, zeta), rel=1e-3)
    assert inside.sum() > 0.9 * inside.size
    assert certified_risk(5, 5, zeta, method=method) == 1.0  # type: ignore[arg-type]


@pytest.mark.parametrize("method", METHODS)
def test_a_bound_for_ten_million_samples(method: str) -> None:
    bound = certified_risk(10**6, 10**7, 0.05, method=method)  # type: ignore[arg-type]
    assert log_p_value(10**6, 10**7, bound, method=method) == pytest.approx(math.log(0.05), abs=1e-6)  # type: ignore[arg-type]


def test_shapes() -> None:
    assert isinstance(p_value(3, 10, 0.5), float)
    assert isinstance(most_failures(10, 0.5, 0.05), int)
    assert isinstance(certified_risk(3, 10, 0.05), float)
    table = p_value([[3], [4]], [10, 20, 30], 0.5)
    assert table.shape == (2, 3)
    assert table[1, 2] == p_value(4, 30, 0.5)
    alike = p_value(np.array([7, 3, 3, 9, 3]), 10, 0.5)
    assert alike == pytest.approx([p_value(k, 10, 0.5) for k in (7, 3, 3, 9, 3)], rel=1e-14)
    assert p_value(np.uint8(3), np.int32(10), 0.5) == p_value(3, 10, 0.5)


@pytest.mark.parametrize(
    ("failures", "n", "alpha", "says"),
    [
        (3.0, 10, 0.1, "whole numbers, found .*3.0"),
        (0.3, 10, 0.1, "give counts, not rates"),
        (3, 10.0, 0.1, "n must be whole"),
        (True, 10, 0.1, "whole numbers"),
        ("3", 10, 0.1, "whole numbers"),
        (None, 10, 0.1, "whole numbers"),
        ([None, 3], 10, 0.1, "whole numbers"),
        ([[1, 2], [3]], 10, 0.1, "whole numbers"),
        (11, 10, 0.1, "more failures than samples: 11 of 10"),
        ([1, 7], [10, 6], 0.1, "7 of 6"),
        (-1, 10, 0.1, "found -1"),
        (0, 0, 0.1, "at least one sample"),
        ([], 10, 0.1, "no counts"),
        ([1, 2], [3, 4, 5], 0.1, "shape"),
        ([1, 2], 10, [0.1, 0.2, 0.3], "shape"),
        (1, 10, 0.0, "alpha must lie between 0 and 1"),
        (1, 10, 1.0, "alpha must lie between 0 and 1"),
        (1, 10, math.nan, "alpha must lie between 0 and 1"),
        (1, 10, "much", "alpha must be a number"),
        (1, 10**8, 0.1, "10,000,000"),
    ],
)
def test_what_cannot_be_tested_is_refused(failures: object, n: object, alpha: object, says: str) -> None:
    with pytest.raises(RiskError, match=says):
        p_value(failures, n, alpha)  # type: ignore[arg-type]


def test_unknown_methods_and_levels_are_refused() -> None:
    with pytest.raises(RiskError, match="did you mean 'exact'"):
        p_value(1, 10, 0.1, method="exakt")  # type: ignore[arg-type]
    with pytest.raises(RiskError, match="unknown method"):
        certified_risk(1, 10, 0.1, method="x")  # type: ignore[arg-type]
    with pytest.raises(RiskError, match="zeta must lie"):
        certified_risk(1, 10, 1.5)
    with pytest.raises(RiskError, match="zeta must lie"):
        most_failures(10, 0.1, 0.0)
    with pytest.raises(RiskError, match="more failures"):
        Count(5, 4, "set")
