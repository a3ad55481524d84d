"""Substitute gradients for steps that have none."""

from typing import Literal

from torch import Tensor

Gradient = Literal["straight", "exact"]


def sloped(changed: Tensor, x: Tensor, gradient: Gradient) -> Tensor:
    """Changed inputs with the gradient of the identity, or, with `exact`, the true gradient: zero.

    The first is BPDA (Athalye, Carlini & Wagner 2018, arXiv:1802.00420): an attacker who knows the step ignores it in
    the backward pass.
    """
    through = x - x.detach()
    return changed.detach() + (through if gradient == "straight" else 0 * through)
