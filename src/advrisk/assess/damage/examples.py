"""Adversarial examples beside their originals: small pictures, or the columns of a table that changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from advrisk.assess.changes import Change, changes, n_changes
from advrisk.assess.damage.distances import Distances
from advrisk.core.errors import LedgerError
from advrisk.core.pictures import Array, Bounds, png
from advrisk.core.tables import Row
from advrisk.ledger import Ledger
from advrisk.ledger.inputs import cell_inputs, read_bounds, read_inputs, shard_inputs
from advrisk.ledger.storage import Storage

MAX_MODELS = 8
_GAP = 14  # of the width of an image, the share between two
# Of attempts that are equally near, always the same one: a report of the same rows has the same bytes.
_SMALLEST = """
    SELECT o.model, o.sample, s.label, s.shard, d_{norm} AS distance, o.cell, o.arm, o.prediction, o.confidence
    FROM outcomes o JOIN samples s USING (sample)
    WHERE o.outcome = 'success' AND list_contains($arms, o.arm) AND list_contains($samples, o.sample)
      AND d_{norm} IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY o.model, o.sample ORDER BY d_{norm}, o.arm, o.repeat) = 1
"""


@dataclass(frozen=True)
class NearestSuccess:
    """One model's nearest adversarial example of a sample."""

    model: str
    prediction: int
    confidence: float | None
    distance: float
    arm: str
    png: bytes = b""  # of an image
    with_change: bytes = b""  # the same and, beside it, the change, amplified
    changes: tuple[Change, ...] = ()  # of a row of a table
    n_changed: int = 0  # features, of which `changes` are some


@dataclass(frozen=True)
class Example:
    """One sample: the original and what broke each model."""

    sample: str
    label: int
    png: bytes  # empty of a row of a table
    attacked: tuple[NearestSuccess, ...]
    others: Mapping[str, str]  # model -> why it has no adversarial example to show


def nearest_examples(folder: Path, ledger: Ledger, distances: Distances, *, count: int = 5) -> list[Example]:
    """Samples that most models had right and that were broken by attack, spread over easy and hard ones."""
    models = list(distances.by_model)[:MAX_MODELS]
    chosen = _chosen(distances, models, count)
    rows = ledger.query(
        _SMALLEST.format(norm=distances.norm), {"arms": list(distances.arms), "samples": chosen}
    ).to_pylist()
    found = {(row["model"], row["sample"]): row for row in rows}
    bounds = read_bounds(folder)
    examples = []
    for sample in chosen:
        place = distances.samples.index(sample)
        hits = [found[model, sample] for model in models if (model, sample) in found]
        others = {
            model: "incorrect unperturbed" if distances.by_model[model][place] == 0 else "not broken"
            for model in models
            if (model, sample) not in found
        }
        try:
            examples.append(_example(ledger.storage, sample, hits, others, bounds))
        except LedgerError:  # inputs were not kept, or were deleted
            continue
    return examples


def _chosen(distances: Distances, models: list[str], count: int) -> list[str]:
    grid = np.array([distances.by_model[model] for model in models])
    broken = ((grid > 0) & np.isfinite(grid)).sum(0)
    if not broken.any():
        return []
    candidates = np.flatnonzero(broken == broken.max())
    size = np.where(np.isfinite(grid), grid, np.nanmax(grid[np.isfinite(grid)])).mean(0)[candidates]
    ranked = candidates[np.argsort(size, kind="stable")]
    places = np.unique(np.linspace(0, len(ranked) - 1, min(count, len(ranked))).round().astype(int))
    return [distances.samples[place] for place in ranked[places]]


def _example(storage: Storage, sample: str, hits: Sequence[Row], others: Mapping[str, str], bounds: Bounds) -> Example:
    original = _input(storage.fetch(shard_inputs(storage.folder, str(hits[0]["shard"]))), sample)
    image = original.ndim == 3 and original.shape[0] in (1, 3)
    if not image and original.ndim != 1:
        raise LedgerError(f"{sample} is neither an image nor a row of a table")
    attacked = (
        _attacked(hit, _input(storage.fetch(cell_inputs(storage.folder, hit["cell"])), sample), original, bounds)
        for hit in hits
    )
    return Example(sample, hits[0]["label"], png(original, bounds) if image else b"", tuple(attacked), others)


def _attacked(hit: Row, adversarial: Array, original: Array, bounds: Bounds) -> NearestSuccess:
    found = NearestSuccess(**{name: hit[name] for name in ("model", "prediction", "confidence", "distance", "arm")})
    if original.ndim == 1:
        return replace(found, changes=changes(original, adversarial), n_changed=n_changes(original, adversarial))
    return replace(found, png=png(adversarial, bounds), with_change=png(_with_change(adversarial, original, bounds)))


def _input(path: Path, sample: str) -> Array:
    inputs = read_inputs(path)
    if sample not in inputs:
        raise LedgerError(f"{path}: the input of {sample} was deleted")
    return inputs[sample]


def _with_change(adversarial: Array, original: Array, bounds: Bounds) -> Array:
    """An adversarial example and, beside it, the change, from 0 (black) to 1."""
    low, high = bounds
    shown = (adversarial - low) / np.where(high > low, high - low, 1.0)
    gap = np.ones((*shown.shape[:2], max(1, shown.shape[2] // _GAP)))
    return np.concatenate([shown, gap, _amplified(adversarial - original)], axis=2)


def _amplified(delta: Array) -> Array:
    """Gray where nothing changed; the largest change fills the range."""
    return 0.5 + 0.5 * delta / max(float(np.abs(delta).max()), 1e-12)
