"""For all tests: Hypothesis draws the same examples everywhere and is never failed for being slow; one thread.

Faults that could not be injected are told at the end.
"""

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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which faults were not injected: a skipped test is a dot among others."""
    skipped = [one for one in terminalreporter.getreports("skipped") if one.nodeid.startswith("tests/faults/")]
    if skipped:
        terminalreporter.section("NOT INJECTED", red=True, bold=True)
    for one in skipped:
        terminalreporter.line(f"{one.nodeid}: {one.longrepr[2] if isinstance(one.longrepr, tuple) else ''}", red=True)
