"""For all tests: Hypothesis draws the same examples everywhere and is never failed for being slow; one thread.

Faults that could not be injected are told at the end.
"""

import signal
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

from tests.shards import SLOW, shard_of

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


def pytest_configure(config: pytest.Config) -> None:
    """Let ART write its file into the home folder before there are workers: two that import it at once may fail.

    And let KeyboardInterrupt be Ctrl-C here: a process that was started in the background ignores that signal.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        with suppress(ImportError):
            import_module("art.config")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--shard NAME`: only the files of one shard of the long tests."""
    parser.addoption("--shard", choices=list(SLOW), help="only files of this shard of the long tests, with -m slow")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of other shards before they are imported."""
    wanted = config.getoption("--shard")
    if wanted is None or collection_path.suffix != ".py":
        return None
    return True if shard_of(collection_path.relative_to(config.rootpath).as_posix()) != wanted else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which faults were not injected: a skipped test is a dot among others."""
    skipped = [one for one in terminalreporter.getreports("skipped") if one.nodeid.startswith("tests/faults/")]
    if skipped:
        terminalreporter.section("NOT INJECTED", red=True, bold=True)
    for one in skipped:
        terminalreporter.line(f"{one.nodeid}: {one.longrepr[2] if isinstance(one.longrepr, tuple) else ''}", red=True)
