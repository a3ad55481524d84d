"""Training methods: each defines the loss of one batch."""

from advrisk.parts.training import (  # noqa: F401  (their decorators register the methods)
    distilled,
    ensemble_fgsm,
    fgsm,
    gaussian_noise,
    guided_complement_entropy,
    parseval,
    pgd,
    plain,
    trades,
)
from advrisk.parts.training.augment import augmented
from advrisk.parts.training.registry import Frozen, training

__all__ = ["Frozen", "augmented", "training"]
