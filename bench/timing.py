"""Measuring things side by side."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def best_of(times: int, work: Callable[[], Any]) -> float:
    """Seconds of the fastest of several calls."""
    return min(seconds(work) for _ in range(times))


def seconds(work: Callable[[], Any]) -> float:
    """Seconds of one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def processor_s(work: Callable[[], Any]) -> float:
    """Seconds that one core is busy, whatever else the machine does."""
    began = time.process_time()
    work()
    return time.process_time() - began


def least_work(times: int, work: Callable[[], Any]) -> float:
    """Seconds of work of the quickest of several calls."""
    return min(processor_s(work) for _ in range(times))


def in_turn(
    works: Mapping[str, Callable[[], Any]], *, rounds: int, clock: Callable[[Callable[[], Any]], float] = seconds
) -> dict[str, list[float]]:
    """Seconds of each, round by round: what disturbs one disturbs its neighbours."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            taken[name].append(clock(work))
    return taken


def median_ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """The median of the ratios of each round."""
    return statistics.median(ratios(above, below))


def ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """The ratio of each round."""
    return [a / b for a, b in zip(above, below, strict=True)]


def spread(values: Sequence[float]) -> str:
    """The median, with the smallest and the largest value."""
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"
