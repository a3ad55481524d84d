"""What stands in for the slope of a step that has none."""

from typing import Literal

from torch import Tensor

Gradient = Literal["straight", "exact"]


def sloped(changed: Tensor, x: Tensor, gradient: Gradient) -> Tensor:
    """Changed inputs whose slope is that of doing nothing, or, `exact`, zero everywhere as it truly is.

    The first is BPDA (Athalye, Carlini & Wagner 2018, arXiv:1802.00420): an attacker who knows of the step goes on as
    if it were not there.
    """
    through = x - x.detach()
    return changed.detach() + (through if gradient == "straight" else 0 * through)
