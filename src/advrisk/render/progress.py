"""How far a run is, as a bar in a terminal or a notebook."""

import sys
import time
from collections.abc import Callable
from html import escape
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from advrisk.core.durations import rounded_text
from advrisk.core.numbers import percent_text, short_text

if TYPE_CHECKING:
    from advrisk.run.progress import Progress

LOADING = "loading data and models"


class Display(Protocol):
    """Where progress is shown."""

    def show(self, text: str, done: float, total: float | None) -> None:
        """Show a sentence, and how much is done of how much; None: of what is not known yet."""

    def close(self) -> None:
        """Leave the place as it was."""


class ProgressBar:
    """A context manager that shows the progress of a run at once; `last` is what `update` received last."""

    def __init__(self, display: Callable[[], Display | None]) -> None:
        self.last: Progress | None = None
        self._open = display
        self._display: Display | None = None

    def __enter__(self) -> Self:
        self._display = self._open()
        self.say(LOADING)
        return self

    def update(self, progress: "Progress") -> None:
        """Show the state of the run."""
        self.last = progress
        self._show(describe(progress), *_done(progress))

    def say(self, text: str) -> None:
        """Show what goes on beside the cells."""
        self._show(f"{text} …", 0.0, None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._display is not None:
            self._display.close()

    def _show(self, text: str, done: float, total: float | None) -> None:
        if self._display is not None:
            self._display.show(text, done, total)


class TerminalBar:
    """A bar on standard error, which vanishes at the end."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

        from advrisk.render.terminal import Terminal

        columns = [SpinnerColumn(), BarColumn(bar_width=None), TextColumn("{task.description}")]
        self._bar = Progress(*columns, console=Terminal(stderr=True), transient=True, expand=True)
        self._task: Any = self._bar.add_task(LOADING, total=None)
        self._bar.start()

    def show(self, text: str, done: float, total: float | None) -> None:
        self._bar.update(self._task, total=total, completed=done, description=text)

    def close(self) -> None:
        self._bar.stop()


class NotebookBar:
    """A bar below a cell of a notebook, which vanishes at the end."""

    def __init__(self) -> None:
        shown = import_module("IPython.display")  # a notebook has it
        self._html, self._shown_at = shown.HTML, float("-inf")
        self._handle: Any = shown.display(shown.HTML(""), display_id=True)

    def show(self, text: str, done: float, total: float | None) -> None:
        if time.monotonic() - self._shown_at < 0.2 and done != total:
            return
        self._shown_at = time.monotonic()
        share = "" if total is None else f' value="{done / (total or 1):.4f}"'
        self._handle.update(self._html(f"<progress{share}></progress> {escape(text)}"))

    def close(self) -> None:
        self._handle.update(self._html(""))


def best_display() -> Display | None:
    """A bar where somebody can see it: in a terminal or a notebook."""
    if in_notebook():
        return NotebookBar()
    return TerminalBar() if sys.stderr is not None and sys.stderr.isatty() else None


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


def _done(progress: "Progress") -> tuple[float, float]:
    """How much is done, of how much: of what is going on now."""
    if progress.learning:
        return progress.learned, 1.0
    if progress.n_to_score:
        return progress.n_scored, progress.n_to_score
    if progress.n_to_measure:
        return progress.n_measured, progress.n_to_measure
    if progress.n_done == progress.n_cells:
        return 1.0, 1.0
    return progress.n_rows + progress.n_partial, max(progress.n_samples, 1)


def describe(progress: "Progress") -> str:
    """`4,810/12,000 samples, 389/s, 1.2M passes, 12 s left`; then `took 30 of 200 measures`, `scored 300 of 1,200
    inputs`.

    Each sample counts once for each attack and model. Before that, where detectors must learn: `fitting lid to plain,
    40%`.
    """
    if progress.learning:
        return f"{progress.learning}, {percent_text(progress.learned)}"
    if progress.n_to_score:
        return f"scored {progress.n_scored:,} of {progress.n_to_score:,} inputs"
    if progress.n_to_measure:
        failed = f", {progress.n_unmeasured:,} failed" if progress.n_unmeasured else ""
        return f"took {progress.n_measured:,} of {progress.n_to_measure:,} measures{failed}"
    return ", ".join(_parts(progress))


def _parts(progress: "Progress") -> list[str]:
    parts = [progress.phase] if progress.phase else []
    n_done = progress.n_rows + progress.n_partial
    if not progress.n_samples:
        parts.append(f"{progress.n_done}/{progress.n_cells} cells")
    else:
        parts.append(f"{n_done:,.0f}/{progress.n_samples:,} samples")
    if progress.n_skipped and not n_done:
        parts.append(f"{progress.n_skipped} cells done before")
    if progress.elapsed_s and n_done:
        parts.append(f"{n_done / progress.elapsed_s:,.0f}/s")
    if progress.n_passes:
        parts.append(f"{short_text(progress.n_passes)} passes")
    if progress.n_errors:
        parts.append(f"{progress.n_errors} error rows")
    if progress.eta_s is not None and not progress.finished:
        parts.append(f"{rounded_text(progress.eta_s)} left")
    elif not n_done and progress.n_cells and not progress.finished:
        parts.append("starting workers …")
    return parts
