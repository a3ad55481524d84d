"""Assessments of ledgers in which the truth is known: Weibull times in passes, and what follows from them."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t

from advrisk.assess.survival.assessment import SurvivalAssessment, assess_survival
from advrisk.assess.survival.coefficients import coefficient_table
from advrisk.assess.survival.money import NO_SECONDS, NO_TRAINING, Hardware
from advrisk.assess.survival.words import survival_headline
from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.ledger import Ledger, table_from
from advrisk.risk.proportion import proportion
from advrisk.risk.survival.durations import NoDurationsError, Tally

from .conftest import MOST, SHAPE, SLOPE, N, ledger_of


def approximately(told: Any) -> Any:
    """Plain values, nested, with numbers that may differ in the last digits as sums run in another order."""
    if isinstance(told, dict):
        return {name: approximately(value) for name, value in told.items()}
    if isinstance(told, list):
        return [approximately(value) for value in told]
    return pytest.approx(told, rel=1e-6, abs=1e-9) if isinstance(told, float) else told


class TestTruth:
    def test_what_made_the_times_is_found(self, found: SurvivalAssessment) -> None:
        assert found.covariates == ("eps", "model")
        assert found.fit is not None
        assert found.fit.family == "weibull"
        assert found.fit.n_clusters == N - 1
        factors = {one.name: one for one in found.fit.acceleration_factors()}
        assert factors["model=b"].per_range.low < 2.0 < factors["model=b"].per_range.high
        assert factors["eps"].per_range.low < math.exp(SLOPE * 0.2) < factors["eps"].per_range.high

    def test_the_one_that_lasts_longer_comes_first(self, found: SurvivalAssessment) -> None:
        assert [one.model for one in found.models] == ["b", "a"]
        assert survival_headline(found).startswith("b survives longest: ")
        assert found.until == MOST

    def test_who_reads_fewer_samples_survives_on_these_alone(self, found: SurvivalAssessment) -> None:
        """Of 10 rows 3 and 9 are attacked; clean accuracy counts queries of a model that answers at random, not rows,
        and of attacks on the prediction every sample is attacked."""
        wrong = {"b": 7, "a": 1}
        models = tuple(
            replace(one, tally=Tally(resisted=10 - wrong[one.model], already_wrong=wrong[one.model]))
            for one in found.models
        )
        said = survival_headline(replace(found, models=models))
        assert said.startswith("b survives longest, on the 30.0 % of samples that it reads correctly when clean: ")
        clean = (Estimate(share, 0.0, 1.0, 0.95, N, "exact") for share in (0.3, 0.9))
        models = tuple(replace(one, clean_accuracy=share) for one, share in zip(found.models, clean, strict=True))
        assert survival_headline(replace(found, models=models)).startswith("b survives longest: ")

    def test_means_are_those_of_the_rows_and_the_law_agrees(self, found: SurvivalAssessment) -> None:
        """With one limit for all attempts, the restricted mean is the plain mean of what each took, cut off there."""
        columns = found.durations.columns
        for one in found.models:
            own = columns["duration"][columns["model"] == one.model]
            assert one.mean is not None
            assert one.mean.value == pytest.approx(np.minimum(own, MOST).mean())
            assert one.median is not None
            assert one.median.value == np.sort(own)[math.ceil(len(own) / 2) - 1]
            assert one.law_mean is not None  # of passes that are not rounded up: half a pass less on average
            assert one.law_mean.value == pytest.approx(one.mean.value - 0.5, abs=0.7)

    def test_the_difference_of_means_is_paired_by_sample(self, found: SurvivalAssessment) -> None:
        """As many attempts on every sample and no early end: the plain paired t interval of the samples' means."""
        columns = found.durations.columns
        gaps = []
        for sample in np.unique(columns["sample"]):
            mine, theirs = (
                columns["duration"][(columns["model"] == model) & (columns["sample"] == sample)] for model in "ba"
            )
            gaps.append(mine.mean() - theirs.mean())
        difference = found.difference("b", "a")
        assert difference is not None
        assert difference.value == pytest.approx(np.mean(gaps))
        half = t.ppf(0.975, len(gaps) - 1) * np.std(gaps, ddof=1) / math.sqrt(len(gaps))
        assert difference.high - difference.value == pytest.approx(half, rel=0.02)
        assert found.outlasts("b", "a")
        assert not found.outlasts("a", "b")

    def test_rates_are_failures_over_passes(self, found: SurvivalAssessment) -> None:
        one = found.of("a")
        columns = found.durations.columns
        own = columns["model"] == "a"
        failures = columns["event"][own].sum() + 3  # the first sample was wrong for three arms
        assert one.adversarial is not None
        assert one.adversarial.estimate.value == pytest.approx(failures / columns["duration"][own].sum())
        assert one.benign is not None
        assert one.benign.estimate.value == pytest.approx(1 / N)  # a clean input takes one pass
        assert one.facts.clean_accuracy == pytest.approx(1 - 1 / N)
        assert one.clean_accuracy == proportion(N - 1, N)
        assert one.clean_rejection is None  # nobody refuses anything

    def test_costs_follow_from_means(self, found: SurvivalAssessment) -> None:
        one = found.of("a")
        assert found.fit is not None
        assert one.cost is not None
        assert one.mean is not None
        mean = one.mean.value
        assert one.cost.adversarial is not None
        assert one.cost.adversarial.value == pytest.approx(0.6 / (0.01 * mean))
        assert one.cost.by_attack["pgd"] == one.cost.adversarial  # the only one
        assert one.cost.total is not None
        assert one.cost.total.value == pytest.approx(100 * one.cost.adversarial.value)
        assert one.cost.break_cost is not None
        assert one.cost.break_cost.value == pytest.approx(0.01 * mean * 0.001)
        assert one.cost.train_cost == pytest.approx(0.06)
        assert one.cost.benign is not None
        benign = found.fit.mean(at={"model": "a", "eps": 0.0}, until=MOST).value
        assert one.cost.benign.value == pytest.approx(0.6 / (0.01 * benign))
        assert one.cost.benign_outside  # the least eps is a third of the largest
        assert one.cost.benign_rate is not None  # a clean input takes 4 ms and is wrong once in N
        assert one.cost.benign_rate.value == pytest.approx(0.6 / (0.004 * N))

    def test_the_better_model_dominates(self, found: SurvivalAssessment) -> None:
        standing = {one.model: one for one in found.pareto}
        assert standing["a"].dominated_by == ("b",)  # as accurate, as cheap, and breaks less often
        assert standing["b"].on_front

    def test_the_law_is_calibrated(self, found: SurvivalAssessment) -> None:
        assert found.calibrated is not None
        assert found.calibrated.ici < 0.1  # of 360 rows, chance alone makes about half of that
        assert found.calibrated.by_chance is not None

    def test_seconds_are_passes_in_another_unit(self, ledger: Ledger, found: SurvivalAssessment) -> None:
        timed = assess_survival(ledger, measure="seconds", family="weibull")
        assert timed.until == pytest.approx(0.01 * MOST)
        assert timed.of("a").benign is not None
        mean, passes = timed.of("a").mean, found.of("a").mean
        assert mean is not None
        assert passes is not None
        assert mean.value == pytest.approx(0.01 * passes.value)

    def test_rows_in_another_order_say_the_same(self, found: SurvivalAssessment, tmp_path: Path) -> None:
        again = assess_survival(ledger_of(tmp_path / "run", shuffled=True), hardware=Hardware("one core", 3.6))
        assert again.as_dict() == approximately(found.as_dict())

    def test_other_names_of_models_say_the_same(self, found: SurvivalAssessment, tmp_path: Path) -> None:
        """Named so that their order, and the reference of the fit, is the other way round."""
        again = assess_survival(ledger_of(tmp_path / "run", factor={"z": 1.0, "y": 2.0}), family="weibull")
        for old, new in (("a", "z"), ("b", "y")):
            before, after = found.of(old), again.of(new)
            for name in ("mean", "median", "law_mean", "endless_mean"):
                one, other = getattr(before, name), getattr(after, name)
                assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high), rel=1e-5)
            assert before.tally == after.tally
            assert before.adversarial == after.adversarial
        assert [one.model for one in again.models] == ["y", "z"]

    def test_other_names_of_samples_say_the_same(self, found: SurvivalAssessment, tmp_path: Path) -> None:
        """But which samples are held out, as these are drawn by name."""
        again = assess_survival(ledger_of(tmp_path / "run", prefix="t", backwards=True), family="weibull")
        for one in found.models:
            other = again.of(one.model)
            assert one.mean is not None
            assert other.mean is not None
            assert (one.mean.value, one.mean.low) == pytest.approx((other.mean.value, other.mean.low), rel=1e-6)


