"""Objectives against their textbook formulas, written down plainly in several hundred digits (`naive`).

In so many digits nothing rounds away, so the plain formula and a difference quotient of it are the truth
however sure the model is.
"""

import math

import mpmath as mp
import pytest
import torch

from advrisk.core.errors import RegistryError
from advrisk.engine import Goal, objectives

NAMES = ("ace", "kl", "fisher-rao", "gini", "margin", "dlr")
TARGETED = ("ace", "margin", "dlr")
CASES = [(name, False) for name in NAMES] + [(name, True) for name in TARGETED]
# Known: these heights differ in the last bit of float64 between the body and the tail of a batch.
LEADS = (30.0, 36.0, 40.0, 80.0, 150.0, 300.0)


def naive(name, scores, *, reference, target=None, clean=None):
    """The formula of the paper, for one row of mpmath numbers."""
    q, z = probabilities(scores), sorted(scores, reverse=True)
    if name == "ace":
        return -mp.log(q[reference]) if target is None else mp.log(q[target])
    if name == "kl":
        return mp.fsum(p * mp.log(p / r) for p, r in zip(probabilities(clean), q, strict=True))
    if name == "fisher-rao":
        return 2 * mp.acos(mp.fsum(mp.sqrt(p * r) for p, r in zip(probabilities(clean), q, strict=True)))
    if name == "gini":
        return 1 - mp.sqrt(mp.fsum(p**2 for p in q))
    if name == "margin":
        own = reference if target is None else target
        lead = max(score for place, score in enumerate(scores) if place != own) - scores[own]
        return lead if target is None else -lead
    if target is None:
        others = max(score for place, score in enumerate(scores) if place != reference)
        return -(scores[reference] - others) / (z[0] - z[2])
    fourth = z[3] if len(z) > 3 else z[2]
    return -(scores[reference] - scores[target]) / (z[0] - (z[2] + fourth) / 2)


def probabilities(scores):
    weights = [mp.exp(score) for score in scores]
    return [weight / mp.fsum(weights) for weight in weights]


def exact(name, scores, goal, row=0):
    """Value and slope of one row: the plain formula, and its difference quotient over 1e-150."""
    with mp.workdps(700):
        z = [mp.mpf(score) for score in scores[row].tolist()]
        known = {"reference": int(goal.reference[row])}
        if goal.target is not None:
            known["target"] = int(goal.target[row])
        if goal.clean is not None:
            known["clean"] = [mp.mpf(score) for score in goal.clean[row].tolist()]
        h = mp.mpf(10) ** -150
        slope = []
        for place in range(len(z)):
            up, down = ([v + sign * h * (k == place) for k, v in enumerate(z)] for sign in (1, -1))
            slope.append(float((naive(name, up, **known) - naive(name, down, **known)) / (2 * h)))
        return float(naive(name, z, **known)), slope


def found(name, scores, goal):
    """Values and slopes as the program has them."""
    leaf = scores.clone().requires_grad_(True)
    value = objectives.value(name, leaf, goal)
    (slope,) = torch.autograd.grad(value.sum(), leaf)
    return value.detach(), slope


def drawn(n=6, classes=5, *, seed=0, spread=3.0, dtype=torch.float64):
    """Scores and goals at random: reference, target (another class) and clean scores."""
    generator = torch.Generator().manual_seed(seed)
    scores, clean = spread * torch.randn(2, n, classes, generator=generator, dtype=dtype)
    reference = torch.randint(0, classes, (n,), generator=generator)
    target = (reference + torch.randint(1, classes, (n,), generator=generator)) % classes
    return scores, Goal(reference, target, clean)


def untargeted(goal):
    return Goal(goal.reference, None, goal.clean)


