import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from advrisk.core.seeds import key
from advrisk.engine import Noise, Space
from advrisk.parts.defences import defences, defended_model
from advrisk.run.judge import judge
from advrisk.run.perturb import Attempt, target_of
from advrisk.run.walk_back import LINE
from advrisk.testing import toys

IMAGE = toys.Linear(torch.eye(2), torch.zeros(2), bounds=(0.0, 1.0))


def at(*heights, claimed=None, settled=None, first=1.0):
    """An attempt that kept (1, a) for each height a, and claims what would be true."""
    kept = torch.tensor([[first, height] for height in heights])
    claimed = torch.tensor([height > first for height in heights] if claimed is None else claimed)
    return Attempt(kept, claimed, settled=settled or {})


class TestSuccess:
    def test_is_what_the_judge_sees(self, scene):
        verdict = judge(scene.target(), at(2.0, 0.5, 3.0), scene.arm())
        assert verdict.outcome == ["success", "resisted", "success"]
        assert verdict.message == ["", "", ""]
        assert verdict.answer.tolist() == [[1, 2], [1, 0.5], [1, 3]]
        assert verdict.n_judge.tolist() == [1 + LINE, 1, 1 + LINE]
        assert verdict.n_unconfirmed == 0

    def test_a_false_claim_is_not_believed(self, scene):
        verdict = judge(scene.target(), at(2.0, 0.5, 0.7, claimed=[True, True, False]), scene.arm())
        assert verdict.outcome == ["success", "resisted", "resisted"]
        assert verdict.n_unconfirmed == 1

    def test_a_success_that_nobody_claimed_is_one_and_is_noted(self, scene):
        verdict = judge(scene.target(), at(2.0, 0.5, 0.5, claimed=[False, False, False]), scene.arm())
        assert verdict.outcome[0] == "success"
        assert verdict.n_unconfirmed == 1

    def test_a_corruption_claims_nothing(self, scene):
        arm = scene.arm(kind="corruption", norm=None, eps=None)
        verdict = judge(scene.target(), replace(at(2.0, 0.5, 0.5), claimed=None), arm)
        assert verdict.outcome == ["success", "resisted", "resisted"]
        assert verdict.n_unconfirmed == 0

    def test_means_losing_the_reference(self, scene):
        target = scene.target(label=torch.tensor([0, 1, 1]), criterion="label")
        verdict = judge(target, at(2.0, 2.0, 0.5), scene.arm(kind="corruption"))
        assert verdict.outcome == ["success", "resisted", "success"]

    def test_labels_suffice(self, scene):
        target = scene.target(model=toys.label_only(scene.model))
        verdict = judge(target, at(2.0, 0.5, 0.5), scene.arm())
        assert verdict.outcome == ["success", "resisted", "resisted"]
        assert verdict.answer.tolist() == [1, 0, 0]


class TestSettled:
    def test_is_not_asked_again(self, scene):
        model, record = toys.recorded(scene.model)
        target = scene.target(model=model)
        record.passes.clear()
        settled = {0: ("already_wrong", ""), 1: ("timeout", "not finished after 1 s")}
        verdict = judge(target, at(2.0, 2.0, 2.0, settled=settled), scene.arm())
        assert verdict.outcome == ["already_wrong", "timeout", "success"]
        assert verdict.message == ["", "not finished after 1 s", ""]
        assert verdict.n_judge.tolist() == [0, 0, 1 + LINE]
        assert torch.equal(verdict.answer[:2], target.clean_answer[:2])
        assert record.n_rows == 1 + LINE
        assert verdict.n_unconfirmed == 0

    def test_nothing_is_asked_if_all_is_settled(self, scene):
        model, record = toys.recorded(scene.model)
        target = scene.target(model=model)
        record.passes.clear()
        verdict = judge(target, at(0, 0, 0, settled=dict.fromkeys(range(3), ("error", "x"))), scene.arm())
        assert verdict.outcome == ["error"] * 3
        assert record.passes == []

    def test_what_was_said_first_stands(self, scene):
        settled = {0: ("error", "the attack left eps: 6 > 5")}
        verdict = judge(scene.target(), at(6.0, 0.5, 0.5, settled=settled), scene.arm())
        assert verdict.message[0] == "the attack left eps: 6 > 5"


class TestWrongPoints:
    @pytest.mark.parametrize(
        ("height", "eps", "message"),
        [
            (11.0, 20.0, "the kept point is outside the space: feature 1 is 11, outside [-10, 10]"),
            (math.nan, 5.0, "the kept point is outside the space: a feature is not finite"),
            (5.01, 5.0, "the kept point is beyond eps: 5.01 > 5"),
        ],
    )
    def test_are_errors_never_successes(self, scene, height, eps, message):
        verdict = judge(scene.target(), at(2.0, height, 0.5, claimed=[True, True, False]), scene.arm(eps=eps))
        assert verdict.outcome == ["success", "error", "resisted"]
        assert verdict.message == ["", message, ""]
        assert verdict.n_unconfirmed == 0

    def test_an_answer_that_is_no_number_is_an_error(self, scene):
        model = toys.answering_nan(scene.model, where=lambda x: x[:, 1] > 3)
        verdict = judge(scene.target(model=model), at(2.0, 4.0, 0.5), scene.arm())
        assert verdict.outcome == ["success", "error", "resisted"]
        assert "not finite" in verdict.message[1]

    def test_without_eps_any_distance_is_allowed(self, scene):
        verdict = judge(scene.target(), at(9.0, 0.5, 0.5), scene.arm(eps=None))
        assert verdict.outcome[0] == "success"
        assert verdict.distances["linf"][0].item() == 9