class TestOnlyWhatHolds:
    def test_models_that_last_alike_are_not_ranked(self, tmp_path: Path) -> None:
        found = assess_survival(ledger_of(tmp_path / "run", factor={"a": 1.0, "b": 1.0}, n=60), family="weibull")
        assert found.fit is not None
        ratio = found.fit.coefficient("model=b").natural.estimate
        assert ratio.low < 0 < ratio.high
        contrast = found.fit.contrast({"model": "b"}, {"model": "a"})
        assert (contrast.value, contrast.low, contrast.high) == pytest.approx((ratio.value, ratio.low, ratio.high))
        assert survival_headline(found).startswith("Undecided which model survives longest: ")
        assert not found.outlasts("a", "b")
        assert not found.outlasts("b", "a")

    def test_a_law_without_the_model_ranks_them_all_the_same(self, ledger: Ledger, found: SurvivalAssessment) -> None:
        """Which survives longest is read off the rows, whatever explains them."""
        assert survival_headline(assess_survival(ledger, covariates=["eps"])) == survival_headline(found)

    def test_a_covariate_of_models_is_no_sample_of_models(self, tmp_path: Path) -> None:
        tagged = ledger_of(tmp_path / "run", tags={"a": '{"depth": 2}', "b": '{"depth": 4}'})
        found = assess_survival(tagged, covariates=["eps", "depth"], family="weibull")
        (note,) = [note for note in found.notes if "cover samples only" in note]
        assert note.startswith("depth: one value for each of 2 models.")
        plain = assess_survival(tagged, covariates=["eps", "model"], family="weibull")
        assert not any("cover samples only" in note for note in plain.notes)

    def test_eps_0_is_outside_unless_some_arm_has_it(self, tmp_path: Path) -> None:
        found = assess_survival(ledger_of(tmp_path / "run", eps=(0.001, 0.2)), family="weibull")
        assert found.law is not None
        cost = found.of("a").cost
        assert cost is not None
        assert cost.benign_outside

    def test_few_samples_are_held_out_whole(self, tmp_path: Path) -> None:
        found = assess_survival(ledger_of(tmp_path / "run", n=21))
        assert found.choice is not None
        assert found.choice.n_clusters == 20  # not 120 rows
        assert found.law is None
        assert found.calibrated is not None
        assert found.calibrated.by_chance is None
        assert found.calibrated.low is None
        assert "too few samples to say whether chance explains that" in found.doubt
        json.dumps(found.as_dict(), allow_nan=False)

    def test_why_nothing_was_held_out_is_told(self, tmp_path: Path) -> None:
        found = assess_survival(ledger_of(tmp_path / "run", n=5, eps=(0.1, 0.2)))
        (note,) = [note for note in found.notes if note.startswith("The family is chosen by AIC")]
        assert "cannot be cut into 5 folds" in note

    @pytest.mark.parametrize(
        "given",
        [
            {"until": -1.0},
            {"until": math.nan},
            {"level": 1.0},
            {"level": "a"},
            {"eps_max": -0.1},
            {"broken_factor": 0.0},
            {"tolerance": 0.0},
            {"family": "gamma"},
        ],
    )
    def test_a_wrong_argument_is_refused_and_not_worked_around(self, ledger: Ledger, given: dict[str, Any]) -> None:
        with pytest.raises(RiskError, match=next(iter(given)) if "family" not in given else "gamma"):
            assess_survival(ledger, **given)


