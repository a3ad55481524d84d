"""Everything that a detector must score, in one file, for detectors that run elsewhere.

Clean inputs of the samples to evaluate and to calibrate, for each model, and all successes: `score_file` takes their
scores back.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from advrisk.core.archives import Array
from advrisk.core.errors import LedgerError
from advrisk.core.names import counted, did_you_mean, matches, no_match
from advrisk.ledger.inputs import calibrate_folder, cell_inputs, read_inputs, shard_inputs
from advrisk.ledger.ledger import Ledger
from advrisk.ledger.storage import Storage

_TO_SCORE = """
    SELECT o.model::VARCHAR AS model, o.arm::VARCHAR AS arm, o.sample::VARCHAR AS sample, o.repeat::BIGINT AS repeat,
           CASE o.kind WHEN 'clean' THEN 'clean' ELSE o.cell END AS place, s.shard
    FROM outcomes o
    JOIN arms a ON a.model = o.model AND a.arm = o.arm AND a.origin = 'study'
    JOIN samples s ON s.sample = o.sample AND s.split = 'evaluate'
    WHERE CASE o.kind WHEN 'clean' THEN o.outcome NOT IN ('error', 'timeout') ELSE o.outcome = 'success' END
    UNION ALL
    SELECT a.model, a.arm, s.sample, 0, 'calibrate', s.shard
    FROM arms a, samples s
    WHERE a.kind = 'clean' AND a.origin = 'study' AND s.split = 'calibrate'
    ORDER BY ALL
"""
_COLUMNS = ("model", "arm", "sample", "repeat")


def export_to_score(
    folder: Path, ledger: Ledger, target: Path, *, model: str | None = None, arm: str | None = None
) -> int:
    """Write every input that a detector must score into one .npz; returns how many.

    Arrays: x, and the columns that an import needs beside detector and score: model, arm, sample, repeat. With `arm`
    the clean inputs are there, too. All of them or none: what is imported incomplete cannot be evaluated.
    """
    rows = _wanted(folder, ledger, model, arm)
    kept = _reader(ledger.storage)
    found = [kept(row) for row in rows]
    _refuse_lost(folder, [row for row, x in zip(rows, found, strict=True) if x is None], len(rows))
    arrays: dict[str, Any] = {name: np.array([row[name] for row in rows]) for name in _COLUMNS}
    try:
        np.savez_compressed(target, x=np.stack([x for x in found if x is not None]), **arrays)
    except OSError as error:
        raise LedgerError(f"{target}: cannot be written: {error}") from None
    return len(rows)


def _wanted(folder: Path, ledger: Ledger, model: str | None, arm: str | None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = ledger.query(_TO_SCORE).to_pylist()
    if not rows:
        raise LedgerError(f"{folder}: holds no study that was run, so there is nothing to score")
    models, arms = {row["model"] for row in rows}, {row["arm"] for row in rows}
    if model is not None and model not in models:
        raise LedgerError(f"{folder}: no model is called {model!r}; {did_you_mean(model, models)}")
    if arm is not None and (complaint := no_match(arm, arms)):
        raise LedgerError(f"{folder}: {complaint}")
    rows = [row for row in rows if model is None or row["model"] == model]
    return [row for row in rows if arm is None or row["place"] in ("clean", "calibrate") or matches(row["arm"], [arm])]


def _reader(storage: Storage) -> Callable[[dict[str, Any]], Array | None]:
    """What was kept of a row; None where nothing was. Every file is read once."""
    folder = storage.folder
    aside = [read_inputs(path) for path in sorted(storage.fetch(calibrate_folder(folder)).glob("*.npz"))]
    to_calibrate = {sample: x for inputs in aside for sample, x in inputs.items()}
    files: dict[Path, dict[str, Array]] = {}

    def kept(row: dict[str, Any]) -> Array | None:
        if row["place"] == "calibrate":
            return to_calibrate.get(row["sample"])
        path = shard_inputs(folder, str(row["shard"])) if row["place"] == "clean" else cell_inputs(folder, row["place"])
        if storage.fetch(path) not in files:
            files[path] = read_inputs(path) if path.is_file() else {}
        return files[path].get(row["sample"])

    return kept


def _refuse_lost(folder: Path, lost: list[dict[str, Any]], n: int) -> None:
    if not lost:
        return
    found = f"{folder}: {counted(len(lost), 'input')} of {n} that a detector must score"
    if all(row["place"] == "calibrate" for row in lost):
        raise LedgerError(
            f"{found} are not kept here, all of samples to calibrate; run the study again with `keep_inputs: "
            "successful`: it attacks nothing again, and keeps them"
        )
    raise LedgerError(
        f"{found} were not kept (`keep_inputs: none`, or deleted); run the study with `keep_inputs: successful` into "
        "another folder, or hand the detector over as a Python object (`Study.run(…, detectors={…})`), for which they "
        "are crafted again"
    )
