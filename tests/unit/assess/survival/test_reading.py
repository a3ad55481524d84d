"""Durations of ledgers written by hand: every outcome, every way of counting, and what is left out."""

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from advrisk.assess.survival.covariates import available_covariates, default_covariates, with_covariates
from advrisk.assess.survival.reading import read_durations
from advrisk.core.errors import RiskError
from advrisk.ledger import Ledger, table_from
from advrisk.risk.survival.durations import Durations, Tally

Rows = dict[str, tuple[Any, ...]]

# One row of each kind: outcome, forward, backward, and both until the first success.
ROWS: Rows = {
    "s0": ("success", 5, 4, 5, 4),  # ended by its first success
    "s1": ("success", 11, 10, 3, 2),  # went on after it
    "s2": ("resisted", 11, 10, None, None),
    "s3": ("already_wrong", 0, 0, None, None),
    "s4": ("timeout", 7, 6, None, None),
    "s5": ("error", 4, 3, None, None),
    "s6": ("rejected", 11, 10, None, None),
    "s7": ("success", 1, 0, 1, 0),  # wrong at the random start: no gradient was needed
    "s8": ("resisted", 0, 0, None, None),  # its target is its own class: nobody attacked it
    "s9": ("resisted", 11, 10, 4, 3),  # the judge did not confirm it
}
SAMPLES = list(ROWS)
PGD = {"arm": "pgd", "family": "pgd", "norm": "linf", "eps": 0.1, "params": '{"steps": 10}'}


def arm_row(model: str, arm: dict[str, Any]) -> dict[str, Any]:
    row = {"origin": "study", "kind": "attack", "keep": "first", "repeats": 1, "params": "{}", "objective": None}
    return row | {"model": model, "recipe": f"r-{model}-{arm['arm']}", "norm": None, "eps": None} | arm


def build(
    folder: Path,
    arms: list[dict[str, Any]],
    rows: dict[str, Rows],
    *,
    models: tuple[str, ...] = ("plain",),
    accounting: dict[str, str] | None = None,
    seconds: float | None = 0.01,
    said: dict[str, int] | None = None,
    told: dict[str, dict[str, int]] | None = None,
    **facts: Any,
) -> Ledger:
    """A ledger whose arms did to every model what `rows` says, and `told` of a sample; `said` are predictions."""
    ledger = Ledger.open(folder, create=True)
    names = [(model, arm) for model in models for arm in arms]
    arm_rows = [arm_row(model, arm) for model, arm in names]
    cells, outcomes = [], []
    for (model, arm), row in zip(names, arm_rows, strict=True):
        cell = f"c-{model}-{arm['arm']}"
        own = {"cell": cell, "model": model, "arm": arm["arm"], "repeat": 0}
        kind = (accounting or {}).get(arm["arm"], "sample")
        cells.append(own | {"recipe": row["recipe"], "accounting": kind, "wall_s": 2.0, "process_s": 1.0})
        cells[-1] |= {"n_samples": len(rows[arm["arm"]]), "n_errors": 0}
        cells[-1]["inference_s"] = 0.001 if row["kind"] == "clean" else None
        for sample, (outcome, forward, backward, first, first_backward) in rows[arm["arm"]].items():
            first_s = None if first is None or seconds is None else first * seconds
            outcomes.append(
                own
                | {"sample": sample, "outcome": outcome, "n_forward": forward, "n_backward": backward}
                | {"n_forward_first": first, "n_backward_first": first_backward, "first_s": first_s}
                | {"spent_s": None if seconds is None else forward * seconds}
                | {"kind": row["kind"], "prediction": (said or {}).get(sample)}
                | dict.fromkeys(("n_confirm", "n_forward_before", "n_backward_before"))
                | (told or {}).get(sample, {})
            )
    samples = [
        {"sample": name, "label": place % 2, "split": "evaluate", "weight": 1.0} for place, name in enumerate(SAMPLES)
    ]
    for place, row in enumerate(samples):
        row["strata"] = f'{{"site": "{"north" if place < 5 else "south"}"}}'
    tables = {"arms": arm_rows, "cells": cells, "outcomes": outcomes, "samples": samples}
    tables["models"] = [{"model": model, "tags": '{"depth": 8, "made": "here"}'} | facts for model in models]
    ledger.append(
        {
            name: table_from(name, {key: [one[key] for one in given] for key in given[0]})
            for name, given in tables.items()
        }
    )
    return Ledger.open(folder)


@pytest.fixture
def every_outcome(tmp_path: Path) -> Ledger:
    return build(tmp_path / "run", [PGD], {"pgd": ROWS})


def fitted(found: Durations) -> dict[str, tuple[float, float, bool]]:
    columns = found.columns
    rows = zip(columns["sample"], columns["lower"], columns["duration"], columns["event"], strict=True)
    return {sample: (float(low), float(high), bool(event)) for sample, low, high, event in rows}


