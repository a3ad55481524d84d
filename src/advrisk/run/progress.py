"""The progress of a run, as reported while it runs."""

from dataclasses import dataclass, replace

from advrisk.run.rows import CellResult


@dataclass(frozen=True)
class Progress:
    """The progress of a run. `n_cells` counts the cells of this run, `n_skipped` those finished before.

    The samples of these cells are `n_samples`: `n_rows` are done and recorded, `n_partial` are done in cells that still
    run. `eta_s` estimates the seconds that the remaining cells take; None before a comparable cell has run.

    Detectors learn first: `learning` names the detector and the model, `learned` is the share done. Once the cells are
    done, `n_to_measure` measures follow, and then `n_to_score` inputs for detectors; both are 0 until then.
    `n_unmeasured` measures, of this run or earlier ones, failed; `trouble` is the reason of the first failure of this
    run. `phase` is the purpose of the cells, if it is not the evaluation.
    """

    n_cells: int
    n_skipped: int
    n_done: int = 0
    n_samples: int = 0
    n_rows: int = 0
    n_partial: float = 0.0
    n_errors: int = 0
    n_passes: int = 0
    elapsed_s: float = 0.0
    eta_s: float | None = None
    latest: str = ""  # the cell that finished last, and its cost
    n_to_measure: int = 0
    n_measured: int = 0
    n_unmeasured: int = 0
    trouble: str = ""
    n_to_score: int = 0
    n_scored: int = 0
    learning: str = ""
    learned: float = 0.0
    phase: str = ""
    rounds_left: int = 0  # of searches, whose cells are still unknown
    doubts: tuple[str, ...] = ()  # about the study, which did not stop it

    @property
    def finished(self) -> bool:
        beside = self.n_scored == self.n_to_score and self.n_measured == self.n_to_measure
        return self.n_done == self.n_cells and beside and not self.rounds_left

    def with_work(self, n_cells: int, n_skipped: int, phase: str) -> "Progress":
        """The progress with further cells to run, and further finished ones."""
        return replace(self, n_cells=self.n_cells + n_cells, n_skipped=self.n_skipped + n_skipped, phase=phase)

    def while_learning(self, what: str, share: float) -> "Progress":
        return replace(self, learning=what, learned=share)

    def after_measure(self, trouble: str) -> "Progress":
        n_unmeasured, first = self.n_unmeasured + bool(trouble), self.trouble or trouble
        return replace(self, n_measured=self.n_measured + 1, n_unmeasured=n_unmeasured, trouble=first)

    def after(self, result: CellResult, what: str = "") -> "Progress":
        """Another cell is done; `what` names it."""
        took = f"{result.n_rows} samples, {result.wall_s:.2f} s, {result.n_passes:,} passes"
        return replace(
            self,
            latest=f"{what}, {took}" if what else took,
            n_done=self.n_done + 1,
            n_rows=self.n_rows + result.n_rows,
            n_errors=self.n_errors + result.n_errors,
            n_passes=self.n_passes + result.n_passes,
        )
