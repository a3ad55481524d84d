"""What the conformance tests share: nets that know their digits, and arms run to their verdict."""

from dataclasses import dataclass
from functools import cache

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from advrisk.engine import Model, Space, predicted
from advrisk.parts import REGISTRIES
from advrisk.parts.data import data
from advrisk.parts.models import checked_model, models
from advrisk.parts.models.small import SmallCnn
from advrisk.parts.models.torch_module import from_module
from advrisk.plan import Cell, Shard
from advrisk.run.judge import judge
from advrisk.run.perturb import AttackedShard, goal_of, perturb
from advrisk.study import Arm
from advrisk.testing import toys

# Fewer steps than the defaults, so that all of this takes seconds; a new attack is run with its defaults. How strong
# attacks are is tested in test_closed_form.py and test_peers.py.
QUICK = {
    "adaptive": {"steps": 2, "rounds": 2, "samples": 4},
    "apgd": {"steps": 5, "restarts": 2},
    "apgd-t": {"steps": 4, "targets": 3},
    "autoattack": {"steps": 3, "targets": 2, "queries": 8},
    "bim": {"steps": 5},
    "carlini-wagner": {"searches": 2, "steps": 5},
    "deepfool": {"steps": 8},
    "fab": {"steps": 12, "restarts": 2},
    "fab-t": {"steps": 3, "targets": 2, "restarts": 2},
    "feature-search": {"queries": 24, "tries": 4},
    "fmn": {"steps": 8},
    "hopskipjump": {"steps": 3, "initial_evaluations": 20, "starts": 10},
    "minimum-norm": {"steps": 5, "restarts": 2},
    "nes": {"steps": 4, "samples": 10, "step_size": 0.1},
    "pgd": {"steps": 4, "restarts": 2},
    "pgd-adam": {"steps": 4, "restarts": 2},
    "pixel": {"population": 6, "generations": 4},
    "spatial": {"max_rotation": 5.0, "max_translation": 0.5, "rotations": 3, "translations": 3},
    "spatial-gradient": {"steps": 3, "restarts": 2},
    "square": {"queries": 24},
    "threshold": {"population": 6, "generations": 6},
}


@pytest.fixture(scope="session")
def quick():
    """Settings with which an attack of that name is quick; one that is not there is run with its defaults."""
    return QUICK


@dataclass(frozen=True)
class Trained:
    """A net that knows its digits, and test digits that it has right."""

    module: nn.Module
    model: Model
    x: torch.Tensor
    y: torch.Tensor


@pytest.fixture(scope="session")
def digits_net(one_thread):
    digits = data.get("digits").function()
    x, y = torch.from_numpy(digits.x), torch.from_numpy(digits.y)
    train, test = (torch.from_numpy(digits.split == split) for split in ("train", "test"))
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        module = SmallCnn(size=8, width=8)
        optimiser = torch.optim.Adam(module.parameters(), lr=0.01)
        for _ in range(8):
            for rows in torch.randperm(int(train.sum())).split(64):
                optimiser.zero_grad()
                F.cross_entropy(module(x[train][rows]), y[train][rows]).backward()
                optimiser.step()
    module.eval().requires_grad_(False)
    right = module(x[test]).argmax(1) == y[test]
    assert right.double().mean() > 0.85
    model = checked_model("digits-net", from_module(module), digits)
    return Trained(module, model, x[test][right][:300], y[test][right][:300])


@pytest.fixture(scope="session")
def demo_net(one_thread):
    """A model of the demo by its name, with the first `n` test digits of all classes that it has right."""
    digits = data.get("mnist-5k").function()
    rows = [row for row in range(len(digits.y)) if digits.split[row] == "test"]
    rows.sort(key=lambda row: row % 500)  # the data are sorted by class: take turns
    x, y = torch.from_numpy(digits.x[rows]), torch.from_numpy(digits.y[rows])

    @cache
    def net(name, n):
        loaded = models.get("demo").function(name=name)
        right = loaded.answer(x).argmax(1) == y
        return Trained(loaded.answer, checked_model(name, loaded, digits), x[right][:n], y[right][:n])

    return net


@pytest.fixture
def verdict_of():
    """Run an attack on samples to the judge's verdict; gives the verdict and the kept points."""

    def run(
        model,
        x0,
        label,
        attack,
        *,
        norm,
        eps,
        params=None,
        keep="first",
        space=None,
        max_queries=None,
        seed=0,
        success="label",
        objective=None,
        max_cell_s=None,
    ):
        part = REGISTRIES.attacks.get(attack)
        settings = part.bind(params or {})
        arm = Arm(
            attack,
            "attack",
            attack,
            norm=norm,
            eps=eps,
            keep=keep,
            max_queries=max_queries,
            params=settings,
            objective=objective or part.traits.objective,
        )
        cell = Cell("c" * 32, "r" * 32, model.name, arm, Shard("s", tuple(f"s{row}" for row in range(len(x0)))), 0)
        with torch.no_grad():
            answer = model.ask(x0)
        said = predicted(model, answer)
        label = said if label is None else label
        goal, never = goal_of(success, label, model, answer), torch.zeros(len(x0), dtype=torch.bool)
        target = AttackedShard(model, space or Space.box(*model.bounds), x0, label, answer, said, never, goal)
        suspicion = toys.suspicion() if part.traits.watches else None
        attempt = perturb(target, cell, REGISTRIES, seed=seed, max_cell_s=max_cell_s, suspicion=suspicion)
        return judge(target, attempt, arm), attempt

    return run
