"""What is shown of detectors: whole, readable where a terminal is narrow, and in the right words."""

import csv
import io
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

from advrisk.assess.detection.assessment import DetectionAssessment, DetectorPair, DetectorTable
from advrisk.assess.detection.details import row_label
from advrisk.assess.detection.sections import on_left_out, on_model, quantities, sections
from advrisk.core.estimate import Estimate
from advrisk.core.sections import Cell, Table, Value, every, headline_of, summary_of
from advrisk.core.values import estimate_text
from advrisk.render.markdown import markdown_lines
from advrisk.render.terminal import print_sections
from advrisk.report.csv_files import write_rows
from advrisk.risk.detection.groups import MULTI_ARMED

from .examples import HOSTILE, against_many, hostile, knowing, two_sizes
from .examples import assessed as assessment

OVERVIEW = "Each detector against all arms that do not know it"
SURVIVAL = "What survives arms that know the detector: AUROC"
PAST = "Which arms get past, at a threshold"


def tables(found: DetectionAssessment) -> dict[str, Table]:
    return {one.title: one for one in every(sections(found)) if isinstance(one, Table)}


def row(found: DetectionAssessment, title: str, place: int = 0) -> dict[str, Value]:
    shown = tables(found)[title]
    return dict(zip((column.name for column in shown.columns), shown.rows[place], strict=True))


