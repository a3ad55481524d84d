"""Models that answer at random or refuse to: what an attack sees, what is counted, and what counts as a success.

The model has two features, and the larger one names the class; the samples are (1, 0), of class 0.
"""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from advrisk.core.registry import Registry
from advrisk.core.seeds import key
from advrisk.core.traits import DefenceTraits
from advrisk.engine import Draw, Goal, Model, Noise, Probe, Space, Task, objectives
from advrisk.engine.replies import plurality
from advrisk.parts.defences import Defence, defences, defended_model
from advrisk.testing import toys

LARGER = toys.Linear(torch.eye(2), torch.zeros(2)).model
ROWS = torch.arange(3)


def behind(name: str, inner: Model = LARGER, **params) -> Model:
    part = defences.get(name)
    return defended_model("defended", inner, part, part.bind(params))


def scripted(*, turned: list[list[int]]) -> Model:
    """A model that answers class 1 in those draws (row -> 0 or 1 for each draw, in order), whatever its input."""
    script = torch.tensor(turned)

    class Script(Defence):
        def outputs(self, answer: Tensor, draw: Draw) -> Tensor:
            label = script[draw.rows, drawn[draw.rows]]
            drawn[draw.rows] += 1
            return torch.stack([1.0 - label, label * 1.0], 1) + 0 * answer

    drawn = torch.zeros(len(script), dtype=torch.int64)
    registry: Registry[DefenceTraits] = Registry("defences")
    registry.register("script", traits=DefenceTraits("tests", needs="scores", random=True))(Script)
    return defended_model("scripted", LARGER, registry.get("script"), {})


def probe_of(model: Model, n: int = 3, **task) -> Probe:
    x0 = torch.tensor([[1.0, 0.0]]).repeat(n, 1)
    given = {"norm": "linf", "eps": 5.0, "keep": "first", "objective": "margin"} | task
    goal = Goal(torch.zeros(n, dtype=torch.int64))
    keys = [key("chance", row) for row in range(n)]
    return Probe(model, Task(x0=x0, goal=goal, space=Space.box(-10, 10), **given), Noise(keys), Noise(keys))


def points(*values: float) -> Tensor:
    return torch.tensor([[1.0, value] for value in values])


class TestRefusal:
    """conf at 0.9: an answer needs a lead of log 9 = 2.2."""

    MODEL = behind("conf", threshold=0.9)

    def test_is_no_success_and_is_counted(self):
        probe = probe_of(self.MODEL)
        answer = probe.forward(points(2.0, 4.0, -4.0), ROWS)
        assert answer.met.tolist() == [False, True, False]
        assert probe.memory.success.tolist() == [False, True, False]
        assert probe.memory.n_rejected.tolist() == [1, 0, 0]
        assert probe.memory.n_forward.tolist() == [1, 1, 1]
        probe.forward(points(2.0, 2.0, 2.0), ROWS)
        assert probe.memory.n_rejected.tolist() == [2, 0, 1], "a sample that is finished is not asked about"

    def test_who_has_the_model_sees_through(self):
        answer = probe_of(self.MODEL, sees_through=True).forward(points(2.0, 4.0, -4.0), ROWS)
        assert torch.equal(answer.scores, points(2.0, 4.0, -4.0))
        assert answer.labels.tolist() == [1, 1, 0]
        assert answer.heights().tolist() == [1.0, 3.0, -5.0]
        assert answer.gradient().any(), "slopes lead on where the answer is refused"

    def test_who_can_only_ask_sees_a_failing_answer(self):
        probe = probe_of(self.MODEL, sees_through=False)
        answer = probe.forward(points(2.0, 4.0, -4.0), ROWS, gradient=False)
        assert answer.scores.tolist() == [[0.0, -50.0], [1.0, 4.0], [1.0, -4.0]]
        assert answer.labels.tolist() == [0, 1, 0]
        assert answer.heights().tolist() == [-50.0, 3.0, -5.0]
        assert answer.met.tolist() == [False, True, False]
        assert probe_of(self.MODEL, sees_through=False).labels(points(2.0, 4.0, -4.0), ROWS).tolist() == [0, 1, 0]

    def test_a_failing_answer_is_not_the_target(self):
        probe = probe_of(self.MODEL, sees_through=False)
        probe.goal = probe.goal.towards(torch.ones(3, dtype=torch.int64))
        assert probe.forward(points(2.0, 4.0, -4.0), ROWS, gradient=False).met.tolist() == [False, True, False]


