"""Attacks: short functions that propose points through the probe."""

from advrisk.parts.attacks import bim, fgsm, pgd  # noqa: F401  (their decorators register them)
from advrisk.parts.attacks.registry import attacks

__all__ = ["attacks"]
