"""Showing how far a run is: a bar in a terminal, plain lines elsewhere; and what Ctrl-C means."""

import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from advrisk.cli import complain
from advrisk.core.containment import Interrupted
from advrisk.core.durations import rounded_text
from advrisk.core.numbers import percent_text, short_text

if TYPE_CHECKING:
    from advrisk.run.progress import Progress

LOG_EVERY_S = 10.0


class ProgressLine:
    """A context manager whose `update` is told about every finished cell; `last` is what it was told last."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.last: Progress | None = None
        self._quiet = quiet
        self._bar: Any = None
        self._task: Any = None
        self._logged_at = 0.0

    def __enter__(self) -> "ProgressLine":
        if sys.stderr.isatty() and not self._quiet:
            from rich.progress import BarColumn, Progress, TextColumn

            from advrisk.render.terminal import Terminal

            self._bar = Progress(
                TextColumn("{task.percentage:>3.0f}%"),
                BarColumn(bar_width=None),
                TextColumn("{task.description}"),
                console=Terminal(stderr=True),
                transient=True,
                expand=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("loading data and models", total=None)
        return self

    def update(self, progress: "Progress") -> None:
        """Show the state of the run, and once what is doubtful about it."""
        if self.last is None:
            for doubt in progress.doubts:
                complain(doubt)
        self.last = progress
        if self._bar is not None:
            done, total = _done(progress)
            self._bar.update(self._task, total=total, completed=done, description=describe(progress))
            return
        now = time.monotonic()
        if not self._quiet and (now - self._logged_at >= LOG_EVERY_S or progress.finished):
            self._logged_at = now
            print(describe(progress), file=sys.stderr, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def _done(progress: "Progress") -> tuple[float, float]:
    """How much is done, of how much: of what is going on now."""
    if progress.learning:
        return progress.learned, 1.0
    if progress.n_to_score:
        return progress.n_scored, progress.n_to_score
    if progress.n_to_measure:
        return progress.n_measured, progress.n_to_measure
    return progress.n_done, max(progress.n_cells, 1)


def describe(progress: "Progress") -> str:
    """`120/332 cells, 4,810 samples/s, 1.2M passes, 12 s left`; then `took 30 of 200 measures`, `scored 300 of 1,200
    inputs`.

    Before that, where detectors must learn: `fitting lid to plain, 40%`.
    """
    if progress.learning:
        return f"{progress.learning}, {percent_text(progress.learned)}"
    if progress.n_to_score:
        return f"scored {progress.n_scored:,} of {progress.n_to_score:,} inputs"
    if progress.n_to_measure:
        failed = f", {progress.n_unmeasured:,} failed" if progress.n_unmeasured else ""
        return f"took {progress.n_measured:,} of {progress.n_to_measure:,} measures{failed}"
    parts = [progress.phase] if progress.phase else []
    parts.append(f"{progress.n_done}/{progress.n_cells} cells")
    if progress.n_skipped and not progress.n_done:
        parts.append(f"{progress.n_skipped} there already")
    if progress.elapsed_s:
        parts.append(f"{progress.n_rows / progress.elapsed_s:,.0f} samples/s")
        parts.append(f"{short_text(progress.n_passes)} passes")
    if progress.n_errors:
        parts.append(f"{progress.n_errors} error rows")
    if progress.eta_s is not None and not progress.finished:
        parts.append(f"{rounded_text(progress.eta_s)} left")
    return ", ".join(parts)


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
