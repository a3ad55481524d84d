"""How far a run is, as reported while it runs."""

from dataclasses import dataclass, replace

from advrisk.run.rows import CellResult


@dataclass(frozen=True)
class Progress:
    """How far a run is. `n_cells` counts what this run had to do, `n_skipped` what was there already.

    Their samples are `n_samples`; `n_rows` of these are done and recorded, and `n_partial` are done in cells that still
    run. `eta_s` is about how many seconds the cells to come will take, None while nothing comparable has run.

    Detectors learn before that: `learning` says which, of what, and `learned` how much of it is done. `n_to_score`
    inputs are to be scored by detectors once the cells are done, and before that `n_to_measure` measures are to be
    taken; these are 0 until then. `n_unmeasured` of the study's measures were tried, now or before, and gave no number;
    `trouble` says why the first one of now did not. `phase` names what the cells are for, where it is not the
    samples to evaluate.
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
    latest: str = ""  # the cell that was just finished, and what it took
    n_to_measure: int = 0
    n_measured: int = 0
    n_unmeasured: int = 0
    trouble: str = ""
    n_to_score: int = 0
    n_scored: int = 0
    learning: str = ""
    learned: float = 0.0
    phase: str = ""
    rounds_left: int = 0  # of searches, whose cells are not known yet
    doubts: tuple[str, ...] = ()  # about the study, which did not stop it

    @property
    def finished(self) -> bool:
        beside = self.n_scored == self.n_to_score and self.n_measured == self.n_to_measure
        return self.n_done == self.n_cells and beside and not self.rounds_left

    def with_work(self, n_cells: int, n_skipped: int, phase: str) -> "Progress":
        """More cells to run, and more that are finished already."""
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