class TestTelling:
    def test_everything_is_json(self, found: SurvivalAssessment) -> None:
        told = json.loads(json.dumps(found.as_dict(), allow_nan=False))
        assert told["fit"]["family"] == "weibull"
        assert {one["model"] for one in told["models"]} == {"a", "b"}
        assert told["models"][0]["rows"]["at_zero"] == 3

    def test_every_line_has_the_same_columns(self, found: SurvivalAssessment) -> None:
        lines = found.rows()
        assert {tuple(line) for line in lines} == {tuple(lines[0])}
        assert {
            "coefficient",
            "acceleration factor",
            "hazard",
            "density",
            "family",
            "survival",
            "rate",
            "probability",
            "clean",
            "cost",
            "pareto",
            "rows",
        } == {line["what"] for line in lines}

    def test_rates_are_told_as_probabilities(self, found: SurvivalAssessment) -> None:
        (told,) = [one for one in found.as_dict()["models"] if one["model"] == "a"]
        rate = told["f_adv"]["value"]
        assert [one["time"] for one in told["f_adv"]["probabilities"]] == [1.0, MOST]
        for one in told["f_adv"]["probabilities"]:
            assert one["value"] == pytest.approx(1 - math.exp(-rate * one["time"]))
        assert told["f_ben"]["probabilities"][0]["value"] == pytest.approx(1 - math.exp(-1 / N))


