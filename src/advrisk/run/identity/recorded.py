"""What a ledger holds of a model's clean answers, shard by shard as the model was asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advrisk.ledger import Ledger

# Of several rows of a cell, those of the segment that was published last.
_LATEST = "(cell, parse_path(filename)[-2]) IN (FROM latest)"
_CELLS = """
    WITH latest AS (
        SELECT cell, max(parse_path(filename)[-2]) FROM all_cells WHERE list_contains($cells, cell) GROUP BY cell
    )
"""
_SHARDS = """
    SELECT shard::VARCHAR AS shard, min(cell) AS cell FROM all_cells WHERE recipe = $recipe
    AND coalesce(repeat, 0) = 0 AND shard IS NOT NULL GROUP BY ALL ORDER BY shard
"""
_MEMBERS = "SELECT shard, list(sample ORDER BY place) AS samples FROM samples WHERE shard IS NOT NULL GROUP BY shard"
_ROWS = f"""
    {_CELLS} SELECT cell::VARCHAR AS cell, sample::VARCHAR AS sample, kind = 'clean' AS clean, clean_prediction, draws,
    outcome = 'rejected' AS rejected FROM all_outcomes
    WHERE list_contains($cells, cell) AND clean_prediction IS NOT NULL AND outcome NOT IN ('error', 'timeout')
    AND {_LATEST}
"""
_LOGITS = f"""
    {_CELLS} SELECT cell::VARCHAR AS cell, sample::VARCHAR AS sample, logits, classes FROM all_outputs
    WHERE list_contains($cells, cell) AND {_LATEST}
"""


@dataclass(frozen=True)
class RecordedAnswer:
    """What the ledger says of one clean input; a row of an attack says the class alone."""

    prediction: int
    rejected: bool | None = None
    logits: NDArray[np.float32] | None = None
    classes: NDArray[np.int32] | None = None  # of the logits; None: all
    draws: tuple[int, ...] | None = None  # of a model that answers at random: the class of each


@dataclass(frozen=True)
class RecordedShard:
    """The samples that a model was asked about together, and its answers; failed rows have none."""

    id: str
    samples: tuple[str, ...]
    cell: str


Answers = Mapping[str, RecordedAnswer]  # by sample


def recorded_shards(ledger: Ledger, recipe: str) -> list[RecordedShard]:
    """The shards whose cells of this recipe are finished, in the order of their names: hashes of their contents."""
    cells = ledger.query(_SHARDS, {"recipe": recipe}).to_pylist()
    if not cells:
        return []
    members = {row["shard"]: row["samples"] for row in ledger.query(_MEMBERS).to_pylist()}
    return [RecordedShard(row["shard"], tuple(members.get(row["shard"], ())), row["cell"]) for row in cells]


def recorded_answers(ledger: Ledger, shards: Sequence[RecordedShard]) -> dict[str, Answers]:
    """Cell -> what the ledger says of its samples."""
    cells = {"cells": [shard.cell for shard in shards]}
    rows = ledger.query(_ROWS, cells).to_pylist()
    has_clean = any(row["clean"] for row in rows)
    outputs = ledger.query(_LOGITS, cells).to_pylist() if has_clean else []
    logits = {(row["cell"], row["sample"]): row for row in outputs}
    answers: dict[str, dict[str, RecordedAnswer]] = {shard.cell: {} for shard in shards}
    for row in rows:
        output = logits.get((row["cell"], row["sample"]), {}) if row["clean"] else {}
        answers[row["cell"]][row["sample"]] = RecordedAnswer(
            prediction=row["clean_prediction"],
            rejected=row["rejected"] if row["clean"] else None,
            logits=None if output.get("logits") is None else np.array(output["logits"], np.float32),
            classes=None if output.get("classes") is None else np.array(output["classes"], np.int32),
            draws=tuple(row["draws"]) if row["clean"] and row["draws"] else None,
        )
    return dict(answers)
