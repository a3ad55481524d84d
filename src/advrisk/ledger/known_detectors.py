"""Which detectors belong to a run now, by full name: those of its study, and those whose scores were imported.

Scores of others stay in the ledger, as rows of arms that were dropped do, and are not shown unless they are named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from advrisk.core.errors import LedgerError
from advrisk.core.files import NOT_AS_WRITTEN, read_json, write_json

FILE = "detectors.json"


@dataclass(frozen=True)
class KnownDetectors:
    """Full names, in the order of the study, and in that of their import."""

    study: tuple[str, ...] = ()
    imported: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)  # full name -> what the study calls it

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.study, *self.imported)


def nameable(name: str) -> bool:
    """Whether a detector from elsewhere may be called so: what `@`, `,` and slashes mean in names is taken."""
    return bool(name) and not set(name) & set("@,/\\")


def read_known_detectors(folder: Path) -> KnownDetectors | None:
    """None where nobody wrote them down."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        content = read_json(path)
        names = {str(full): str(name) for full, name in content.get("names", {}).items()}
        return KnownDetectors(tuple(map(str, content["study"])), tuple(map(str, content["imported"])), names)
    except NOT_AS_WRITTEN as error:
        raise LedgerError(f"{path}: cannot be read ({error}); delete it and run the study again") from None


def write_study_detectors(folder: Path, full: Sequence[str], names: Mapping[str, str] | None = None) -> None:
    """The detectors of the study as it is asked now, and what it calls them."""
    known = read_known_detectors(folder)
    if full or known is not None:
        _write(folder, replace(known or KnownDetectors(), study=tuple(full), names=dict(names or {})))


def add_imported_detectors(folder: Path, names: Sequence[str]) -> None:
    """Of several imports of one name, the last one counts."""
    known = read_known_detectors(folder) or KnownDetectors()
    again = {name.rpartition("@")[0] for name in names}
    others = [name for name in known.imported if name.rpartition("@")[0] not in again]
    _write(folder, replace(known, imported=(*others, *names)))


def _write(folder: Path, known: KnownDetectors) -> None:
    write_json(folder / FILE, asdict(known), indent=2)
