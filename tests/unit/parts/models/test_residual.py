"""The residual networks: depth, shapes, and what a block does."""

import pytest
import torch
from torch import nn

from advrisk.core.errors import ModelError
from advrisk.parts.models.residual import Block, ResNet
from advrisk.parts.models.torch_module import build


def main_path(module):
    """The layers with weights that an input meets one after another, without the ways past the blocks."""
    kinds = (nn.Conv2d, nn.Linear)
    return [layer for name, layer in module.named_modules() if isinstance(layer, kinds) and ".past." not in name]


@pytest.mark.parametrize(("blocks", "depth"), [(1, 8), (2, 14), (3, 20)])
def test_depth(blocks, depth):
    assert len(main_path(ResNet(blocks=blocks))) == depth


def test_stages_halve_the_image_and_double_the_channels():
    module = ResNet(width=4, stages=3, blocks=2).eval()
    sizes = []
    for block in module.blocks:
        block.register_forward_hook(lambda _, __, y: sizes.append(tuple(y.shape[1:])))
    module(torch.rand(2, 1, 28, 28))
    assert sizes == [(4, 28, 28)] * 2 + [(8, 14, 14)] * 2 + [(16, 7, 7)] * 2


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 8, 8), (3, 17, 31)])
@pytest.mark.parametrize("stride", [1, 2])
def test_images_of_any_size_gray_or_colour(shape, stride):
    module = ResNet(channels=shape[0], classes=7, stride=stride).eval()
    assert module(torch.rand(3, *shape)).shape == (3, 7)


def test_a_block_adds_what_it_learned_to_its_input():
    block = Block(4, 4, stride=1).eval()
    x = torch.randn(2, 4, 6, 6)
    torch.testing.assert_close(block(x), (x + block.inner(x)).relu())
    nn.init.zeros_(block.inner[-1].weight)
    torch.testing.assert_close(block(x), x.relu())


def test_rows_stand_alone():
    module = ResNet().eval()
    x = torch.rand(32, 1, 28, 28)
    torch.testing.assert_close(module(x)[:16], module(x[:16]))


@pytest.mark.parametrize("wrong", [{"width": 0}, {"stages": 0}, {"blocks": 0}, {"stride": 0}, {"channels": -1}])
def test_sizes_that_make_no_network_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(ModelError, match=f"failed with args .*{name} must be at least 1"):
        build("advrisk.parts.models.residual:ResNet", wrong)
