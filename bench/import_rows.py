"""Importing 3 and 30 million rows, from CSV and Parquet: rows per second of one core, and the peak memory of a child.

Seconds are those that a core is busy, so that other work on the machine does not matter.
"""

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

SUFFIXES = (".parquet", ".csv")
SAMPLES = 10_000
# What a child runs: it prints the rows, seconds of the processor, and the most memory it held. That is read from /proc:
# `ru_maxrss` of a child begins with what its parent held.
CHILD = """
import sys, time
from pathlib import Path
from advrisk.ledger.exchange.importing import import_outcomes

began = time.process_time()
n = import_outcomes(Path(sys.argv[1]), Path(sys.argv[2]))
taken = time.process_time() - began
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]
print(n, taken, int(peak) * 1024)
"""


@dataclass(frozen=True)
class Imported:
    """What the import of one file took."""

    rows: int
    process_s: float
    peak: int  # bytes


def main(*, tiny: bool = False) -> None:
    """A line for each size and format; the aims are 300,000 rows a second and 1 GB."""
    print(f"{'':10} {'M rows':>7} {'MB of file':>10} {'rows/CPU s':>11} {'CPU s':>6} {'peak GB':>8}")
    for models in (1,) if tiny else (3, 30):
        for suffix in SUFFIXES:
            samples, arms = (100, 2) if tiny else (SAMPLES, 100)
            measure(suffix, models, arms, samples)


def measure(suffix: str, models: int, arms: int, samples: int) -> None:
    """Write such a file, import it in a child, and print what that took."""
    folder = Path(tempfile.mkdtemp(prefix="advrisk-bench-"))
    try:
        path = folder / f"theirs{suffix}"
        write(path, models, arms, samples)
        found = imported(path, folder / "run")
        assert found.rows == models * arms * samples
        print(
            f"{suffix:10} {found.rows / 1e6:7.1f} {path.stat().st_size / 1e6:10.0f} "
            f"{found.rows / found.process_s:11,.0f} {found.process_s:6.1f} {found.peak / 1e9:8.2f}"
        )
    finally:
        shutil.rmtree(folder)


def imported(path: Path, run: Path) -> Imported:
    """Import a file in a process of its own."""
    said = subprocess.run([sys.executable, "-c", CHILD, path, run], check=True, capture_output=True, text=True)
    rows, process_s, peak = said.stdout.split()
    return Imported(int(rows), float(process_s), int(peak))


def write(path: Path, models: int, arms: int, samples: int) -> None:
    """A file of attacks on so many models, model by model; two of five samples resist."""
    schema = _rows(0, 1, 1).schema
    make = pacsv.CSVWriter if path.suffix == ".csv" else pq.ParquetWriter
    with make(path, schema) as writer:
        for model in range(models):
            writer.write_table(_rows(model, arms, samples))


def _rows(model: int, arms: int, samples: int) -> pa.Table:
    rng = np.random.default_rng(model)
    n, sample = arms * samples, np.tile(np.arange(samples), arms)
    resisted = rng.random(n) < 0.4
    return pa.table(
        {
            "model": pa.repeat(f"model-{model}", n),
            "sample": pa.array([f"mnist/{k:06d}" for k in range(samples)]).take(pa.array(sample)),
            "arm": pa.array([f"pgd-linf-{k}" for k in range(arms)]).take(pa.array(np.repeat(np.arange(arms), samples))),
            "norm": pa.repeat("linf", n),
            "eps": pa.repeat(0.1, n),
            "d_linf": pa.array(rng.random(n) / 10, mask=resisted),
            "n_forward": rng.integers(1, 100, n),
            "prediction": rng.integers(0, 10, n),
            "confidence": rng.random(n, dtype=np.float32),
            "label": sample % 10,
        }
    )


if __name__ == "__main__":
    main()
