"""Errors, registries, seeds, digests and `Estimate`: what every room above stands on."""

from advrisk.core.estimate import Estimate

__all__ = ["Estimate"]
