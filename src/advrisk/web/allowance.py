"""How many requests a link may make: more than people need, fewer than programs can send."""

import threading
import time
from collections.abc import Callable

PER_S = 30.0  # a question takes three or four requests
AT_ONCE = 150.0


class Allowance:
    """A bucket of requests for each link, which fills again while time passes."""

    def __init__(
        self, *, per_s: float = PER_S, at_once: float = AT_ONCE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_s, self._at_once, self._clock = per_s, at_once, clock
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}  # link -> requests that are left, and as of when

    def wait_s(self, link: str) -> float:
        """Take one request of a link: 0 if it is allowed, else the seconds until one is."""
        with self._lock:
            now = self._clock()
            left, then = self._left.get(link, (self._at_once, now))
            left = min(self._at_once, left + (now - then) * self._per_s)
            allowed = left >= 1
            self._left[link] = (left - 1 if allowed else left, now)
            return 0.0 if allowed else (1 - left) / self._per_s
