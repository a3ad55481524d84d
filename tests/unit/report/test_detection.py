"""Detectors in words and as curves."""

import numpy as np
import pytest

from advrisk.assess.detection.assessment import DetectionAssessment, DetectorPair, DetectorTable
from advrisk.core.estimate import Estimate
from advrisk.report.detection import (
    ON_AUROC,
    detection_content,
    on_arms,
    on_left_out,
    on_pair,
    on_table,
    roc_curves,
    row_label,
    survived,
    thinned,
)
from advrisk.risk.detection.arms import defeats
from advrisk.risk.detection.entries import Scored, Settings
from advrisk.risk.detection.groups import MULTI_ARMED, ScoredArm
from advrisk.risk.detection.roc import exact_roc
from advrisk.risk.detection.table import detection_table


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


def test_detectors_that_are_equal_are_not_said_to_be_better() -> None:
    pair = DetectorPair("one@1", "two@2", Estimate(0.0, -0.1, 0.1, 0.95, 9, ""))
    assert on_pair(pair) == "one = two: difference of AUROC 0.000 [-0.100, 0.100], undecided"


def knowing(n_broken: int, *, against: str = "eye@1", usual: bool = False) -> DetectorTable:
    """Ten samples, an arm that knows a detector and broke the first so many, and maybe another that broke none."""
    arms = [ScoredArm("adaptive-linf-0.1", family="adaptive", norm="linf", eps=0.1, against=against)]
    arms += [ScoredArm("pgd-linf-0.1", family="pgd", norm="linf", eps=0.1)] * usual
    success = np.zeros((len(arms), 10), dtype=bool)
    success[0, :n_broken] = True
    scored = Scored(tuple(arms), success, np.zeros((len(arms), 10)), np.arange(10.0))
    places = [place for place, arm in enumerate(arms) if arm.against in (None, "eye@1")]
    passes = np.full(success.shape, 7.0)
    attacked = np.ones(success.shape, dtype=bool)
    return DetectorTable(
        model="net",
        detector="eye@1",
        n=10,
        table=detection_table(scored, "eye@1", Settings(0.95, 0.95, 20, 0)),
        defeat=defeats(scored, places, passes, attacked, threshold=5.0, level=0.95),
    )


@pytest.mark.parametrize("usual", [False, True])
def test_where_only_arms_that_know_the_detector_broke_samples_they_are_told_of(usual: bool) -> None:
    sentences = on_table(knowing(4, usual=usual))
    assert sentences[0] == "no arm of the groups broke a sample: of these there is no AUROC"
    assert sentences[1] == (
        "attacked by arms that know it, at linf 0.1: AUROC 0.050 on the 4 samples that they broke (chance 0.500)"
    )
    assert sentences[2].startswith("at a threshold of 5 (40.0 % ")
    assert f"some arm of {1 + usual} gets past it on 40.0 % " in sentences[2]
    assert " of 10 attackable samples; most often" in sentences[2]
    assert sentences[3] == "cheapest: adaptive-linf-0.1 (40.0 %), at 17.5 passes for each"
    assert len(sentences) == 4


def test_where_no_arm_broke_a_sample_there_is_nothing_to_detect() -> None:
    assert on_table(knowing(0, usual=True)) == ["no arm broke a sample: there is nothing to detect"]


def test_of_arms_that_know_another_detector_nothing_is_told() -> None:
    assert on_table(knowing(4, against="ear@2")) == ["no arm of the groups broke a sample: of these there is no AUROC"]


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        ([knowing(4)], "0 arms that know no detector, 1 that knows one"),
        ([knowing(4, usual=True)], "1 arm that knows no detector, 1 that knows one"),
        ([knowing(4, usual=True)] * 2, "1 arm that knows no detector, 2 that know one"),
        ([knowing(4, usual=True, against="ear@2")], "1 arm that knows no detector"),
    ],
)
def test_arms_are_counted_by_what_they_know(tables: list[DetectorTable], told: str) -> None:
    assert on_arms(tables) == told


