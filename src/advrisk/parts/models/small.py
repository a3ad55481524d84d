"""Small networks: those of the demo, and a start for your own studies."""

from torch import Tensor, nn


class SmallCnn(nn.Module):
    """Two strided convolutions and one linear layer: about 20,000 weights for 28×28 gray images."""

    def __init__(self, *, channels: int = 1, size: int = 28, width: int = 16, classes: int = 10) -> None:
        super().__init__()
        quarter = (size + 3) // 4
        self.layers = nn.Sequential(
            nn.Conv2d(channels, width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(2 * width * quarter * quarter, classes),
        )

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.layers(x)
        return logits
