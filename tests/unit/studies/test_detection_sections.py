"""Tables and sentences about detectors, from made-up findings."""

from dataclasses import replace
from typing import Any

import pytest

from advrisk.assess.detection.assessment import DetectorPair
from advrisk.core.estimate import Estimate
from advrisk.risk.detection.adaptive import AdaptiveEffect
from advrisk.risk.detection.arms import ArmDefeat
from advrisk.risk.detection.entries import Entry
from advrisk.risk.detection.groups import MULTI_ARMED as MULTI
from studies.detection_damage import short
from studies.detection_figure import dots
from studies.detection_sections import (
    Findings,
    Group,
    Judged,
    averages,
    by_norm,
    compared,
    counts,
    defeats,
    survivals,
)


def estimate(value: float) -> Estimate:
    return Estimate(value, value - 0.01, value + 0.01, 0.95, 100, "made up")


def entry(value: float | None, chance: float = 0.2) -> Entry:
    if value is None:
        return Entry(1, 0, 95, 0.0, 0.05, reason="no arm succeeded")
    return Entry(14, 90, 95, 7.256, 7.593, estimate(value), estimate(round(1 - value, 3)), chance, 0.97)


def defeat(arm: str, unseen: float, passes: float | None) -> ArmDefeat:
    return ArmDefeat(arm, 95, 90, 50, estimate(unseen), estimate(unseen), 10, 48.0, passes)


def judged(name: str, values: dict[str, float | None], **more: Any) -> Judged:
    columns = {column: entry(value) for column, value in values.items()}
    norms = {"l2": entry(0.4, 0.3), "no norm": entry(None)}
    given: dict[str, Any] = {"oftenest": None, "cheapest": None} | more
    return Judged(f"{name}@01234567", columns, norms, **given)


STEADY = judged("steady,bits=1", {"ace": 0.9, "kl": 0.88, "fisher-rao": 0.89, "gini": 0.8, MULTI: 0.75})
FALLING = judged(
    "falling,arms=pgd-linf-0.3",
    {"ace": 0.95, "kl": 0.9, "fisher-rao": 0.91, "gini": 0.5, MULTI: 0.25},
    oftenest=defeat("adaptive-linf-0.3-ace,detector=falling", 0.5, 96.4),
    cheapest=defeat("fgsm-linf-0.3-ace,keep=last", 0.25, None),
)
KNOWN = replace(FALLING, survival=(AdaptiveEffect("linf 0.3", "linf", entry(0.8), entry(0.1), entry(0.05), 0),))
HOLDING = replace(STEADY, survival=(AdaptiveEffect("linf 0.3", "linf", entry(0.8), entry(0.9), entry(0.8), 0),))
ODD = judged("odd", {"ace": 0.6, "kl": 0.7, "fisher-rao": 0.7, "gini": 0.7, MULTI: 0.65})


def found(*each: Judged, name: str = "made-up") -> Findings:
    groups = (Group("linf 0.3", entry(0.5)), Group("no norm", entry(None)))
    return Findings(name, None, "net", 100, 0.98, groups, each or (STEADY, FALLING, ODD))  # type: ignore[arg-type]


def row(lines: list[str], first: str) -> list[str]:
    line = next(line for line in lines if line.startswith(f"  {first} "))
    return [cell.strip() for cell in line.strip().split("   ") if cell.strip()][1:]


def test_averages_stand_in_the_papers_order_with_chance() -> None:
    lines = averages(found())
    assert lines[1].split() == ["detector", "ACE", "KL", "Fisher-Rao", "Gini", "multi-armed"]
    assert row(lines, "steady,bits=1") == [*(str(estimate(v)) for v in (0.9, 0.88, 0.89, 0.8, 0.75))]
    assert row(lines, "(chance)") == ["0.200"] * 5
    alarms = lines[lines.index("FPR@95, averaged in the same way:") :]
    assert row(alarms, "odd") == [str(estimate(round(1 - v, 3))) for v in (0.6, 0.7, 0.7, 0.7, 0.65)]
    assert row(alarms, "(chance)") == ["0.970"] * 5


def test_words_name_the_one_that_falls_most_and_what_hurts() -> None:
    lines = averages(found())
    assert "Falls most, from its best objective to all arms together: falling, by 0.700." in lines
    assert (
        "falling: least against Gini (0.500; most against ACE, 0.950); multi-armed (0.250) is below the least." in lines
    )
    assert (
        "odd: least against ACE (0.600; most against KL, 0.700); multi-armed (0.650) is not below the least." in lines
    )


def test_averages_say_which_groups_they_leave_out() -> None:
    lines = averages(replace(found(), left_out={"no norm": "gini: no arm succeeded"}))
    told = " ".join(" ".join(lines).split())
    assert "in the 1 of 2 groups that every column has (left out: no norm (gini: no arm succeeded)):" in told
    assert "left out" not in " ".join(averages(found()))


