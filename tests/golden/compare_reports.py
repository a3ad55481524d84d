"""List where the reports of one run differ between two versions of advrisk: every number of JSON and CSV.

    python tests/golden/compare_reports.py OLD_SRC NEW_SRC RUN…

`OLD_SRC` and `NEW_SRC` are the `src` folders of two checkouts. It exits with 1 where anything differs.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_VOLATILE = {"made_at", "versions"}


def main(old: str, new: str, *runs: str) -> int:
    """Print every difference; returns their number."""
    n = 0
    for run in runs:
        first, second = (dict(_values(run, source)) for source in (old, new))
        for place in sorted({*first, *second}):
            if first.get(place, "absent") != second.get(place, "absent"):
                n += 1
                print(f"{run}: {place}: {first.get(place, 'absent')!r} -> {second.get(place, 'absent')!r}"[:300])
        print(f"{run}: {len(first)} values compared")
    return n


def _values(run: str, source: str) -> Iterator[tuple[str, Any]]:
    """Every value of the report as JSON and as CSV, by where it stands."""
    with tempfile.TemporaryDirectory() as folder:
        for form, name in (("--json", "out.json"), ("--csv", "out")):
            command = [sys.executable, "-m", "advrisk", "report", run, form, "--out", f"{folder}/{name}"]
            done = subprocess.run(command, env=os.environ | {"PYTHONPATH": source}, capture_output=True, text=True)
            if done.returncode:
                yield f"{form}: exit code", done.stderr.strip()
        if (record := Path(folder, "out.json")).exists():
            yield from _walk(json.loads(record.read_text()), "json")
        for path in sorted(Path(folder, "out").glob("*.csv")):
            with path.open() as file:
                yield from _walk(list(csv.DictReader(file)), path.name)


def _walk(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, held in value.items():
            if key not in _VOLATILE:
                yield from _walk(held, f"{place}.{key}")
    elif isinstance(value, list):
        yield f"{place}.length", len(value)
        for name, held in zip(_names(value), value, strict=True):
            yield from _walk(held, f"{place}[{name}]")
    else:
        yield place, value


def _names(rows: list[Any]) -> list[str]:
    """Rows by what they are of, where that is one of a kind, so that a row that is new shifts none; else by number."""
    kinds = ("quantity", "model", "of", "eps", "loss", "than", "name", "arm")
    named = [" ".join(str(row[kind]) for kind in kinds if kind in row) if isinstance(row, dict) else "" for row in rows]
    return [name if name and named.count(name) == 1 else str(number) for number, name in enumerate(named)]


if __name__ == "__main__":
    sys.exit(bool(main(*sys.argv[1:])))
