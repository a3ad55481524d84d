"""How far a run is, and how long the rest takes."""

import pytest

from advrisk.run.progress import Progress
from advrisk.run.rows import CellResult


def after(times: list[float], n_cells: int) -> Progress:
    """The progress once cells were done at these seconds."""
    progress = Progress(n_cells, 0)
    for time in times:
        progress = progress.after(CellResult("c", {}, n_rows=1, n_errors=0), time)
    return progress


def test_time_to_start_is_no_time_of_a_cell() -> None:
    """Workers start within 20 s, then take a second for each cell."""
    progress = after([20.0 + i for i in range(10)], 100)
    assert progress.eta_s == pytest.approx(90)


def test_too_few_cells_say_nothing() -> None:
    assert after([20.0], 3).eta_s is None
    assert after([1.0, 2.0, 3.0], 10).eta_s is None
    assert after([1.0, 2.0, 3.0, 4.0], 100).eta_s is None, "not one in twenty"
    assert after([1.0, 2.0, 3.0, 4.0, 5.0], 100).eta_s == pytest.approx(95)
    assert after([1.0, 2.0, 3.0, 4.0], 4).eta_s == 0
