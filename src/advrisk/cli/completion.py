"""What the Tab key offers where a run is expected; it must answer fast, so it imports nothing of the library."""

import os
from collections.abc import Iterator
from pathlib import Path

_LEDGER = "ledger/segments"  # the folder that makes another one a run


def run_folders(incomplete: str) -> list[str]:
    """The runs whose path starts so, and those one folder below: `r` offers `runs/signs`."""
    parent, _, start = incomplete.rpartition("/")
    home = f"{parent}/" if parent or incomplete.startswith("/") else ""
    return sorted(
        home + found for folder in _folders(home or ".") if folder.startswith(start) for found in _runs(home, folder)
    )


def _runs(home: str, folder: str) -> Iterator[str]:
    path = Path(home) / folder
    if (path / _LEDGER).is_dir():
        yield folder
    else:
        yield from (f"{folder}/{name}" for name in _folders(path) if (path / name / _LEDGER).is_dir())


def _folders(path: str | Path) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
    except OSError:
        return []