class TestFormula:
    @pytest.mark.parametrize(("name", "aimed"), CASES)
    @pytest.mark.parametrize("classes", [3, 4, 5, 10])
    def test_value_and_slope_at_moderate_scores(self, name, aimed, classes):
        scores, goal = drawn(classes=classes, seed=classes)
        goal = goal if aimed else untargeted(goal)
        value, slope = found(name, scores, goal)
        for row in range(len(scores)):
            true_value, true_slope = exact(name, scores, goal, row)
            assert value[row].item() == pytest.approx(true_value, rel=1e-9, abs=1e-14)
            assert slope[row].tolist() == pytest.approx(true_slope, rel=1e-7, abs=1e-12)

    @pytest.mark.parametrize("name", ["ace", "kl", "fisher-rao", "gini", "margin"])
    def test_two_classes_suffice_but_for_dlr(self, name):
        scores, goal = drawn(classes=2)
        value, slope = found(name, scores, untargeted(goal))
        for row in range(len(scores)):
            true_value, true_slope = exact(name, scores, untargeted(goal), row)
            assert value[row].item() == pytest.approx(true_value, rel=1e-9, abs=1e-14)
            assert slope[row].tolist() == pytest.approx(true_slope, rel=1e-7, abs=1e-12)

    def test_what_each_of_them_says_it_is_for(self):
        traits = {part.name: part.traits for part in objectives.objectives}
        assert set(traits) == set(NAMES)
        assert {name for name in traits if traits[name].targeted} == set(TARGETED)
        assert {name for name in traits if traits[name].from_clean} == {"kl", "fisher-rao"}
        assert {name for name in traits if traits[name].logits} == {"dlr"}
        assert {name: traits[name].classes for name in traits} == dict.fromkeys(NAMES, (2, 2)) | {"dlr": (3, 4)}

    @pytest.mark.parametrize(("name", "aimed"), CASES)
    def test_a_number_added_to_all_scores_changes_nothing(self, name, aimed):
        """Log-probabilities are logits less such a number."""
        scores, goal = drawn()
        goal = goal if aimed else untargeted(goal)
        shifted = Goal(goal.reference, goal.target, goal.clean - 7)
        for one, other in zip(found(name, scores, goal), found(name, scores + 11, shifted), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)

    @pytest.mark.parametrize(("name", "aimed"), [("margin", False), ("margin", True), ("dlr", False)])
    def test_margin_and_dlr_are_positive_exactly_where_the_goal_is_met(self, name, aimed):
        scores, goal = drawn(60, 4, seed=3)
        goal = goal if aimed else untargeted(goal)
        met = goal.met(scores.argmax(1))
        assert 5 < int(met.sum()) < 55
        assert ((objectives.value(name, scores, goal) > 0) == met).all()

    @pytest.mark.parametrize("aimed", [False, True])
    @pytest.mark.parametrize("factor", [2.0**-10, 1e-3, 7.3, 1e4])
    def test_dlr_is_the_same_whatever_number_the_logits_are_multiplied_with(self, aimed, factor):
        scores, goal = drawn(20)
        goal = goal if aimed else untargeted(goal)
        (value, slope), (value_scaled, slope_scaled) = (found("dlr", f * scores, goal) for f in (1.0, factor))
        torch.testing.assert_close(value_scaled, value, rtol=1e-12, atol=0)
        torch.testing.assert_close(slope_scaled * factor, slope, rtol=1e-9, atol=1e-12)

    @pytest.mark.parametrize("aimed", [False, True])
    def test_dlr_of_equal_logits_is_a_number(self, aimed):
        _, goal = drawn(4, 5)
        value, slope = found("dlr", torch.ones(4, 5), goal if aimed else untargeted(goal))
        assert value.tolist() == [0.0] * 4
        assert slope.isfinite().all()

    @pytest.mark.parametrize("name", ["kl", "fisher-rao"])
    def test_without_clean_scores_there_is_nothing_to_measure_from(self, name):
        with pytest.raises(ValueError, match="measures from the clean prediction"):
            objectives.value(name, torch.zeros(1, 3), Goal(torch.tensor([0])))

    def test_an_unknown_objective_is_refused_with_the_nearest_name(self):
        with pytest.raises(RegistryError, match="did you mean 'ace'"):
            objectives.value("acee", torch.zeros(1, 2), Goal(torch.tensor([0])))


def sure(lead, *, dtype=torch.float64):
    """Scores of a model that prefers class 1 by `lead`, and a goal whose clean scores prefer it by one more."""
    scores = torch.tensor([[0.3, lead + 0.5, -0.7, 0.5]], dtype=dtype)
    clean = torch.tensor([[0.1, lead + 1.5, -0.2, 0.5]], dtype=dtype)
    return scores, Goal(torch.tensor([1]), torch.tensor([3]), clean)


