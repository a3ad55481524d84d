"""What is shown of damage: every number in one table, at any width, and what is folded away."""

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from advrisk.assess.damage.assessment import DamageAssessment, assess_distances
from advrisk.assess.damage.detector import DetectedDamage
from advrisk.assess.damage.distances import Distances
from advrisk.assess.damage.examples import Example, NearestSuccess
from advrisk.assess.damage.sections import quantities, sections
from advrisk.core.sections import Figure, Group, Headline, Pictures, Table, every, summary_of, without_twins
from advrisk.core.values import value_text
from advrisk.render.terminal import print_sections
from advrisk.risk.absolute import compare_damage
from advrisk.risk.evasion import threshold
from advrisk.risk.monte_carlo import Walk, walked_damage
from advrisk.study import DamageSpec
from tests.damages import BETTER, EPS, OPEN, assessed


def tables(found: DamageAssessment) -> dict[str, Table]:
    return {one.title: one for one in every(list(sections(found))) if isinstance(one, Table)}


def cells(table: Table) -> dict[str, dict[str, str]]:
    """Row -> column -> text."""
    return {
        value_text(row[0], table.columns[0]): {
            column.name: value_text(value, column) for value, column in zip(row, table.columns, strict=True)
        }
        for row in table.rows
    }


def terminal(found: DamageAssessment, width: int, *, details: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_sections(sections(found), console, details=details)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_the_decision_table_holds_every_number_of_every_model() -> None:
    found = assessed(**BETTER)
    shown = cells(tables(found)["Decision table, linf"])
    best = found.models[0]
    assert list(shown) == ["adv", "std"], "least damage first"
    assert shown["adv"] == {
        "model": "adv",
        "verdict": "least damage",
        "robust accuracy at 8/255": "42.0 % [32.2, 52.3]",
        "clean accuracy": "92.0 % [84.8, 96.5]",
        "relative damage": str(best.relative_damage),
        "of it clean error": f"{best.clean_error_part:.3f}",
        "probability of being best": "100.0 %",
        "minimal adversarial distance": "0.000615",
        "mean adversarial distance": shown["adv"]["mean adversarial distance"],
    }
    assert shown["std"]["verdict"] == "more damage than adv"


def test_damage_that_is_a_probability_has_a_cost() -> None:
    found = assessed(**BETTER, evasion=threshold(EPS / 2), cost=1000.0)
    shown = cells(tables(found)["Decision table, linf"])["adv"]
    assert shown["damage probability"].startswith("33.0 % [")
    assert shown["of it clean error"] == "8.0 %"
    assert shown["cost of an attacked input"].startswith("330 [")
    assert "relative damage" not in shown


def behind_a_detector(*, curve: bool) -> DamageAssessment:
    n, rng = 40, np.random.default_rng(0)
    size, scores = np.linspace(0.01, 0.1, n), np.repeat([1.0, 0.0], n // 2)
    walked = {"m": Walk(size, scores, scores, ("pgd",) * n, np.zeros(n), np.ones(n, np.bool_))}
    asked = walked_damage(walked, {"m": 0.5}, detector="eye@00000001", rng=rng)
    fitted = compare_damage({"m": size}, threshold(0.055), rng=rng)
    distances = Distances("linf", ("pgd",), tuple(map(str, range(n))), n, {"m": size}, 0, 0)
    given = {"evasion": threshold(0.05)} if curve else {}
    return assess_distances(distances, DamageSpec(), detection=DetectedDamage(asked, fitted), rng=rng, **given)


def test_what_a_detector_leaves_stands_beside_the_damage_that_ranks() -> None:
    asked = cells(tables(behind_a_detector(curve=False))["Decision table, linf"])["m"]
    assert asked["damage probability"].startswith("50.0 % [")
    assert asked["of the nearest success alone"].startswith("50.0 % [")
    assert asked["false alarms"].startswith("0.0 % [")
    assert "asked about the attacks" not in asked, "that is the damage"
    given = cells(tables(behind_a_detector(curve=True))["Decision table, linf"])["m"]
    assert given["asked about the attacks"].startswith("50.0 % [")


def test_pairs_are_unfolded_where_they_are_undecided() -> None:
    def folded(found: DamageAssessment) -> list[bool]:
        groups = [one for one in sections(found) if isinstance(one, Group)]
        return [one.folded for one in groups if one.title == "Pairwise comparison"]

    assert folded(assessed(**BETTER)) == [], "the verdicts say it of two models"
    three = assessed({"std": 92, "adv": 50, "odd": 92}, {"std": 8, "adv": 8, "odd": 8})
    assert (three.decided, folded(three)) == (True, [True])
    undecided = assessed(**OPEN)
    assert folded(undecided) == [False]
    (pair,) = tables(undecided)["Pairwise difference of damage"].rows
    assert str(pair[3]).startswith("undecided: ")
    assert "more pair" in terminal(three, 100), "of those that are folded away, how many are undecided"


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_decision_table_fits_the_terminal_and_loses_nothing(width: int) -> None:
    lines = terminal(assessed(**BETTER), width).splitlines()
    assert max(map(len, lines)) <= width
    shown = " ".join(" ".join(lines).split())
    for text in ("42.0 %", "[32.2, 52.3]", "92.0 %", "100 samples, 1 attack configuration."):
        assert text in shown
    assert "minimal adversarial distance" not in shown


def test_those_who_look_closer_see_distances_and_how_to_read_them() -> None:
    shown = " ".join(terminal(assessed(**BETTER), 240, details=True).split())
    assert "minimal adversarial distance" in shown
    assert "Robust accuracy is the share of samples that are correct" in shown


def test_figures_and_tables_have_names_of_their_own() -> None:
    found = list(sections(assessed(**OPEN), ["adv", "other", "std"]))
    assert without_twins(found) == tuple(found)
    figures = [one for one in every(found) if isinstance(one, Figure)]
    assert [one.key for one in figures] == ["intervals", "samples_broken_by_size"]
    one_model = [one.key for one in every(list(sections(behind_a_detector(curve=False)))) if isinstance(one, Figure)]
    assert one_model == [one.key for one in figures], "behind a detector a model has damage of its own"
    alone = sections(assessed({"adv": 50}, {"adv": 8}))
    assert [one.key for one in every(list(alone)) if isinstance(one, Figure)] == ["samples_broken_by_size"]


def test_colours_are_those_of_the_whole_run() -> None:
    def colours(*models: str) -> set[str]:
        figures = [one for one in every(list(sections(assessed(**BETTER), models))) if isinstance(one, Figure)]
        return {one["marker"]["color"] for one in figures[0].spec["data"]}

    assert colours("adv", "std") == colours()
    assert colours("a", "adv", "b", "std") != colours()


def test_the_headline_comes_first_and_the_summary_is_for_the_executive_one() -> None:
    found = list(sections(assessed(**BETTER)))
    assert isinstance(found[0], Headline)
    assert any("100 samples and 1 attack configuration" in one for one in summary_of(found, "sure"))
    assert summary_of(found, "drivers")[0].startswith("Of the damage of adv, ")
    assert summary_of(found, "undecided") == []


def test_examples_are_pictures_that_say_what_became_of_each_model() -> None:
    hit = NearestSuccess("std", 8, 0.73, 0.05, "pgd", b"alone", b"png")
    found = replace(assessed(**BETTER), examples=(Example("s1", 3, b"clean", (hit,), {"adv": "not broken"}),))
    (group,) = [one for one in sections(found) if isinstance(one, Group) and one.title == "Adversarial examples"]
    assert group.folded
    (sheet,) = [one for one in group.sections if isinstance(one, Pictures)]
    assert [one.png for one in sheet.pictures] == [b"clean", b"png"]
    assert [one.caption for one in sheet.pictures] == [
        "original, class 3; adv: not broken",
        "std: read as 8, 73 % sure; size 0.050, pgd",
    ]
    assert "Adversarial examples" not in terminal(found, 80, details=True), "a terminal shows no pictures"
    unsure = replace(found, examples=(Example("s1", 3, b"clean", (replace(hit, confidence=None),), {}),))
    captions = [p.caption for one in every(list(sections(unsure))) if isinstance(one, Pictures) for p in one.pictures]
    assert captions[-2:] == ["original, class 3", "std: read as 8; size 0.050, pgd"]


def test_quantities_are_the_estimates_of_each_model() -> None:
    found = assessed(**BETTER, evasion=threshold(EPS / 2), cost=1000.0)
    numbers = {one.name: one.estimate for one in quantities(found)}
    best = found.models[0]
    assert numbers["damage.adv"] == best.damage
    assert numbers["cost.adv"] == best.operational_risk
    assert numbers["robust_accuracy.adv.linf.0.0313725"] == best.robust_accuracy[EPS]
    assert "relative_damage.adv" not in numbers
    assert "detector_any_arm.m" in {one.name for one in quantities(behind_a_detector(curve=False))}
