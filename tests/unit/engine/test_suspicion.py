"""What a detector says of proposed points, and what it costs.

Two features, and the larger one names the class: of (1, 0), the point (1, a) is a success for a > 1. How suspicious it
is, the tests choose.
"""

from dataclasses import replace

import pytest
import torch

from advrisk.core.errors import ModelError
from advrisk.engine import Goal, Noise, Probe, Space, Suspicion, Task
from advrisk.engine.suspicion import measured, steady
from advrisk.testing import toys

LARGER = toys.Linear(torch.eye(2), torch.zeros(2))


def second(x, model):
    """The second feature, squared; the model is not asked."""
    return x.double()[:, 1].square()


def asking(times):
    """One that asks the model so often about other points, and at last about the point itself."""

    def score(x, model):
        others = sum(model.ask(x + place) for place in range(1, times + 1))
        return (others + model.ask(x)).double().sum(1)

    return score


def make_probe(score=second, *, n=1, passes=0, differentiable=True, model=LARGER.model, **settings):
    defaults = {
        "x0": torch.tensor([[1.0, 0.0]]).repeat(n, 1),
        "goal": Goal(torch.zeros(n, dtype=torch.int64)),
        "space": Space.box(-10, 10),
        "norm": "linf",
        "eps": 9.0,
        "keep": "strongest",
        "suspicion": Suspicion("toy", score, passes, differentiable),
    }
    return Probe(model, Task(**(defaults | settings)), Noise(range(n)))


def ask(probe, *heights, rows=None, **settings):
    x = torch.tensor([[1.0, height] for height in heights])
    return probe.forward(x, torch.arange(len(heights)) if rows is None else torch.tensor(rows), **settings)


@pytest.mark.parametrize("size", [1e-300, 1e-9, 1.0, 12345.678, 1e200])
def test_scores_keep_all_but_their_last_digits(size):
    draw = torch.Generator().manual_seed(0)
    exact = size * torch.randn(1000, generator=draw, dtype=torch.float64)
    found = steady(exact)
    assert torch.allclose(found, exact, rtol=2.0**-39, atol=0)
    assert torch.equal(steady(found), found)
    noisy = exact * (1 + 2.0**-52 * torch.randn(1000, generator=draw, dtype=torch.float64))
    assert (steady(noisy) == found).float().mean() > 0.99
    assert steady(torch.tensor([1e300, -1e305, float("inf")], dtype=torch.float64)).tolist() == [
        1e300,
        -1e305,
        float("inf"),
    ]


class TestWhatIsKept:
    def test_the_least_suspicious_success(self):
        probe = make_probe()
        for height in (3.0, 1.5, 2.0):
            ask(probe, height)
        assert probe.memory.kept[:, 1].tolist() == [1.5]
        assert probe.memory.success.tolist() == [True]

    @pytest.mark.parametrize(("scale", "offset"), [(1.0, 1e6), (1e-300, 0.0), (1e60, 0.0)])
    def test_whatever_a_detector_counts_in(self, scale, offset):
        """Differences that four bytes would lose, and numbers that they cannot hold."""
        probe = make_probe(lambda x, model: second(x, model) * scale * (1e-3 if offset else 1) + offset)
        asked = [ask(probe, height) for height in (3.0, 1.5, 2.0)]
        assert probe.memory.kept[:, 1].tolist() == [1.5]
        low, high = asked[1].suspicion.item(), asked[0].suspicion.item()
        assert low < high < float("inf")

    def test_a_failure_however_unsuspicious_is_not_kept_beside_a_success(self):
        probe = make_probe()
        for height in (3.0, 0.0):
            ask(probe, height)
        assert probe.memory.kept[:, 1].tolist() == [3.0]

    def test_of_failures_the_one_nearest_to_success(self):
        probe = make_probe()
        for height in (0.1, 0.9, 0.5):
            ask(probe, height)
        assert probe.memory.kept[:, 1].tolist() == pytest.approx([0.9])
        assert not probe.memory.success.any()

    def test_of_several_points_of_a_sample_at_once(self):
        probe = make_probe(n=2)
        ask(probe, 4.0, 2.0, 3.0, 0.5, rows=[0, 0, 1, 1])
        assert probe.memory.kept[:, 1].tolist() == [2.0, 3.0]

    @pytest.mark.parametrize(("keep", "kept"), [("first", 3.0), ("smallest", 1.5), ("last", 4.0)])
    def test_another_keep_means_what_it_always_means(self, keep, kept):
        probe = make_probe(lambda x, model: -second(x, model), keep=keep)
        for height in (3.0, 1.5, 4.0):
            ask(probe, height)
        assert probe.memory.kept[:, 1].tolist() == [kept]