class TestDistances:
    def test_are_measured_in_every_norm_in_float64(self, scene):
        kept = torch.tensor([[1.25, 2.0], [1.0, 0.0], [0.0, -3.0]])
        verdict = judge(scene.target(), Attempt(kept, torch.tensor([True, False, False])), scene.arm())
        delta = kept.double().numpy() - np.array([[1, 0]] * 3)
        for norm, order in (("l0", 0), ("l1", 1), ("l2", 2), ("linf", np.inf)):
            found = verdict.distances[norm]
            assert found.dtype == torch.float64
            np.testing.assert_allclose(found.numpy(), [np.linalg.norm(row, order) for row in delta], rtol=1e-15)

    def test_beyond_eps_by_rounding_is_eps(self, scene):
        eps = 0.1  # not a number of float32: stored, 0.1 is a little more
        attempt = at(float(np.float32(0.1)), np.nextafter(np.float32(0.1), np.float32(1)).item(), 0.05)
        verdict = judge(scene.target(), attempt, scene.arm(eps=eps))
        assert attempt.kept[0, 1].double().item() > eps
        assert verdict.outcome == ["resisted"] * 3
        assert verdict.distances["linf"].tolist() == [eps, eps, pytest.approx(0.05)]
        assert verdict.distances["l2"][1].item() > eps  # only the norm of the arm has an eps

    def test_count_in_units_of_scale(self, scene):
        space = Space(torch.tensor(-10.0), torch.tensor(10.0), torch.tensor([1.0, 4.0]))
        verdict = judge(scene.target(space=space), at(2.0, 8.0, 0.5), scene.arm())
        assert verdict.distances["linf"].tolist() == [0.5, 2.0, 0.125]


class TestEightBits:
    def judge(self, scene, kept, *, arm=None, model=None):
        x0 = torch.tensor([0.5, 0.2]).view(1, 1, 1, 2).repeat(len(kept), 1, 1, 1)
        target = scene.target(x0=x0, model=model or IMAGE.model, space=Space.box(0, 1))
        points = torch.tensor(kept).view(-1, 1, 1, 2)
        return judge(target, Attempt(points, points[..., 1].flatten() > points[..., 0].flatten()), arm or scene.arm())

    def test_a_success_must_survive_being_stored(self, scene):
        """127.6/255 and 127.9/255 are both stored as 128/255, where the first class wins the tie."""
        verdict = self.judge(scene, [[127.6 / 255, 127.9 / 255], [127.6 / 255, 128.6 / 255], [0.5, 0.4]])
        assert verdict.outcome == ["success", "success", "resisted"]
        assert verdict.survives_8bit.tolist() == [False, True, False]
        assert verdict.n_judge.tolist() == [2 + LINE, 2 + LINE, 1]

    def test_no_number_is_no_survival(self, scene):
        """The model breaks only at the stored image; class 0 of NaN must not pass for a lost label 1."""
        model = toys.answering_nan(IMAGE.model, where=lambda x: x.flatten(1)[:, 1] == torch.tensor(51 / 255))
        x0 = torch.tensor([0.2, 0.5]).view(1, 1, 1, 2)
        target = scene.target(x0=x0, model=model, space=Space.box(0, 1), label=torch.tensor([1]))
        kept = torch.tensor([0.9, 0.2001]).view(1, 1, 1, 2)
        verdict = judge(target, Attempt(kept, torch.tensor([True])), scene.arm())
        assert verdict.outcome == ["success"]
        assert verdict.survives_8bit.tolist() == [False]

    def test_tables_are_not_stored_in_eight_bits(self, scene):
        verdict = judge(scene.target(), at(2.0, 0.5, 0.5), scene.arm())
        assert verdict.n_judge.tolist() == [1 + LINE, 1, 1]
        assert not verdict.survives_8bit.any()


def behind(name, inner, **params):
    part = defences.get(name)
    return defended_model("defended", inner, part, part.bind(params))


