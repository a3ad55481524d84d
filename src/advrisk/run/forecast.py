"""How long the cells to come will take, from what cells like them took."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from advrisk.plan import Cell
from advrisk.run.pulse import EVERY_S

Kind = tuple[str, str]  # model, arm

Rates = dict[tuple[str, int], tuple[float, float]]  # model, size of work -> seconds, passes

_ANY = ""  # all models
_ALIKE = 3  # cells whose passes per sample differ by at most so many powers of two speak for each other
_LEAST_S = 0.2  # of observation, before cells speak for others


@dataclass
class _OfKind:
    """The observations of the cells of one model and arm."""

    work: float  # of one sample, in passes at most
    n_left: float = 0.0  # samples to come
    n_done: float = 0.0
    seconds: float = 0.0  # that those took, in one worker


@dataclass
class _Running:
    cell: Cell
    began: float = 0.0
    n_done: float = 0.0


class Forecast:
    """Samples to come by model and arm, and the seconds that samples of that kind, or of one like it, have taken.

    `work` says about how many passes a cell takes at most. Small cells say little about large ones: where nothing
    comparable has run, there is no forecast.
    """

    def __init__(self, work: Callable[[Cell], float] = lambda _: 1.0) -> None:
        self._work = work
        self._kinds: dict[Kind, _OfKind] = {}
        self._running: dict[str, _Running] = {}
        self.n_samples = 0  # of all cells that were expected

    def expect(self, cells: Iterable[tuple[Cell, int]]) -> None:
        """Cells to come: one of each kind, with the number of samples of all that are like it."""
        for cell, n in cells:
            self._of(cell).n_left += n
            self.n_samples += n

    def begin(self, cell: Cell) -> None:
        """A cell is handed out."""
        self._running[cell.id] = _Running(cell)

    def share(self, cell: str, n_done: float) -> None:
        """How many samples of a running cell are done."""
        if (running := self._running.get(cell)) is not None:
            running.n_done = min(n_done, len(running.cell.shard.samples))
            running.began = running.began or time.monotonic() - EVERY_S  # its worker may have had to start first

    def end(self, cell: str, wall_s: float) -> str:
        """A cell is done; what it was."""
        if (running := self._running.pop(cell, None)) is None:
            return ""
        kind, n = self._of(running.cell), len(running.cell.shard.samples)
        kind.n_left, kind.n_done, kind.seconds = kind.n_left - n, kind.n_done + n, kind.seconds + wall_s
        return f"{running.cell.arm.shown} on {running.cell.model}"

    def stop(self) -> None:
        """No other cell is expected."""
        self.n_samples -= round(sum(kind.n_left for kind in self._kinds.values()))
        self._kinds = {name: _OfKind(kind.work) for name, kind in self._kinds.items()}

    @property
    def n_partial(self) -> float:
        """Samples that are done in cells that are not."""
        return sum(running.n_done for running in self._running.values())

    def seconds_left(self, n_workers: int) -> float | None:
        """Seconds to go; None where nothing comparable to some cell has run."""
        observed = self._observed()
        rates = _rates(observed)
        total = 0.0
        for name, kind in self._kinds.items():
            if kind.n_left > 0.5:
                if (per_sample := _per_sample(name, kind.work, observed, rates)) is None:
                    return None
                total += kind.n_left * per_sample
        for running in self._running.values():
            name = _kind(running.cell)
            total -= running.n_done * (_per_sample(name, self._of(running.cell).work, observed, rates) or 0.0)
        return max(0.0, total) / n_workers

    def _observed(self) -> dict[Kind, _OfKind]:
        """Every kind with an observation, running cells included."""
        observed = {name: _OfKind(one.work, 0, one.n_done, one.seconds) for name, one in self._kinds.items()}
        for running in self._running.values():
            if running.n_done:
                one = observed[_kind(running.cell)]
                one.n_done += running.n_done
                one.seconds += time.monotonic() - running.began
        return {name: one for name, one in observed.items() if one.n_done}

    def _of(self, cell: Cell) -> _OfKind:
        name = _kind(cell)
        if name not in self._kinds:
            self._kinds[name] = _OfKind(self._work(cell) / max(1, len(cell.shard.samples)))
        return self._kinds[name]


def _kind(cell: Cell) -> Kind:
    return cell.model, cell.arm.id


def _rates(observed: dict[Kind, _OfKind]) -> Rates:
    """Seconds and passes by model and size of work, and of all models together."""
    rates: Rates = {}
    for (model, _), one in observed.items():
        for name in (model, _ANY):
            seconds, passes = rates.get((name, _size(one.work)), (0.0, 0.0))
            rates[name, _size(one.work)] = seconds + one.seconds, passes + (one.work + 1) * one.n_done
    return rates


def _per_sample(name: Kind, work: float, observed: dict[Kind, _OfKind], rates: Rates) -> float | None:
    """Seconds of a sample: as observed, or by kinds of about as much work, those of the same model first."""
    if name in observed:
        return observed[name].seconds / observed[name].n_done
    for model in (name[0], _ANY):
        alike = [rates.get((model, _size(work) + step), (0.0, 0.0)) for step in range(-_ALIKE, _ALIKE + 1)]
        if (seconds := sum(one for one, _ in alike)) >= _LEAST_S:
            return (work + 1) * seconds / sum(passes for _, passes in alike)
    return None


def _size(work: float) -> int:
    """The power of two nearest to the passes of a sample."""
    return round(math.log2(work + 1))
