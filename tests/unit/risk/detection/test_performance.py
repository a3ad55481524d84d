"""AUROC, ROC and false-positive rate against brute force, scikit-learn and scipy; and what is refused."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import mannwhitneyu
from scipy.stats import t as student
from sklearn.metrics import roc_auc_score, roc_curve

from advrisk.core.errors import RiskError
from advrisk.risk.detection import chance_auroc, chance_fpr, detection_performance, worst_case_scores
from advrisk.risk.detection.arm_sets import arm_set_rates, average
from advrisk.risk.detection.performance import auroc_difference, auroc_estimate, deletion_error
from advrisk.risk.detection.resampling import Ranked, drawn, resampled_rates
from advrisk.risk.detection.roc import chance_roc, exact_roc


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def scores(seed: int, n: int = 60, *, ties: bool) -> tuple[np.ndarray, np.ndarray]:
    """Clean and worst-case scores of n samples, of which some no arm broke."""
    draw = rng(seed)
    clean, attacked = draw.normal(size=n), draw.normal(0.7, size=n)
    if ties:
        clean, attacked = np.round(clean), np.round(attacked)
    attacked[draw.random(n) < 0.3] = np.nan
    return clean, attacked


def pairs_won(clean: np.ndarray, attacked: np.ndarray) -> float:
    """AUROC as it is defined, pair by pair."""
    known = attacked[~np.isnan(attacked)]
    return sum((a > c) + (a == c) / 2 for a, c in product(known, clean)) / (len(known) * len(clean))


def rate_by_hand(clean: np.ndarray, attacked: np.ndarray, tpr: float) -> float:
    """The largest of all thresholds that detects enough, tried one after the other."""
    known = attacked[~np.isnan(attacked)]
    enough = [t for t in known if (known >= t).mean() >= tpr - 1e-12]
    return float((clean >= max(enough)).mean())


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_auroc_is_that_of_others(seed: int, ties: bool) -> None:
    clean, attacked = scores(seed, ties=ties)
    known = attacked[~np.isnan(attacked)]
    found = detection_performance(clean, attacked, rng=rng(), resamples=10).auroc
    assert found.value == pytest.approx(pairs_won(clean, attacked), abs=1e-12)
    labels = np.repeat([0, 1], [clean.size, known.size])
    assert found.value == pytest.approx(roc_auc_score(labels, np.concatenate([clean, known])), abs=1e-12)
    wins = mannwhitneyu(known, clean).statistic / (clean.size * known.size)
    assert found.value == pytest.approx(wins, abs=1e-12)
    assert found.n == known.size


@pytest.mark.parametrize("ties", [False, True])
def test_the_roc_is_exact_and_its_area_is_the_auroc(ties: bool) -> None:
    clean, attacked = scores(5, ties=ties)
    known = attacked[~np.isnan(attacked)]
    found = detection_performance(clean, attacked, rng=rng(), resamples=10)
    fpr, tpr, threshold = found.roc
    labels = np.repeat([0, 1], [clean.size, known.size])
    theirs = roc_curve(labels, np.concatenate([clean, known]), drop_intermediate=False)
    for ours, other in zip((fpr, tpr, threshold), theirs, strict=True):
        np.testing.assert_allclose(ours, other)
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0, 0, 1, 1)
    assert (np.diff(threshold) < 0).all()
    assert np.trapezoid(tpr, fpr) == pytest.approx(found.auroc.value)


@pytest.mark.parametrize("tpr", [0.05, 0.5, 0.9, 0.95, 1.0])
@pytest.mark.parametrize("ties", [False, True])
def test_the_false_positive_rate_is_that_at_the_largest_threshold_that_detects_enough(tpr: float, ties: bool) -> None:
    for seed in range(5):
        clean, attacked = scores(seed, ties=ties)
        found = detection_performance(clean, attacked, tpr=tpr, rng=rng(), resamples=10)
        assert found.fpr_at_tpr.value == pytest.approx(rate_by_hand(clean, attacked, tpr))


def test_of_twenty_samples_exactly_one_may_be_missed_at_95_percent() -> None:
    found = detection_performance(np.zeros(20), np.arange(20) - 0.5, rng=rng(), resamples=10)
    assert found.fpr_at_tpr.value == 0, "the threshold is 0.5, as the sample at -0.5 may be missed"
    assert detection_performance(np.zeros(19), np.arange(19) - 0.5, rng=rng(), resamples=10).fpr_at_tpr.value == 1


def test_however_small_the_rate_one_sample_must_be_detected() -> None:
    found = detection_performance([0.0, 5.0], [1.0, np.nan], tpr=1e-12, rng=rng(), resamples=10)
    assert found.fpr_at_tpr.value == 0.5


def test_a_constant_detector_has_an_auroc_of_one_half_exactly() -> None:
    found = detection_performance(np.full(30, 3.3), np.full(30, 3.3), rng=rng())
    assert found.auroc.value == 0.5
    assert found.auroc.low < 0.4
    assert found.auroc.high > 0.6
    assert found.fpr_at_tpr.value == 1


@pytest.mark.parametrize(("attacked", "value"), [(2.0, 1.0), (-2.0, 0.0)])
def test_a_perfect_record_has_no_interval_of_zero_width(attacked: float, value: float) -> None:
    clean = rng().random(40)
    found = detection_performance(clean, np.full(40, attacked), rng=rng())
    expected = 1 - 0.025 ** (1 / 20)  # 40 samples make 20 disjoint pairs
    assert found.auroc.value == value
    assert found.auroc.high - found.auroc.low == pytest.approx(expected)
    assert found.fpr_at_tpr.value == 1 - value
    assert found.fpr_at_tpr.high - found.fpr_at_tpr.low > 0


def test_few_attacked_samples_do_not_bound_the_false_positive_rate() -> None:
    """Nobody knows the 5 % quantile of ten scores: the rate may be 1 for all one knows."""
    found = detection_performance(rng().normal(size=500), rng(1).normal(6, size=10), rng=rng())
    assert found.fpr_at_tpr.value == 0
    assert found.fpr_at_tpr.high == 1
    many = detection_performance(rng().normal(size=500), rng(1).normal(6, size=490), rng=rng())
    assert many.fpr_at_tpr.high < 0.05


def deleted_by_hand(clean: np.ndarray, attacked: np.ndarray) -> np.ndarray:
    n = clean.size
    return np.array([pairs_won(np.delete(clean, i), np.delete(attacked, i)) for i in range(n)])


@pytest.mark.parametrize("ties", [False, True])
def test_deletions_are_those_of_whole_samples(ties: bool) -> None:
    clean, attacked = scores(7, 25, ties=ties)
    found = arm_set_rates(clean, [attacked], tpr=0.9, level=0.9, resamples=3, rng=rng())[0]
    np.testing.assert_allclose(found.deleted[0], deleted_by_hand(clean, attacked), atol=1e-12)


def test_clean_scores_from_elsewhere_are_deleted_and_drawn_by_themselves() -> None:
    clean, attacked = scores(8, 25, ties=True)
    attacked = attacked[~np.isnan(attacked)]
    found = arm_set_rates(clean, [attacked], tpr=0.9, level=0.9, resamples=400, rng=rng(), paired=False)[0]
    by_clean = [pairs_won(np.delete(clean, i), attacked) for i in range(clean.size)]
    by_attacked = [pairs_won(clean, np.delete(attacked, i)) for i in range(attacked.size)]
    np.testing.assert_allclose(found.deleted[0], by_clean, atol=1e-12)
    np.testing.assert_allclose(found.deleted[1], by_attacked, atol=1e-12)
    assert found.pairs == attacked.size
    performance = detection_performance(clean, np.append(attacked, [np.nan] * 99), rng=rng())
    assert performance.auroc.value == pytest.approx(pairs_won(clean, attacked))
    assert performance.auroc.n == attacked.size
    assert np.unique(found.resampled).size > 3


def test_every_resampled_rate_is_that_of_its_draw() -> None:
    """Against the rate of the drawn samples written out, with ties and samples that no arm broke."""
    for seed, tpr in product(range(3), (0.3, 0.8, 0.95)):
        clean, attacked = scores(seed, 30, ties=True)
        sets = [Ranked.of(attacked, np.sort(clean)), Ranked.of(-attacked, np.sort(clean))]
        rates = resampled_rates(clean, sets, tpr=tpr, resamples=40, rng=rng(seed))
        counts = drawn(30, 40, rng(seed))
        assert (counts.sum(axis=0) == 30).all()
        for r in range(40):
            places = np.repeat(np.arange(30), counts[:, r])
            for row, values in zip(rates, (attacked, -attacked), strict=True):
                assert row[r] == pytest.approx(rate_by_hand(clean[places], values[places], tpr))


def test_draws_do_not_depend_on_how_many_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    clean, attacked = scores(2, 50, ties=False)
    sets = [Ranked.of(attacked, np.sort(clean))]
    whole = resampled_rates(clean, sets, tpr=0.9, resamples=20, rng=rng())
    monkeypatch.setattr("advrisk.risk.detection.resampling._CELLS", 150)
    np.testing.assert_array_equal(resampled_rates(clean, sets, tpr=0.9, resamples=20, rng=rng()), whole)


def test_an_average_is_measured_deletion_by_deletion_and_draw_by_draw() -> None:
    clean, first = scores(3, ties=False)
    second = scores(4, ties=False)[1]
    parts = arm_set_rates(clean, [first, second], tpr=0.9, level=0.95, resamples=50, rng=rng())
    both = average(parts)
    assert both.auroc == pytest.approx((parts[0].auroc + parts[1].auroc) / 2)
    by_hand = (deleted_by_hand(clean, first) + deleted_by_hand(clean, second)) / 2
    np.testing.assert_allclose(both.deleted[0], by_hand, atol=1e-12)
    np.testing.assert_allclose(both.resampled, (parts[0].resampled + parts[1].resampled) / 2)
    assert both.n == int((~np.isnan(first) | ~np.isnan(second)).sum())
    alike = average([parts[0], parts[0], parts[0]])
    same, alone = auroc_estimate(alike, 0.95), auroc_estimate(parts[0], 0.95)
    assert (same.value, same.low, same.high) == pytest.approx((alone.value, alone.low, alone.high)), "of equals"


def test_a_perfect_average_is_as_wide_as_the_average_of_its_parts() -> None:
    """All parts are 1. With m pairs each, P(all are 1) <= min a_g^m_g, and the least mean a with that is this one."""
    clean = rng().random(40)
    attacked = [np.where(np.arange(40) < n, 2.0, np.nan) for n in (5, 20)]
    parts = arm_set_rates(clean, attacked, tpr=0.9, level=0.95, resamples=5, rng=rng())
    low = auroc_estimate(average(parts), 0.95).low
    assert low == pytest.approx(np.mean([0.025 ** (1 / 5), 0.025 ** (1 / 20)]))


def test_a_part_of_two_samples_does_not_make_an_average_worthless() -> None:
    draw = rng(5)
    clean, much = draw.normal(size=500), draw.normal(2, size=500)
    few = np.where(np.arange(500) < 2, much, np.nan)
    parts = arm_set_rates(clean, [much, much, much, few], tpr=0.9, level=0.95, resamples=5, rng=draw)
    found = auroc_estimate(average(parts), 0.95)
    lows, highs = zip(*((one.low, one.high) for one in (auroc_estimate(part, 0.95) for part in parts)), strict=True)
    assert np.mean(lows) <= found.low
    assert found.high <= np.mean(highs)
    alone = auroc_estimate(parts[0], 0.95)
    assert found.high - found.low > alone.high - alone.low, "but it is known less well than without that part"


def test_the_jackknife_is_that_of_the_textbook() -> None:
    """Of a mean it is the usual standard error."""
    values = rng().normal(size=30)
    without = (values.sum() - values) / 29
    assert deletion_error((without,)) == pytest.approx(values.std(ddof=1) / np.sqrt(30))
    assert deletion_error((without, without)) == pytest.approx(np.sqrt(2) * values.std(ddof=1) / np.sqrt(30))
    assert deletion_error((np.full(9, 0.1 + 0.2),)) == 0


def test_a_difference_is_paired() -> None:
    clean, attacked = scores(3, 2000, ties=False)
    noisy = attacked + rng(1).normal(0, 0.01, attacked.size)
    same, other = arm_set_rates(clean, [attacked, noisy], tpr=0.9, level=0.95, resamples=5, rng=rng())
    found = auroc_difference(same, other, 0.95)
    assert found.low < 0 < found.high
    assert found.high - found.low < 0.3 * (auroc_estimate(same, 0.95).high - auroc_estimate(same, 0.95).low)
    assert auroc_difference(same, same, 0.95).low < 0, "no spread was seen, but it is not known to be none"


def broken_in(n_broken: int, seed: int, *, n: int = 80) -> np.ndarray:
    """Worst-case scores of the first so many of n samples."""
    return np.where(np.arange(n) < n_broken, rng(seed).normal(1, size=n), np.nan)


def test_a_difference_is_known_no_better_than_the_one_that_broke_fewer_samples() -> None:
    clean, many, few = rng().normal(size=80), broken_in(60, 1), broken_in(9, 2)
    parts = arm_set_rates(clean, [many, few], tpr=0.9, level=0.95, resamples=5, rng=rng())
    gap = deleted_by_hand(clean, many) - deleted_by_hand(clean, few)
    error = np.sqrt(79 / 80 * ((gap - gap.mean()) ** 2).sum())
    half = student.ppf(0.975, 9 - 1) * max(error, 1 / 9)
    for a, b in (parts, parts[::-1]):
        found = auroc_difference(a, b, 0.95)
        assert found.n == 9
        assert found.value - found.low == pytest.approx(half)
        assert found.high - found.value == pytest.approx(half)


def test_the_difference_of_two_perfect_records_rests_on_the_pairs_of_the_smaller() -> None:
    clean = rng().random(80)
    perfect = [np.where(np.arange(80) < n, 2.0, np.nan) for n in (60, 9)]
    parts = arm_set_rates(clean, perfect, tpr=0.9, level=0.95, resamples=5, rng=rng())
    for a, b in (parts, parts[::-1]):
        found = auroc_difference(a, b, 0.95)
        assert (found.value, found.high) == (0, pytest.approx(1 - 0.025 ** (1 / 9)))


def test_worst_case_scores_are_the_least_of_the_successes() -> None:
    found = worst_case_scores(
        [[1.0, 5.0, np.nan, 4.0], [3.0, 2.0, 0.0, 4.0]],
        [[True, True, False, False], [True, False, False, True]],
    )
    np.testing.assert_array_equal(found, [1.0, 5.0, np.nan, 4.0])


def test_chance_is_what_random_numbers_get() -> None:
    """The least of K random numbers lies above another one with probability 1 / (K + 1)."""
    counts = np.array([0, 1, 1, 2, 5])
    assert chance_auroc(counts) == pytest.approx(np.mean([1 / 2, 1 / 2, 1 / 3, 1 / 6]))
    assert chance_auroc(np.array([1, 1])) == 0.5
    assert chance_fpr(np.array([1, 0, 1]), 0.95) == pytest.approx(0.95)
    assert chance_fpr(np.array([4, 4]), 0.95) == pytest.approx(0.95 ** (1 / 4))
    share = chance_fpr(counts, 0.8)
    assert np.mean([share, share, share**2, share**5]) == pytest.approx(0.8)


def test_a_noise_detector_gives_its_chance_level() -> None:
    """Ten arms, of which each breaks its own share of samples; scores are noise. Over many samples both agree."""
    draw, n = rng(3), 40_000
    success = draw.random((10, n)) < draw.random((10, 1))
    worst = worst_case_scores(draw.random((10, n)), success)
    counts = success.sum(axis=0)
    found = detection_performance(draw.random(n), worst, rng=draw, resamples=20)
    assert found.auroc.value == pytest.approx(chance_auroc(counts), abs=4 * 0.5 / np.sqrt(n))
    assert found.fpr_at_tpr.value == pytest.approx(chance_fpr(counts, 0.95), abs=0.005)
    assert chance_auroc(counts) < 0.25


def test_the_chance_curve_is_the_roc_of_random_numbers() -> None:
    draw, n = rng(4), 40_000
    success = draw.random((12, n)) < draw.random((12, 1))
    counts = success.sum(axis=0)
    fpr, tpr = chance_roc(counts)
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0, 0, 1, 1)
    assert np.trapezoid(tpr, fpr) == pytest.approx(chance_auroc(counts), abs=1e-3)
    assert np.interp(chance_fpr(counts, 0.95), fpr, tpr) == pytest.approx(0.95, abs=1e-3)
    worst = worst_case_scores(draw.random((12, n)), success)
    seen = exact_roc(draw.random(n), worst[~np.isnan(worst)])
    np.testing.assert_allclose(np.interp(fpr, seen.fpr, seen.tpr), tpr, atol=0.02)


def test_against_one_arm_the_chance_curve_is_the_diagonal_and_against_more_a_power() -> None:
    fpr, tpr = chance_roc(np.array([1, 0, 1]))
    np.testing.assert_allclose(tpr, fpr)
    fpr, tpr = chance_roc(np.array([3, 1, 3]))
    np.testing.assert_allclose(tpr, (fpr + 2 * fpr**3) / 3)


@pytest.mark.parametrize(
    ("clean", "attacked", "settings", "message"),
    [
        ([1.0, 2.0], [np.nan, np.nan], {}, "no arm succeeded on any of 2 samples"),
        ([1.0, np.nan], [1.0, 2.0], {}, "1 of 2 clean scores are nan"),
        ([], [], {}, r"clean scores must be one number for each sample, found an array of shape \(0,\)"),
        ([[1.0]], [1.0], {}, r"found an array of shape \(1, 1\)"),
        ([1.0], [[1.0]], {}, r"adversarial scores must be one number"),
        (["a"], [1.0], {}, "scores must be numbers"),
        ([1.0], [1.0], {"level": 1.0}, "level must lie between 0 and 1, found 1.0"),
        ([1.0], [1.0], {"level": float("nan")}, "level must lie between 0 and 1, found nan"),
        ([1.0], [1.0], {"tpr": 0.0}, "tpr must be more than 0 and at most 1, found 0.0"),
        ([1.0], [1.0], {"tpr": 1.1}, "tpr must be more than 0 and at most 1, found 1.1"),
        ([1.0], [1.0], {"resamples": 0}, "resamples must be at least 1, found 0"),
    ],
)
def test_what_gives_no_estimate_is_refused(clean: Any, attacked: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(RiskError, match=message):
        detection_performance(clean, attacked, rng=rng(), **settings)


@pytest.mark.parametrize(
    ("values", "success", "message"),
    [
        ([1.0, 2.0], [True, True], r"must both be \(arms, samples\), found \(2,\) and \(2,\)"),
        ([[1.0, 2.0]], [[True]], r"found \(1, 2\) and \(1, 1\)"),
        ([[1.0, 2.0]], [[1, 0]], "success must hold true or false, found int64"),
        ([[1.0, np.nan]], [[True, True]], "arm 0, sample 1: a success without a score"),
    ],
)
def test_scores_that_fit_no_successes_are_refused(values: Any, success: Any, message: str) -> None:
    with pytest.raises(RiskError, match=message):
        worst_case_scores(values, success)


def test_one_sample_says_nothing_and_does_not_fail() -> None:
    found = detection_performance([0.0], [1.0], rng=rng())
    assert (found.auroc.value, found.auroc.low, found.auroc.high) == (1.0, 0.0, 1.0)
    with pytest.raises(RiskError, match="no arm succeeded"):
        chance_auroc(np.zeros(3, dtype=np.int64))
    with pytest.raises(RiskError, match="nothing to average"):
        average([])
