"""Data sources: where samples come from."""

from advrisk.parts.data import builtin, npz  # noqa: F401  (their decorators register them)
from advrisk.parts.data.dataset import Dataset
from advrisk.parts.data.registry import data

__all__ = ["Dataset", "data"]
