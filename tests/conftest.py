"""For all tests: Hypothesis draws the same examples everywhere and is never failed for being slow; one thread."""

from collections.abc import Iterator

import pytest
import torch
from hypothesis import HealthCheck, settings

# What is generated depends on the modules that a process has loaded: how much is filtered out is not for it to judge.
settings.register_profile(
    "advrisk", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.filter_too_much]
)
settings.load_profile("advrisk")


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Small nets are no faster on more threads, and much slower when the cores are busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
