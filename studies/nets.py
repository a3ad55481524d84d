"""Convolutional networks for the detection study. Their dropout is what KD-BU asks for."""

from torch import Tensor, nn


class ConvNet(nn.Module):
    """Two strided convolutions and a hidden layer, with dropout."""

    def __init__(self, *, channels: int, size: int, width: int, hidden: int = 128, classes: int = 10) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, width, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Dropout(0.25),
            nn.Flatten(),
            nn.Linear(2 * width * (size // 4) ** 2, hidden),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(hidden, classes),
        )

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.layers(x)
        return logits
