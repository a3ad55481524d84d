"""The bar that shows how far a run is."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from advrisk.render import progress as shown
from advrisk.render.progress import NotebookBar, ProgressBar, TerminalBar, best_display, describe
from advrisk.run.progress import Progress


class Recorder:
    """A place that remembers what it showed."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, float, float | None]] = []
        self.closed = False

    def show(self, text: str, done: float, total: float | None) -> None:
        self.texts.append((text, done, total))

    def close(self) -> None:
        self.closed = True


def test_it_says_at_once_that_models_are_loaded() -> None:
    place = Recorder()
    with ProgressBar(lambda: place) as bar:
        assert place.texts == [("loading data and models …", 0.0, None)]
        bar.update(Progress(4, 0, n_samples=400, n_rows=100, n_partial=50.4))
        assert place.texts[-1][1:] == (150.4, 400)
    assert place.closed


def test_nothing_is_shown_where_nobody_sees_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert best_display() is None, "the standard error of a test is no terminal"
    with ProgressBar(best_display) as bar:
        bar.update(Progress(4, 0))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (Progress(192, 0, n_samples=12_000), "0/12,000 samples, starting workers …"),
        (Progress(192, 8, n_samples=12_000), "0/12,000 samples, 8 cells done before, starting workers …"),
        (
            Progress(192, 0, n_done=60, n_samples=12_000, n_rows=3_840, n_partial=32, n_passes=50_200, elapsed_s=10.0),
            "3,872/12,000 samples, 387/s, 50.2k passes",
        ),
        (
            Progress(9, 0, n_done=1, n_samples=90, n_rows=10, elapsed_s=5, eta_s=40.0, phase="calibrating", n_errors=2),
            "calibrating, 10/90 samples, 2/s, 2 error rows, 40 s left",
        ),
        (Progress(4, 0, learning="fitting lid to plain", learned=0.4), "fitting lid to plain, 40 %"),
        (Progress(4, 0, n_to_score=1200, n_scored=300), "scored 300 of 1,200 inputs"),
        (Progress(4, 0, n_to_measure=200, n_measured=30, n_unmeasured=1), "took 30 of 200 measures, 1 failed"),
    ],
)
def test_the_state_of_a_run_in_words(state: Progress, words: str) -> None:
    assert describe(state) == words


def test_a_terminal_gets_a_bar_that_vanishes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    bar = best_display()
    assert isinstance(bar, TerminalBar)
    bar.show("1/2 samples", 1, 2)
    bar.close()


def test_a_notebook_gets_one_without_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    updates: list[str] = []
    handle = SimpleNamespace(update=updates.append)
    display: Any = SimpleNamespace(HTML=str, display=lambda _, display_id: handle if display_id else None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1)))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    clock = [0.0]
    monkeypatch.setattr(shown.time, "monotonic", lambda: clock[0])
    bar = best_display()
    assert isinstance(bar, NotebookBar)
    bar.show("1/4 <samples>", 1, 4)
    bar.show("2/4 <samples>", 2, 4)
    bar.show("4/4 <samples>", 4, 4)
    bar.close()
    assert updates == [
        '<progress value="0.2500"></progress> 1/4 &lt;samples&gt;',
        '<progress value="1.0000"></progress> 4/4 &lt;samples&gt;',
        "",
    ], "not more than five times a second, but the end always"