class TestEveryOutcome:
    def test_forward_passes(self, every_outcome: Ledger) -> None:
        found = read_durations(every_outcome)
        assert fitted(found) == {
            "s0": (4, 5, True),
            "s1": (2, 3, True),
            "s2": (10, 11, False),
            "s4": (6, 7, False),
            "s6": (10, 11, False),
            "s7": (0, 1, True),
            "s9": (10, 11, False),
        }
        assert found.tallies == {
            "plain": Tally(
                events=3, resisted=1, rejected=1, timeout=1, unconfirmed=1, already_wrong=1, error=1, not_attacked=1
            )
        }
        assert found.zero["sample"].tolist() == ["s3"]
        assert found.unit == "forward passes"
        assert np.allclose(found.seconds, [0.05, 0.03, 0.11, 0.07, 0.11, 0.01, 0.11])

    def test_gradient_passes(self, every_outcome: Ledger) -> None:
        found = read_durations(every_outcome, measure="gradient")
        assert fitted(found) == {
            "s0": (3, 4, True),
            "s1": (1, 2, True),
            "s2": (9, 10, False),
            "s4": (5, 6, False),
            "s6": (9, 10, False),
            "s9": (9, 10, False),
        }
        assert found.tallies["plain"].without_work == 1
        assert sorted(found.zero["sample"]) == ["s3", "s7"]

    def test_seconds_are_no_intervals(self, every_outcome: Ledger) -> None:
        found = fitted(read_durations(every_outcome, measure="seconds"))
        assert found["s1"] == (0.03, 0.03, True)
        assert found["s2"] == (0.11, 0.11, False)

    def test_processor_seconds_are_the_cell_s_share_of_them(self, every_outcome: Ledger) -> None:
        found = fitted(read_durations(every_outcome, measure="process-seconds"))
        assert found["s1"] == (0.015, 0.015, True)  # the cell took two seconds, and the processor one

    def test_all_rows_are_counted_once(self, every_outcome: Ledger) -> None:
        tally = read_durations(every_outcome).tallies["plain"]
        assert tally.fitted + tally.at_zero + tally.error + tally.not_attacked == len(ROWS)
        assert tally.censored == 4

    def test_what_was_kept_in_the_end_does_not_matter(self, tmp_path: Path) -> None:
        """An arm that keeps its last point may end on one that is right again, refused, or cut short."""
        rows = {"s0": ("resisted", 11, 10, 4, 3), "s1": ("rejected", 11, 10, 5, 4), "s2": ("timeout", 8, 7, 6, 5)}
        found = read_durations(build(tmp_path / "run", [PGD | {"keep": "last"}], {"pgd": rows}))
        assert fitted(found) == {"s0": (3, 4, True), "s1": (4, 5, True), "s2": (5, 6, True)}
        assert found.tallies["plain"] == Tally(events=3)

    def test_a_query_may_take_several_passes(self, tmp_path: Path) -> None:
        told = {"s0": {"n_forward_before": 2, "n_backward_before": 1}}
        rows = {"s0": ("success", 11, 10, 5, 4), "s1": ("resisted", 11, 10, None, None)}
        ledger = build(tmp_path / "run", [PGD], {"pgd": rows}, told=told)
        assert fitted(read_durations(ledger))["s0"] == (2, 5, True)
        assert fitted(read_durations(ledger, measure="gradient"))["s0"] == (1, 4, True)

    def test_what_only_confirmed_is_no_time(self, tmp_path: Path) -> None:
        """Neither of a success, whose first passes are without it, nor of a sample that held."""
        told = {"s0": {"n_confirm": 8, "n_forward_before": 4}, "s1": {"n_confirm": 3}}
        rows = {"s0": ("success", 13, 4, 5, 4), "s1": ("resisted", 14, 10, None, None)}
        found = fitted(read_durations(build(tmp_path / "run", [PGD], {"pgd": rows}, told=told)))
        assert found == {"s0": (4, 5, True), "s1": (10, 11, False)}

    def test_a_success_that_only_the_judge_saw_came_some_time_before_the_end(self, tmp_path: Path) -> None:
        rows = {"s0": ("success", 11, 10, None, None), "s1": ("resisted", 11, 10, None, None)}
        found = read_durations(build(tmp_path / "run", [PGD], {"pgd": rows}))
        assert fitted(found)["s0"] == (0, 11, True)