def test_what_survives_in_short() -> None:
    assert survived(knowing(4, against="ear@2")) == []
    alone, uncertain = "these arms alone: 0.050", "], chance 0.500"
    ((first, second, third),) = survived(knowing(4))
    assert (first, second) == ("linf 0.1: no other arm broke a sample", alone)
    assert third.endswith(uncertain)
    assert survived(knowing(0)) == [("linf 0.1: no other arm broke a sample", "they broke no sample")]


def against_many(n_arms: int) -> DetectionAssessment:
    """Two detectors with the same worst group, whose arms broke different numbers of samples."""
    draw = np.random.default_rng(0)
    arms = tuple(ScoredArm(f"pgd #{k}", family="pgd", norm="linf", eps=0.1) for k in range(n_arms))
    success = draw.random((n_arms, 50)) < 0.6
    passes, attacked = np.full(success.shape, 7.0), np.ones(success.shape, dtype=bool)
    tables = []
    for name in ("eye@1", "ear@2"):
        scored = Scored(arms, success, draw.normal(1, size=(n_arms, 50)), draw.normal(size=50))
        defeat = defeats(scored, range(n_arms), passes, attacked, threshold=1.0, level=0.95)
        tables.append(DetectorTable("net", name, 50, detection_table(scored, name, Settings(0.95, 0.95, 5, 0)), defeat))
    return DetectionAssessment(tuple(tables), {"net": ()}, 0.95, 0.95, 1.0, ())


@pytest.mark.parametrize("n_arms", [1, 8])
def test_chance_is_drawn_as_it_is_against_so_many_arms(n_arms: int) -> None:
    found = against_many(n_arms)
    chance, *curves = roc_curves(found, "net", "linf 0.1")["data"]
    assert chance["name"] == ("chance, 1 arm" if n_arms == 1 else "chance, 8 arms")
    assert chance["line"]["dash"] == "dot"
    assert [curve["name"] for curve in curves] == ["eye", "ear"], "one chance for both"
    expected = found.tables[0].table.row("linf 0.1").entries[MULTI_ARMED].chance_auroc
    assert np.trapezoid(chance["y"], chance["x"]) == pytest.approx(expected, abs=1e-3)
    if n_arms == 1:
        assert chance["y"] == pytest.approx(chance["x"]), "the diagonal"


def test_chance_may_be_a_half() -> None:
    assert "is at most 0.5" in ON_AUROC


def test_every_group_with_a_success_has_a_figure_and_the_worst_one_comes_first() -> None:
    """Two sizes: the AUROC is lower at the first, but so is chance; the second is hardly above it."""
    arms = [ScoredArm(f"pgd {k}", family="pgd", norm="linf", eps=8 / 255) for k in range(5)]
    arms += [ScoredArm("fgsm", family="fgsm", norm="linf", eps=0.2), ScoredArm("cw", family="cw", norm="l2")]
    success = np.ones((7, 100), dtype=bool)
    success[6] = False
    score = np.vstack([np.full((5, 100), 49.5), np.full((2, 100), 59.5)])
    scored = Scored(tuple(arms), success, score, np.arange(100.0))
    table = detection_table(scored, "eye@1", Settings(0.95, 0.95, 5, 0))
    defeat = defeats(scored, range(7), np.full((7, 100), 1.0), np.ones((7, 100), bool), threshold=99.0, level=0.95)
    one = DetectorTable("net", "eye@1", 100, table, defeat)
    shown = detection_content(DetectionAssessment((one,), {"net": ()}, 0.95, 0.95, 1.0, ()))
    choices = shown["roc_choices"]["net"]
    assert [choice.label for choice in choices] == ["linf 0.2 (worst for eye)", "linf 8/255"]
    assert set(shown["detection_figures"]) == {choice.figure for choice in choices}
    for choice, chance in zip(choices, (1 / 2, 1 / 6), strict=True):
        first = shown["detection_figures"][choice.figure]["data"][0]
        assert first["name"].startswith("chance")
        assert np.trapezoid(first["y"], first["x"]) == pytest.approx(chance, abs=1e-3)
    left_out = on_left_out(table)[0]
    assert left_out.endswith("leave out 1 of 3 groups: l2 cw (no arm succeeded)")
    assert row_label(table.average) == "average of 2 of 3 groups"
