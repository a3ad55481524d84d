"""Looking for the settings with which an attack does most harm, on samples to tune."""

from advrisk.run.search.loop import Found, carry_out_searches

__all__ = ["Found", "carry_out_searches"]
