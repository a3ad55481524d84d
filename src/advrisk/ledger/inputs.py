"""Inputs, kept beside the ledger: perturbed ones under the id of their cell, clean ones under their shard.

inputs/cells/3f/3f2a….npz    inputs/shards/9c1b….npz    inputs/crafted/3f/3f2a….npz    inputs/examples/plain/3f2a….npz
inputs/calibrate/5d0e….npz    inputs/bounds.npy

Of a cell whose points others take over, all are kept under `crafted`, successful or not; those that detectors learn
from, under `examples` and the name of their model; samples to calibrate, under the digest of all of them. The bounds
of the space say what is black and what is white. Of a run on object storage, a path may name what is not here yet:
`Storage.fetch` fetches it.
"""

import io
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from advrisk.core.archives import DAMAGED, ArchiveError, Array, read_archive
from advrisk.core.errors import LedgerError
from advrisk.core.files import NOT_AS_WRITTEN, read_json, whole_file, write_json
from advrisk.core.shortage import refuse_shortage

MAX_BYTES = 32 * 2**30  # of one file, unpacked
_DELETED = "deleted.json"
_ALL = 10**8  # more than the number of any segment


def inputs_folder(run_folder: Path) -> Path:
    """The folder of all that was kept."""
    return run_folder / "inputs"


def cell_inputs(run_folder: Path, cell: str) -> Path:
    """Where the perturbed inputs of a cell lie, if they were kept."""
    return run_folder / "inputs" / "cells" / cell[:2] / f"{cell}.npz"


def crafted_inputs(run_folder: Path, cell: str) -> Path:
    """Where the points lie that a cell crafted for transfer arms, if inputs were kept."""
    return run_folder / "inputs" / "crafted" / cell[:2] / f"{cell}.npz"


def example_inputs(run_folder: Path, model: str, cell: str) -> Path:
    """Where the points lie that a cell crafted for detectors to learn from, if inputs were kept."""
    return examples_of(run_folder, model) / f"{cell}.npz"


def examples_of(run_folder: Path, model: str) -> Path:
    """The folder of all that was crafted on a model for detectors to learn from."""
    return run_folder / "inputs" / "examples" / model


def detector_states(run_folder: Path) -> Path:
    """The folder of what detectors learned."""
    return run_folder / "detectors"


def detector_state(run_folder: Path, detector: str, model: str) -> Path:
    """Where a detector, by its full name, keeps what it learned: detectors/lid@1a2b3c4d/plain.safetensors."""
    readable, _, digest = detector.rpartition("@")
    return detector_states(run_folder) / f"{readable.partition(',')[0]}@{digest}" / f"{model}.safetensors"


def shard_inputs(run_folder: Path, shard: str) -> Path:
    """Where the clean inputs of a shard lie, if inputs were kept."""
    return run_folder / "inputs" / "shards" / f"{shard}.npz"


def calibrate_inputs(run_folder: Path, which: str) -> Path:
    """Where the clean inputs to calibrate lie, if inputs were kept; `which` names these samples."""
    return calibrate_folder(run_folder) / f"{which}.npz"


def calibrate_folder(run_folder: Path) -> Path:
    """The folder of all clean inputs to calibrate."""
    return run_folder / "inputs" / "calibrate"


def write_bounds(run_folder: Path, low: Array, high: Array) -> None:
    """Store between which values inputs lie: two numbers, or two for each feature."""
    target = run_folder / "inputs" / "bounds.npy"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as path, open(path, "wb") as file:
            np.save(file, np.stack(np.broadcast_arrays(low, high)), allow_pickle=False)
    except OSError as error:
        raise LedgerError(f"{target}: bounds could not be stored: {error.strerror}") from error


def read_bounds(run_folder: Path) -> tuple[Array, Array]:
    """Between which values inputs lie; 0 and 1 where a run does not say so, as earlier ones do not."""
    target = run_folder / "inputs" / "bounds.npy"
    try:
        low, high = np.load(target, allow_pickle=False)
    except FileNotFoundError:
        return np.array(0.0), np.array(1.0)
    except (ValueError, EOFError, OSError) as error:
        raise LedgerError(f"{target}: cannot be read: {error}; delete it, and 0 and 1 are taken") from None
    return low, high


def write_inputs(target: Path, samples: Sequence[str], x: Array) -> None:
    """Store inputs by sample; the file appears in full or not at all."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as path, zipfile.ZipFile(path, "w") as archive:
            for name, array in (("sample", np.array(samples)), ("x", x)):
                buffer = io.BytesIO()
                np.lib.format.write_array(buffer, array, allow_pickle=False)
                # Without the time of day: the same inputs make the same file, whoever writes it again.
                entry = zipfile.ZipInfo(f"{name}.npy")
                archive.writestr(entry, buffer.getbuffer(), zipfile.ZIP_DEFLATED, compresslevel=1)
    except OSError as error:
        raise LedgerError(f"{target}: inputs could not be stored: {error.strerror}") from error


def read_inputs(path: Path) -> dict[str, Array]:
    """Sample id -> input."""
    try:
        found = read_archive(path, max_bytes=MAX_BYTES)
    except FileNotFoundError:
        raise LedgerError(f"{path}: these inputs were not kept; set `keep_inputs: successful` or `all`") from None
    except ArchiveError as error:
        raise LedgerError(f"{path}: {error}") from None
    samples, x = found.get("sample"), found.get("x")
    if samples is None or x is None or samples.ndim != 1 or x.shape[:1] != samples.shape:
        raise LedgerError(f"{path}: cannot be read: an id for each input is needed")
    return dict(zip(map(str, samples.tolist()), x, strict=True))


def unreadable_inputs(path: Path) -> str:
    """Why stored inputs cannot be read; empty where they can."""
    try:
        with zipfile.ZipFile(path) as archive:
            return f"the checksum of {bad} is wrong" if (bad := archive.testzip()) else ""
    except DAMAGED as error:
        refuse_shortage(error)
        return f"cannot be read ({error})"


def deleted_inputs(run_folder: Path) -> dict[str, int]:
    """The files, by their path in the run's folder, from which inputs were deleted, and the last segment's number then.

    What segments up to that number tell of such a file is void; later ones tell of it as it was made again.
    """
    path = run_folder / "inputs" / _DELETED
    try:
        content = read_json(path)
        if isinstance(content, list):  # of an earlier version
            return dict.fromkeys(map(str, content), _ALL)
        return {str(name): int(number) for name, number in content.items()}
    except FileNotFoundError:
        return {}
    except NOT_AS_WRITTEN as error:
        raise LedgerError(f"{path}: cannot be read ({error}); delete it: it says which inputs were deleted") from None


def note_deleted(run_folder: Path, files: Iterable[Path], *, after: int) -> None:
    """Write down from which files inputs were deleted, after which segment: what is gone is not taken for lost."""
    names = {path.relative_to(run_folder).as_posix(): after for path in files}
    if not names:
        return
    target = run_folder / "inputs" / _DELETED
    noted = dict(sorted((deleted_inputs(run_folder) | names).items()))
    write_json(target, noted, indent=0, advice="; make room, then try again")
