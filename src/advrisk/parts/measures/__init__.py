"""Measures: numbers about a model at a clean input, without an attack."""

from advrisk.parts.measures import clever  # noqa: F401  (its decorator registers it)
from advrisk.parts.measures.registry import measures

__all__ = ["measures"]