class TestWhatCanBeMissing:
    def test_a_model_that_nobody_breaks_is_told_apart(self, tmp_path: Path) -> None:
        found = assess_survival(ledger_of(tmp_path / "run", factor={"a": 1.0, "steel": math.inf}, n=40))
        assert found.covariates == ("eps",)  # one model is left
        assert "Not in the fit, as no attack broke any of its samples: steel." in found.notes
        steel = found.of("steel")
        assert steel.mean is not None
        assert (steel.mean.value, steel.law_mean, steel.reached) == (MOST, None, False)
        assert 0 < steel.mean.low < MOST  # 39 samples say nothing of one in a hundred
        assert survival_headline(found).startswith("steel survives longest: 30.0 [")
        assert "(median not reached); a fails first, after" in survival_headline(found)
        assert found.of("a").cost is not None
        assert found.models[0].model == "steel"
        json.dumps(found.as_dict(), allow_nan=False)

    def test_a_covariate_that_nobody_asked_for_may_go(self, tmp_path: Path) -> None:
        """Of an attack that broke nothing, the effect would be infinite."""
        weak = {"attack": "tickle", "factor": math.inf}
        found = assess_survival(ledger_of(tmp_path / "run", n=40, beside=weak))
        assert found.covariates == ("eps", "model")
        (note,) = [note for note in found.notes if note.startswith("Not among the covariates: attack.")]
        assert "'attack' = 'pgd'" in note
        assert found.of("a").mean is not None
        with pytest.raises(RiskError, match="no row has an event"):
            assess_survival(ledger_of(tmp_path / "again", n=40, beside=weak), covariates=["eps", "attack"])

    def test_where_nothing_broke_the_curves_stand_alone(self, tmp_path: Path) -> None:
        found = assess_survival(ledger_of(tmp_path / "run", factor={"steel": math.inf}, eps=(0.1,), n=10))
        assert found.fit is None
        assert "all are censored" in found.unfitted
        assert found.of("steel").adversarial is not None
        assert survival_headline(found).startswith("A sample of steel survives 30.0 [")
        assert survival_headline(found).endswith("forward passes on average up to 30, median not reached.")
        assert [line["what"] for line in found.rows() if line["what"] == "coefficient"] == []

    def test_one_model_and_one_arm_have_an_intercept_only(self, tmp_path: Path) -> None:
        found = assess_survival(ledger_of(tmp_path / "run", factor={"a": 1.0}, eps=(0.1,)))
        assert found.covariates == ()
        assert found.fit is not None
        assert [one.name for one in found.fit.coefficients] == ["intercept", "intercept"]
        assert found.pareto == ()
        assert found.of("a").cost is not None
        assert found.of("a").cost.benign is None  # type: ignore[union-attr]
        assert survival_headline(found).startswith("A sample of a survives ")

    def test_few_samples_are_told(self, tmp_path: Path) -> None:
        found = assess_survival(ledger_of(tmp_path / "run", n=20))
        assert found.fit is not None
        assert found.fit.n_clusters is None
        assert any("too few for errors by sample" in note for note in found.notes)

    def test_without_training_time_there_is_no_ratio(self, tmp_path: Path) -> None:
        found = assess_survival(ledger_of(tmp_path / "run", train=False, clean=False, n=40))
        cost = found.of("a").cost
        assert cost is not None
        assert (cost.adversarial, cost.verdict, cost.why_not) == (None, None, NO_TRAINING)
        assert cost.break_s is not None
        assert [one.name for one in found.criteria] == ["failures under attack"]
        assert any("clean accuracy, training time" in note for note in found.notes)

    def test_without_seconds_there_is_no_cost(self, tmp_path: Path) -> None:
        cost = assess_survival(ledger_of(tmp_path / "run", seconds=None, n=40)).of("a").cost
        assert cost is not None
        assert (cost.break_s, cost.why_not) == (None, NO_SECONDS)


