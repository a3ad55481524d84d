"""Inputs that were kept of cells which the ledger does not hold: attacks met samples, and no row says with what result.

A run that was killed leaves such files, and its next start does the same cells, of the same names. So what is left
behind for good belongs to cells that were never asked for again: of a study that was changed, or of a ledger whose last
segments were cut off together with their lines of the history. While a run is written to, its newest inputs wait for
their rows; those from before it began do not.
"""

from collections.abc import Iterator
from pathlib import Path

from advrisk.core.errors import LedgerError
from advrisk.core.names import counted
from advrisk.ledger import Ledger
from advrisk.ledger.inputs import inputs_folder, read_inputs
from advrisk.ledger.lock import holder

_KEPT = ("cells", "crafted")  # under the names of their cells


def caveats_of_leftovers(ledger: Ledger) -> list[str]:
    """A note if such cells met calibration samples."""
    folder = ledger.path.parent
    cells = set(ledger.query("SELECT DISTINCT cell::VARCHAR AS cell FROM all_cells")["cell"].to_pylist())
    strays = [path for path in _kept(folder) if path.stem not in cells]
    if strays and holder(folder) is not None:
        began = (folder / "lock").stat().st_mtime
        strays = [path for path in strays if path.stat().st_mtime < began]
    if not strays:
        return []
    rows = ledger.query("SELECT sample FROM samples WHERE split IN ('calibrate', 'dropped-calibrate')")
    calibrate = set(rows["sample"].to_pylist())
    met = sorted({path.stem for path in strays if not calibrate.isdisjoint(_samples(path))})
    if not met:
        return []
    return [
        f"Inputs are kept of {counted(len(met), 'cell')} on samples to calibrate that the ledger does not hold, "
        f"{met[0]} among them: an attack met these samples, and its result is gone. A run that was stopped leaves such "
        "files until the same study is run again; else the end of the ledger may have been cut off. Take new samples, "
        "in a new folder."
    ]


def _kept(folder: Path) -> Iterator[Path]:
    for kind in _KEPT:
        yield from (inputs_folder(folder) / kind).rglob("*.npz")


def _samples(path: Path) -> set[str]:
    """The samples whose inputs a file keeps; none if it is unreadable, which a check of the ledger reports."""
    try:
        return set(read_inputs(path))
    except LedgerError:
        return set()
