"""What is shown of survival: in words, tables and figures, whatever is missing, on terminals of any width."""

import io
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from advrisk.assess.survival.assessment import SurvivalAssessment, assess_survival
from advrisk.assess.survival.coefficients import factor_names
from advrisk.assess.survival.figures import MOST_MODELS
from advrisk.assess.survival.money import Hardware
from advrisk.assess.survival.sections import quantities, sections
from advrisk.assess.survival.words import (
    cost_words,
    front_words,
    law_words,
    left_out_words,
    median_text,
    ratio_words,
    row_words,
    standing_text,
    survival_headline,
    verdict_text,
)
from advrisk.core.sections import (
    Cell,
    Figure,
    Group,
    Section,
    Table,
    Text,
    Value,
    every,
    headline_of,
    summary_of,
    unfolded,
    without_twins,
)
from advrisk.core.values import estimate_text, number_text
from advrisk.ledger import Ledger
from advrisk.render.terminal import print_sections
from advrisk.risk.survival.fit import EXTRAPOLATED

from .conftest import ledger_of

LAWS = {"by model", "Acceleration factors", "Coefficients of all laws", "Hazard of each model"}


def figures(found: SurvivalAssessment) -> dict[str, Any]:
    return {one.title: one.spec for one in every(sections(found)) if isinstance(one, Figure)}


def table(found: SurvivalAssessment, title: str) -> list[dict[str, Value]]:
    """The rows of a table by the names of its columns."""
    (one,) = [one for one in every(sections(found)) if isinstance(one, Table) and one.title == title]
    return [dict(zip([column.name for column in one.columns], row, strict=True)) for row in one.rows]


def titles(held: Iterable[Section]) -> list[str]:
    return [one.title for one in every(held) if isinstance(one, Table | Figure)]