class TestLimit:
    def test_no_mean_goes_beyond_what_was_seen(self, ledger: Ledger, found: SurvivalAssessment) -> None:
        longer = assess_survival(ledger, until=500.0, family="weibull")
        assert (longer.until, longer.asked_until) == (MOST, 500)
        assert "Means are up to 30 forward passes, not 500: attacks on a gave up there." in longer.notes
        assert [one.mean for one in longer.models] == [one.mean for one in found.models]

    def test_models_are_compared_up_to_where_the_first_was_given_up(self, tmp_path: Path) -> None:
        found = assess_survival(ledger_of(tmp_path / "run", n=40, most={"a": 8}), family="weibull")
        assert found.until == 8
        for one in found.models:
            assert one.mean is not None
            assert one.mean.high <= 8

    def test_a_model_of_which_nothing_is_left_needs_no_limit(self, tmp_path: Path) -> None:
        found = assess_survival(ledger_of(tmp_path / "run", factor={"a": 0.2, "b": 2.0}, n=40), family="weibull")
        one = found.of("a")
        assert one.curve is not None
        assert one.curve.survival[-1] == 0
        assert found.until == MOST  # as long as b was attacked, which is longer than a lasted
        columns = found.durations.columns
        assert one.mean is not None
        assert one.mean.value == pytest.approx(columns["duration"][columns["model"] == "a"].mean())
        assert one.cost is not None
        assert one.cost.extrapolated is not None  # without a law, as every attempt succeeded
        assert one.cost.extrapolated.value == pytest.approx(one.cost.adversarial.value)  # type: ignore[union-attr]


class TestLawThatDoesNotHold:
    def test_its_reason_is_kept_and_nothing_of_it_is_quoted(self, split: SurvivalAssessment) -> None:
        assert split.fit is not None
        assert split.law is None
        assert split.doubt
        for one in split.models:
            assert (one.law_mean, one.endless_mean, one.hazard) == (None, None, ())
            assert one.cost is not None
            assert one.cost.benign is None
            assert one.cost.extrapolated is None
            assert one.cost.adversarial is not None
            assert one.cost.verdict == ("not broken" if one.cost.adversarial.high < 10 else "undecided")
        assert not {"coefficient", "acceleration factor", "hazard"} & {line["what"] for line in split.rows()}
        assert split.as_dict()["law_holds"] is False

    def test_the_headline_is_that_of_the_rows(self, split: SurvivalAssessment) -> None:
        columns = split.durations.columns
        first = split.models[0]
        own = np.minimum(columns["duration"][columns["model"] == first.model], split.until)
        assert f"{own.mean():.1f} [" in survival_headline(split)

    def test_a_law_must_also_follow_the_curve_of_every_model(self, ledger: Ledger) -> None:
        """One law for both models is that of neither, however well it does on both together."""
        found = assess_survival(ledger, covariates=["eps"], tolerance=0.5)
        assert found.law is None
        assert " of a left, where the attempts show " in found.doubt