class TestDraws:
    NOISY = behind("gauss-out", sigma=0.7, noise_on="logits")

    def expected(self, x: Tensor, draws: int) -> list[Tensor]:
        chance = Noise([key("chance", row) for row in range(3)])
        return [x + 0.7 * chance.normal(ROWS, (2,)) for _ in range(draws)]

    def test_heights_scores_and_slopes_are_means_over_draws(self):
        x = points(0.2, -1.0, 0.4)
        probe = probe_of(self.NOISY, draws=5, keep="last", objective="ace")
        answer = probe.forward(x, ROWS)
        said = self.expected(x, 5)
        torch.testing.assert_close(answer.scores, torch.stack(said).mean(0))
        heights = [objectives.value("ace", one, probe.goal) for one in said]
        torch.testing.assert_close(answer.heights(), torch.stack(heights).mean(0), atol=1e-6, rtol=1e-6)
        slopes = [one.softmax(1) - torch.tensor([1.0, 0.0]) for one in said]  # of −log q_0
        torch.testing.assert_close(answer.gradient(), torch.stack(slopes).mean(0), atol=1e-6, rtol=1e-5)
        assert probe.memory.n_backward.tolist() == [5, 5, 5]

    def test_labels_are_the_most_frequent_ones(self):
        turned = [[1, 1, 0] * 9, [0, 0, 1] * 9, [0, 0, 0] * 9]
        answer = probe_of(scripted(turned=turned), draws=3, keep="last").forward(points(0.0, 0.0, 0.0), ROWS)
        assert answer.labels.tolist() == [1, 0, 0]

    def test_all_are_counted_and_none_is_made_beyond_max_queries(self):
        probe = probe_of(scripted(turned=[[0] * 9] * 3), draws=4, max_queries=9)
        for expected in (4, 8, 8):
            probe.forward(points(0.0, 0.0, 0.0), ROWS)
            assert probe.memory.n_forward.tolist() == [expected] * 3
        assert not len(probe.active())

    def test_mean_nothing_to_a_model_that_does_not_draw(self):
        probe = probe_of(LARGER, draws=4)
        probe.forward(points(0.0, 2.0, 0.0), ROWS)
        assert probe.memory.n_forward.tolist() == [1, 1, 1]

    def test_a_row_does_not_depend_on_its_batch_mates(self):
        whole = probe_of(self.NOISY, draws=2, keep="last")
        alone = probe_of(self.NOISY, draws=2, keep="last")
        x = points(0.2, -1.0, 0.4)
        first = whole.forward(x, ROWS).scores, whole.forward(x[[2, 0]], torch.tensor([2, 0])).scores
        again = [alone.forward(x[[row]], torch.tensor([row])).scores for row in (2, 1, 0, 0, 2)]
        assert torch.equal(first[0], torch.cat([again[2], again[1], again[0]]))
        assert torch.equal(first[1], torch.cat([again[4], again[3]]))