class TestSureModels:
    """Where probabilities round to 0 and 1."""

    @pytest.mark.parametrize("lead", LEADS)
    @pytest.mark.parametrize(("name", "aimed"), CASES)
    def test_the_slope_is_exact_and_leads_somewhere(self, name, aimed, lead):
        scores, goal = sure(lead)
        goal = goal if aimed else untargeted(goal)
        value, slope = found(name, scores, goal)
        true_value, true_slope = exact(name, scores, goal)
        assert value.item() == pytest.approx(true_value, rel=1e-6, abs=1e-15)
        assert slope.isfinite().all()
        assert slope[0].tolist() == pytest.approx(true_slope, rel=1e-6, abs=0)
        assert slope[0, 1] < 0, "less of the class that the model is sure of"
        assert abs(slope.sum().item()) <= 1e-9 * slope.abs().max().item()

    @pytest.mark.parametrize("lead", [30.0, 40.0, 80.0])
    @pytest.mark.parametrize("name", NAMES)
    def test_float32_scores_get_slopes_that_are_exact_but_for_their_own_rounding(self, name, lead):
        scores, goal = sure(lead, dtype=torch.float32)
        goal = untargeted(goal)
        _, slope = found(name, scores, goal)
        assert slope.dtype == torch.float32
        assert slope[0].tolist() == pytest.approx(exact(name, scores, goal)[1], rel=1e-5, abs=0)

    @pytest.mark.parametrize("lead", LEADS)
    @pytest.mark.parametrize(("name", "aimed"), CASES)
    def test_once_the_model_is_as_sure_of_another_class_values_are_exact_and_slopes_finite(self, name, aimed, lead):
        scores, goal = sure(lead)
        scores = scores[:, [0, 3, 2, 1]]  # now it is sure of class 3, the target
        goal = goal if aimed else untargeted(goal)
        value, slope = found(name, scores, goal)
        true_value, true_slope = exact(name, scores, goal)
        assert value.item() == pytest.approx(true_value, rel=1e-9, abs=1e-12)
        assert slope.isfinite().all()
        assert slope[0].tolist() == pytest.approx(true_slope, rel=1e-6, abs=1e-8)
        assert abs(slope.sum().item()) <= 1e-12

    @pytest.mark.parametrize("lead", [0.0, 5.0, 17.0, 40.0, 80.0, -5.0, -30.0])
    def test_ace_by_hand(self, lead):
        """torch's own cross-entropy has slope 0 in float32 from a lead of about 17 on."""
        scores = torch.tensor([[lead, 0.0, -1.0]])
        value, slope = found("ace", scores, Goal(torch.tensor([0])))
        weights = [math.exp(-lead), math.exp(-1 - lead)]  # of the others, in units of the reference class
        total = 1 + sum(weights)
        assert value.item() == pytest.approx(math.log1p(sum(weights)), rel=1e-5, abs=0)
        expected = [-sum(weights) / total, *(weight / total for weight in weights)]
        assert slope[0].tolist() == pytest.approx(expected, rel=1e-5, abs=0)


class TestFromTheCleanPoint:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    @pytest.mark.parametrize("lead", [0.0, 1.0, 17.0, *LEADS])
    @pytest.mark.parametrize("name", ["kl", "fisher-rao"])
    def test_there_value_and_slope_are_zero(self, name, lead, dtype):
        _, goal = sure(lead, dtype=dtype)
        value, slope = found(name, goal.clean, untargeted(goal))
        assert value.item() == pytest.approx(0, abs=1e-15)
        assert slope.tolist() == [pytest.approx([0.0] * 4, abs=1e-15)]

    @pytest.mark.parametrize("name", ["kl", "fisher-rao"])
    def test_a_row_that_stands_there_does_not_spoil_the_others(self, name):
        scores, goal = drawn()
        goal = untargeted(goal)
        mixed = scores.clone()
        mixed[2] = goal.clean[2]
        alone, together = found(name, scores, goal), found(name, mixed, goal)
        others = [0, 1, 3, 4, 5]
        for one, other in zip(alone, together, strict=True):
            assert torch.equal(one[others], other[others])

    @pytest.mark.parametrize("step", [1e-2, 1e-4])
    def test_fisher_rao_rises_like_a_distance_and_kl_like_its_square(self, step):
        """To first order fr² = 2 kl = δᵀ(diag q − qqᵀ)δ, for a step δ of the logits."""
        _, goal = drawn()
        clean, goal = goal.clean, untargeted(goal)
        move = step * torch.randn(clean.shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
        q = clean.softmax(1)
        length = (q * move.square()).sum(1) - (q * move).sum(1).square()
        torch.testing.assert_close(objectives.value("kl", clean + move, goal), length / 2, rtol=5 * step, atol=1e-14)
        found_length = objectives.value("fisher-rao", clean + move, goal).square()
        torch.testing.assert_close(found_length, length, rtol=5 * step, atol=1e-14)

    def test_fisher_rao_never_passes_pi(self):
        scores = torch.tensor([[400.0, 0.0, 0.0]])
        goal = Goal(torch.tensor([1]), None, torch.tensor([[0.0, 400.0, 0.0]]))
        value, slope = found("fisher-rao", scores, goal)
        assert value.item() == pytest.approx(math.pi, abs=1e-7)
        assert slope.isfinite().all()


class TestBatchMates:
    """torch's exp and log differ in the last bit between the body and the tail of a vector."""

    @staticmethod
    def parts(name, aimed, spread):
        scores, goal = drawn(67, 10, spread=spread, dtype=torch.float32)
        goal = goal if aimed else untargeted(goal)
        whole = found(name, scores, goal)
        for start in range(0, 67, 3):
            for size in (1, 2, 5, 16, 23):
                rows = torch.arange(start, min(start + size, 67))
                yield [part[rows] for part in whole], found(name, scores[rows], goal.of(rows))

    @pytest.mark.parametrize("spread", [1.0, 6.0, 30.0])
    @pytest.mark.parametrize(("name", "aimed"), CASES)
    def test_a_row_has_the_same_slope_and_float32_value_whatever_its_place(self, name, aimed, spread):
        """An attack sees float32 heights: the last bit of float64 differs between the body and the tail of a vector."""
        for (value, slope), (value_apart, slope_apart) in self.parts(name, aimed, spread):
            assert torch.equal(slope, slope_apart)
            assert torch.equal(value.float(), value_apart.float())