def terminal(found: DetectionAssessment, width: int, *, details: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_sections(sections(found), console, details=details)
    return console.file.getvalue()  # type: ignore[attr-defined]


def words(text: str) -> str:
    return " ".join(text.split())


def in_two_lines(shown: str, interval: str) -> bool:
    """Whether the upper limit stands right below the lower one, in the same cell."""
    low, high = interval.split(" ")
    return any(
        re.match(rf" ?{re.escape(high)}", below[at:])
        for above, below in pairwise(shown.splitlines())
        for at in (one.start() for one in re.finditer(re.escape(low), above))
    )


@pytest.mark.parametrize("width", [40, 60, 80, 160])
def test_everything_fits_and_no_number_or_interval_is_lost(width: int) -> None:
    found = hostile()
    shown = terminal(found, width, details=True)
    assert max(map(len, shown.splitlines())) <= width
    (one,) = found.tables
    entries = [entry for line in one.table.rows for entry in line.entries.values()]
    rates = [entry.fpr_at_tpr for entry in entries]
    aurocs = [entry.auroc for entry in entries]
    aurocs += [entry.auroc for survival in one.table.adaptive for entry in survival.entries.values()]
    for text in (
        *(estimate_text(auroc, "number") for auroc in aurocs if auroc),
        *(estimate_text(rate, "share") for rate in rates if rate),
    ):
        value, interval = text.split(" [")
        assert value in shown
        whole = f"[{interval}" in words(shown)
        assert whole or (width == 80 and in_two_lines(shown, f"[{interval}")), "in one piece, or two lines of its cell"
    for arm in one.defeat.arms:
        assert arm.arm in shown.replace("\n", "").replace(" ", "")


@pytest.mark.parametrize("width", [60, 160])
def test_names_from_outside_are_text(width: int) -> None:
    shown = words(terminal(hostile(), width))
    assert "[bold]net: 80 samples; 3 arms that know no detector, 1 that knows one." in shown
    assert "[red]eye[/red]" in shown
    assert "leave out 1 of 2 groups: l2 deepfool (no arm succeeded)" in shown
    assert "· A note." in shown


def test_groups_are_shown_to_those_who_look_closer() -> None:
    found = hostile()
    assert "by group" not in terminal(found, 80)
    for text in ("AUROC of [red]eye[/red] in front of [bold]net, by group", "How many arms break [bold]net"):
        assert text in words(terminal(found, 80, details=True))
    assert "by group" not in "\n".join(markdown_lines("Detectors", list(sections(found))))


def test_titles_differ() -> None:
    for found in (hostile(), against_many(2)):
        titles = [one.title for one in every(sections(found)) if isinstance(one, Table)]
        assert len(set(titles)) == len(titles)


def test_the_headline_names_the_best_detector_of_each_model_beside_chance() -> None:
    found = against_many(8)
    best = found.tables[0].overall
    assert headline_of(list(sections(found))) == (
        f"Best against all arms that do not know it: eye in front of net, AUROC {best.auroc} "
        f"(chance {best.chance_auroc:.3f})."
    )
    alone = assessment(found.tables[1])
    assert headline_of(list(sections(alone))).startswith("Against all arms that do not know it: ear in front of net")


def test_of_many_models_the_headline_and_the_summary_name_a_few() -> None:
    found = against_many(2)
    many = tuple(replace(found.tables[0], model=f"net{n}") for n in range(7))
    shown = list(sections(assessment(*many)))
    assert headline_of(shown).endswith("; 3 more models.")
    assert summary_of(shown, "sure")[-1] == "3 more detectors: see the section on them."
    assert summary_of(shown, "drivers")[-1] == "3 more: see the section on detectors."


def test_the_executive_summary_says_how_good_the_best_is_and_what_gets_past() -> None:
    found = against_many(1)
    shown = list(sections(found))
    one = found.tables[0]
    assert summary_of(shown, "sure") == [
        f"Detector eye in front of net: AUROC {one.overall.auroc} against the arms of each size together, averaged "
        "over sizes and norms; arms that know it are left out (chance: 0.500)."
    ]
    arm = one.defeat.arms[0]
    assert summary_of(shown, "drivers")[0] == (
        f"pgd #0 gets past eye in front of net most often: {arm.unseen.in_percent()} of attackable samples."
    )


def test_quantities_are_auroc_and_fpr_of_each_detector() -> None:
    found = against_many(3)
    told = {one.name: one.estimate for one in quantities(found)}
    assert list(told) == ["auroc.net.eye", "fpr.net.eye", "auroc.net.ear", "fpr.net.ear"]
    assert told["fpr.net.ear"] == found.tables[1].overall.fpr_at_tpr
    assert list(quantities(assessment(knowing(4)))) == []


def test_the_worst_group_is_the_one_least_above_its_chance() -> None:
    shown = row(two_sizes(), OVERVIEW)
    assert shown["worst group"] == Cell("linf 0.2", ("AUROC 0.600", "chance 0.500"))
    auroc = shown["AUROC"]
    assert isinstance(auroc, Cell)
    assert auroc.beside == ("average of 2 of 3 groups",)
    found = two_sizes().tables[0]
    assert on_left_out(found)[0].endswith("leave out 1 of 3 groups: l2 cw (no arm succeeded).")
    assert row_label(found.table.average) == "average of 2 of 3 groups"


def test_every_table_says_against_how_many_arms() -> None:
    """Also without `--details`; of 7 arms, an AUROC is against the 6 in the groups of the average."""
    found = two_sizes()
    for title, n, name in ((OVERVIEW, 6, "arms"), (PAST, 7, "arms tried")):
        brief = tables(found)[title].brief
        values = dict(zip((column.name for column in brief.columns), brief.rows[0], strict=True))
        assert values[name] == n


def test_the_least_of_a_line_and_averages_are_marked() -> None:
    found = hostile()
    shown = tables(found)["AUROC of [red]eye[/red] in front of [bold]net, by group"]
    labels = [line[0] for line in shown.rows]
    assert all(isinstance(label, Cell) for label in labels)
    assert [(label.value, label.beside, label.mark) for label in labels if isinstance(label, Cell)] == [
        ("l2 deepfool", (), ""),
        ("linf 0.1", ("worst group",), ""),
        ("average of 1 of 2 groups", (), "total"),
    ]
    assert found.tables[0].table.row("linf 0.1").worst == ("kl",)
    marks = [value.mark for value in shown.rows[1][1:4] if isinstance(value, Cell)]
    assert [column.name for column in shown.columns[1:4]] == ["ace", "kl", MULTI_ARMED]
    assert marks == ["", "worst", ""]


def test_objectives_called_like_other_columns_are_told_apart() -> None:
    found = hostile(ace="arms", kl="Group")
    shown = tables(found)["AUROC of [red]eye[/red] in front of [bold]net, by group"]
    assert [column.name for column in shown.columns[:3]] == ["group", "arms", "Group"], "as they are called"
    keys = [column.key for column in shown.columns]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("width", [60, 200])
def test_what_survives_arms_that_know_the_detector_is_not_folded_away(width: int) -> None:
    found = hostile()
    (survival,) = found.tables[0].table.adaptive
    assert survival.together.auroc is not None
    assert survival.without.auroc is not None
    assert survival.together.auroc.value < survival.without.auroc.value
    assert survival.alone.n_broken != survival.together.n_broken
    shown = words(terminal(found, width))
    assert SURVIVAL in shown
    for entry in survival.entries.values():
        assert f"{entry.auroc.value:.3f}" in shown  # type: ignore[union-attr]
        assert f"chance {entry.chance_auroc:.3f}" in shown
        assert f"{entry.n_broken} broken" in shown
    assert "No arm here knows a detector." not in shown


def test_detectors_that_no_arm_knows_are_named_where_others_are_known() -> None:
    found = hostile().tables[0]
    other = replace(found, detector="ear@2", table=replace(found.table, adaptive=()))
    assert tables(assessment(found, other))[SURVIVAL].notes[-1] == "No arm knows ear in front of [bold]net."


def test_where_no_arm_knows_a_detector_that_is_said() -> None:
    found = hostile()
    (one,) = found.tables
    shown = words(terminal(replace(found, tables=(replace(one, table=replace(one.table, adaptive=())),)), 100))
    assert "[bold]net: 80 samples; 3 arms that know no detector." in shown
    assert "What survives" not in shown
    assert "No arm here knows a detector." in shown


@pytest.mark.parametrize("usual", [False, True])
def test_where_only_arms_that_know_the_detector_broke_samples_they_are_shown(usual: bool) -> None:
    found = assessment(knowing(4, usual=usual))
    assert headline_of(list(sections(found))) == "No detector has an AUROC: no arm of the groups broke a sample."
    survived = row(found, SURVIVAL)
    assert survived["together"] == Cell(None, ("no other arm broke a sample",))
    alone = survived["alone"]
    assert isinstance(alone, Cell)
    assert isinstance(alone.value, Estimate)
    assert alone.value.value == pytest.approx(0.05)
    assert alone.beside == ("chance 0.500", "1 arm, 4 broken")
    past = row(found, PAST)
    assert past["arms tried"] == 1 + usual
    assert past["cheapest"] == Cell("adaptive-linf-0.1", ("40.0 %", "17.5 passes each"))
    assert estimate_text(past["some arm gets past"], "share").startswith("40.0 % [")  # type: ignore[arg-type]
    assert row(found, OVERVIEW)["worst group"] is None


def test_where_no_arm_gets_past_that_is_said() -> None:
    past = row(assessment(knowing(0, usual=True)), PAST)
    assert (past["most often"], past["cheapest"]) == ("none", "none")


@pytest.mark.parametrize(
    ("of_model", "told"),
    [
        ([knowing(4)], "0 arms that know no detector, 1 that knows one."),
        ([knowing(4, usual=True)], "1 arm that knows no detector, 1 that knows one."),
        ([knowing(4, usual=True)] * 2, "1 arm that knows no detector, 2 that know one."),
        ([knowing(4, usual=True, against="ear@2")], "1 arm that knows no detector."),
    ],
)
def test_arms_are_counted_by_what_they_know(of_model: list[DetectorTable], told: str) -> None:
    assert on_model(of_model) == f"net: 10 samples; {told}"


def test_two_detectors_are_told_apart_or_not() -> None:
    pairs = tuple(DetectorPair("one@1", "two,bits=1@2", Estimate(0.1, low, 0.2, 0.95, 9, "")) for low in (0.05, -0.05))
    shown = tables(assessment(knowing(4), pairs=pairs))["Pairwise comparison on the same samples"]
    assert [line[-1] for line in shown.rows] == ["decided", "undecided"]
    assert shown.rows[0][:3] == ("one", "two,bits=1", "net")
    assert "Pairwise comparison on the same samples" not in tables(assessment(knowing(4)))


def test_chance_may_be_a_half() -> None:
    assert "at most 0.5" in terminal(hostile(), 100)


@pytest.mark.parametrize(
    ("threshold", "told"), [({"false_alarms": 0.05}, "the threshold, set for 5 % false alarms."), (1.5, "1.5.")]
)
def test_it_is_said_where_alarms_begin(threshold: float | dict[str, float], told: str) -> None:
    shown = tables(replace(hostile(), threshold=threshold))[PAST]
    assert shown.notes == (f"An alarm is a score above {told} Shares are of attackable samples.",)


def test_of_many_arms_the_first_are_listed() -> None:
    arms = tables(against_many(23))["Arms that get past eye in front of net"]
    assert len(arms.rows) == 20
    assert arms.notes == ("And 3 more: `advrisk show detection RUN --json` lists all.",)


def test_the_file_holds_what_survives(tmp_path: Path) -> None:
    found = hostile()
    assert write_rows(found.rows(), found.columns, tmp_path / "all.csv") == len(found.rows())
    with (tmp_path / "all.csv").open(newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["kind"] == "adaptive"]
    (survival,) = found.tables[0].table.adaptive
    assert [line["column"] for line in lines] == ["without", "alone", "together"]
    for line, entry in zip(lines, (survival.without, survival.alone, survival.together), strict=True):
        assert (line["row"], line["norm"], line["detector"]) == ("linf 0.1", "linf", HOSTILE)
        assert entry.auroc is not None
        assert float(line["auroc"]) == entry.auroc.value
        assert (int(line["n_arms"]), int(line["n_broken"])) == (entry.n_arms, entry.n_broken)
