"""What the gradient attacks ask, step by step, on a linear model whose slope is the same everywhere."""

import numpy as np
import pytest
import torch
from scipy import stats

from advrisk.core.errors import StudyError
from advrisk.engine import Goal, Noise, Probe, Space, Task
from advrisk.parts.attacks import attacks
from advrisk.testing import toys

TOY = toys.linear(features=6, classes=2)


def asked(name, *, n=1, norm="linf", eps=0.2, scale=1.0, keep="last", seed=0, **params):
    """The batches that an attack asks the model about, and the probe it used."""
    model, record = toys.recorded(TOY.model)
    x0 = torch.zeros(n, 6)
    space = Space(torch.tensor(-10.0), torch.tensor(10.0), torch.tensor(scale))
    reference = TOY.model.ask(x0).argmax(1)
    probe = Probe(model, Task(x0, Goal(reference), space, norm, eps, keep=keep), Noise(range(seed, seed + n)))
    part = attacks.get(name)
    part.function(probe, **part.bind(params))
    return [x for x, _ in record.passes], probe


class TestFgsm:
    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    def test_asks_twice_and_steps_once_to_eps(self, norm):
        points, probe = asked("fgsm", norm=norm)
        assert len(points) == 2
        assert not points[0].any()
        assert probe.space.distance(points[1], points[0], norm).item() == pytest.approx(0.2)
        assert (probe.memory.n_forward.item(), probe.memory.n_backward.item()) == (2, 1)


class TestBim:
    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    def test_takes_steps_of_that_length_from_the_clean_input(self, norm):
        points, probe = asked("bim", norm=norm, steps=3, step_size=0.05)
        lengths = [probe.space.distance(x, points[0], norm).item() for x in points]
        assert lengths == pytest.approx([0, 0.05, 0.1, 0.15])
        assert (probe.memory.n_forward.item(), probe.memory.n_backward.item()) == (4, 3)

    @pytest.mark.parametrize(("steps", "step"), [(2, 1.25), (10, 0.25), (25, 0.1), (100, 0.1)])
    def test_by_default_steps_are_2_5_eps_by_steps_but_no_less_than_a_tenth(self, steps, step):
        points, _ = asked("bim", steps=steps)
        assert points[1].abs().max().item() == pytest.approx(min(step, 1) * 0.2)

    @pytest.mark.parametrize("scale", [3.0, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])
    def test_steps_and_eps_are_in_units_of_scale(self, scale):
        points, _ = asked("bim", scale=scale, steps=3, step_size=0.05)
        torch.testing.assert_close(points[1].abs()[0], 0.05 * torch.tensor(scale).expand(6))

    def test_stops_at_the_first_success_unless_told_otherwise(self):
        distance = TOY.minimal_distances(torch.zeros(1, 6), "linf").item()
        settings = {"eps": 10 * distance, "steps": 10, "step_size": 0.4 * distance}
        points, probe = asked("bim", keep="first", **settings)
        assert len(points) == 4  # at 0, 0.4, 0.8 and 1.2 times the minimal distance
        assert probe.memory.n_forward_first.item() == 4
        points, probe = asked("bim", keep="last", **settings)
        assert len(points) == 11
        assert probe.memory.n_forward_first.item() == 4


class TestPgd:
    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    @pytest.mark.parametrize("scale", [1.0, 4.0])
    def test_starts_anywhere_in_the_ball(self, norm, scale):
        """The share of starts within radius r of d features is (r/eps)^d."""
        points, probe = asked("pgd", n=1000, norm=norm, scale=scale, steps=1)
        radius = probe.space.distance(points[0].double(), probe.x0.double(), norm).numpy() / 0.2
        assert stats.kstest(radius**6, "uniform").pvalue > 0.001
        assert np.abs(points[0].mean(0).numpy()).max() < 0.2 * scale * 4 / np.sqrt(1000)

    def test_without_a_random_start_is_bim(self):
        ours, _ = asked("pgd", steps=4, step_size=0.03, random_start=False)
        bim, _ = asked("bim", steps=4, step_size=0.03)
        assert torch.equal(torch.cat(ours), torch.cat(bim))

    def test_every_restart_has_its_own_start_and_all_are_counted(self):
        points, probe = asked("pgd", steps=2, restarts=3)
        assert len(points) == 9
        starts = points[0], points[3], points[6]
        assert len({tuple(start.flatten().tolist()) for start in starts}) == 3
        assert (probe.memory.n_forward.item(), probe.memory.n_backward.item()) == (9, 6)

    def test_a_restart_leaves_out_what_has_fallen(self):
        x0 = torch.stack([torch.zeros(6), torch.full((6,), 3.0) * (TOY.weight[0] - TOY.weight[1]).sign()])
        reference = TOY.model.ask(x0).argmax(1)
        far = TOY.minimal_distances(x0, "linf")
        assert far[0] < far[1]
        model, record = toys.recorded(TOY.model)
        eps = float((far[0] + far[1]) / 2)
        probe = Probe(model, Task(x0, Goal(reference), Space.box(-10, 10), "linf", eps), Noise([1, 2]))
        attacks.get("pgd").function(probe, steps=10, restarts=2)
        assert probe.memory.success.tolist() == [True, False]
        assert probe.memory.n_forward[1].item() == 22
        assert probe.memory.n_forward[0].item() <= 11
        assert [len(x) for x, _ in record.passes][-11:] == [1] * 11


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("bim", {"steps": 0}, "bim.steps: must be at least 1, found 0"),
        ("pgd", {"step_size": 0}, "pgd.step_size: must be more than 0"),
        ("pgd", {"restarts": 1.5}, "pgd.restarts: a whole number is needed, found 1.5"),
        (
            "deepfool",
            {"candidates": "lots"},
            "deepfool.candidates: a whole number of at least 1 or 'all' is needed, found 'lots'",
        ),
        ("fgsm", {"steps": 3}, "fgsm has no parameter 'steps'"),
    ],
)
def test_impossible_settings_are_refused(name, params, message):
    with pytest.raises(StudyError, match=message):
        attacks.get(name).bind(params)
