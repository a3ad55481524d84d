"""Training methods: what the loss of one batch is."""

from advrisk.parts.training import gaussian_noise, pgd, plain, trades  # noqa: F401  (decorators register)
from advrisk.parts.training.registry import training

__all__ = ["training"]
