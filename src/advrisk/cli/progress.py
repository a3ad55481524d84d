"""Showing how far a run is on the command line, and what Ctrl-C means."""

import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from advrisk.cli import complain
from advrisk.cli.verbosity import Steps, detail, is_quiet
from advrisk.core.containment import Interrupted
from advrisk.render.progress import Display, ProgressBar, best_display

if TYPE_CHECKING:
    from advrisk.run.progress import Progress

LOG_EVERY_S = 10.0


class RunProgress(ProgressBar):
    """The progress of `advrisk run`: a bar in a terminal, lines elsewhere; and once what is doubtful about the run."""

    def __init__(self, *, silent: bool = False) -> None:
        super().__init__(lambda: None if silent or is_quiet() else _display())
        self._steps = Steps()

    def update(self, progress: "Progress") -> None:
        """Show the state of the run."""
        if self.last is None:
            self._steps.done("loaded data and models")
            for doubt in () if is_quiet() else progress.doubts:
                complain(doubt)
        if progress.latest and (self.last is None or progress.n_done > self.last.n_done):
            detail(f"cell {progress.n_done}/{progress.n_cells}: {progress.latest}")
        super().update(progress)

    def finished(self, step: str, *, then: str = "") -> None:
        """A step beside the cells is done, and another begins."""
        self._steps.done(step)
        if then:
            self.say(then)


class Lines:
    """Lines on standard error: the first at once, then one every few seconds, and the last."""

    def __init__(self) -> None:
        self._logged_at = float("-inf")
        self._total: float | None = -1.0

    def show(self, text: str, done: float, total: float | None) -> None:
        now, is_new = time.monotonic(), total != self._total
        if is_new or done == total or now - self._logged_at >= LOG_EVERY_S:
            self._logged_at, self._total = now, total
            print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Lines stay."""


def _display() -> Display:
    return best_display() or Lines()


@contextlib.contextmanager
def interrupts_end_the_run(folder: str | Path) -> Iterator[None]:
    """Ctrl-C and SIGTERM stop the run between cells' results; the ledger keeps what was finished."""

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise Interrupted

    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, stop)}
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # in the background it is ignored
        before[signal.SIGINT] = signal.signal(signal.SIGINT, stop)
    try:
        yield
    except KeyboardInterrupt as ended:
        missing = ". ".join(getattr(ended, "__notes__", ()))
        kept = (
            f"Not all that was finished is kept in {folder}: {missing}"
            if missing
            else f"What was finished is kept in {folder}"
        )
        print(f"\n{kept}; run the same command again to go on.", file=sys.stderr)
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