def test_detectors_that_are_not_told_apart_are_named() -> None:
    pairs = (
        DetectorPair("steady@0", "odd@0", Estimate(0.1, -0.1, 0.3, 0.95, 100, "made up")),
        DetectorPair("odd@0", "falling@0", estimate(0.4)),
    )
    assert "Not told apart by these samples, multi-armed: steady and odd." in averages(replace(found(), pairs=pairs))
    nobody = averages(replace(found(), pairs=pairs[1:]))
    assert "Not told apart by these samples, multi-armed: no two detectors." in nobody


def test_a_detector_that_nothing_was_tried_on_has_no_number() -> None:
    nothing = judged("empty", dict.fromkeys(["ace", "kl", "fisher-rao", "gini", MULTI]))
    lines = averages(found(nothing, STEADY))
    assert row(lines, "empty") == ["–"] * 5
    assert not any(line.startswith("empty: ") for line in lines)
    assert compared([found(nothing)]) == ["No finished run yet."]
    assert dots(found(nothing, STEADY))["data"][-2]["x"] == [0.75, None]


def test_norms_show_their_chance() -> None:
    lines = by_norm(found())
    assert row(lines, "odd") == [str(estimate(0.4)), "–"]
    assert row(lines, "(chance)") == ["0.300", "–"]


def test_counts_defeats_and_survival() -> None:
    assert row(counts(found()), "linf 0.3") == ["14", "95", "90", "7.26", "7.59"]
    assert row(defeats(found()), "falling") == [
        "adaptive-linf-0.3-ace",
        "50.0%",
        "96",
        "fgsm-linf-0.3-ace",
        "25.0%",
        "–",
    ]
    assert defeats(found(ODD)) == []
    assert row(survivals(found(KNOWN)), "falling") == ["linf 0.3", *(str(estimate(v)) for v in (0.8, 0.05, 0.1))]
    assert survivals(found(ODD)) == []


def test_claims_are_counted_over_all_runs() -> None:
    lines = compared([found(), found(STEADY, ODD, name="second")])
    text = "\n".join(lines)
    assert "in 3 of 5 pairs of network and detector" in text
    assert f"fall from the best objective is {(0.15 * 2 + 0.7 + 0.05 * 2) / 5:.3f}" in text
    assert "below 0.5 in 1 of 5 pairs, and at most 0.1 above chance in 1" in text
    assert (
        "- `made-up`: the best against all arms is steady,bits=1 (0.750); falling falls most, from 0.950 to 0.250."
        in lines
    )
    assert "worst single-armed column is ACE for 2, KL for 0, Fisher-Rao for 0, Gini for 3 of 5." in text


def test_detectors_far_below_chance_are_not_said_to_be_near_it() -> None:
    below = judged("below", {"ace": 0.1, "kl": 0.1, "fisher-rao": 0.1, "gini": 0.1, MULTI: 0.02})
    text = "\n".join(compared([found(below, STEADY)]))
    assert "at most 0.1 above chance in 1." in text
    assert "within" not in text


def test_runs_whose_arms_know_a_detector_are_told_apart() -> None:
    lines = compared([found(), found(KNOWN, name="known")])
    assert lines[:-1] == compared([found()])
    assert lines[-1:] == compared([found(KNOWN, name="known")])
    assert lines[-1] == (
        "- **Attackers who know the detector** (`known`): AUROC on the samples that other arms broke: falling falls "
        "from 0.800 to 0.050."
    )


def test_a_detector_that_is_best_against_all_arms_is_not_said_to_fall() -> None:
    rising = judged("rising", {"ace": 0.6, "kl": 0.7, "fisher-rao": 0.7, "gini": 0.7, MULTI: 0.75})
    assert not any("Falls most" in line for line in averages(found(rising)))
    line = next(line for line in compared([found(rising)]) if line.startswith("- `made-up`"))
    assert line.endswith("rising (0.750); no detector is below its best objective.")


def test_what_did_not_fall_is_not_said_to_fall() -> None:
    (line,) = compared([found(HOLDING, KNOWN, name="known")])
    assert line.endswith(": steady,bits=1 stays at 0.800, falling falls from 0.800 to 0.050.")


def test_the_figure_shows_the_best_first_and_chance() -> None:
    figure = dots(found())
    assert [trace["name"] for trace in figure["data"]] == [
        *("ACE", "KL", "Fisher-Rao", "Gini"),
        "multi-armed",
        "chance, multi-armed",
    ]
    multi, chance = figure["data"][-2:]
    assert multi["y"] == ["steady,bits=1", "odd", "falling"]
    assert multi["x"] == [0.75, 0.65, 0.25]
    assert multi["error_x"]["array"] == pytest.approx([0.01] * 3)
    assert chance["x"] == [0.2] * 3


def test_names_are_short() -> None:
    assert short("lid,neighbours=5,arms=pgd-linf-0.3-ace,keep=last@01234567") == "lid,neighbours=5"
    assert short("confidence@22e228c9") == "confidence"
