"""Attacks: short functions that propose points through the probe."""

from advrisk.parts.attacks import (  # noqa: F401  (their decorators register them)
    adaptive,
    apgd,
    art,
    autoattack,
    bim,
    carlini_wagner,
    deepfool,
    fab,
    feature_search,
    fgsm,
    fmn,
    foolbox,
    hopskipjump,
    minimum_norm,
    nes,
    pgd,
    pgd_adam,
    pixel,
    spatial,
    square,
    threshold,
    transfer,
)
from advrisk.parts.attacks.registry import attacks

__all__ = ["attacks"]
