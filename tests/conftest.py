"""For all tests: Hypothesis draws the same examples everywhere, and is never failed for being slow."""

from hypothesis import settings

settings.register_profile("advrisk", derandomize=True, deadline=None)
settings.load_profile("advrisk")
