"""A ledger of ten million rows in 1,000 segments: written, compacted, checked and queried; the arithmetic for 10^9.

`python -m bench.ledger_size 100` takes a hundred million rows, 12 GB of disk and about half an hour.
"""

import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from advrisk.ledger import Ledger, table_from
from advrisk.ledger.checking import check
from advrisk.ledger.compacting import compact
from advrisk.risk.distances import smallest_distances
from bench import ledger as rows

MILLIONS = 10
SEGMENTS = 1000  # before compaction
NEAREST = "SELECT model, sample, min(d_linf) FROM outcomes WHERE outcome = 'success' GROUP BY ALL"
TALLY = "SELECT model, arm, outcome, count(*) FROM outcomes GROUP BY ALL"


def main(millions: int = MILLIONS) -> None:
    """Print seconds, memory and bytes; then the arithmetic for a thousand million rows."""
    folder = Path(tempfile.mkdtemp(prefix="advrisk-bench-"))
    try:
        ledger = Ledger.open(folder, create=True)
        ledger.append(_question(millions))
        written = _timed(lambda: _write(ledger, millions))
        told = {"many small": _measured(folder, millions)}
        compacted = _timed(lambda: compact(folder))
        told["compacted"] = _measured(folder, millions)
        checked = _timed(lambda: check(folder))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
        print(f"peak memory of all, with compaction and check: {peak / 1e9:.2f} GB")
        _print(millions, told, {"materialised": written, "compacted": compacted, "checked": checked})
    finally:
        shutil.rmtree(folder)


def _question(millions: int) -> dict[str, pa.Table]:
    n = rows.SAMPLES
    samples = {"sample": [rows._sample(number) for number in range(n)], "split": ["evaluate"] * n}
    samples |= {"weight": np.ones(n), "shard": [str(number // rows.SHARD) for number in range(n)]}
    pairs = [(f"model-{model}", rows._arm(arm)) for model in range(millions) for arm in range(rows.ARMS)]
    arms = {"model": [model for model, _ in pairs], "arm": [arm for _, arm in pairs], "recipe": ["r"] * len(pairs)}
    arms |= {"origin": ["study"] * len(pairs), "kind": ["attack"] * len(pairs), "norm": ["linf"] * len(pairs)}
    arms |= {"repeats": np.ones(len(pairs), np.int32)}
    return {"samples": table_from("samples", samples), "arms": table_from("arms", arms)}


def _write(ledger: Ledger, millions: int) -> None:
    """A million rows of each model, some arms in each segment, as a run leaves them."""
    pieces = SEGMENTS // millions
    for model in range(millions):
        outcomes, cells = rows._outcomes(model), rows._cells(model)
        n, n_cells = outcomes.num_rows // pieces, cells.num_rows // pieces
        for piece in range(pieces):
            own = outcomes.slice(piece * n, n).combine_chunks()
            ledger.append({"outcomes": own, "cells": cells.slice(piece * n_cells, n_cells)})


def _measured(folder: Path, millions: int) -> dict[str, float]:
    files = [path.stat().st_size for path in (folder / "ledger").rglob("*") if path.is_file()]
    ledger = Ledger.open(folder)
    found = {"segments": float(len(list((folder / "ledger" / "segments").iterdir()))), "bytes": float(sum(files))}
    found["open"] = _timed(lambda: ledger.query("SELECT 1"))
    found["nearest"] = min(_timed(lambda: ledger.query(NEAREST)) for _ in range(2))
    found["tally"] = min(_timed(lambda: ledger.query(TALLY)) for _ in range(2))
    found["assess"] = _timed(lambda: smallest_distances(ledger, norm="linf"))
    found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
    assert ledger.query("SELECT count(*) AS n FROM outcomes")["n"][0].as_py() == millions * 1_000_000
    return found


def _timed(action: Callable[[], object]) -> float:
    """Seconds of processor time, all threads together: whoever else uses the machine changes little in it."""
    began = time.process_time()
    action()
    return time.process_time() - began


def _print(millions: int, told: dict[str, dict[str, float]], times: dict[str, float]) -> None:
    many, few = told["many small"], told["compacted"]
    print(f"{millions} M rows: " + ", ".join(f"{name} in {seconds:.1f} CPU s" for name, seconds in times.items()))
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
    main(int(sys.argv[1]) if len(sys.argv) > 1 else MILLIONS)
