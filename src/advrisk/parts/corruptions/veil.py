"""What lies between a scene and its camera: it hides a share of the light of the scene and adds its own."""

from torch import Tensor

from advrisk.engine import Space


def veiled(x: Tensor, opacity: Tensor, space: Space, *, brightness: float) -> Tensor:
    """x + opacity · (veil − x): a veil that is the same in all channels, from the lowest value (0) to the highest (1).

    `opacity` is rows × height × width. Where it is zero, nothing changes.
    """
    colour = space.low + brightness * (space.high - space.low)
    return x + opacity.unsqueeze(1) * (colour - x)