class TestConfirmation:
    """A success must be one in 9 of 11 draws, the first one included; it is drawn until that is decided."""

    @pytest.mark.parametrize(
        ("turned", "believed", "n_forward"),
        [
            ([0] * 11, False, 1),
            ([1] + [0] * 10, False, 4),
            ([1] * 9 + [0] * 2, True, 9),
            ([1, 0, 1, 0] + [1] * 7, True, 11),
            ([1, 0, 1, 0] + [1] * 6 + [0], False, 11),
        ],
    )
    def test_one_lucky_draw_is_no_success(self, turned, believed, n_forward):
        probe = probe_of(scripted(turned=[turned]), n=1)
        probe.forward(points(0.0), torch.tensor([0]))
        assert probe.memory.success.tolist() == [believed]
        assert probe.memory.n_forward.tolist() == [n_forward]
        assert probe.memory.n_confirm.tolist() == [n_forward - 1]
        assert probe.memory.n_forward_first.tolist() == [1 if believed else -1]
        assert probe.memory.n_forward_before.tolist() == [0 if believed else -1]
        assert len(probe.active()) == (not believed)

    def test_is_no_part_of_the_time_to_the_first_success(self):
        """Neither that of the success, nor that of a lucky draw before it: three passes in vain, then eight."""
        probe = probe_of(scripted(turned=[[0] + [1, 0, 0, 0] + [1] * 11]), n=1)
        for _ in range(3):
            probe.forward(points(0.0), torch.tensor([0])).gradient()
        memory = probe.memory
        assert (memory.n_forward.tolist(), memory.n_confirm.tolist()) == ([14], [11])
        assert (memory.n_forward_first.tolist(), memory.n_forward_before.tolist()) == ([3], [2])
        assert (memory.n_backward_first.tolist(), memory.n_backward_before.tolist()) == ([2], [1])
        assert memory.first_s.item() < memory.spent_s.item()  # the gradient after it

    def test_its_seconds_are_not_the_attack_s(self, monkeypatch):
        ticks = iter(range(100))
        monkeypatch.setattr("advrisk.engine.probe.now", lambda _: float(next(ticks)))
        probe = probe_of(scripted(turned=[[1] * 11]), n=1)
        probe.forward(points(0.0), torch.tensor([0]))
        assert probe.memory.first_s.tolist() == probe.memory.spent_s.tolist() == [1.0]

    def test_draws_of_the_arm_count_towards_it(self):
        probe = probe_of(scripted(turned=[[1, 1, 1, 1, 0] + [1] * 6]), n=1, draws=5)
        probe.forward(points(0.0), torch.tensor([0]))
        assert probe.memory.n_forward.tolist() == [10]
        assert probe.memory.n_forward_first.tolist() == [5]
        assert probe.memory.n_forward_before.tolist() == [0], "five draws are one query"
        assert probe.memory.success.tolist() == [True]

    def test_without_queries_left_nothing_is_believed(self):
        probe = probe_of(scripted(turned=[[1] * 11]), n=1, max_queries=5)
        probe.forward(points(0.0), torch.tensor([0]))
        assert probe.memory.success.tolist() == [False]
        assert probe.memory.n_forward.tolist() == [5]

    def test_several_points_of_a_sample_share_its_queries(self):
        probe = probe_of(scripted(turned=[[1] * 40]), n=1, max_queries=14)
        probe.forward(points(0.0, 1.0, 2.0), torch.tensor([0, 0, 0]))
        assert probe.memory.n_forward.tolist() == [14]

    def test_the_last_point_is_left_to_the_judge_once_there_was_a_success(self):
        probe = probe_of(scripted(turned=[[1] * 40]), n=1, keep="last")
        for expected in (9, 10, 11):
            probe.forward(points(0.0), torch.tensor([0]))
            assert probe.memory.n_forward.tolist() == [expected]

    def test_a_model_that_does_not_draw_is_believed_at_once(self):
        probe = probe_of(LARGER)
        probe.forward(points(2.0, 2.0, 0.0), ROWS)
        assert probe.memory.n_forward.tolist() == [1, 1, 1]
        assert probe.memory.success.tolist() == [True, True, False]

    def test_a_model_that_draws_by_itself_is_confirmed_too(self):
        model = replace(toys.noisy(LARGER, sigma=1e-6), random=True)
        probe = probe_of(model)
        probe.forward(points(2.0, 2.0, 0.0), ROWS)
        assert probe.memory.n_forward.tolist() == [9, 9, 1]


def test_plurality_counts_what_it_is_told_to():
    labels = torch.tensor([[0, 1], [2, 1], [2, 0]])
    assert plurality(labels, 3).tolist() == [2, 1]
    assert plurality(labels, 3, counting=torch.tensor([[True, False], [False, False], [False, True]])).tolist() == [
        0,
        0,
    ]