class TestUnits:
    def test_an_eps_is_reported_per_grey_level(self, found: SurvivalAssessment) -> None:
        (factor,) = [one for one in found.fit.acceleration_factors() if one.name == "eps"]  # type: ignore[union-attr]
        assert (factor.unit_text, factor.unit) == ("1/255", 1 / 255)
        assert factor.per_unit.value == pytest.approx(factor.per_range.value ** (1 / 255 / 0.2))

    def test_a_unit_may_be_named(self, ledger: Ledger) -> None:
        found = assess_survival(ledger, units={"eps": 0.1}, family="weibull")
        (factor,) = [one for one in found.fit.acceleration_factors() if one.name == "eps"]  # type: ignore[union-attr]
        assert factor.per_unit.value == pytest.approx(factor.per_range.value ** (0.1 / 0.2))
        with pytest.raises(RiskError, match="units names 'esp'"):
            assess_survival(ledger, covariates=["eps"], units={"esp": 1})
        with pytest.raises(RiskError, match="a number above 0 is needed, found 0"):
            assess_survival(ledger, covariates=["eps"], units={"eps": 0})


class TestReference:
    def test_the_undefended_model_is_that_of_defences(self, defended: Ledger) -> None:
        """`gauss-out` comes before `none` in the alphabet."""
        found = assess_survival(defended, covariates=["eps", "defence"], family="weibull")
        assert found.fit is not None
        one = found.fit.coefficient("defence=gauss-out")
        assert one.reference == "none"
        assert one.scaled.estimate.low > 0

    def test_another_may_be_named(self, defended: Ledger) -> None:
        one, other = (
            assess_survival(defended, covariates=["eps", "defence"], reference=given, family="weibull").fit
            for given in ({}, {"defence": "gauss-out"})
        )
        assert one is not None
        assert other is not None
        mine, theirs = one.coefficient("defence=gauss-out"), other.coefficient("defence=none")
        assert mine.natural.estimate.value == pytest.approx(-theirs.natural.estimate.value, rel=1e-6)
        with pytest.raises(RiskError, match="'nobody' does not occur"):
            assess_survival(defended, covariates=["defence"], reference={"defence": "nobody"})
        with pytest.raises(RiskError, match="reference of 'eps': it is a number"):
            assess_survival(defended, covariates=["eps"], reference={"eps": "0.1"})
        with pytest.raises(RiskError, match="reference names 'colour'"):
            assess_survival(defended, reference={"colour": "red"})

    def test_strength_is_scaled_within_each_defence(self, defended: Ledger) -> None:
        found = assess_survival(defended, covariates=["eps", "defence", "defence_strength"], family="weibull")
        assert {one.model: one.at["defence_strength"] for one in found.models} == {"a": 0.0, "b": 0.0, "c": 1.0}
        assert found.fit is not None
        truth = math.log(2.0 / 1.3)
        effect = found.fit.coefficient("defence_strength").scaled.estimate
        assert effect.low < truth < effect.high


class TestAllLaws:
    def test_their_coefficients_stand_side_by_side(self, found: SurvivalAssessment) -> None:
        assert found.law is not None
        rows = {row.name: row.effects for row in coefficient_table(found)}
        assert list(rows) == ["intercept", "eps, 0.3 against 0.1", "model b, against a", "log sigma"]
        fits = [one.fit for one in found.families]
        assert [fit.family for fit in fits] == ["weibull", "lognormal", "loglogistic"]
        for place, fit in enumerate(fits):
            assert rows["model b, against a"][place] == fit.coefficient("model=b").scaled.estimate
        weibull = found.families[0].fit.coefficient("intercept", part="shape").scaled.estimate
        assert rows["log sigma"][0].value == -weibull.value  # type: ignore[union-attr]
        assert -weibull.high < -math.log(SHAPE) < -weibull.low
        told = found.as_dict()["families"]
        assert [len(one["coefficients"]) for one in told] == [4, 4, 4]