class TestArmsThatAreNotFitted:
    ONE: ClassVar[Rows] = {"s0": ("success", 2, 1, 2, 1), "s1": ("resisted", 2, 1, None, None)}
    FREE: ClassVar[Rows] = {"s0": ("success", 9, 0, 9, 0), "s1": ("resisted", 50, 0, None, None)}
    WHOLE: ClassVar[Rows] = {"s0": ("success", 8, 8, None, None), "s1": ("resisted", 8, 8, None, None)}
    AT_ONCE: ClassVar[Rows] = {"s0": ("success", 2, 1, 2, 1), "s1": ("success", 2, 1, 2, 1)}

    def ledger(self, folder: Path) -> Ledger:
        arms = [
            PGD,
            {"arm": "fgsm", "family": "fgsm", "eps": 0.1},
            {"arm": "pgd-1", "family": "pgd", "params": '{"steps": 1, "restarts": 1}'},
            {"arm": "mine", "family": "mine"},
            {"arm": "square", "family": "square"},
            {"arm": "foolbox", "family": "foolbox"},
            {"arm": "transfer", "family": "transfer"},
            {"arm": "strong", "family": "pgd", "params": '{"steps": 10}'},
            {"arm": "later", "family": "pgd"},
            {"arm": "clean", "family": "clean", "kind": "clean"},
        ]
        rows: dict[str, Rows] = dict.fromkeys(("fgsm", "pgd-1", "mine"), self.ONE)
        rows |= {"pgd": ROWS, "square": self.FREE, "foolbox": self.WHOLE, "transfer": self.WHOLE, "later": {}}
        rows |= {"strong": self.AT_ONCE, "clean": {"s0": ("resisted", 0, 0, None, None)}}
        return build(folder, arms, rows, accounting={"foolbox": "batch", "transfer": "none"})

    def test_they_are_named_with_the_reason(self, tmp_path: Path) -> None:
        found = read_durations(self.ledger(tmp_path / "run"))
        one = "it takes one step, so it has no duration"
        assert found.left_out == {
            "fgsm": one,
            "pgd-1": one,
            "mine": one,  # by what it did
            "foolbox": "its passes are counted for a batch as a whole",
            "transfer": "it does not query the model",
            "later": "it was not run yet",
        }
        assert sorted(set(found.columns["arm"])) == [
            "pgd",
            "square",
            "strong",
        ]  # the last of many steps, though it needed one
        assert found.n_missing == 3 * len(SAMPLES) - len(ROWS) - 4

    def test_without_gradients_there_are_no_gradient_passes(self, tmp_path: Path) -> None:
        found = read_durations(self.ledger(tmp_path / "run"), measure="gradient")
        assert found.left_out["square"] == "it uses no gradient"
        assert sorted(set(found.columns["arm"])) == ["pgd", "strong"]

    def test_arms_can_be_named_by_patterns(self, tmp_path: Path) -> None:
        ledger = self.ledger(tmp_path / "run")
        assert set(read_durations(ledger, arms=["sq*"]).columns["arm"]) == {"square"}
        with pytest.raises(RiskError, match="no arm is called 'pdg'; did you mean 'pgd'"):
            read_durations(ledger, arms=["pdg"])
        with pytest.raises(RiskError, match="no model called 'plan' was attacked in this run; did you mean 'plain'"):
            read_durations(ledger, models=["plan"])

    def test_where_nothing_is_left_the_reasons_are_told(self, tmp_path: Path) -> None:
        with pytest.raises(
            RiskError, match=r"no arm has a duration in forward passes\. fgsm, mine: it takes one step"
        ) as caught:
            read_durations(self.ledger(tmp_path / "run"), arms=["fgsm", "mine"])
        assert "Add an attack of several steps" in str(caught.value)

    def test_arms_of_searches_and_surrogates_are_out(self, tmp_path: Path) -> None:
        arms = [PGD, PGD | {"arm": "found", "origin": "search"}, PGD | {"arm": "crafted", "origin": "surrogate"}]
        ledger = build(tmp_path / "run", arms, dict.fromkeys(("pgd", "found", "crafted"), ROWS))
        assert set(read_durations(ledger).columns["arm"]) == {"pgd"}
        assert set(read_durations(ledger, arms=["found"]).columns["arm"]) == {"found"}


def test_rows_without_seconds_have_passes_only(tmp_path: Path) -> None:
    """As in ledgers of earlier versions."""
    ledger = build(tmp_path / "run", [PGD], {"pgd": ROWS}, seconds=None)
    assert len(fitted(read_durations(ledger))) == 7
    with pytest.raises(RiskError, match="made before seconds were kept"):
        read_durations(ledger, measure="seconds")


def test_a_run_without_attacks_has_no_durations(tmp_path: Path) -> None:
    arm = {"arm": "noise", "family": "noise", "kind": "corruption"}
    ledger = build(tmp_path / "run", [arm], {"noise": {"s0": ("resisted", 0, 0, None, None)}})
    with pytest.raises(RiskError, match="holds no attack"):
        read_durations(ledger)
    with pytest.raises(RiskError, match="found 'hours'"):
        read_durations(ledger, measure="hours")  # type: ignore[arg-type]


