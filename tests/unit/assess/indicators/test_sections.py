"""What is shown of indicators: every number in every form, on any width."""

import io
import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.indicators.sections import quantities, sections
from advrisk.assess.indicators.words import loss_interval, loss_text
from advrisk.core.estimate import Estimate
from advrisk.core.sections import Alternatives, Cell, Figure, Group, Section, Table, every, summary_of, without_twins
from advrisk.render.markdown import markdown_lines
from advrisk.render.notebook import sections_html
from advrisk.render.page import page_figures
from advrisk.render.terminal import print_sections
from advrisk.risk.damage import PerturbationSize
from advrisk.risk.indicators import RiskTensor, Scenario
from advrisk.risk.indicators.comparison import compare_models
from advrisk.risk.indicators.robustness import Robustness
from advrisk.risk.indicators.tree import arm_risks

from .towns import NASTY, PERCENT, TOWN, assessment


@pytest.fixture(scope="module")
def found() -> IndicatorAssessment:
    return assessment({"weak": 1.0, "strong": 0.4})


def tables(shown: list[Section]) -> dict[str, Table]:
    return {one.title: one for one in every(shown) if isinstance(one, Table)}


def terminal(found: IndicatorAssessment, width: int, *, details: bool = False) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    print_sections(sections(found), console, details=details)
    lines: list[str] = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    return lines


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_terminal_shows_risks_branches_and_notes_at_any_width(found: IndicatorAssessment, width: int) -> None:
    lines = terminal(found, width)
    assert max(map(len, lines)) <= width
    shown = " ".join(" ".join(lines).split())
    (result,) = found.results
    for one in result.models:
        for branch in one.tree.walk():
            assert loss_text(branch.value.value, PERCENT) in shown
    for text in (
        "Scenario town, loss cost",
        "least risk",
        "more risk than",
        "a lower bound",
        "A note.",
        "300 samples.",
    ):
        assert text in shown
    assert "How to read this" not in shown
    assert "Pairwise comparison" not in shown


def test_details_show_pairs_contributions_and_who_bears_it(found: IndicatorAssessment) -> None:
    shown = " ".join(" ".join(terminal(found, 100, details=True)).split())
    (result,) = found.results
    assert loss_text(result.pairs[0].difference.value, PERCENT) in shown
    for one in result.models:
        for branch in one.tree.walk():
            assert loss_text(branch.contribution.value, PERCENT) in shown
        for estimate in (*one.by_class.values(), *one.by_stratum["light"].values()):
            assert estimate is not None
            assert loss_text(estimate.value, PERCENT) in shown
    assert "rain-1, rain-2, rain-10" in shown
    assert "Branches side by side" not in shown, "a terminal shows no figures, and does not explain them"


def test_every_figure_is_there_and_fits_into_json(found: IndicatorAssessment) -> None:
    figures = page_figures("indicators", list(sections(found)))
    json.dumps(figures, allow_nan=False)
    assert set(figures) == {
        "indicators risk_of_every_model_with_its_interval_town_cost",
        *(f"indicators branches_{level}_town_cost" for level in ("of_the_first_level", "within_wet")),
        *(f"indicators risk_given_{path}_town_cost" for path in ("wet", "wet_rain", "wet_fog", "evil", "clean")),
        *(f"indicators contributions_to_the_risk_of_{model}_town_cost" for model in ("strong", "weak")),
        "indicators mean_loss_of_every_arm_cost",
    }


def test_the_branch_that_contributes_most_is_the_first_choice(found: IndicatorAssessment) -> None:
    (result,) = found.results
    (choice,) = (one for one in choices(list(sections(found))) if one.label == "Branch")
    most = max(result.models[0].tree.leaves(), key=lambda leaf: leaf.contribution.value)
    assert choice.figures[0].title == f"Risk given {most.path}: town, cost"
    assert " – up to " in choice.figures[0].label
    assert len(choice.figures) == len(result.branches) - 1


def choices(held: Sequence[Section]) -> list[Alternatives]:
    found = [one for one in held if isinstance(one, Alternatives)]
    return found + [inner for one in held if isinstance(one, Group) for inner in choices(one.sections)]


def test_contributions_are_a_tree_that_sums_to_the_risk(found: IndicatorAssessment) -> None:
    table = tables(list(sections(found)))["What the risk of strong is made of: town, cost"]
    names = [row[0] for row in table.rows]
    assert all(isinstance(name, Cell) for name in names)
    assert [(name.depth, name.value) for name in names if isinstance(name, Cell)] == [
        (0, "the whole scenario"), (1, "wet"), (2, "rain"), (2, "fog"), (1, "evil"), (1, "clean"),
    ]  # fmt: skip
    shares = [row[4] for row in table.rows]
    assert shares[0] == 1
    assert sum(shares[place] for place in (2, 3, 4, 5)) == pytest.approx(1)  # type: ignore[misc]


def test_a_loss_in_per_cent_is_a_risk_and_any_other_a_number() -> None:
    for scale, kind in ((1.0, "risk"), (40.0, "magnitude")):
        found = assessment({"weak": 1.0, "strong": 0.4}, scale=scale)
        table = tables(list(sections(found)))["Risk of every model: town, cost"]
        assert table.columns[1].kind == kind
        assert table.rows[0][1] == found.results[0].models[0].risk