class TestRefusal:
    """conf at 0.9: an answer needs a lead of log 9 = 2.2, and the samples (1, 0) themselves are refused."""

    def target(self, scene, **more):
        return scene.target(model=behind("conf", scene.model, threshold=0.9), **more)

    def test_is_neither_a_success_nor_resisted(self, scene):
        verdict = judge(self.target(scene), at(2.0, 4.0, -4.0, claimed=[False, True, False]), scene.arm())
        assert verdict.outcome == ["rejected", "success", "resisted"]
        assert verdict.success_rate.tolist() == [0, 1, 0]
        assert verdict.n_unconfirmed == 0

    def test_a_clean_input_that_is_refused_is_not_wrong_already(self, scene):
        x0 = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 5.0], [5.0, 0.0]])
        target = self.target(scene, x0=x0, label=torch.zeros(4, dtype=torch.int64))
        assert target.settled() == {2: ("already_wrong", "")}
        assert target.clean_rejected.tolist() == [True, True, False, False]
        clean = judge(target, Attempt(x0), scene.clean)
        assert clean.outcome == ["rejected", "rejected", "success", "resisted"]


class TestRedrawing:
    """gauss-out on logits: (1, a) is a success if a − 1 > σ(n₁ − n₂), so with probability Φ((a − 1) / (σ√2))."""

    def test_success_rates_follow_the_normal_tail(self, scene):
        n = 400
        target = scene.target(n, model=behind("gauss-out", scene.model, sigma=1.0, noise_on="logits"))
        for lead in (-1.0, 0.0, 1.0):
            chance = Noise([key("judge", lead, row) for row in range(n)])
            verdict = judge(target, at(*[1.0 + lead] * n), scene.arm(), chance)
            p = stats.norm.cdf(lead / math.sqrt(2))
            drawn = verdict.n_judge.tolist()
            assert set(drawn) <= {11, 11 * (1 + LINE)}, "and on the way back, if it succeeds"
            assert verdict.success_rate.double().mean().item() == pytest.approx(
                p, abs=4 * math.sqrt(p * (1 - p) / n / 11)
            )
            most = stats.binom.sf(5, 11, p)
            granted = sum(outcome == "success" for outcome in verdict.outcome) / n
            assert granted == pytest.approx(most, abs=4 * math.sqrt(most * (1 - most) / n))

    def test_a_class_is_never_recorded_that_contradicts_the_outcome(self, scene):
        """Three classes: the label may be the most frequent one, and yet be missed in most draws."""
        n = 300
        flat = toys.Linear(torch.zeros(3, 2), torch.tensor([0.5, 0.0, 0.0])).model
        target = scene.target(n, model=behind("gauss-out", flat, sigma=1.0, noise_on="logits"))
        verdict = judge(target, at(*[0.0] * n), scene.arm(), Noise([key("judge", row) for row in range(n)]))
        wrong = [prediction != 0 for prediction in verdict.prediction.tolist()]
        assert wrong == [outcome == "success" for outcome in verdict.outcome]
        assert 0 < sum(wrong) < n

    def test_the_answer_is_the_logarithm_of_the_mean_probability(self, scene):
        model = behind("gauss-out", scene.model, sigma=1.0, noise_on="logits")
        verdict = judge(scene.target(1, model=model), at(0.5), scene.arm(), Noise([7]))
        chance = Noise([7])
        said = [torch.tensor([[1.0, 0.5]]) + chance.normal(torch.tensor([0]), (2,)) for _ in range(11)]
        expected = torch.stack(said).softmax(2).mean(0).log()
        torch.testing.assert_close(verdict.answer, expected)

    def test_against_its_own_prediction_a_clean_input_is_never_wrong(self, scene):
        """Of nine classes that are about as likely, the most frequent one has rarely half of the draws."""
        n = 40
        flat = toys.Linear(torch.zeros(9, 2), torch.zeros(9)).model
        model = behind("gauss-out", flat, sigma=1.0, noise_on="logits")
        keys = [key("clean", row) for row in range(n)]
        x0, label = torch.tensor([[1.0, 0.0]]).repeat(n, 1), torch.zeros(n, dtype=torch.int64)
        target = target_of(model, Space.box(-10, 10), x0, label, "prediction", Noise(keys))
        chance = Noise(keys)
        said = torch.stack([chance.normal(torch.arange(n), (9,)).argmax(1) for _ in range(11)])
        votes = torch.nn.functional.one_hot(said, 9).sum(0)
        assert (votes.amax(1) < 6).sum() > n / 2
        assert target.clean_prediction.tolist() == votes.argmax(1).tolist()
        assert torch.equal(target.goal.reference, target.clean_prediction)
        assert target.settled() == {}
        verdict = judge(target, Attempt(x0), scene.clean, Noise(keys))
        assert set(verdict.outcome) == {"resisted"}
        assert torch.equal(verdict.prediction, target.clean_prediction)

    def test_clean_answers_are_redrawn_too(self, scene):
        model = behind("gauss-out", scene.model, sigma=2.0, noise_on="logits")
        n = 300
        chance = Noise([key("clean", row) for row in range(n)])
        x0, label = torch.tensor([[1.0, 0.0]]).repeat(n, 1), torch.zeros(n, dtype=torch.int64)
        target = target_of(model, Space.box(-10, 10), x0, label, "label", chance)
        wrong = sum(name == "already_wrong" for name, _ in target.settled().values()) / n
        p = stats.binom.sf(5, 11, stats.norm.cdf(-1 / math.sqrt(8)))
        assert wrong == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / n))
