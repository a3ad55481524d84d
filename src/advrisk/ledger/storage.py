"""Where a run is stored: the one object through which a ledger publishes, drops and fetches files.

`Storage` is a folder of this machine, which has nothing more to do. `sync.copies` has the two kinds of copies of a
folder on object storage: one to read, which fetches kept inputs once they are needed, and one to write, which pushes
every segment.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Storage:
    """A run's folder of this machine: the run itself, or a copy of what is on object storage."""

    folder: Path
    ledger_name: str = "ledger"  # of the folder with the segments

    @classmethod
    def of(cls, place: "Path | Storage") -> "Storage":
        """The storage of a folder of this machine; a storage is returned as it is."""
        return place if isinstance(place, Storage) else cls(place)

    @property
    def ledger(self) -> Path:
        """The folder with the segments."""
        return self.folder / self.ledger_name

    def refuse_writing(self) -> None:
        """Raise a LedgerError where a new segment would be lost."""

    def push(self, segment: Path) -> None:
        """Store a segment that was written to the folder; it counts as published once this returns."""

    def drop(self, names: Sequence[str]) -> None:
        """Delete segments, by name, that were removed from the folder."""

    def fetch(self, path: Path) -> Path:
        """The path of kept inputs, a file or a folder of them, after they were fetched, if there are any."""
        return path
