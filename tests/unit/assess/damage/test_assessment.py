"""The question of damage, answered from a ledger of hand-made rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from advrisk.assess.damage.assessment import DamageAssessment, assess_damage, assess_distances, assessed_convergence
from advrisk.assess.damage.conflicts import conflict_text
from advrisk.assess.damage.distances import smallest_distances
from advrisk.assess.damage.headline import headline, how_bad
from advrisk.assess.damage.words import what_would_decide
from advrisk.core.errors import RiskError
from advrisk.ledger import Ledger
from advrisk.risk.conflicts import Order, Stated, TieValues
from advrisk.risk.convergence import MEAN, SMALLEST
from advrisk.risk.damage import DamageComparison
from advrisk.risk.decision import samples_to_decide
from advrisk.risk.evasion import average, fit_bayesian, threshold
from advrisk.risk.mean_share import mean_difference
from advrisk.study import AVERAGE, DamageSpec

INF = float("inf")
STRONG, WEAK = [INF] * 30 + [0.3] * 10, [0.1] * 30 + [0.0] * 10


@pytest.fixture
def assessed(found_by: Callable[..., Ledger]) -> Callable[..., DamageAssessment]:
    def ask(distances: dict[str, list[float]], *, spec: dict[str, Any] | None = None, **given: Any) -> DamageAssessment:
        ledger = found_by({model: {"pgd": found} for model, found in distances.items()})
        return assess_damage(ledger, DamageSpec(**(spec or {})), seed=0, **given)

    return ask


def test_without_a_curve_damage_is_relative(assessed: Callable[..., DamageAssessment]) -> None:
    found = assessed({"strong": STRONG, "weak": WEAK})
    assert found.relative
    assert (found.least_bad, found.decided) == ("strong", True)
    assert all(row.damage is None and row.operational_risk is None for row in found.models)
    # of 80 distances, 30 are inf and 10 are 0.3: strong's ten are exceeded by 30; weak's 0.1 by 40, its 0 by 70
    values = {row.model: row.relative_damage.value for row in found.models if row.relative_damage}
    assert values == {"strong": 10 * 30 / (80 * 40), "weak": (30 * 40 + 10 * 70) / (80 * 40)}


def test_under_a_curve_damage_is_a_probability_with_a_cost(assessed: Callable[..., DamageAssessment]) -> None:
    found = assessed({"strong": STRONG, "weak": WEAK}, evasion=threshold(0.2), cost=1000)
    strong, weak = found.models
    assert not found.relative
    assert strong.damage is not None
    assert weak.damage is not None
    assert weak.operational_risk is not None
    assert (strong.damage.value, weak.damage.value) == (0, 1)
    assert (weak.clean_error_part, weak.operational_risk.value) == (0.25, 1000)
    assert weak.operational_risk.low == pytest.approx(1000 * weak.damage.low)
    assert strong.damage.high > 0, "no success among 40 samples is no proof that there is none"
    assert found.estimates["weak"] == weak.damage
    assert found.least_bad == "strong"


def test_one_model_has_a_damage_under_a_curve_and_none_without(assessed: Callable[..., DamageAssessment]) -> None:
    alone = assessed({"only": WEAK}, evasion=threshold(0.2))
    assert alone.estimates["only"].value == 1
    assert (alone.least_bad, alone.pairs, alone.models[0].probability_best) == (None, (), None)


def test_the_average_of_one_model_is_refused(assessed: Callable[..., DamageAssessment]) -> None:
    with pytest.raises(RiskError, match="give two or more models, or an evasion curve"):
        assessed({"only": WEAK}, spec={"evasion": AVERAGE})


def test_nothing_relative_has_a_cost(assessed: Callable[..., DamageAssessment]) -> None:
    with pytest.raises(RiskError, match="not a probability and has no cost"):
        assessed({"a": STRONG, "b": WEAK}, cost=5)


def test_an_average_is_no_curve_of_a_detector(assessed: Callable[..., DamageAssessment]) -> None:
    with pytest.raises(RiskError, match="stands in for a detector"):
        assessed({"a": STRONG, "b": WEAK}, evasion=average({"a": STRONG, "b": WEAK}))


def test_pairs_say_what_is_open(assessed: Callable[..., DamageAssessment]) -> None:
    rng = np.random.default_rng(0)
    near = rng.exponential(0.1, 40)
    found = assessed({"a": near.tolist(), "b": (near * rng.uniform(0.7, 1.5, 40)).tolist(), "weak": [0.0] * 40})
    first, *others = found.pairs
    assert {first.lower, first.higher} == {"a", "b"}
    assert first.undecided
    assert found.comparison is not None
    assert first.more_samples == samples_to_decide(found.comparison, first.higher, first.lower)
    assert [(pair.higher, pair.undecided, pair.more_samples) for pair in others] == [("weak", False, 0)] * 2
    assert first.difference == found.comparison.difference(first.higher, first.lower)
    verdicts = {row.model: row.verdict for row in found.models}
    assert verdicts[first.lower] == f"undecided against {first.higher}"
    assert verdicts["weak"] == f"more damage than {first.lower}, {first.higher}"


def test_extrapolation_is_counted(assessed: Callable[..., DamageAssessment]) -> None:
    curve = fit_bayesian([0.05, 0.1, 0.2, 0.15, 0.12], [True, True, False, False, True])
    found = assessed({"strong": STRONG, "weak": WEAK}, evasion=curve)
    shares = {row.model: row.extrapolated for row in found.models}
    assert shares == {"strong": 0.25, "weak": 0.25}, "0.3 is more, and 0 less, than anybody was asked about"


def test_everything_is_in_the_dict(assessed: Callable[..., DamageAssessment]) -> None:
    facts = assessed({"strong": STRONG, "weak": WEAK}, evasion=threshold(0.2), cost=2, notes=["a note"]).as_dict()
    assert (facts["relative"], facts["cost"], facts["least_bad"], facts["notes"]) == (False, 2, "strong", ["a note"])
    assert facts["pairs"][0]["difference"]["value"] == 1
    assert facts["models"][0]["relative_damage"] is None


def test_the_numbers_settle_where_the_assessment_stands(assessed: Callable[..., DamageAssessment]) -> None:
    found = assessed({"strong": STRONG, "weak": WEAK}, spec={"thresholds": [0.2]}, evasion=threshold(0.2))
    settled = assessed_convergence(found, rng=np.random.default_rng(0))
    assert settled.measures == ("damage", "attack success rate at 0.2", SMALLEST, MEAN)
    assert settled.bands["weak"]["damage"].middle[-1] == 1
    assert not settled.relative
    assert settled.as_dict()["bands"]["strong"][SMALLEST]["middle"][0] is None, "the first sample resists"


def test_one_model_without_a_curve_settles_nowhere(assessed: Callable[..., DamageAssessment]) -> None:
    with pytest.raises(RiskError, match="give an evasion curve"):
        assessed_convergence(assessed({"only": WEAK}), rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("size", "keep", "said"),
    [
        (8 / 255, "strongest", ""),
        (4 / 255, "strongest", "No attack had an eps of 4/255: damage within it comes from"),
        (4 / 255, "smallest", ""),
        (16 / 255, "smallest", "No attack had an eps of 16/255 (the largest is 8/255)"),
    ],
)
def test_a_threshold_that_no_attack_had_for_its_eps_is_noted(
    found_by: Callable[..., Ledger], size: float, keep: str, said: str
) -> None:
    ledger = found_by({"m": {"pgd": [0.01, 0.02, INF]}}, facts={"pgd": {"eps": 8 / 255, "keep": keep}})
    notes = assess_damage(ledger, DamageSpec(), seed=0, evasion=threshold(size)).notes
    assert said in " ".join(notes) if said else not notes


class TestWhereNumbersDisagree:
    """Distances of attacks at one eps, as an import has them: every success lies at eps itself."""

    BROKEN, PARTLY = [0.0] * 10 + [0.03] * 90, [0.0] * 30 + [0.03] * 50 + [INF] * 20

    def test_robust_accuracy_that_says_the_opposite_leaves_it_undecided(
        self, assessed: Callable[..., DamageAssessment]
    ) -> None:
        """Equal distances count as not greater: the model that is broken everywhere has less relative damage."""
        found = assessed({"broken": self.BROKEN, "partly": self.PARTLY}, spec={"thresholds": [0.03]})
        values = {row.model: row.relative_damage.value for row in found.models if row.relative_damage}
        assert values["broken"] < values["partly"]
        assert (found.least_bad, found.decided) == (None, False)
        (pair,) = found.pairs
        assert pair.undecided
        assert pair.more_samples is None, "no number of samples settles a contradiction"
        told = " ".join(pair.conflicts)
        assert "relative damage favours broken" in told
        assert "robust accuracy at 0.03 favours partly (20.0 % against 0.0 %)" in told
        assert found.models[0].verdict == "undecided against partly"
        assert found.as_dict()["pairs"][0]["conflicts"] == list(pair.conflicts)

    def test_an_order_that_hangs_on_equal_distances_names_all_three_counts(
        self, assessed: Callable[..., DamageAssessment]
    ) -> None:
        a, b = [2.0] * 100, [1.0] * 40 + [3.0] * 60
        found = assessed({"a": a, "b": b})
        assert found.comparison is not None
        comparison = found.comparison
        assert isinstance(comparison, DamageComparison)
        # greater: a 100*60, b 40*160 + 60*0; or equal: a 100*160, b 40*200 + 60*60; of 100*200 triples each
        assert comparison.tied["a"] == pytest.approx((0.3, 0.55, 0.8))
        assert comparison.tied["b"] == pytest.approx((0.32, 0.45, 0.58))
        assert comparison.ties == (("a", "b"),)
        tied = Order("a", "b", comparison.tied, found.distances.by_model, Stated(), 0.95).tie_conflict()
        assert tied is not None
        said = conflict_text(tied)
        assert "0.300 and 0.320" in said
        assert "0.550 and 0.450" in said
        assert "0.800 and 0.580" in said
        assert found.pairs[0].conflicts == (), "chance leaves this pair open: nothing contradicts anything"
        assert found.pairs[0].obstacles[0] == said, "but more samples would not decide it"
        assert found.pairs[0].more_samples is None

    def test_no_samples_are_promised_where_robust_accuracy_would_still_say_the_opposite(
        self, assessed: Callable[..., DamageAssessment]
    ) -> None:
        """Relative damage is not decided; once it were, robust accuracy at 2 would contradict it."""
        rng = np.random.default_rng(0)
        early = np.concatenate([rng.uniform(0.5, 1.5, 20), rng.uniform(5, 9, 80)])
        steady = np.concatenate([rng.uniform(3, 5, 70), rng.uniform(9, 12, 30)])
        distances = {"early": rng.permutation(early).tolist(), "steady": rng.permutation(steady).tolist()}
        found = assessed(distances, spec={"thresholds": [2.0]})
        (pair,) = found.pairs
        assert pair.difference.low < 0 < pair.difference.high
        assert (pair.lower, pair.conflicts, pair.more_samples) == ("early", (), None)
        assert "robust accuracy at 2 favours steady" in pair.obstacles[0]
        said = what_would_decide(pair)
        assert said.startswith("more samples alone may not decide: relative damage favours early")

    @pytest.mark.parametrize("distances", [[INF] * 40, [0.1] * 20 + [0.0] * 20])
    def test_models_that_do_not_differ_contradict_nothing(
        self, assessed: Callable[..., DamageAssessment], distances: list[float]
    ) -> None:
        found = assessed({"a": distances, "b": distances})
        assert found.pairs[0].undecided
        assert found.pairs[0].conflicts == ()

    def test_robust_accuracy_is_that_of_the_table(self) -> None:
        """Judged by the prediction, a sample that no attack moves may be wrong all the same."""
        distances = {"a": np.full(50, INF), "b": np.full(50, 1.0)}
        tied = {"a": TieValues(0.6, 0.6, 0.6), "b": TieValues(0.4, 0.4, 0.4)}
        correct = {"a": np.repeat([1.0, 0.0], [20, 30]), "b": np.ones(50)}
        order = Order("b", "a", tied, distances, Stated((2.0,), correct=correct), 0.95)
        assert "robust accuracy at 2 favours a (40.0 % against 0.0 %)" in conflict_text(order.conflicts()[0])
        targeted = Order("b", "a", tied, distances, Stated((2.0,), correct=correct, targeted=True), 0.95)
        assert "attack success rate at 2 favours a (0.0 % against 100.0 %)" in conflict_text(targeted.conflicts()[0])
        written = Order("b", "a", tied, distances, Stated((2.0,), written={2.0: "32/16"}), 0.95)
        assert "robust accuracy at 32/16 favours a (100.0 % against 0.0 %)" in conflict_text(written.conflicts()[0])

    def test_how_often_a_model_is_best_is_not_said_against_a_contradiction(
        self, assessed: Callable[..., DamageAssessment]
    ) -> None:
        found = assessed({"broken": self.BROKEN, "partly": self.PARTLY}, spec={"thresholds": [0.03]})
        assert [row.probability_best for row in found.models] == [None, None]

    def test_curves_that_cross_within_the_range_of_distances_are_undecided(
        self, assessed: Callable[..., DamageAssessment]
    ) -> None:
        """Early breaks at 1 on a fifth of the samples, but late on the others: which is better depends on the size."""
        early, steady = [1.0] * 20 + [9.0] * 80, [4.0] * 100
        found = assessed({"early": early, "steady": steady})
        assert found.comparison is not None
        assert found.estimates["early"].value < found.estimates["steady"].value
        assert found.least_bad is None
        assert "at 1.8, a size within the measured distances, favours steady" in found.pairs[0].conflicts[-1]

    @pytest.mark.parametrize(("written", "said"), [({16 / 255: "16/255"}, "at 3.5/255, a"), ({}, "at 0.014, a")])
    def test_a_size_that_nobody_wrote_is_one_that_people_can_write(self, written: dict[float, str], said: str) -> None:
        distances = {"early": np.repeat([0.0111, 0.1357], [20, 80]), "steady": np.full(100, 0.0457)}
        tied = {"early": TieValues(0.4, 0.4, 0.4), "steady": TieValues(0.6, 0.6, 0.6)}
        order = Order("early", "steady", tied, distances, Stated(tuple(written) or (0.001,), written=written), 0.95)
        assert said in conflict_text(order.conflicts()[0])

    def test_attacks_at_a_fixed_eps_need_robust_accuracy_to_say_the_same(self, found_by: Callable[..., Ledger]) -> None:
        """All samples of both break within eps; where the attack stopped says little of where the model fails."""
        rng = np.random.default_rng(0)
        near, far = (rng.uniform(low, 0.03, 100).tolist() for low in (0.0001, 0.015))
        ledger = found_by({"near": {"pgd": near}, "far": {"pgd": far}})
        given: dict[str, Any] = {"rng": np.random.default_rng(0), "thresholds": (0.03,)}
        distances = smallest_distances(ledger, norm="linf")
        measured = assess_distances(distances, DamageSpec(), **given)
        assert measured.least_bad == "far"
        stopped = assess_distances(distances, DamageSpec(), stated=Stated((0.03,), fixed_eps=True), **given)
        assert stopped.least_bad is None
        assert "robust accuracy at 0.03 does not separate them (0.0 % against 0.0 %)" in stopped.pairs[0].conflicts[0]
        assert "minimal-distance" in stopped.pairs[0].conflicts[0]

    def test_under_a_stated_curve_no_other_size_matters(self, assessed: Callable[..., DamageAssessment]) -> None:
        found = assessed(
            {"broken": self.BROKEN, "partly": self.PARTLY}, spec={"thresholds": [0.03]}, evasion=threshold(0.02)
        )
        assert found.least_bad == "broken", "nothing beyond 0.02 goes unnoticed, and it has fewer clean errors"


def test_the_distance_is_that_of_the_walk_back(found_by: Callable[..., Ledger]) -> None:
    ledger = found_by({"m": {"pgd": [0.03, 0.0, INF]}}, {"pgd": {"near_linf": 0.01}})
    assert smallest_distances(ledger, norm="linf").by_model["m"].tolist() == [0.01, 0.0, INF]


def test_corruptions_alone_do_no_damage(found_by: Callable[..., Ledger]) -> None:
    facts = {"fog": {"kind": "corruption", "norm": None}}
    ledger = found_by({"m": {"fog": [0.5, INF], "pgd": [0.1, INF]}}, facts)
    with pytest.raises(RiskError, match=r"fog: found corruptions alone.*advrisk show indicators RUN"):
        assess_damage(ledger, DamageSpec(arms=["fog"]), seed=0)
    assert assess_damage(ledger, DamageSpec(arms=["*"]), seed=0).distances.arms == ("fog", "pgd")


class TestSizesThatNoAttackHad:
    """One attack at eps 0.1, which did not look for the smallest distance."""

    def asked(self, found_by: Callable[..., Ledger], eps: float, **facts: Any) -> DamageAssessment:
        ledger = found_by({"m": {"pgd": [0.05, INF]}, "n": {"pgd": [0.1, INF]}}, {"pgd": {"eps": 0.1, **facts}})
        return assess_damage(ledger, DamageSpec(thresholds=[eps]), seed=0)

    def test_beyond_the_largest_eps_nothing_is_known(self, found_by: Callable[..., Ledger]) -> None:
        found = self.asked(found_by, 0.2)
        assert found.thresholds == (0.1,), "the attack's own size is shown instead"
        assert any(note.startswith("Left out: 0.2. No attack had so large an eps") for note in found.notes)

    def test_below_it_a_note_says_that_little_was_tried(self, found_by: Callable[..., Ledger]) -> None:
        assert any("No attack had an eps of 0.05" in note for note in self.asked(found_by, 0.05).notes)

    def test_there_robust_accuracy_may_oppose_an_order(self, found_by: Callable[..., Ledger]) -> None:
        """`a` keeps more samples at 0.1, but loses 15 of them below 0.03, where `b` loses none."""
        distances = {"a": {"pgd": [0.02] * 15 + [INF] * 85}, "b": {"pgd": [0.04] * 95 + [INF] * 5}}
        found = assess_damage(found_by(distances, {"pgd": {"eps": 0.1}}), DamageSpec(thresholds=[0.03]), seed=0)
        assert found.least_bad is None
        assert "robust accuracy at 0.03 favours b (100.0 % against 85.0 %)" in found.pairs[0].conflicts[0]
        assert found.as_dict()["sizes"] == [{"eps": 0.03, "written": "0.03", "tried": False}]

    def test_there_robust_accuracy_is_a_bound_and_backs_no_order(self, found_by: Callable[..., Ledger]) -> None:
        """At 0.05 all samples of `m` are broken and none of `n`, by an attack that may go as far as 0.1."""
        ledger = found_by({"m": {"pgd": [0.04] * 40}, "n": {"pgd": [0.09] * 40}}, {"pgd": {"eps": 0.1}})
        found = assess_damage(ledger, DamageSpec(thresholds=[0.05]), seed=0)
        assert (found.untried, found.least_bad) == ((0.05,), None)
        assert "robust accuracy at 0.1 does not separate them (0.0 % against 0.0 %)" in headline(found)
        (alone, _) = found.models
        assert how_bad(alone, found).startswith("robust accuracy at most 100.0 % at 0.05 (no attack had this size)")

    def test_a_curve_that_ends_there_gives_a_lower_bound(self, found_by: Callable[..., Ledger]) -> None:
        ledger = found_by({"m": {"pgd": [0.04] * 40}, "n": {"pgd": [0.09] * 40}}, {"pgd": {"eps": 0.1}})
        for tau, said in ((0.05, "damage probability at least 0.0 %, "), (0.1, "damage probability 100.0 %")):
            found = assess_damage(ledger, DamageSpec(), seed=0, evasion=threshold(tau))
            assert said in headline(found)

    def test_in_another_norm_relative_damage_names_no_model(self, found_by: Callable[..., Ledger]) -> None:
        ledger = found_by({"m": {"pgd": [0.04] * 40}, "n": {"pgd": [0.09] * 40}}, {"pgd": {"eps": 0.1, "norm": "l2"}})
        found = assess_damage(ledger, DamageSpec(norm="linf"), seed=0)
        assert found.least_bad is None
        assert "no robust accuracy in this norm backs it" in found.pairs[0].conflicts[0]

    def test_no_samples_are_promised_where_robust_accuracy_does_not_tell_models_apart(
        self, found_by: Callable[..., Ledger]
    ) -> None:
        """Relative damage would favour `n` with more samples; robust accuracy, which must agree, is 0 of both."""
        m, n = [0.04, 0.05, 0.06] * 2, [0.05, 0.06, 0.07] * 2
        found = assess_damage(found_by({"m": {"pgd": m}, "n": {"pgd": n}}, {"pgd": {"eps": 0.1}}), DamageSpec(), seed=0)
        (pair,) = found.pairs
        assert pair.difference.low < 0 < pair.difference.high
        assert (pair.more_samples, len(pair.obstacles)) == (None, 1)
        assert what_would_decide(pair).startswith("more samples alone may not decide: relative damage favours n ")

    def test_samples_are_promised_where_robust_accuracy_leans_the_same_way(
        self, found_by: Callable[..., Ledger]
    ) -> None:
        """So many that robust accuracy is decided, too: 60 % against 48 % of 60 samples are not."""
        rng = np.random.default_rng(3)
        m, n = (rng.permutation(np.append(np.linspace(0.01, 0.1, 60 - k), [INF] * k)) for k in (29, 36))
        found = assess_damage(
            found_by({"m": {"pgd": m.tolist()}, "n": {"pgd": n.tolist()}}, {"pgd": {"eps": 0.1}}), DamageSpec(), seed=0
        )
        (pair,) = found.pairs
        assert (pair.lower, pair.undecided, pair.conflicts, pair.obstacles) == ("n", True, (), ())
        gain = mean_difference(np.isinf(n), np.isinf(m))
        assert gain.low < 0 < gain.value
        fewest = 60 * ((gain.high - gain.low) / 2 / gain.value) ** 2 - 60  # that leave 0 out if nothing else changes
        assert pair.more_samples is not None
        assert pair.more_samples > fewest > 0

    def test_its_own_eps_needs_no_note(self, found_by: Callable[..., Ledger]) -> None:
        assert self.asked(found_by, 0.1).notes == ()

    def test_an_attack_that_measures_distances_says_more(self, found_by: Callable[..., Ledger]) -> None:
        assert self.asked(found_by, 0.05, keep="smallest").notes == ()

    def test_but_not_of_sizes_beyond_its_eps(self, found_by: Callable[..., Ledger]) -> None:
        found = self.asked(found_by, 0.2, keep="smallest")
        assert found.notes[0].startswith("Left out: 0.2. No attack had so large an eps")

    def test_an_attack_without_an_eps_tries_every_size(self, found_by: Callable[..., Ledger]) -> None:
        facts = {"pgd": {"eps": 0.1}, "fmn": {"eps": None}}
        ledger = found_by({"m": {"pgd": [0.05, INF], "fmn": [0.05, 0.15]}}, facts)
        assert assess_damage(ledger, DamageSpec(thresholds=[0.2]), seed=0).notes == ()
