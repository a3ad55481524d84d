"""What a segment says of itself: a digest of each of its files, and of the inputs that were kept for its cells.

    segment.json     {"files": {"cells.parquet": {"bytes": 8123, "digest": "…"}, …}, "inputs": {…}, "after": "…",
                      "digest": "…"}
    replaces.json    {"segments": ["00000001-3f2a9c1b", …], "aside": false}

`segment.json` is compared with the files before these are read (`ledger.verified`); `after` is the head of the
ledger's history at publication (`ledger.history`). Segments of earlier versions have no `after`, or no `segment.json`.
`replaces.json` is in a segment that was made of others: readers leave those out from the moment it is there. They are
deleted later, or moved aside if something was wrong with them.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from advrisk.core.digest import digest
from advrisk.core.errors import LedgerError
from advrisk.core.files import NOT_AS_WRITTEN, read_json, regular
from advrisk.core.shortage import refuse_shortage
from advrisk.ledger.inputs import cell_inputs, crafted_inputs, shard_inputs

FILE = "segment.json"
REPLACES_FILE = "replaces.json"
SEGMENT_NAME = re.compile(r"\d{8}-[0-9a-f]{8}", re.ASCII)
_FILE_NAME = re.compile(r"\w+\.(parquet|json)", re.ASCII)


@dataclass(frozen=True)
class Stamp:
    """The size and the content of a file."""

    bytes: int
    digest: str

    def __post_init__(self) -> None:
        if type(self.bytes) is not int or type(self.digest) is not str:
            raise TypeError("a size or a digest is none")


@dataclass(frozen=True)
class Replaces:
    """The segments, by name, that one takes the place of; `aside`: they are kept, as something is wrong with them."""

    segments: tuple[str, ...] = ()
    aside: bool = False


@dataclass(frozen=True)
class Manifest:
    """File name -> stamp, of a segment; and path in the run's folder -> stamp, of inputs kept for its cells."""

    files: Mapping[str, Stamp]
    inputs: Mapping[str, Stamp] = field(default_factory=dict)
    after: str | None = None  # the head of the ledger's history before it; None in segments of earlier versions

    @cached_property
    def digest(self) -> str:
        """The digest of everything else that stands in `segment.json`."""
        return digest(_plain(self))

    @property
    def content(self) -> str:
        """What is in the tables: the same for a copy of a segment, whatever it is called."""
        return digest(sorted([name, one.digest] for name, one in self.files.items() if name.endswith(".parquet")))


def stamp_file(path: Path) -> Stamp:
    """The stamp of a file as it is now; an OSError where it cannot be read."""
    with regular(path).open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    return Stamp(path.stat().st_size, found)


def kept_inputs(run_folder: Path, cells: pa.Table | None) -> dict[str, Stamp]:
    """The stamps of all inputs that lie beside the ledger for these cells, by their path in the run's folder."""
    if cells is None or not (run_folder / "inputs").is_dir():
        return {}
    paths = [of(run_folder, cell) for cell in cells["cell"].to_pylist() for of in (cell_inputs, crafted_inputs)]
    paths += [shard_inputs(run_folder, shard) for shard in set(cells["shard"].to_pylist()) if shard is not None]
    return {str(path.relative_to(run_folder)): stamp_file(path) for path in paths if path.is_file()}


def manifest_text(manifest: Manifest) -> str:
    """What is written into `segment.json`."""
    return json.dumps(_plain(manifest) | {"digest": manifest.digest}) + "\n"


def read_manifest(segment: Path) -> Manifest | None:
    """What a segment says of itself; None where an earlier version wrote it. One that was altered is an error."""
    path = segment / FILE
    try:
        content = read_json(path)
        files, inputs = ({key: Stamp(**one) for key, one in content[name].items()} for name in ("files", "inputs"))
        if content.pop("digest") != digest(content):
            raise LedgerError(f"{path}: was altered; {ADVICE}")
        _refuse_paths(files, inputs)
        return Manifest(files, inputs, None if content.get("after") is None else str(content["after"]))
    except FileNotFoundError:
        return None
    except NOT_AS_WRITTEN as error:
        refuse_shortage(error)
        raise LedgerError(f"{path}: cannot be read ({error}); {ADVICE}") from None


def _refuse_paths(files: Mapping[str, Stamp], inputs: Mapping[str, Stamp]) -> None:
    """Names become paths that are read, moved and copied; whoever wrote the file must not choose others."""
    strange = [name for name in files if not _FILE_NAME.fullmatch(name)]
    for name in inputs:
        parts = PurePosixPath(name).parts
        if parts[:1] != ("inputs",) or len(parts) < 2 or ".." in parts or "\0" in name:
            strange.append(name)
    if strange:
        raise ValueError(f"{strange[0]!r} is no file of a run")


def replaces_text(replaces: Replaces) -> str:
    """What is written into `replaces.json`."""
    return json.dumps({"segments": list(replaces.segments), "aside": replaces.aside}) + "\n"


def read_replaces(segment: Path) -> Replaces:
    """What a segment takes the place of; a FileNotFoundError where it is gone itself.

    What is replaced is deleted, so nothing but the name of another segment is let pass.
    """
    try:
        content = read_json(segment / REPLACES_FILE)
        names = tuple(map(str, content["segments"]))
        if strange := [name for name in names if not SEGMENT_NAME.fullmatch(name) or name == segment.name]:
            raise ValueError(f"{strange[0]!r} is no other segment")
        return Replaces(names, bool(content["aside"]))
    except FileNotFoundError:
        if not segment.is_dir():
            raise
        return Replaces()
    except NOT_AS_WRITTEN as error:
        refuse_shortage(error)
        raise LedgerError(f"{segment / REPLACES_FILE}: cannot be read ({error}); {ADVICE}") from None


def inputs_of(manifests: Mapping[str, Manifest | None], deleted: Mapping[str, int]) -> dict[str, Stamp]:
    """The inputs that segments, by name and in order, tell of; of one file, what the last of them says.

    What they said before somebody deleted inputs from a file (`deleted`) does not count.
    """
    return {
        path: one
        for segment, manifest in manifests.items()
        if manifest
        for path, one in manifest.inputs.items()
        if number_of(segment) > deleted.get(path, -1)
    }


def number_of(segment: str) -> int:
    """The number in a segment's name."""
    return int(segment.partition("-")[0])


def _plain(manifest: Manifest) -> dict[str, Any]:
    stamps = (("files", manifest.files), ("inputs", manifest.inputs))
    content: dict[str, Any] = {name: {path: vars(one) for path, one in of.items()} for name, of in stamps}
    return content if manifest.after is None else content | {"after": manifest.after}


ADVICE = "`advrisk ledger check RUN --repair` moves what is damaged aside"