class TestAsked:
    def test_several_norms_are_no_one_size(self, tmp_path: Path) -> None:
        ledger = ledger_of(tmp_path / "run", norms=("linf", "l2"), n=40)
        found = assess_survival(ledger, usual_norm="linf")
        assert {found.durations.arms[arm]["norm"] for arm in found.durations.arms} == {"linf"}
        assert any(note.startswith("Only arms in linf count.") for note in found.notes)
        assert found.of("a").tally.fitted == 3 * 39
        assert assess_survival(ledger, norm="l2").of("a").tally.already_wrong == 3
        both = assess_survival(ledger, covariates=["eps", "norm", "model"])
        assert both.of("a").tally.fitted == 6 * 39
        with pytest.raises(RiskError, match="no arm that can be fitted is in l1; there are arms in l2, linf"):
            assess_survival(ledger, norm="l1")

    def test_a_family_may_be_named(self, ledger: Ledger) -> None:
        found = assess_survival(ledger, family="lognormal", covariates=["model"])
        assert found.fit is not None
        assert found.fit.family == "lognormal"
        assert [one.family for one in found.families if one.chosen] == ["lognormal"]
        with pytest.raises(RiskError, match="weibull"):
            assess_survival(ledger, family="wiebull")

    def test_the_shape_may_depend_on_something(self, ledger: Ledger, found: SurvivalAssessment) -> None:
        shaped = assess_survival(ledger, family="weibull", shape_covariates="model")
        assert shaped.fit is not None
        assert found.fit is not None
        names = [one.name for one in shaped.fit.coefficients if one.part == "shape"]
        assert names == ["intercept", "model=b"]
        effect = shaped.fit.coefficient("model=b", part="shape").scaled.estimate
        assert effect.low < 0 < effect.high  # both have one shape
        assert shaped.fit.log_likelihood >= found.fit.log_likelihood
        assert shaped.as_dict()["shape_covariates"] == ["model"]
        with pytest.raises(RiskError, match="no covariate is called 'modle'"):
            assess_survival(ledger, shape_covariates=["modle"])

    def test_no_covariates_at_all(self, ledger: Ledger) -> None:
        assert assess_survival(ledger, covariates=[], family="weibull").covariates == ()

    def test_what_was_asked_and_cannot_be_is_refused(self, ledger: Ledger) -> None:
        with pytest.raises(RiskError, match="collinear"):
            assess_survival(ledger, covariates=["eps", "arm"])
        with pytest.raises(RiskError, match="comes from the outcome"):
            assess_survival(ledger, covariates=["f_adv"])
        with pytest.raises(RiskError, match=r"up to eps_max = 0\.05"):
            assess_survival(ledger, eps_max=0.05)
        with pytest.raises(RiskError, match="no model called 'c' was assessed"):
            assess_survival(ledger, family="weibull").of("c")

    def test_eps_max_and_until_limit_what_is_told(self, ledger: Ledger, found: SurvivalAssessment) -> None:
        small = assess_survival(ledger, eps_max=0.1, until=20.0)
        assert small.until == 20.0
        assert small.fit is not None
        cost = small.of("a").cost
        assert cost is not None
        assert cost.break_s is not None
        columns = small.durations.columns
        own = columns["duration"][(columns["model"] == "a") & (columns["eps"] == 0.1)]
        assert cost.break_s.value == pytest.approx(0.01 * np.minimum(own, 20).mean())


def test_where_every_attempt_ended_in_an_error_that_is_said(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path / "run", n=4)
    rows = ledger.query("FROM outcomes WHERE kind = 'attack'").to_pylist()
    lost = [row | {"outcome": "error", "n_forward": 0, "n_forward_first": None} for row in rows]
    arms = [row | {"arm": f"lost-{row['arm']}"} for row in ledger.query("FROM arms WHERE kind = 'attack'").to_pylist()]
    cells = ledger.query("FROM cells").to_pylist()
    names = {row["cell"] for row in lost}
    other = Ledger.open(tmp_path / "other", create=True)
    tables = {
        "arms": arms,
        "cells": [row | {"arm": f"lost-{row['arm']}"} for row in cells if row["cell"] in names],
        "outcomes": [row | {"arm": f"lost-{row['arm']}"} for row in lost],
        "samples": ledger.query("FROM samples").to_pylist(),
        "models": ledger.query("FROM models").to_pylist(),
    }
    other.append(
        {
            name: table_from(name, {key: [one[key] for one in given] for key in given[0]})
            for name, given in tables.items()
        }
    )
    with pytest.raises(NoDurationsError, match=r"no attempt has a duration in forward passes: .* error"):
        assess_survival(Ledger.open(tmp_path / "other"))
