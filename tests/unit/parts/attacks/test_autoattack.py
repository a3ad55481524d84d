"""AutoAttack: which attacks run, on which samples, and what each climbs."""

import pytest
import torch

from advrisk.engine import Goal, Noise, Probe, Space, Task
from advrisk.parts import REGISTRIES
from advrisk.parts.attacks import apgd, autoattack
from advrisk.plan.arms import expand_arms
from advrisk.study import StudySpec
from advrisk.testing import toys

QUICK = {"steps": 4, "targets": 3, "queries": 12}


def attacked(model, x0, *, norm="linf", eps=1e-5, keep="first", **params):
    with torch.no_grad():
        goal = Goal(model.ask(x0).argmax(1))
    task = Task(x0, goal, Space.box(0, 1), norm, eps, objective="margin", keep=keep, within_eps=False)
    probe = Probe(model, task, Noise(range(len(x0))))
    autoattack.autoattack(probe, **(QUICK | params))
    return probe


@pytest.fixture
def climbed(monkeypatch):
    """What each run of APGD climbs: the objective, whether towards classes, and how many rows."""
    runs = []

    def climb(probe, aim, steps):
        runs.append((aim.objective, aim.towards is not None, len(aim.rows)))
        apgd.climb(probe, aim, steps)

    monkeypatch.setattr(autoattack, "climb", climb)
    return runs


class TestRuns:
    def test_cross_entropy_first_then_the_ratio_towards_each_class(self, climbed):
        attacked(toys.conv_net(classes=5), toys.images(4))
        assert climbed == [("ace", False, 4)] + 3 * [("dlr", True, 4)]  # one class of four, two classes of two, of two

    def test_more_starts_and_fewer_classes_in_l1(self, climbed):
        attacked(toys.conv_net(classes=10), toys.images(4), norm="l1", eps=1e-4, targets=9)
        assert climbed == 5 * [("ace", False, 4)] + 5 * [("dlr", True, 4)]  # four classes of one sample after another

    @pytest.mark.parametrize(("classes", "targets"), [(2, 1), (3, 2)])
    def test_the_margin_where_there_are_too_few_classes_for_the_ratio(self, climbed, classes, targets):
        attacked(toys.conv_net(classes=classes), toys.images(4))
        assert climbed == [("ace", False, 4)] + targets * [("margin", True, 4)]

    def test_each_attacks_what_is_left(self, climbed):
        probe = attacked(toys.conv_net(), toys.images(20), eps=0.06)
        left = [n_rows for *_, n_rows in climbed]
        assert left[0] == 20
        assert 0 < int((~probe.memory.success).sum()) <= left[1] < 20
        resisted = ~probe.memory.success
        assert probe.memory.n_forward[resisted].min() > probe.memory.n_forward[~resisted].max()

    def test_all_four_are_paid_for(self):
        probe = attacked(toys.conv_net(), toys.images(4))
        part = REGISTRIES.attacks.get("autoattack")
        n_forward, n_backward = part.traits.passes(part.bind(QUICK), 4)
        # APGD: 5 for the first and 3 × 5 for the others after one pass; FAB: 1 + 3 × 8; Square: some of 12
        assert (probe.memory.n_forward >= 5 + 16 + 25 + 1).all()
        assert (probe.memory.n_forward <= n_forward).all()
        assert (probe.memory.n_backward == 4 + 12 + 12).all()
        assert (probe.memory.n_backward <= n_backward).all()

    def test_points_beyond_eps_do_not_count(self):
        """FAB finds successes far beyond so small an eps."""
        probe = attacked(toys.conv_net(), toys.images(10), steps=20)
        assert not probe.memory.success.any()
        assert (probe.space.distance(probe.memory.kept, probe.x0, "linf") <= 1.1e-5).all()


class TestPresets:
    @staticmethod
    def arms(entry):
        study = StudySpec.model_validate(
            {
                "name": "s",
                "data": {"source": "digits", "evaluate": 10},
                "models": {"m": {"source": "demo", "name": "plain"}},
            }
            | {"arms": [entry]}
        )
        return {arm.id: arm for arm in expand_arms(study, REGISTRIES)}

    def test_one_arm_for_each_eps(self):
        arms = self.arms({"preset": "autoattack", "norm": "l2", "eps": [0.5, 1]})
        assert list(arms) == ["clean", "autoattack-l2-0.5", "autoattack-l2-1"]
        assert arms["autoattack-l2-1"].keep == "first"
        assert arms["autoattack-l2-1"].params == {"steps": 100, "targets": 9, "queries": 5000}

    @pytest.mark.parametrize(("preset", "eps"), [("mead-mnist", 0.3125), ("mead-cifar10", 0.125)])
    def test_meads_square(self, preset, eps):
        squares = [arm for arm in self.arms({"preset": preset}).values() if arm.family == "square"]
        assert [(arm.norm, arm.eps, arm.keep) for arm in squares] == [("linf", eps, "first")]
