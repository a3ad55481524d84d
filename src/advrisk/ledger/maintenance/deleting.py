"""Deleting the stored inputs of a model or a sample; outcome rows stay."""

from pathlib import Path

import numpy as np

from advrisk.core.errors import LedgerError
from advrisk.ledger.inputs import (
    cell_inputs,
    crafted_inputs,
    detector_states,
    examples_of,
    note_deleted,
    read_inputs,
    write_inputs,
)
from advrisk.ledger.ledger import Ledger
from advrisk.ledger.lock import locked
from advrisk.ledger.segments import last_number


def delete_inputs(folder: Path, ledger: Ledger, *, model: str | None = None, sample: str | None = None) -> int:
    """Delete stored inputs of a model, or of a sample; outcome rows stay. Returns how many files changed.

    What detectors learned may hold inputs, too: of that model, or from that sample, it is deleted with them.
    """
    if (model is None) == (sample is None):
        raise LedgerError("say either a model or a sample whose stored inputs are to be deleted")
    with locked(folder):
        try:
            return _deleted(folder, ledger, model, sample)
        except OSError as error:
            raise LedgerError(
                f"{error.filename or folder}: inputs cannot be deleted: {error.strerror or error}; some may be gone"
            ) from None


def _deleted(folder: Path, ledger: Ledger, model: str | None, sample: str | None) -> int:
    if model is not None:
        cells = ledger.query("SELECT DISTINCT cell FROM all_cells WHERE model = $model", {"model": model})
        files = [of(folder, cell) for cell in cells["cell"].to_pylist() for of in (cell_inputs, crafted_inputs)]
        files += examples_of(folder, model).glob("*.npz")
        files += detector_states(folder).glob(f"*/{model}.safetensors")
        present = [path for path in files if path.is_file()]
        note_deleted(folder, [path for path in present if path.suffix == ".npz"], after=last_number(ledger.path))
        for path in present:
            path.unlink()
        return len(present)
    split = ledger.query("SELECT split FROM samples WHERE sample = $sample", {"sample": sample})["split"].to_pylist()
    learned = [*detector_states(folder).rglob("*.safetensors")] if split == ["train"] else []
    for path in learned:
        path.unlink()
    changed = len(learned)
    for path in sorted((folder / "inputs").rglob("*.npz")):
        inputs = read_inputs(path)
        if sample in inputs:
            note_deleted(folder, [path], after=last_number(ledger.path))
            del inputs[sample]
            changed += 1
            if inputs:
                write_inputs(path, list(inputs), np.stack(list(inputs.values())))
            else:
                path.unlink()
    return changed