class TestTheScores:
    def test_of_every_row_and_infinite_where_none_was_asked(self):
        probe = make_probe(n=3)
        probe.fail(1, "gone")
        assert ask(probe, 2.0, 2.0, 3.0).suspicion.tolist() == [4.0, torch.inf, 9.0]

    def test_their_slope(self):
        answered = ask(make_probe(n=2), 2.0, 3.0)
        assert answered.suspicion_gradient().tolist() == [[0.0, 4.0], [0.0, 6.0]]

    def test_their_slope_through_the_model_beside_that_of_the_objective(self):
        answered = ask(make_probe(lambda x, model: model.ask(x).double().softmax(1)[:, 1]), 0.5)
        first, again = answered.gradient(retain=True), answered.suspicion_gradient()
        p = torch.tensor([1.0, 0.5]).double().softmax(0)[1].item()  # p' = p (1 − p) of the one, less that of the other
        assert again.tolist() == [pytest.approx([-p * (1 - p), p * (1 - p)])]
        assert first.tolist() == [pytest.approx([-p, p])]

    def test_no_slope_where_torch_cannot_follow(self):
        answered = ask(make_probe(differentiable=False), 2.0)
        assert answered.suspicion.tolist() == [4.0]
        with pytest.raises(ModelError, match="cannot differentiate"):
            answered.suspicion_gradient()

    def test_none_without_a_detector(self):
        with pytest.raises(ValueError, match="knows no detector"):
            _ = ask(make_probe(suspicion=None), 2.0).suspicion

    def test_one_that_is_no_number_ends_its_sample(self):
        probe = make_probe(lambda x, model: second(x, model).masked_fill(x[:, 1] > 2, torch.nan), n=2)
        ask(probe, 1.5, 3.0)
        assert probe.memory.failed == {1: "the detector answered with a number that is not finite"}
        assert probe.memory.success.tolist() == [True, False]
        assert probe.active().tolist() == [0]

    def test_of_the_wrong_number_are_refused(self):
        with pytest.raises(ModelError, match=r"the detector toy scored 1 points with shape \(1, 2\)"):
            ask(make_probe(lambda x, model: x), 2.0)


