"""Every source of models brings models whose rows stand alone; and the kit itself against broken models."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from advrisk.parts.data import data
from advrisk.parts.models import checked_model, models
from advrisk.parts.models.small import SmallCnn
from advrisk.testing import ConformanceError, check_model, toys

pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings(r"ignore:`isinstance\(treespec, LeafSpec\)`:FutureWarning"),
]


def small():
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        return SmallCnn(size=8, width=4)


def torch_source(folder):
    save_file(small().state_dict(), folder / "w.safetensors")
    return {
        "factory": "advrisk.parts.models.small:SmallCnn",
        "args": {"size": 8, "width": 4},
        "weights": str(folder / "w.safetensors"),
        "mean": [0.3],
        "std": [0.4],
    }


def script_source(folder):
    torch.jit.save(torch.jit.script(small()), folder / "net.pt")
    return {"path": str(folder / "net.pt")}


def export_source(folder):
    dynamic = ({0: torch.export.Dim("batch")},)
    torch.export.save(torch.export.export(small(), (toys.images(2),), dynamic_shapes=dynamic), folder / "net.pt2")
    return {"path": str(folder / "net.pt2")}


FILES = {"torch": torch_source, "torchscript": script_source, "torch-export": export_source}


@pytest.mark.parametrize("source", FILES)
def test_a_source_keeps_its_promises(source, tmp_path):
    part = models.get(source)
    loaded = part.function(**part.bind(FILES[source](tmp_path)))
    check_model(checked_model(source, loaded, data.get("digits").function()), toys.images(20))


def test_every_source_of_files_is_tested():
    """The demo's own nets are a `torch` source with weights in the package."""
    assert {part.name for part in models} - {"demo"} == set(FILES)


@pytest.mark.parametrize("lessen", [lambda model: model, toys.score_only, toys.label_only])
def test_the_toys_keep_them_too(lessen):
    check_model(lessen(toys.conv_net()), toys.images(20))
    check_model(lessen(toys.linear().model), toys.linear().inputs(20))


def test_a_model_that_says_it_is_random_may_be():
    check_model(toys.noisy(toys.linear().model), toys.linear().inputs(20))


class TestTheKit:
    def refused(self, model, message, x=None):
        with pytest.raises(ConformanceError, match=message):
            check_model(model, toys.images(20) if x is None else x)

    def test_rows_that_see_their_batch_mates(self):
        module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(72, 4))
        self.refused(
            replace(toys.conv_net(), answer=module.train().requires_grad_(False)), "whatever their batch mates|twice"
        )

    def test_weights_that_are_not_frozen(self):
        module = nn.Sequential(nn.Flatten(), nn.Linear(64, 4))
        self.refused(replace(toys.conv_net(), answer=module), "frozen parameters")

    def test_being_random_without_saying_so(self):
        noisy = replace(toys.noisy(toys.linear().model), random=False)
        self.refused(noisy, "the same twice", toys.linear().inputs(20))

    def test_no_number(self):
        self.refused(toys.answering_nan(toys.linear().model), "finite numbers|the same twice", toys.linear().inputs(20))


def test_padding_is_what_makes_conv_rows_stand_alone():
    """The promise of `min_rows`, on a net of the demo's size: with it every batch agrees to the last bit."""
    module = SmallCnn().eval().requires_grad_(False)
    padded = replace(toys.conv_net(), answer=module, input_shape=(1, 28, 28), n_classes=10)
    assert padded.min_rows == 16
    check_model(padded, toys.images(20, size=28))
