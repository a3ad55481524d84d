"""What can be shown to people: the kept successes of a run in one norm, and their originals."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advrisk.answers.records import Shown
from advrisk.assess.damage.distances import Distances, smallest_distances
from advrisk.core.errors import LedgerError, RunError
from advrisk.ledger import Ledger
from advrisk.ledger.inputs import cell_inputs, read_inputs, shard_inputs
from advrisk.ledger.storage import Storage
from advrisk.study import Norm
from advrisk.web.pictures import Array, Levels, check_image, levels, moved, size_between

_MOST = 20_000  # examples that are held ready, spread over all sizes
_BEYOND = 4.0  # how far beyond the kept sizes a scaled perturbation may go
_SIZES = 48  # that can be asked about
_STEP = 1 / 255
_SCALING_ROUNDS = 6
_EXACT = 0.03  # a scaled perturbation this near to the wanted size is near enough

_SUCCESSES = """
    SELECT o.model, o.arm, o.sample, min(d_{norm}) AS distance, arg_min(o.cell, d_{norm}) AS cell
    FROM outcomes o
    WHERE o.outcome = 'success' AND list_contains($arms, o.arm) AND list_contains($samples, o.sample)
    GROUP BY ALL ORDER BY distance, o.model, o.arm, o.sample
"""


@dataclass(frozen=True)
class StimulusExample:
    """A success whose input was kept."""

    model: str
    arm: str
    sample: str
    cell: str
    distance: float  # as attacked, before rounding to 8 bits


@dataclass(frozen=True, eq=False)
class Pool:
    """Everything that can be shown of a run."""

    storage: Storage
    norm: Norm
    distances: Distances
    examples: tuple[StimulusExample, ...]  # ascending in distance
    nearest: Mapping[tuple[str, str], StimulusExample]  # (model, sample) -> its nearest success
    shards: Mapping[str, str]  # sample -> where its original lies
    seed: int

    @property
    def folder(self) -> Path:
        return self.storage.folder

    @cached_property
    def log_distances(self) -> NDArray[np.float64]:
        return np.log([example.distance for example in self.examples])

    @cached_property
    def sizes(self) -> NDArray[np.float64]:
        """Sizes that can be asked about, ascending: in l0 those that were kept, else also what scaling gives."""
        kept = np.exp(self.log_distances)
        if self.norm == "l0":
            return np.unique(kept)
        shape = self.original(self.examples[0].sample).shape
        most = {"linf": 1.0, "l2": float(np.sqrt(np.prod(shape))), "l1": float(np.prod(shape))}[self.norm]
        low, high = max(_STEP, kept[0] / _BEYOND), min(most, kept[-1] * _BEYOND)
        grid = np.geomspace(low, max(high, 2 * low), _SIZES)
        return np.unique(np.maximum(np.round(grid / _STEP), 1) * _STEP) if self.norm == "linf" else grid

    @property
    def plausible(self) -> tuple[float, float]:
        """Between which sizes detection may well set in."""
        low, high = float(self.sizes[0]), float(self.sizes[-1])
        return (low, high) if low < high else (low / 2, high * 2)

    def original(self, sample: str) -> Array:
        return _input(self.storage.fetch(shard_inputs(self.folder, self.shards[sample])), sample)

    def point(self, cell: str, sample: str) -> Array:
        """What a cell kept of a sample."""
        return _input(self.storage.fetch(cell_inputs(self.folder, cell)), sample)

    def pictures(self, shown: Shown) -> tuple[Levels, Levels]:
        """The original, and what was made of it, as they are shown."""
        original = self.original(shown.sample)
        if shown.cell is None:
            return levels(original), levels(original)
        point = self.point(shown.cell, shown.sample)
        return levels(original), moved(original, point, shown.factor)

    def as_it_is(self, example: StimulusExample) -> Shown:
        """An example as it was kept."""
        return self._measured(example, 1.0)

    def scaled(self, example: StimulusExample, size: float) -> Shown:
        """An example whose perturbation is made larger or smaller until it is shown at about this size."""
        if self.norm == "l0":  # scaling changes no feature's being changed
            return self.as_it_is(example)
        factor = size / example.distance
        best = self._measured(example, factor)
        for _ in range(_SCALING_ROUNDS):
            if abs(np.log(max(best.size, 1e-12) / size)) < _EXACT:
                break
            now = self._measured(example, factor)
            factor *= float(np.clip(size / now.size, 0.2, 5.0)) if now.size else 2.0
            best = min(best, self._measured(example, factor), key=lambda shown: abs(shown.size - size))
        return best

    def _measured(self, example: StimulusExample, factor: float) -> Shown:
        shown = Shown(example.sample, 0.0, example.model, example.arm, example.cell, factor)
        original, changed = self.pictures(shown)
        size = size_between(changed, original, self.norm)
        return Shown(example.sample, size, example.model, example.arm, example.cell, factor)


def load_pool(folder: Path, ledger: Ledger, *, norm: Norm, arms: list[str] | None, seed: int) -> Pool:
    """Find what can be shown; a run that kept no inputs, or no images, is refused."""
    distances = smallest_distances(ledger, norm=norm, arms=arms)
    shards = ledger.query("SELECT sample, shard FROM samples WHERE split = 'evaluate' AND shard IS NOT NULL")
    rows = ledger.query(
        _SUCCESSES.format(norm=norm), {"arms": list(distances.arms), "samples": list(distances.samples)}
    ).to_pylist()
    if not rows:
        raise RunError(f"{folder}: no attack succeeded, so there is nothing to show; add stronger arms to the study")
    fetch = ledger.storage.fetch
    there = {cell: fetch(cell_inputs(folder, cell)).is_file() for cell in {row["cell"] for row in rows}}
    kept = [StimulusExample(**row) for row in rows if there[row["cell"]] and row["distance"] > 0]
    where = dict(zip(shards["sample"].to_pylist(), shards["shard"].to_pylist(), strict=True))
    if not kept or not fetch(shard_inputs(folder, where.get(kept[0].sample, ""))).is_file():
        raise RunError(
            f"{folder}: the inputs of its successes were not kept; run the study into a new folder with "
            "`keep_inputs: successful` (the default) or `all`"
        )
    nearest: dict[tuple[str, str], StimulusExample] = {}
    for example in kept:
        nearest.setdefault((example.model, example.sample), example)
    spread = np.unique(np.linspace(0, len(kept) - 1, min(_MOST, len(kept))).round().astype(int))
    pool = Pool(ledger.storage, norm, distances, tuple(kept[place] for place in spread), nearest, where, seed)
    _check(pool)
    return pool


def _check(pool: Pool) -> None:
    """Images in [0, 1], measured in the unit of their values: else sizes on the page and in the run would differ."""
    _check_originals(pool)
    example = pool.examples[-1]
    original = pool.original(example.sample)
    point = pool.point(example.cell, example.sample)
    steps = np.abs(np.asarray(point, np.float64) - original).ravel()
    found = {"l0": (steps != 0).sum(), "l1": steps.sum(), "l2": np.sqrt((steps**2).sum()), "linf": steps.max()}[
        pool.norm
    ]
    if not np.isclose(found, example.distance, rtol=0.01):
        raise RunError(
            f"{pool.folder}: {example.sample} is {example.distance:g} away in the ledger and {found:g} as a picture; "
            "inputs with a scale of their own cannot be shown"
        )


def _check_originals(pool: Pool) -> None:
    """All that may be shown; one that was deleted is not."""
    samples = set(pool.distances.samples)
    for shard in sorted({shard for sample, shard in pool.shards.items() if sample in samples}):
        path = pool.storage.fetch(shard_inputs(pool.folder, shard))
        inputs = read_inputs(path) if path.is_file() else {}
        for sample in sorted(samples & inputs.keys()):
            check_image(inputs[sample], f"{pool.folder}: {sample}")


def _input(path: Path, sample: str) -> Array:
    inputs = _read(path)
    if sample not in inputs:
        raise LedgerError(f"{path}: the input of {sample} was deleted")
    found: Array = inputs[sample]
    return found


@lru_cache(maxsize=64)
def _read(path: Path) -> dict[str, Any]:
    return read_inputs(path)
