"""How far a run is, and how long the rest takes."""

import pytest

from advrisk.run.progress import Progress
from advrisk.run.rows import CellResult


def after(times: list[float], n_cells: int, *, wall_s: float = 1.0, n_workers: int = 1) -> Progress:
    """The progress once cells were done at these seconds."""
    progress = Progress(n_cells, 0)
    for time in times:
        progress = progress.after(CellResult("c", {}, n_rows=1, n_errors=0, wall_s=wall_s), time, n_workers)
    return progress


def test_time_to_start_is_no_time_of_a_cell() -> None:
    """Workers start within 20 s, then take a second for each cell."""
    assert after([20.0 + i for i in range(10)], 100).eta_s == pytest.approx(90)


def test_cells_that_end_in_waves_tell_as_much_as_others() -> None:
    """Eight workers start within 10 s; cells take a minute, so that eight of them end together."""
    for times in ([70, 70.5, 71, 71.5], [70.0 + i / 2 for i in range(8)], [70.0 + i / 2 for i in range(8)] + [130]):
        progress = after(times, 40, wall_s=60, n_workers=8)
        assert progress.eta_s == pytest.approx((40 - len(times)) / 8 * 60)


def test_too_few_cells_say_nothing() -> None:
    assert after([20.0], 3).eta_s is None
    assert after([1.0, 2.0, 3.0], 10).eta_s is None
    assert after([1.0, 2.0, 3.0, 4.0], 100).eta_s is None, "not one in twenty"
    assert after([1.0, 2.0, 3.0, 4.0, 5.0], 100).eta_s == pytest.approx(95)
    assert after([1.0, 2.0, 3.0, 4.0], 4).eta_s == 0
