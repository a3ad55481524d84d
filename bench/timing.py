"""Measuring two things side by side."""

import time
from collections.abc import Callable
from typing import Any


def best_of(times: int, work: Callable[[], Any]) -> float:
    """Seconds of the fastest of several calls."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)