class TestFacts:
    def test_training_and_the_clean_arm_are_told(self, tmp_path: Path) -> None:
        clean = {"arm": "clean", "family": "clean", "kind": "clean"}
        outcomes = ["resisted", "resisted", "resisted", "resisted", "rejected", "error"]
        rows = {name: (outcome, 0, 0, None, None) for name, outcome in zip(SAMPLES, outcomes, strict=False)}
        said = {name: place % 2 for place, name in enumerate(SAMPLES[:3])} | {SAMPLES[3]: 0}  # its label is 1
        given: dict[str, Any] = {"said": said, "train_s": 30.0, "train_samples": 4000}
        ledger = build(tmp_path / "run", [clean, PGD], {"clean": rows, "pgd": ROWS}, **given)
        facts = read_durations(ledger).facts["plain"]
        assert facts.clean_accuracy == 0.6  # also where success means another class than the model's own
        assert facts.n_clean_rejected == 1
        assert facts.train_s_per_sample == 0.0075
        assert facts.inference_s == pytest.approx(0.001)

    def test_what_nobody_knows_is_none(self, every_outcome: Ledger) -> None:
        facts = read_durations(every_outcome).facts["plain"]
        assert (facts.train_s_per_sample, facts.inference_s, facts.clean_accuracy) == (None, None, None)


class TestCovariates:
    @pytest.fixture
    def found(self, tmp_path: Path) -> Durations:
        arms = [PGD, PGD | {"arm": "pgd-l2", "norm": "l2", "eps": 1.0}, {"arm": "square", "family": "square"}]
        rows: dict[str, Rows] = {
            "pgd": ROWS,
            "pgd-l2": ROWS,
            "square": TestArmsThatAreNotFitted.FREE,
        }
        return read_durations(build(tmp_path / "run", arms, rows, models=("a", "b")))

    def test_each_row_gets_what_belongs_to_its_arm_model_and_sample(self, found: Durations) -> None:
        told, notes = with_covariates(found, ["attack", "model", "depth", "made", "class", "site"])
        first = {name: told.columns[name][0] for name in ("attack", "model", "depth", "made", "class", "site")}
        assert first == {"attack": "pgd", "model": "a", "depth": 8.0, "made": "here", "class": "0", "site": "north"}
        assert notes == []

    def test_rows_without_eps_cannot_be_explained_by_it(self, found: Durations) -> None:
        told, notes = with_covariates(found, ["eps"])
        assert set(told.columns["eps"]) == {0.1, 1.0}
        assert len(told.columns["eps"]) == len(told.seconds) == 28
        assert notes == [
            "Left out of the fit, as they have no eps: 4 rows of square.",
            "eps is one covariate here, though it is measured in l2 and linf: name one norm.",
        ]

    def test_by_default_what_differs_is_taken(self, found: Durations) -> None:
        assert default_covariates(found) == ["eps", "model"]  # two sizes in two norms: one of them tells the other
        assert {"depth", "site", "eps"} <= set(available_covariates(found))

    def test_a_bare_model_has_the_defence_none(self, found: Durations) -> None:
        squeezed = replace(found.facts["b"], tags={"defence": "feature-squeezing"})
        told, _ = with_covariates(replace(found, facts={**found.facts, "b": squeezed}), ["defence"])
        by_model = set(zip(told.columns["model"].tolist(), told.columns["defence"].tolist(), strict=True))
        assert by_model == {("a", "none"), ("b", "feature-squeezing")}
        with pytest.raises(RiskError, match="no covariate is called 'defence'"):
            with_covariates(found, ["defence"])

    def test_prefixes_tell_tags_from_strata(self, found: Durations) -> None:
        told, _ = with_covariates(found, ["tags.depth", "strata.site"])
        assert set(told.columns["tags.depth"]) == {8.0}
        assert set(told.columns["strata.site"]) == {"north", "south"}

    @pytest.mark.parametrize(
        "name", ["n_forward", "f_adv", "prediction", "confidence", "d_linf", "failure-rate", "event"]
    )
    def test_what_comes_from_the_outcome_is_refused(self, found: Durations, name: str) -> None:
        with pytest.raises(RiskError, match=f"{name} is not a covariate: it comes from the outcome"):
            with_covariates(found, [name])

    @pytest.mark.parametrize(
        ("names", "message"),
        [
            (["dept"], "no covariate is called 'dept'; did you mean 'depth'"),
            (["depth", "depth"], "named twice"),
            (
                ["train_s"],
                "train_s is a covariate, but a, b have none; state `train_s` of the model in the study",
            ),
            (["norm"], "norm is a covariate, but square has none"),
        ],
    )
    def test_mistakes_are_told(self, found: Durations, names: list[str], message: str) -> None:
        with pytest.raises(RiskError, match=message):
            with_covariates(found, names)
