"""The nearest success between what an attack kept and the clean input, against distances known in closed form."""

import pytest
import torch

from advrisk.core.seeds import key
from advrisk.engine import Noise, Space
from advrisk.parts.defences import defences, defended_model
from advrisk.run.judge import judge
from advrisk.run.perturb import Attempt, target_of
from advrisk.run.walk_back import LINE, TURNED, TURNS, walk_back, walks_back
from advrisk.testing import toys

NET = toys.linear(features=12, classes=3)
ALL = LINE + TURNS * (2 + TURNED)  # passes with gradients


@pytest.fixture
def crossed(scene):
    """Inputs of a linear net, points beyond its boundary, and the share of the way at which each line crosses it."""
    x0 = NET.inputs(40)
    towards = torch.randn(x0.shape, generator=torch.Generator().manual_seed(1)) * 3
    target = scene.target(x0=x0, label=NET.model.ask(x0).argmax(1), model=NET.model)
    answer = NET.model.ask(x0 + towards)
    rows = (answer.argmax(1) != target.label).nonzero().squeeze(1)
    lead = target.clean_answer.gather(1, target.label[:, None]) - target.clean_answer
    after = answer.gather(1, target.label[:, None]) - answer
    shares = (lead / (lead - after)).masked_fill(after >= 0, torch.inf)  # where each other class overtakes the label
    share = shares.scatter(1, target.label[:, None], torch.inf).amin(1)
    assert len(rows) > 15
    assert share[rows].max() < 1
    return target, x0 + towards, answer, rows, share[rows].double()


