"""Searching for the settings with which an attack does most harm, on the tuning split."""

from advrisk.run.search.loop import Searched, run_searches

__all__ = ["Searched", "run_searches"]
