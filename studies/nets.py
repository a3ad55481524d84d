"""Convolutional networks for the detection study. Their dropout is what KD-BU asks for."""

from torch import Tensor, nn


class ConvNet(nn.Module):
    """Two convolutions for each of two scales, a hidden layer, dropout."""

    def __init__(self, *, channels: int, size: int, width: int, hidden: int = 128, classes: int = 10) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *_scale(channels, width),
            *_scale(width, 2 * width),
            nn.Flatten(),
            nn.Linear(2 * width * (size // 4) ** 2, hidden),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(hidden, classes),
        )

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.layers(x)
        return logits


def _scale(before: int, after: int) -> list[nn.Module]:
    return [
        nn.Conv2d(before, after, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(after, after, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.25),
    ]