def share_estimate(crossed, norm, *, target=None):
    own, kept, answer, rows, _ = crossed
    target = target or own
    found = walk_back(target, kept, answer, rows, norm, target.model.capability, turns=0)
    assert found.n_passes == LINE
    return found.distances[norm] / _whole(crossed, norm)


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
def test_a_line_is_walked_back_to_the_boundary_of_a_linear_net(crossed, norm) -> None:
    share = share_estimate(crossed, norm)
    assert (share >= crossed[-1] - 1e-6).all(), "no success lies before the boundary"
    assert (share - crossed[-1]).max() <= 2.0 ** -(LINE // 2), "every second pass halves what is left"
    assert (share - crossed[-1]).median() < 0.001


def test_labels_alone_are_bisected(crossed) -> None:
    target, *_, rows, boundary = crossed
    label_only = target_of(toys.label_only(NET.model), target.space, target.x0, target.label, "label")
    share = share_estimate(crossed, "l2", target=label_only)
    assert ((share - boundary) >= -1e-6).all()
    assert ((share - boundary) <= 2.0**-LINE + 1e-3).all(), "each pass halves what is left"
    assert len(share) == len(rows)


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
def test_with_gradients_the_nearest_point_of_a_linear_boundary_is_found(crossed, norm) -> None:
    """The closed form of a linear net, bounds left aside: no success is nearer, and all but a few are that near."""
    target, kept, answer, rows, _ = crossed
    found = walk_back(target, kept, answer, rows, norm, "gradients")
    least = NET.minimal_distances(target.x0[rows], norm).double()
    ratio = found.distances[norm] / least
    assert found.n_passes == ALL
    assert (ratio >= 1 - 1e-5).all()
    assert ratio.median() < 1.01
    assert share_estimate(crossed, norm).median() > 1.5 * (found.distances[norm] / _whole(crossed, norm)).median()


def _whole(crossed, norm):
    target, kept, _, rows, _ = crossed
    return target.space.distance(kept[rows].double(), target.x0[rows].double(), norm)


def test_in_l0_the_smallest_changes_are_undone_first(scene) -> None:
    """Feature 1 alone decides: of five changed features one is needed."""
    net = toys.Linear(torch.eye(6)[:2], torch.zeros(2))
    x0 = torch.tensor([[1.0, 0, 0, 0, 0, 0]])
    kept = torch.tensor([[0.9, 5.0, 0.1, 0.2, 0.3, 0.0]])
    target = scene.target(x0=x0, model=net.model)
    found = walk_back(target, kept, net.model.ask(kept), torch.tensor([0]), "l0", "gradients")
    assert found.distances["l0"].item() == 1
    assert found.distances["linf"].item() == 5


def test_whole_numbers_stay_whole(scene) -> None:
    """(1, a) succeeds for a > 1; what is tried is rounded towards the clean input, so it may fail and cost a try."""
    space = Space(torch.tensor(-10.0), torch.tensor(10.0), torch.tensor(1.0), integer=torch.tensor([True, True]))
    target = scene.target(1, space=space)
    kept = torch.tensor([[1.0, 8.0]])
    found = walk_back(target, kept, scene.model.ask(kept), torch.tensor([0]), "linf", "gradients")
    distance = found.distances["linf"].item()
    assert distance == round(distance)
    assert 1 <= distance <= 4


def test_a_copy_that_shows_less_of_itself_is_measured_alike(crossed) -> None:
    """What is used of a model is what the arm needs: a label-only or score-only copy gains nothing."""
    target, kept, _, rows, _ = crossed
    copies = [NET.model, toys.score_only(NET.model), toys.label_only(NET.model)]
    for needs, able in (("scores", copies[:2]), ("labels", copies)):
        measured = []
        for model in able:
            own = target_of(model, target.space, target.x0, target.label, "label")
            measured.append(walk_back(own, kept, model.ask(kept), rows, "l2", needs).distances["l2"])
        for other in measured[1:]:
            torch.testing.assert_close(other, measured[0], rtol=0.01, atol=0)


def test_a_copy_that_answers_at_random_is_measured_alike(crossed) -> None:
    """Noise far smaller than any lead: the walk is that of the net itself, but for the last of its steps."""
    target, kept, answer, rows, _ = crossed
    part = defences.get("gauss-out")
    noisy = defended_model("noisy", NET.model, part, part.bind({"sigma": 1e-3, "noise_on": "logits"}))
    chance = Noise([key("walk", row) for row in range(len(target.x0))])
    own = target_of(noisy, target.space, target.x0, target.label, "label", chance)
    plain = walk_back(target, kept, answer, rows, "linf", "gradients")
    found = walk_back(own, kept, noisy.ask(kept), rows, "linf", "gradients", chance)
    assert found.n_passes == 11 * (LINE + TURNS * TURNED) + 2 * TURNS
    ratio = found.distances["linf"] / plain.distances["linf"]
    assert ratio.median().item() == pytest.approx(1, abs=0.02)
    assert ratio.mean().item() == pytest.approx(1, abs=0.1)


class TestJudge:
    def judged(self, scene, **changes):
        kept = torch.tensor([[1.0, 4.0], [1.0, 0.5], [1.0, 3.0]])
        attempt = Attempt(kept, torch.tensor([True, False, True]), needs="gradients")
        return judge(scene.target(), attempt, scene.arm(**changes))

    def test_measures_successes_and_leaves_the_kept_point_as_it_is(self, scene) -> None:
        verdict = self.judged(scene)
        assert verdict.distances["linf"].tolist() == [4, 0.5, 3]
        assert verdict.answer.tolist() == [[1, 4], [1, 0.5], [1, 3]]
        # (0.5, 0.5) is the nearest tie: half way in linf
        assert verdict.near["linf"].tolist() == [pytest.approx(0.5, abs=0.02), 0.5, pytest.approx(0.5, abs=0.02)]
        assert (verdict.near["linf"][[0, 2]] > 0.5).all(), "what was measured is a success"
        assert verdict.n_judge.tolist() == [1 + ALL, 1, 1 + ALL]

    @pytest.mark.parametrize("keep", ["first", "strongest"])
    def test_what_an_attack_keeps_within_eps_is_measured(self, scene, keep) -> None:
        assert walks_back(scene.arm(keep=keep))
        assert self.judged(scene, keep=keep).near["linf"][0] < 1.05

    @pytest.mark.parametrize("keep", ["smallest", "last"])
    def test_the_smallest_success_and_the_last_point_stay_as_they_are(self, scene, keep) -> None:
        verdict = self.judged(scene, keep=keep)
        assert verdict.near["linf"].tolist() == [4, 0.5, 3]
        assert verdict.n_judge.tolist() == [1, 1, 1]

    def test_a_corruption_has_no_distance_to_measure(self, scene) -> None:
        verdict = self.judged(scene, kind="corruption", norm=None, eps=None)
        assert verdict.near["linf"].tolist() == verdict.distances["linf"].tolist()
