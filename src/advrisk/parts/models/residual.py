"""Residual networks that are small enough to be trained on a processor."""

import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


class ResNet(nn.Module):
    """A residual network (He et al. 2016, arXiv:1512.03385) for images of any size, gray or colour.

    A convolution, `stages` of `blocks` blocks of two convolutions each, the mean over the image, and a linear layer:
    2 · stages · blocks + 2 layers deep (8, 14, 20 for one, two, three blocks in three stages). Each stage after the
    first halves height and width and doubles the channels, `width` of them at first. `stride` is that of the first
    convolution: 2 halves the image at once and is about four times as fast.
    """

    def __init__(
        self, *, channels: int = 1, width: int = 8, stages: int = 3, blocks: int = 1, stride: int = 1, classes: int = 10
    ) -> None:
        super().__init__()
        counts = {"channels": channels, "width": width, "stages": stages, "blocks": blocks, "stride": stride}
        for name, value in counts.items():
            if value < 1:
                raise ValueError(f"{name} must be at least 1, found {value}")
        self.first = nn.Sequential(nn.Conv2d(channels, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width))
        self.blocks = nn.Sequential(
            *(
                Block(before, after, stride=2 if after > before else 1)
                for before, after in _channels(width, stages=stages, blocks=blocks)
            )
        )
        self.last = nn.Linear(width * 2 ** (stages - 1), classes)

    def forward(self, x: Tensor) -> Tensor:
        features = self.blocks(F.relu(self.first(x)))
        logits: Tensor = self.last(features.mean((2, 3)))
        return logits


class Block(nn.Module):
    """relu(x + two convolutions of x); where the shape changes, x takes a convolution of one pixel."""

    def __init__(self, before: int, after: int, *, stride: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False),
            nn.BatchNorm2d(after),
        )
        same = stride == 1 and before == after
        self.past = (
            nn.Identity()
            if same
            else nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
        )

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.inner(x) + self.past(x))


def _channels(width: int, *, stages: int, blocks: int) -> list[tuple[int, int]]:
    """Channels before and after each block."""
    after = [width * 2**stage for stage in range(stages) for _ in range(blocks)]
    return list(zip([width, *after[:-1]], after, strict=True))
