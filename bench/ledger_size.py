"""A ledger of ten million rows in 1,000 segments: written, compacted, checked and queried; the arithmetic for 10^9.

`python -m bench.ledger_size 100` takes a hundred million rows, 12 GB of disk and about half an hour.
"""

import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from advrisk.assess.damage.distances import smallest_distances
from advrisk.ledger import Ledger
from advrisk.ledger.maintenance.checking import check
from advrisk.ledger.maintenance.compacting import compact
from bench.ledger import TINY, Grid, cells, outcomes, question
from bench.timing import processor_s

SEGMENTS = 1000  # before compaction
NEAREST = "SELECT model, sample, min(d_linf) FROM outcomes WHERE outcome = 'success' GROUP BY ALL"
TALLY = "SELECT model, arm, outcome, count(*) FROM outcomes GROUP BY ALL"


def main(*, tiny: bool = False) -> None:
    """Ten million rows."""
    measure(TINY if tiny else Grid(), segments=4 if tiny else SEGMENTS)


def measure(grid: Grid, *, segments: int = SEGMENTS) -> None:
    """Print seconds, memory and bytes; then the arithmetic for a thousand million rows."""
    folder = Path(tempfile.mkdtemp(prefix="advrisk-bench-"))
    try:
        ledger = Ledger.open(folder, create=True)
        ledger.append(question(grid))
        written = processor_s(lambda: _write(ledger, grid, segments // grid.models))
        told = {"many small": _measured(folder, grid)}
        compacted = processor_s(lambda: compact(folder))
        told["compacted"] = _measured(folder, grid)
        checked = processor_s(lambda: check(folder))
        print(f"peak memory of `ledger check`, in a process of its own: {_peak_of_check(folder):.2f} GB")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
        print(f"peak memory of all, with compaction and check: {peak / 1e9:.2f} GB")
        _print(grid.rows / 1e6, told, {"materialised": written, "compacted": compacted, "checked": checked})
    finally:
        shutil.rmtree(folder)


def _write(ledger: Ledger, grid: Grid, pieces: int) -> None:
    """The rows of each model in so many segments, as a run leaves them."""
    for model in range(grid.models):
        of_model, cells_of_model = outcomes(grid, model), cells(grid, model)
        n, n_cells = of_model.num_rows // pieces, cells_of_model.num_rows // pieces
        for piece in range(pieces):
            own = of_model.slice(piece * n, n).combine_chunks()
            ledger.append({"outcomes": own, "cells": cells_of_model.slice(piece * n_cells, n_cells)})


def _peak_of_check(folder: Path) -> float:
    program = (
        "import resource, sys; from advrisk.ledger import check; assert not check(sys.argv[1]).damaged; "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=True)
    return int(done.stdout) * 1024 / 1e9


def _measured(folder: Path, grid: Grid) -> dict[str, float]:
    files = [path.stat().st_size for path in (folder / "ledger").rglob("*") if path.is_file()]
    ledger = Ledger.open(folder)
    found = {"segments": float(len(list((folder / "ledger" / "segments").iterdir()))), "bytes": float(sum(files))}
    found["open"] = processor_s(lambda: ledger.query("SELECT 1"))
    found["nearest"] = min(processor_s(lambda: ledger.query(NEAREST)) for _ in range(2))
    found["tally"] = min(processor_s(lambda: ledger.query(TALLY)) for _ in range(2))
    found["assess"] = processor_s(lambda: smallest_distances(ledger, norm="linf"))
    found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
    assert ledger.query("SELECT count(*) AS n FROM outcomes")["n"][0].as_py() == grid.rows
    return found


def _print(millions: float, told: dict[str, dict[str, float]], times: dict[str, float]) -> None:
    many, few = told["many small"], told["compacted"]
    print(f"{millions:g} M rows: " + ", ".join(f"{name} in {seconds:.1f} CPU s" for name, seconds in times.items()))
    titles = ("segments", "GB", "open s", "nearest s", "tally s", "assess s", "peak GB")
    print(f"{'':18} " + " ".join(f"{title:>9}" for title in titles))
    for name, one in told.items():
        print(
            f"{name:18} {one['segments']:9.0f} {one['bytes'] / 1e9:9.2f} {one['open']:9.2f} {one['nearest']:9.2f} "
            f"{one['tally']:9.2f} {one['assess']:9.2f} {one['peak'] / 1e9:9.2f}"
        )
    ratios = {name: many[name] / few[name] for name in ("open", "nearest", "tally", "assess")}
    print("many small / compacted: " + ", ".join(f"{name} {ratio:.1f}" for name, ratio in ratios.items()))
    scale = 1000 / millions
    print(
        f"10^9 rows, {scale:.0f} times as many: {few['bytes'] * scale / 1e9:.0f} GB of disk "
        f"({few['bytes'] / millions / 1e6:.0f} bytes a row), nearest {few['nearest'] * scale:.0f} CPU s, "
        f"tally {few['tally'] * scale:.0f} CPU s, check {times['checked'] * scale / 60:.0f} CPU min, written in "
        f"{times['materialised'] * scale / 3600:.1f} CPU h"
    )


if __name__ == "__main__":
    measure(Grid(models=int(sys.argv[1]) if len(sys.argv) > 1 else Grid().models))
