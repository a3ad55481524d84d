"""Models whose answers depend on what else is in the batch: they are recognised, and asked one by one on request."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from advrisk.core.errors import ModelError
from advrisk.parts.data import Dataset
from advrisk.parts.models import Loaded, checked_model
from advrisk.parts.models.residual import ResNet
from advrisk.parts.models.small import SmallCnn
from advrisk.parts.models.torch_module import from_module
from advrisk.testing import toys

X = np.random.default_rng(0).random((4, 1, 8, 8), dtype=np.float32)
DATA = Dataset("toy", X, np.array([0, 1, 2, 0]), 3)


def net():
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        return SmallCnn(size=8, width=4, classes=3)


class Over(nn.Module):
    """A net whose inputs are changed by a function of the whole batch."""

    def __init__(self, change):
        super().__init__()
        self.net, self.change = net(), change

    def forward(self, x):
        return self.net(self.change(x))


class Training(nn.Module):
    """Batch normalisation that never leaves training mode."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Linear(4 * 36, 3)

    def forward(self, x):
        return self.last(self.norm.train()(self.first(x)).flatten(1))


class Dropping(nn.Module):
    """Draws what it drops from torch's generator, and has nothing to do with the batch."""

    def __init__(self):
        super().__init__()
        self.net = net()

    def forward(self, x):
        return F.dropout(self.net(x), 0.5, training=True)


DEPENDENT = {
    "batch normalisation in training mode": Training,
    "batch normalisation without running statistics": lambda: nn.Sequential(
        nn.BatchNorm2d(1, track_running_stats=False), net()
    ),
    "mean over the batch": lambda: Over(lambda x: x - x.mean()),
    "largest value of the batch": lambda: Over(lambda x: x / x.amax()),
    "smallest value of the batch": lambda: Over(lambda x: x - x.amin()),
    "the row before": lambda: Over(lambda x: x + 0.1 * x.flip(0)),
}
INDEPENDENT = {
    "a convolutional net": net,
    "batch normalisation in evaluation mode": lambda: ResNet(width=4, stages=2, classes=3),
    "largest value of each input": lambda: Over(lambda x: x / x.amax((1, 2, 3), keepdim=True)),
    "dropout": Dropping,
}


@pytest.mark.parametrize("make", DEPENDENT.values(), ids=DEPENDENT)
def test_a_model_that_mixes_the_inputs_of_a_batch_is_recognised(make):
    assert checked_model("net", from_module(make()), DATA).batch_dependent


@pytest.mark.parametrize("make", INDEPENDENT.values(), ids=INDEPENDENT)
@pytest.mark.parametrize("precision", [None, "float64", "bfloat16"])
def test_one_that_does_not_is_not_accused(make, precision):
    assert not checked_model("net", from_module(make()), DATA, precision=precision).batch_dependent


def mixes_dark(x, o):
    return torch.where(x.mean() < 0.3, o - 3 * o.mean(0) * len(o), o)


def mixes_rows_that_differ(x, o):
    return torch.where(x.mean() < 0.3, o.mean(0), o)


def rolls_dark(x, o):
    return torch.where((x.mean((1, 2, 3)) < 0.3)[:, None], o.roll(1, 1), o)


class Says(nn.Module):
    """A net whose answers are changed by a function of the batch and of them."""

    def __init__(self, change):
        super().__init__()
        self.net, self.change = net(), change

    def forward(self, x):
        return self.change(x, self.net(x))


def dark_data(n):
    """Images of every mean up to one half, as fixed inputs never are."""
    x = (
        X.mean()
        * np.random.default_rng(1).random((n, 1, 8, 8), dtype=np.float32)
        * np.linspace(0.1, 2, n)[:, None, None, None]
    )
    return Dataset("dark", x.astype(np.float32).clip(0, 1), np.arange(n) % 3, 3)