class TestWhatIsCounted:
    @pytest.mark.parametrize("times", [0, 1, 3])
    def test_every_pass_that_the_model_sees(self, times):
        model, record = toys.recorded(LARGER.model)
        probe = make_probe(asking(times), n=2, passes=times, model=model)
        answered = ask(probe, 0.1, 0.2)
        assert probe.memory.n_forward.tolist() == [1 + times] * 2  # the answer to the point itself is known
        assert record.n_rows == 2 * (1 + times)
        answered.gradient(retain=True)
        assert probe.memory.n_backward.tolist() == [1, 1]
        answered.suspicion_gradient(wanted=torch.tensor([True, False]))
        assert probe.memory.n_backward.tolist() == [1 + times + 1, 1]  # that of the known answer, too

    def test_the_passes_up_to_the_first_success_hold_those_of_the_detector(self):
        probe = make_probe(asking(2), passes=2)
        for height in (0.5, 2.0, 3.0):
            ask(probe, height)
        assert probe.memory.n_forward_first.tolist() == [6]

    def test_rows_that_repeat_are_shared_equally(self):
        probe = make_probe(lambda x, model: model.ask(x.repeat(3, 1)).view(3, -1, 2).double().mean((0, 2)), n=2)
        ask(probe, 0.1, 0.2)
        assert probe.memory.n_forward.tolist() == [4, 4]
        odd = make_probe(lambda x, model: second(x, model) + 0 * model.ask(x[:1]).sum(), n=2)
        ask(odd, 0.1, 0.2)
        assert odd.memory.n_forward.tolist() == [2, 2]  # half a pass each, rounded up

    def test_padding_is_not_counted(self):
        model = toys.conv_net()
        x0 = toys.images(3)
        probe = make_probe(asking(1), n=3, model=model, x0=x0, space=Space.box(0, 1), passes=1)
        probe.forward(x0, torch.arange(3))
        assert probe.memory.n_forward.tolist() == [2, 2, 2]

    def test_the_owners_model_is_always_asked(self):
        """Who asks for it may look inside, where nothing is to be seen unless it runs."""
        seen = []
        owner = replace(LARGER.model, answer=lambda x: seen.append(len(x)) or LARGER.model.answer(x))
        probe = make_probe(lambda x, model: model.original.ask(x).double().sum(1), model=owner)
        ask(probe, 0.5)
        assert seen == [1, 1]
        assert probe.memory.n_forward.tolist() == [2]

    def test_a_random_model_is_asked_anew(self):
        probe = make_probe(asking(0), model=toys.noisy(LARGER.model), passes=1)
        ask(probe, 0.5)
        assert probe.memory.n_forward.tolist() == [2]

    def test_passes_without_a_slope_are_not_followed_back(self):
        def score(x, model):
            with torch.no_grad():
                model.ask(x + 1)
            return second(x, model)

        probe = make_probe(score, passes=1)
        ask(probe, 0.5).suspicion_gradient()
        assert probe.memory.n_forward.tolist() == [2]
        assert probe.memory.n_backward.tolist() == [0]

    def test_what_a_point_takes_can_be_measured(self):
        taken = measured(Suspicion("toy", asking(3)), LARGER.model, torch.zeros(1, 2))
        assert taken.passes == 3

    @pytest.mark.parametrize("n", [1, 2, 8, 64])
    def test_a_point_costs_the_same_whatever_the_number_of_rows_that_belong_to_none(self, n):
        def beside(x, model):
            """Ten rows of its own go with the points."""
            return model.ask(torch.cat([x, torch.zeros(10, 2)]))[: len(x)].double().sum(1)

        taken = measured(Suspicion("toy", beside), LARGER.model, torch.zeros(1, 2))
        assert taken.passes == 11
        probe = make_probe(n=n, suspicion=taken)
        ask(probe, *[0.1] * n)
        assert probe.memory.n_forward.tolist() == [12] * n

    def test_the_dearest_point_of_several_is_measured(self):
        def uneven(x, model):
            return sum(model.ask(x + 1) for _ in range(int(x[0, 1]))).double().sum(1)

        taken = measured(Suspicion("toy", uneven), LARGER.model, torch.tensor([[0.0, 1.0], [0.0, 4.0], [0.0, 2.0]]))
        assert taken.passes == 4


class TestMaxQueries:
    @pytest.mark.parametrize(("limit", "spent"), [(2, 0), (3, 3), (5, 3), (6, 6), (7, 6)])
    def test_a_point_is_asked_with_its_score_or_not_at_all(self, limit, spent):
        model, record = toys.recorded(LARGER.model)
        probe = make_probe(asking(2), passes=2, max_queries=limit, model=model, keep="last")
        for _ in range(4):
            ask(probe, 0.5)
        assert probe.memory.n_forward.tolist() == [spent]
        assert record.n_rows == spent
        assert not len(probe.active())

    def test_of_several_points_of_a_sample_the_first(self):
        probe = make_probe(asking(1), passes=1, n=2, max_queries=4)
        answered = ask(probe, 0.1, 0.2, 0.3, 0.4, rows=[0, 0, 0, 1])
        assert answered.suspicion.isfinite().tolist() == [True, True, False, True]
        assert probe.memory.n_forward.tolist() == [4, 2]
