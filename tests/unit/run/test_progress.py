"""How far a run is."""

from advrisk.run.progress import Progress
from advrisk.run.rows import CellResult


def test_a_finished_cell_is_counted_and_named() -> None:
    result = CellResult("c", {}, n_rows=64, n_errors=2, n_passes=640, wall_s=0.5)
    progress = Progress(2, 0).after(result, "pgd on plain")
    assert (progress.n_done, progress.n_rows, progress.n_errors, progress.n_passes) == (1, 64, 2, 640)
    assert progress.latest == "pgd on plain, 64 samples, 0.50 s, 640 passes"
    assert not progress.finished
    assert progress.after(result).finished