def terminal(found: SurvivalAssessment, width: int, *, details: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_sections(sections(found), console, details=details)
    return console.file.getvalue()  # type: ignore[attr-defined]


class TestWhatIsShownFirst:
    def test_the_models_what_they_depend_on_and_what_breaking_costs(self, found: SurvivalAssessment) -> None:
        shown = list(sections(found, ["a", "b"]))
        assert without_twins(shown) == tuple(shown)
        assert titles(unfolded(shown)) == [
            *("Survival of each model", "Survival curves", "by eps", "by model", "Acceleration factors"),
            *("What makes it survive longer (above 1) or shorter", "Breaking beside training"),
        ]
        folded = [one.title for one in shown if isinstance(one, Group) and one.folded]
        assert folded == ["Pareto front", "Failures as probabilities", "Fitted laws", "Figures of Meyers et al."]
        assert headline_of(shown) == survival_headline(found) == summary_of(shown, "sure")[0]

    def test_the_numbers_are_those_of_the_assessment(self, found: SurvivalAssessment) -> None:
        for one, row in zip(found.models, table(found, "Survival of each model"), strict=True):
            assert (row["model"], row["mean up to 30"], row["median"]) == (one.model, one.mean, one.median)
            assert (row["broken"], row["held"]) == (one.tally.events, Cell(one.tally.censored))
            assert (row["incorrect already"], row["clean accuracy"]) == (3, one.clean_accuracy)
        costs = table(found, "Breaking beside training")
        for one, row in zip(found.models, costs, strict=True):
            assert one.cost is not None
            assert row["ratio, attacked"] == one.cost.adversarial
            assert row["ratio, benign"] == Cell(one.cost.benign, ("outside the data",))
            assert row["training, s"] == Cell(60.0, ("0.600 per sample",))
            assert (row["cost to break"], row["cost of training"]) == (one.cost.break_cost, one.cost.train_cost)

    def test_what_a_model_refused_stands_below_what_it_held(self, found: SurvivalAssessment) -> None:
        first, *others = found.models
        tally = replace(first.tally, rejected=4)
        refusing = replace(first, tally=tally, clean_rejection=first.clean_accuracy)
        rows = table(replace(found, models=(refusing, *others)), "Survival of each model")
        assert rows[0]["held"] == Cell(tally.censored, ("4 refused",))
        assert [row["clean inputs refused"] for row in rows] == [first.clean_accuracy, None]

    def test_every_estimate_for_machines(self, found: SurvivalAssessment) -> None:
        numbers = {one.name: one.estimate for one in quantities(found)}
        assert len(numbers) == 10
        assert numbers["training_cost_ratio.a.forward"] == found.of("a").cost.adversarial  # type: ignore[union-attr]
        assert numbers["survival.a.forward"] == found.of("a").mean
        assert numbers["failure_rate_attacked.b.forward"] == found.of("b").adversarial.estimate  # type: ignore[union-attr]

    @pytest.mark.parametrize("width", [60, 120])
    @pytest.mark.parametrize("details", [False, True])
    def test_a_terminal_of_any_width_shows_all_of_it(
        self, found: SurvivalAssessment, width: int, *, details: bool
    ) -> None:
        lines = terminal(found, width, details=details).splitlines()
        assert max(map(len, lines)) <= width
        shown = " ".join(" ".join(lines).split())
        for one in found.models:
            assert one.mean is not None
            assert one.cost is not None
            assert one.cost.adversarial is not None
            assert number_text(one.mean.value, "magnitude") in shown
            assert number_text(one.cost.adversarial.value, "magnitude") in shown
        assert ("weibull (taken)" in shown) is details
        assert "one core at 3.6 an hour" in shown


class TestWords:
    def test_of_the_attempts_and_costs(self, found: SurvivalAssessment) -> None:
        assert factor_names(found) == {"eps": "eps, 0.3 against 0.1", "model=b": "model b, against a"}
        assert any("incorrect already: b 3, a 3" in word for word in row_words(found))
        assert left_out_words(found) == []
        assert any("one core at 3.6 an hour" in word for word in cost_words(found))
        assert any("“No” does not say that samples hold" in word for word in cost_words(found))
        assert any("outside the data" in word for word in ratio_words(found))
        cost = found.models[0].cost
        assert cost is not None
        answers = {"broken": "yes", "not broken": "no", "undecided": "undecided", None: None}
        assert [verdict_text(replace(cost, verdict=verdict)) for verdict in answers] == list(answers.values())

    def test_of_the_law(self, ledger: Ledger, found: SurvivalAssessment) -> None:
        assert law_words(found)[0].startswith("The law is Weibull explained by eps, model, from 714 rows. Weibull ")
        shaped = assess_survival(ledger, family="weibull", shape_covariates="model")
        assert "its shape by model" in law_words(shaped)[0]

    def test_of_the_pareto_front(self, found: SurvivalAssessment) -> None:
        standing = {one.model: one for one in found.pareto}
        said = standing_text(standing["a"], found.criteria)
        names = "clean accuracy, failures under attack and training seconds"
        assert said == f"b is at least as good in {names}, though that is not sure"
        sure = replace(standing["a"], decided=True)
        assert standing_text(sure, found.criteria) == f"b is at least as good in {names}"
        unsure = replace(standing["b"], decided=False, undecided_against=("a",))
        assert standing_text(unsure, found.criteria).endswith("though that is not sure of a")
        for one, shown, mark in ((replace(unsure, decided=True), "b", "best"), (unsure, "b (not sure)", "")):
            front = replace(found, pareto=(sure, one))
            assert front_words(front) == f"Pareto front of {names}: {shown}."
            rows = table(front, "Each model beside the Pareto front")
            assert [row["standing"].mark for row in rows] == ["", mark]  # type: ignore[union-attr]

    def test_a_median_may_have_no_end(self, found: SurvivalAssessment) -> None:
        one = found.of("a")
        assert one.median is not None
        assert median_text(one, found.durations) == estimate_text(one.median, "count")
        unlimited = replace(one, median=replace(one.median, high=math.inf))
        assert median_text(unlimited, found.durations).endswith(", not reached]")
        never = replace(one.median, value=math.inf, high=math.inf)
        assert median_text(replace(one, median=never), found.durations) == "not reached"
        assert median_text(replace(one, median=None), found.durations) == "–"
        assert "median not reached" in survival_headline(
            replace(found, models=tuple(replace(each, median=never) for each in found.models))
        )

    def test_rates_as_probabilities(self, found: SurvivalAssessment) -> None:
        (row,) = [row for row in table(found, "Probability of at least one failure") if row["model"] == "a"]
        benign = found.of("a").benign
        assert benign is not None
        assert list(row.items())[1:3] == [
            ("some clean input passing by is incorrect, within one forward pass", benign.probability(1)),
            ("some clean input passing by is incorrect, within 30 forward passes", benign.probability(30)),
        ]


class TestWhatCanBeMissing:
    def test_a_law_that_does_not_hold_is_not_shown(self, split: SurvivalAssessment) -> None:
        (said,) = law_words(split)
        assert split.doubt in said
        (depends,) = [one for one in sections(split) if isinstance(one, Group) and one.title == "What it depends on"]
        assert depends.sections == (Text((said,)),)
        drawn = figures(split)
        assert not LAWS & drawn.keys()
        lines = drawn["Survival curves"]["data"]
        assert lines
        assert not [line for line in lines if line.get("meta", {}).get("part") == "the fitted law"]
        assert "Coefficients on the log of time, whole range" not in titles(sections(split))
        (first, *_) = table(split, "Laws that were fitted")
        assert list(first) == ["law", "AIC", "BIC", "log-likelihood", "concordance", "behind"]

    def test_where_it_holds_every_law_is_drawn(self, found: SurvivalAssessment) -> None:
        drawn = figures(found)
        assert drawn.keys() >= LAWS
        coefficients = drawn["Coefficients of all laws"]["data"]
        assert [line["name"] for line in coefficients] == ["Weibull", "log-normal", "log-logistic"]
        (taken,) = [row for row in table(found, "Laws that were fitted") if row["law"] == "weibull (taken)"]
        chosen = next(one for one in found.families if one.chosen)
        assert taken["mean up to 30"] == Cell(chosen.mean)
        beyond = replace(chosen, mean=replace(chosen.mean, method=EXTRAPOLATED))
        (row,) = table(replace(found, families=(beyond,)), "Laws that were fitted")
        assert row["mean up to 30"] == Cell(beyond.mean, ("extrapolated",))
        assert "median" not in row  # medians are those of the attempts alone

    def test_few_samples_have_a_calibration(self, tmp_path: Path) -> None:
        found = assess_survival(ledger_of(tmp_path / "run", n=21))
        assert "Calibration" in figures(found)
        assert "There are too few samples to say how far chance alone would take it." in " ".join(
            terminal(found, 80, details=True).split()
        )

    def test_where_nothing_broke_the_curves_stand_alone(self, tmp_path: Path) -> None:
        found = assess_survival(ledger_of(tmp_path / "run", factor={"steel": math.inf}, eps=(0.1,), n=10))
        assert law_words(found)[0].startswith("No law could be fitted: ")
        assert figures(found).keys() == {"Survival curves"}
        assert table(found, "Survival of each model")[0]["median"] == "not reached"

    def test_a_model_that_no_attack_breaks_has_a_curve(self, tmp_path: Path) -> None:
        found = assess_survival(ledger_of(tmp_path / "run", factor={"a": 1.0, "steel": math.inf}, n=40))
        assert {line["meta"]["series"] for line in figures(found)["Survival curves"]["data"]} == {"a", "steel"}

    def test_one_model_and_one_arm_depend_on_nothing(self, tmp_path: Path) -> None:
        found = assess_survival(ledger_of(tmp_path / "run", factor={"a": 1.0}, eps=(0.1,)))
        assert "Acceleration factors" not in figures(found)
        assert "Pareto" not in terminal(found, 80, details=True)

    def test_without_training_time_it_is_said_what_to_state(self, tmp_path: Path) -> None:
        found = assess_survival(ledger_of(tmp_path / "run", train=False, clean=False, n=40))
        assert any("state `train_s` and `train_samples` of the model" in word for word in cost_words(found))
        assert "Accuracy against failures" not in figures(found)
        assert table(found, "Breaking beside training")[0]["training, s"] == Cell(None)

    def test_one_figure_has_room_for_some_models(self, tmp_path: Path) -> None:
        models = {f"m{n}": 1.0 + n / 10 for n in range(MOST_MODELS + 1)}
        found = assess_survival(ledger_of(tmp_path / "run", factor=models, eps=(0.1,), n=20))
        assert f"The first {MOST_MODELS} models are drawn." in terminal(found, 120, details=True)
        assert len({line["meta"]["series"] for line in figures(found)["Survival curves"]["data"]}) == MOST_MODELS
        assert len(table(found, "Survival of each model")) == MOST_MODELS + 1


def test_names_that_are_one_to_a_machine_keep_a_figure_each(tmp_path: Path) -> None:
    tags = {"a": '{"Depth": 2, "depth": 3}', "b": '{"Depth": 4, "depth": 2}', "c": '{"Depth": 3, "depth": 9}'}
    ledger = ledger_of(tmp_path / "run", factor={"a": 1.0, "b": 2.0, "c": 1.5}, tags=tags, n=60)
    found = assess_survival(ledger, covariates=["Depth", "depth"], family="weibull", tolerance=0.9)
    shown = list(sections(replace(found, doubt="")))
    assert [one for one in titles(shown) if one.startswith("by ")] == ["by Depth", "by depth"]
    assert len({one.key for one in every(without_twins(shown)) if isinstance(one, Figure)}) == len(
        [one for one in every(shown) if isinstance(one, Figure)]
    )


def test_figures_of_the_paper(defended: Ledger) -> None:
    drawn = figures(assess_survival(defended, family="weibull"))
    left = drawn["Failures under attack by defence strength"]["data"]
    assert [line["name"] for line in left] == ["gauss-out", "a, undefended"]
    assert left[0]["x"] == [0.0, 1.0]
    assert left[1]["y"][0] == left[1]["y"][1]
    assert [line["y"] for line in drawn["Clean accuracy by defence strength"]["data"]] == [[1 - 1 / 80] * 2] * 2
    assert {x for line in drawn["Cost ratio by defence or model"]["data"] for x in line["x"]} == {"none", "gauss-out"}
    assert {x for line in drawn["Cost ratio by attack"]["data"] for x in line["x"]} == {"pgd"}
    assert len(drawn["Failures under attack by training time"]["data"]) == 3
    assert len(drawn["Cost ratio of clean inputs"]["data"]) == 3


def test_a_model_keeps_its_colour_whatever_else_the_run_holds(found: SurvivalAssessment) -> None:
    def colour(models: list[str]) -> str:
        (figure,) = [one for one in sections(found, models) if isinstance(one, Figure)]
        return next(
            line["line"]["color"] for line in figure.spec["data"] if line.get("name") == "b" and "marker" in line
        )

    assert colour(["b"]) == colour(["b", "c"]) != colour(["a", "b"])


def test_names_steer_no_terminal(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path / "run", factor={"a": 1.0, "\x1b[31mred[/]": 2.0}, n=21)
    found = assess_survival(ledger, hardware=Hardware("[bold]core[/bold]", 1.0))
    shown = terminal(found, 100, details=True)
    assert "\x1b" not in shown
    assert "[31mred[/]" in shown
    assert "[bold]core[/bold] at 1 an hour" in shown