def test_of_several_scenarios_each_has_its_headline_and_a_line_above(found: IndicatorAssessment) -> None:
    both = assessment(
        {"weak": 1.0, "strong": 0.4}, towns={"town": TOWN, "calm": {"wet": {"weight": 0.1, "of": ["fog"]}}}
    )
    shown = list(sections(both))
    above = tables(shown)["The least risk in every scenario"]
    assert [row[0] for row in above.rows] == ["town", "calm"]
    assert [row[-1] for row in above.rows] == ["decided", "decided"]
    assert "The least risk in every scenario" not in tables(list(sections(found)))
    assert [one.title for one in shown if isinstance(one, Group)][:2] == [
        "Scenario town, loss cost", "Scenario calm, loss cost",
    ]  # fmt: skip
    assert len(terminal(both, 60)) > 20


def test_losses_of_other_units_stand_in_one_column_as_text(found: IndicatorAssessment) -> None:
    dear = assessment({"weak": 1.0, "strong": 0.4}, scale=40.0).results[0]
    both = replace(
        found, results=(*found.results, replace(dear, loss="dear")), arms=found.arms | {"dear": found.arms["cost"]}
    )
    above = tables(list(sections(both)))["The least risk in every scenario"]
    assert [row[1] for row in above.rows] == ["cost", "dear"]
    assert above.rows[1][3] == loss_interval(dear.models[0].risk, (0.0, 40.0))


def test_the_worst_of_many_classes_stand_first_and_the_rest_is_counted() -> None:
    n = 120
    rng = np.random.default_rng(0)
    tensor = RiskTensor.from_arrays(
        (rng.random((n, 2)) < 0.3).astype(float), arms=["clean", "fog"], kind=["clean", "corruption"],
        label=np.arange(n) % 30, model="net", losses=["cost"], ranges={"cost": (0, 1)},
    )  # fmt: skip
    result = compare_models({"net": tensor}, Scenario.from_mapping("s", {"fog": 0.5}), loss="cost")
    found = IndicatorAssessment((result,), {"cost": {"net": arm_risks(tensor)}}, (), {}, 0.95)
    table = tables(list(sections(found)))["Risk by class: s, cost"]
    assert len(table.rows) == 20
    risks = [row[1].value for row in table.rows if isinstance(row[1], Cell)]
    values = [risk.value for risk in risks if isinstance(risk, Estimate)]
    assert values == sorted(values, reverse=True)
    assert values[0] == max(one.value for one in result.models[0].by_class.values() if one)
    assert table.rows[0][1].mark == "worst"  # type: ignore[union-attr]
    assert "And 10 more with less risk" in table.notes[0]


def test_robustness_numbers_and_measures_stand_beside(found: IndicatorAssessment) -> None:
    share = Estimate(0.5, 0.4, 0.6, 0.95, 20, "")
    rows = (
        Robustness("weak", "linf", PerturbationSize(share, 3, 2), share, 8 / 255, share),
        Robustness("strong", "l2", None, None, None, None),
    )
    beside = replace(found, robustness=rows, measures={"weak": {"clever@1": share, "clever@2": share}})
    held = tables(list(sections(beside)))
    assert held["Robustness of every model"].rows[1] == ("strong", "l2", None, 0, None, None, None)
    assert [column.name for column in held["Measures of every model"].columns] == ["model", "clever@1", "clever@2"]
    shown = " ".join(" ".join(terminal(beside, 100, details=True)).split())
    for text in ("50.0 %", "8/255", "0.500", "20 samples", "how far inputs must be moved", "CLEVER"):
        assert text in shown


def test_numbers_for_machines_are_those_of_every_branch(found: IndicatorAssessment) -> None:
    share = Estimate(0.5, 0.4, 0.6, 0.95, 20, "")
    rows = list(quantities(replace(found, measures={"weak": {"clever@1": share}})))
    (result,) = found.results
    assert [(row.quantity, row.model, row.of) for row in rows[:3]] == [
        ("risk", "strong", "town.cost"),
        ("branch_risk", "strong", "town.cost.wet"),
        ("branch_risk", "strong", "town.cost.wet.rain"),
    ]
    assert rows[2].estimate == result.of("strong").tree.at("wet.rain").value
    assert [row.quantity for row in rows].count("branch_risk") == 2 * 5
    (pair,) = (row for row in rows if row.quantity == "risk_difference")
    assert (pair.name, pair.estimate) == ("risk_difference.weak.town.cost.strong", result.pairs[0].difference)
    strata = {row.name: row.estimate for row in rows if row.quantity == "stratum_risk"}
    assert strata == {
        f"stratum_risk.{one.model}.town.cost.{stratum}={value}": risk
        for one in result.models
        for stratum, by_value in one.by_stratum.items()
        for value, risk in by_value.items()
        if risk is not None
    }
    assert len(rows) == 2 * 6 + 1 + len(strata) + 1
    assert (rows[-1].name, rows[-1].estimate) == ("measure.weak.clever", share)


def test_the_summary_gets_its_sentences(found: IndicatorAssessment) -> None:
    shown = list(sections(found))
    assert summary_of(shown, "sure")[0].startswith("In the scenario town, strong: risk ")
    assert summary_of(shown, "drivers")[0].startswith("In the scenario town, the risk of strong comes from: ")
    assert summary_of(shown, "undecided") == []


def test_names_from_outside_may_be_anything() -> None:
    """Names that are one to machines, that are columns already, or that hold markup."""
    names = ["a-b", "a b", "weight", "branch", "a_b_low", NASTY, "[red]\x1b[31m"]
    found = assessment(dict.fromkeys(names, 0.5))
    shown = without_twins(sections(found))
    figures = [one for one in every(shown) if isinstance(one, Figure)]
    assert len(page_figures("indicators", shown)) == len(figures)
    assert "<script" not in sections_html(shown)
    assert "<script" not in "\n".join(markdown_lines("x", shown))
    lines = terminal(found, 60)
    assert not any("\x1b" in line for line in lines)
    assert NASTY in "".join(lines)
