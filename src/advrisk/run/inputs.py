"""Perturbed inputs, kept beside the ledger under the id of their cell."""

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from advrisk.core.errors import LedgerError
from advrisk.plan import Cell

FOLDER = "inputs"


def write_inputs(run_folder: Path, cell: Cell, samples: list[str], x: npt.NDArray[Any]) -> None:
    """Store perturbed inputs; the file appears in full or not at all."""
    target = input_file(run_folder, cell.id)
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name, array in (("sample", np.array(samples)), ("x", x)):
                buffer = io.BytesIO()
                np.lib.format.write_array(buffer, array, allow_pickle=False)
                archive.writestr(f"{name}.npy", buffer.getbuffer())
        unfinished.replace(target)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise LedgerError(f"{target}: perturbed inputs could not be stored: {error.strerror}") from error


def input_file(run_folder: Path, cell: str) -> Path:
    """Where a cell's perturbed inputs lie, if they were kept."""
    return run_folder / FOLDER / cell[:2] / f"{cell}.npz"
