"""Detectors in words and as curves."""

import numpy as np

from advrisk.core.estimate import Estimate
from advrisk.report.detection import on_pair, thinned
from advrisk.risk.detection.assessment import DetectorPair
from advrisk.risk.detection.roc import exact_roc


def test_a_curve_of_many_points_is_thinned_without_leaving_the_curve() -> None:
    rng = np.random.default_rng(0)
    roc = exact_roc(rng.normal(size=5000), rng.normal(1, size=5000))
    fpr, tpr = thinned(roc)
    assert len(fpr) == len(tpr) <= 402
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0, 0, 1, 1)
    points = set(zip(roc.fpr.tolist(), roc.tpr.tolist(), strict=True))
    assert set(zip(fpr, tpr, strict=True)) <= points
    assert abs(np.trapezoid(tpr, fpr) - np.trapezoid(roc.tpr, roc.fpr)) < 0.002


def test_a_short_curve_is_kept_whole() -> None:
    roc = exact_roc(np.array([0.0, 1.0, 1.0]), np.array([1.0, 2.0]))
    fpr, tpr = thinned(roc)
    assert fpr == roc.fpr.tolist()
    assert tpr == roc.tpr.tolist()


def test_two_detectors_are_told_apart_or_not() -> None:
    clear, open_ = (
        DetectorPair("one@1", "two,bits=1@2", Estimate(0.1, low, 0.2, 0.95, 9, "")) for low in (0.05, -0.05)
    )
    assert on_pair(clear) == "one > two,bits=1: difference of AUROC 0.100 [0.050, 0.200], decided"
    assert on_pair(open_) == "one > two,bits=1: difference of AUROC 0.100 [-0.050, 0.200], undecided"