@pytest.mark.parametrize("n", [2, 3, 8, 500])
@pytest.mark.parametrize("change", [mixes_dark, mixes_rows_that_differ])
def test_one_that_mixes_some_batches_of_the_study_s_own_inputs_is_recognised(change, n):
    assert checked_model("net", from_module(Says(change)), dark_data(n)).batch_dependent


@pytest.mark.parametrize("n", [1, 2, 8, 500])
@pytest.mark.parametrize("precision", [None, "bfloat16", "int8"])
def test_one_that_rolls_classes_of_dark_images_does_not_depend_on_others(precision, n):
    assert not checked_model("net", from_module(Says(rolls_dark)), dark_data(n), precision=precision).batch_dependent


def test_own_inputs_cost_a_bounded_number_of_passes():
    asked = []

    def answer(x):
        asked.append(len(x))
        return x.flatten(1)[:, :3]

    checked_model("net", Loaded(answer, "v1", "scores", n_classes=3), DATA)
    few = len(asked)
    asked.clear()
    checked_model("net", Loaded(answer, "v1", "scores", n_classes=3), dark_data(2000))
    assert len(asked) == few <= 14
    assert set(asked) == {8}


def test_a_model_that_gives_labels_only_is_recognised():
    def answer(x):
        return (x.flatten(1).mean(1) > x.mean()).long()

    assert checked_model("net", Loaded(answer, "v1", "labels", n_classes=3), DATA).batch_dependent


@pytest.mark.parametrize("name", ["mean over the batch", "batch normalisation in training mode"])
def test_asked_one_by_one_it_depends_on_nothing_else(name):
    module = DEPENDENT[name]()
    model = checked_model("net", from_module(module), DATA, batch=1)
    assert not model.batch_dependent
    x = toys.images(20)
    with torch.no_grad():
        alone = torch.cat([module(row[None]) for row in x])
        assert torch.equal(model.ask(x), alone)
        assert torch.equal(model.ask_owner(x[3:5]), alone[3:5])
    x.requires_grad_(True)
    (slope,) = torch.autograd.grad(model.ask(x)[:, 0].sum(), x)
    assert slope.flatten(1).any(1).all()


@pytest.mark.parametrize("size", [1, 3, 16, 100])
def test_no_batch_is_larger_than_asked_for_and_none_is_filled_up_beyond_it(size):
    sizes = []

    class Counting(nn.Module):
        def forward(self, x):
            sizes.append(len(x))
            return x.flatten(1)[:, :3]

    model = checked_model("net", from_module(Counting()), DATA, batch=size)
    sizes.clear()
    model.ask_owner(toys.images(20))
    assert sizes == [min(size, 20 - start) for start in range(0, 20, size)]
    sizes.clear()
    model.ask_owner(toys.images(2))
    assert max(sizes) <= size


def test_how_many_are_asked_about_at_a_time_is_part_of_the_digest():
    digests = [checked_model("net", from_module(net()), DATA, batch=batch).digest for batch in (None, 1, 2, 1)]
    assert len(set(digests)) == 3
    assert digests[1] == digests[3]


def test_precision_and_batch_go_together():
    model = checked_model("net", from_module(net()), DATA, precision="bfloat16", batch=1)
    x = toys.images(4)
    assert model.ask(x).dtype == torch.float32
    torch.testing.assert_close(
        model.ask(x), checked_model("net", from_module(net()), DATA).ask(x), atol=0.05, rtol=0.05
    )


def test_a_model_that_cannot_be_asked_one_by_one_is_refused():
    class Flat(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.last = nn.BatchNorm1d(64), nn.Linear(64, 3)

        def forward(self, x):
            return self.last(self.norm.train()(x.flatten(1)))

    with pytest.raises(ModelError, match="Expected more than 1 value per channel"):
        checked_model("net", from_module(Flat()), DATA, batch=1)


def test_one_that_fails_at_some_of_the_study_s_own_inputs_is_not_refused():
    def dark(x, o):
        if x.mean() < 0.1:
            raise RuntimeError("too dark")
        return o

    assert not checked_model("net", from_module(Says(dark)), dark_data(500)).batch_dependent
