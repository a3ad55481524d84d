"""Detectors in the terminal: whole, and readable where it is narrow."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from advrisk.assess.detection.assessment import DetectionAssessment, DetectorPair, DetectorTable
from advrisk.assess.detection.curves import group_curves
from advrisk.cli.detection import print_detection, print_group
from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.plain import json_text
from advrisk.report.csv_files import write_rows
from advrisk.risk.detection.arms import defeats
from advrisk.risk.detection.entries import Scored, Settings
from advrisk.risk.detection.groups import MULTI_ARMED, ScoredArm
from advrisk.risk.detection.table import detection_table

EYE = "[red]eye[/red]@1"
N = 80


def assessment() -> DetectionAssessment:
    """A model called by markup, two objectives, an attack without a size that breaks nothing, and an adaptive arm."""
    draw = np.random.default_rng(0)
    arms = (
        ScoredArm("pgd-linf-0.1-ace", family="pgd", norm="linf", eps=0.1, objective="ace"),
        ScoredArm("pgd-linf-0.1-kl", family="pgd", norm="linf", eps=0.1, objective="kl"),
        ScoredArm("deepfool-l2", family="deepfool", norm="l2"),
        ScoredArm("adaptive-linf-0.1", family="adaptive", norm="linf", eps=0.1, objective="ace", against=EYE),
    )
    success = draw.random((4, N)) < 0.7
    success[2] = False
    scores = draw.normal([[2.0], [1.0], [3.0], [0.2]], 1, (4, N))
    scored = Scored(arms, success, scores, draw.normal(size=N))
    passes = np.full((4, N), 12.0)
    one = DetectorTable(
        model="[bold]net",
        detector=EYE,
        n=N,
        table=detection_table(scored, EYE, Settings(0.95, 0.95, 50, 0)),
        defeat=defeats(scored, range(4), passes, np.ones((4, N), dtype=bool), threshold=1.0, level=0.95),
    )
    pair = DetectorPair(EYE, "ear@2", Estimate(0.1, -0.1, 0.3, 0.95, N, "paired"))
    return DetectionAssessment((one,), {"[bold]net": (pair,)}, 0.95, 0.95, 1.0, ("A note.",))


@pytest.mark.parametrize("width", [60, 80, 160])
def test_everything_fits_and_names_from_outside_are_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    found = assessment()
    print_detection(found, groups=True)
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= width
    words = " ".join(shown.split())
    assert "[bold]net: 80 samples; 3 arms that know no detector, 1 that knows one" in words
    assert "[red]eye[/red] > ear: difference of AUROC 0.100 [-0.100, 0.300], undecided" in words
    assert "leave out 1 of 2 groups: l2 deepfool (no arm succeeded)" in words
    assert "average of 1 of 2 groups" in words or width == 80, "the label may be broken into lines"
    assert "· A note." in words
    table = found.tables[0].table
    for entry in (table.row("linf 0.1").entries[MULTI_ARMED], table.adaptive[0].alone, table.adaptive[0].together):
        assert entry.auroc is not None
        assert f"{entry.auroc.value:.3f}" in shown
    assert "AUROC against arms that know it" in words
    for arm in found.tables[0].defeat.arms:
        assert arm.arm in words.replace(" ", ""), "it may be broken into lines"


@pytest.mark.parametrize("width", [40, 50, 60, 80, 100, 160])
def test_no_number_is_cut_and_no_interval_lost(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """Whatever stands in a table stands there whole, in one line or, where there is no room, in a list."""
    monkeypatch.setenv("COLUMNS", str(width))
    found = assessment()
    print_detection(found, groups=True)
    shown = capsys.readouterr().out
    words = " ".join(shown.split())
    (one,) = found.tables
    entries = [entry for row in one.table.rows for entry in row.entries.values()]
    estimates = [estimate for entry in entries for estimate in (entry.auroc, entry.fpr_at_tpr)]
    estimates += [entry.auroc for survival in one.table.adaptive for entry in survival.entries.values()]
    for estimate in filter(None, estimates):
        assert f"{estimate.value:.3f}" in words
    for entry in (one.overall, one.table.row("linf 0.1").entries[MULTI_ARMED]):
        for estimate in filter(None, (entry.auroc, entry.fpr_at_tpr)):
            for bound in (f"[{estimate.low:.3f},", f"{estimate.high:.3f}]"):
                assert bound in shown
    if width == 40:
        entry = one.overall
        assert entry.auroc is not None
        assert f"AUROC, arms that do not know it: {entry.auroc}; chance: {entry.chance_auroc:.3f};" in words
        assert f"multi-armed: {entry.auroc.value:.3f} [{entry.auroc.low:.3f}, {entry.auroc.high:.3f}]" in words
        assert "l2 deepfool ace: 0.00; kl: 0.00; multi-armed: 0.00; paper's count, natural errors" in words


@pytest.mark.parametrize("width", [60, 120, 200])
def test_the_headline_says_which_arms_it_counts_and_what_survives_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    found = assessment()
    print_detection(found, groups=False)
    head = " ".join(capsys.readouterr().out.partition("worst group")[0].split())
    (survival,) = found.tables[0].table.adaptive
    without, together, alone = (survival.entries[name].auroc for name in ("without", "together", "alone"))
    assert without is not None
    assert together is not None
    assert alone is not None
    assert "arms that do not know it" in head or width == 120, "a heading may be broken into lines"
    assert f"linf 0.1: {together.value:.3f} of {without.value:.3f}" in head
    assert f"[{together.low:.3f}, {together.high:.3f}], chance {survival.together.chance_auroc:.3f}" in head
    assert f"these arms alone: {alone.value:.3f}" in head


def test_where_no_arm_knows_a_detector_that_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    found = assessment()
    (one,) = found.tables
    unknown = replace(one, table=replace(one.table, adaptive=()))
    print_detection(replace(found, tables=(unknown,)), groups=False)
    words = " ".join(capsys.readouterr().out.split())
    assert "[bold]net: 80 samples; 3 arms that know no detector detector arms AUROC" in words
    assert "what survives" not in words
    assert "No arm here knows a detector." in words


def test_the_summary_shows_no_groups(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    print_detection(assessment(), groups=False)
    shown = " ".join(capsys.readouterr().out.split())
    assert "successful arms per sample" not in shown
    assert "--groups shows them all" in shown
    assert "worst group, least above chance: linf 0.1" in shown


def test_what_survives_an_attacker_who_knows_the_detector_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    found = assessment()
    print_detection(found, groups=False)
    shown = " ".join(capsys.readouterr().out.split())
    (survival,) = found.tables[0].table.adaptive
    assert survival.together.auroc is not None
    assert survival.without.auroc is not None
    assert survival.together.auroc.value < survival.without.auroc.value
    assert survival.alone.auroc is not None
    assert survival.alone.n_broken != survival.together.n_broken
    both = f"AUROC {survival.together.auroc.value:.3f} of {survival.without.auroc.value:.3f} survives"
    assert f"{both} on the {survival.without.n_broken} samples that other arms broke (chance" in shown
    own = f"AUROC {survival.alone.auroc.value:.3f} on the {survival.alone.n_broken} samples that they broke (chance"
    assert own in shown


def test_the_file_holds_what_survives(tmp_path: Path) -> None:
    found = assessment()
    assert write_rows(found.rows(), found.columns, tmp_path / "all.csv") == len(found.rows())
    with (tmp_path / "all.csv").open(newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["kind"] == "adaptive"]
    (survival,) = found.tables[0].table.adaptive
    assert [line["column"] for line in lines] == ["without", "alone", "together"]
    for line, entry in zip(lines, (survival.without, survival.alone, survival.together), strict=True):
        assert (line["row"], line["norm"], line["detector"]) == ("linf 0.1", "linf", EYE)
        assert entry.auroc is not None
        assert float(line["auroc"]) == entry.auroc.value
        assert (int(line["n_arms"]), int(line["n_broken"])) == (entry.n_arms, entry.n_broken)


@pytest.mark.parametrize("width", [60, 160])
def test_one_group_is_shown_beside_its_chance(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    found = assessment()
    (curves,) = group_curves(found, "linf-0.1")
    print_group(found, [curves])
    words = " ".join(capsys.readouterr().out.split())
    entry = found.tables[0].table.row("linf 0.1").entries[MULTI_ARMED]
    assert f"[bold]net, linf 0.1: 2 arms broke {entry.n_broken} of 80 attackable samples" in words
    roc = found.tables[0].table.roc("linf 0.1")
    for rate in (0.01, 0.05, 0.1, 0.2, 0.5):
        by_hand = max(hit for alarm, hit in zip(roc.fpr, roc.tpr, strict=True) if alarm <= rate)
        assert curves.detected(rate) == by_hand
        assert f"{100 * by_hand:.1f} %" in words
    told = json.loads(json_text(curves.as_dict()))
    assert (told["group"], len(told["roc"][MULTI_ARMED]["fpr"])) == ("linf 0.1", roc.fpr.size)
    assert told["roc"][MULTI_ARMED]["threshold"][0] is None, "JSON knows no infinity"


def test_a_group_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(RiskError, match=r"there is no group 'linf-0.2'; did you mean 'linf 0.1'\?"):
        group_curves(assessment(), "linf-0.2")


def test_a_group_without_a_success_has_no_curve() -> None:
    (curves,) = group_curves(assessment(), "l2-deepfool")
    assert (curves.roc, curves.chance, curves.detected(0.1), curves.chance_detected(0.1)) == ({}, None, None, None)
