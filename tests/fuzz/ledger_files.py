"""Files of a run's folder, which may come from elsewhere: here, packed on object storage, and beside the ledger.

Whatever they say, nothing beside the folder of the run may be touched.
"""

import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np

from tests.fuzz.loader import Loader, written
from tests.fuzz.mutations import BYTES, TEXT, in_archive, in_json
from tests.stamps import restamp

_JSON = (in_json, in_json, in_json, *TEXT)
_DELETED = "inputs/cells/00/gone.npz"
_ROWS = "model,sample,arm,norm,eps,d_linf,outcome\n{0},s1,pgd,linf,0.1,0.05,success\n{0},s2,pgd,linf,0.1,,resisted\n"


class _Ground:
    """A run with three segments, one of them merged, and a kept input; files beside it; and copies of both."""

    def __init__(self, folder: Path) -> None:
        self._whole, self._copy = folder / "whole", folder / "copy"
        self._whole.mkdir()
        _make_run(folder, self._whole / "run")
        (self._whole / "beside").mkdir()
        (self._whole / "beside" / "theirs").write_text("theirs", encoding="utf-8")
        self.run = self._copy / "run"
        self.fresh()
        self.files = sorted(path for path in self.run.rglob("*") if path.is_file() and path.name != "lock")

    def fresh(self) -> None:
        """Copies as they were in the beginning."""
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self._whole, self._copy)

    def one(self, pattern: str) -> Path:
        return next(path for path in self.files if path.match(pattern))

    def refuse_strays(self) -> None:
        """Nothing beside the run may have come, gone or changed."""
        there = sorted(str(path.relative_to(self._copy)) for path in self._copy.glob("*/*") if path.parent != self.run)
        assert there == ["beside/theirs"], there
        assert (self._copy / "beside" / "theirs").read_text(encoding="utf-8") == "theirs"
        assert {path.name for path in self._copy.iterdir()} == {"beside", "run"}

    def care(self) -> None:
        """Check, repair, check, read and compact: after a repair nothing is damaged, and all of it can be read."""
        from advrisk.core.errors import LedgerError
        from advrisk.ledger import Ledger
        from advrisk.ledger.maintenance.checking import check
        from advrisk.ledger.maintenance.compacting import compact
        from advrisk.ledger.maintenance.repairing import repair

        try:
            found = check(self.run)
            repair(self.run)
            left = [finding for finding in check(self.run).findings if finding.damage]
            assert not left, f"damaged after the repair: {left[0]}"
            Ledger.open(self.run).outcomes()
            compact(self.run)
        finally:
            self.refuse_strays()
        if found.damaged:
            raise LedgerError(found.findings[0].what)


def _make_run(folder: Path, run: Path) -> None:
    from advrisk.ledger import Ledger
    from advrisk.ledger.exchange.importing import import_outcomes
    from advrisk.ledger.inputs import cell_inputs, write_inputs
    from advrisk.ledger.maintenance.compacting import compact

    def add(model: str, target: Path) -> None:
        import_outcomes(written(folder / f"{model}.csv", _ROWS.format(model).encode()), target)

    for model in ("a", "c"):
        add(model, folder / "names")
    for cell in Ledger.open(folder / "names").query("SELECT cell FROM cells ORDER BY ALL")["cell"].to_pylist():
        write_inputs(cell_inputs(run, cell), ["s1", "s2"], np.zeros((2, 1, 2, 2), np.float32))
    for model in ("a", "b"):
        add(model, run)
    earlier = next((run / "ledger" / "segments").glob("00000001-*"))
    shutil.copytree(earlier, folder / earlier.name)
    compact(run)
    (folder / earlier.name).rename(earlier)  # as if the merging had been stopped before it was deleted
    add("c", run)
    (run / "inputs" / "deleted.json").write_text(json.dumps([_DELETED]), encoding="utf-8")


def packed_segment(folder: Path) -> Loader:
    """A segment as it lies on object storage, fetched by whoever looks for damage, and by a reader."""
    from pyarrow import fs

    from advrisk.ledger import Ledger, readable_storage
    from advrisk.ledger.maintenance.checking import check
    from advrisk.ledger.sync.remote import Remote

    ground, storage, caches = _Ground(folder), folder / "storage", folder / "caches"
    segments = sorted((ground.run / "ledger" / "segments").iterdir())
    (storage / "ledger" / "segments").mkdir(parents=True)
    shutil.copyfile(ground.run / "ledger" / "history.jsonl", storage / "ledger" / "history.jsonl")
    places = [storage / "ledger" / "segments" / f"{segment.name}.zip" for segment in segments]
    seeds = [_packed(segment) for segment in segments]
    for path, content in zip(places, seeds, strict=True):
        path.write_bytes(content)
    remote = Remote("s3://bucket/run", fs.LocalFileSystem(), str(storage))

    def load(content: bytes, which: int) -> object:
        shutil.rmtree(caches, ignore_errors=True)
        places[which].write_bytes(content)
        with (
            mock.patch.object(Remote, "open", return_value=remote),
            mock.patch.dict(os.environ, ADVRISK_CACHE=str(caches)),
        ):
            try:
                check(readable_storage(remote.url, verify=False))
                return Ledger.open(remote.url).outcomes()
            finally:
                places[which].write_bytes(seeds[which])

    return Loader(seeds, (in_archive, in_archive, *BYTES), load)


def _packed(segment: Path) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for file in sorted(segment.iterdir()):
            archive.write(file, file.name)
    return target.getvalue()


def manifest(folder: Path) -> Loader:
    """`segment.json`, with a digest that is right as often as not."""
    from advrisk.ledger.manifest import read_manifest

    ground = _Ground(folder)
    paths = [path for path in ground.files if path.name == "segment.json"]

    def load(content: bytes, which: int) -> object:
        ground.fresh()
        read_manifest(written(paths[which], content).parent)
        return ground.care()

    return Loader([path.read_bytes() for path in paths], _JSON, load)


def replaces(folder: Path) -> Loader:
    """`replaces.json`, in a segment whose manifest agrees with it."""
    from advrisk.ledger.manifest import read_replaces
    from advrisk.ledger.segments import segment_folders

    ground = _Ground(folder)
    path = ground.one("replaces.json")

    def load(content: bytes, _: int) -> object:
        ground.fresh()
        restamp(written(path, content).parent)
        try:
            read_replaces(path.parent)
            segment_folders(ground.run / "ledger")
        finally:
            ground.care()
        return None

    return Loader([path.read_bytes()], _JSON, load)


def history(folder: Path) -> Loader:
    """`ledger/history.jsonl`."""
    from advrisk.ledger import Ledger
    from advrisk.ledger.history import read_history

    ground = _Ground(folder)
    path = ground.one("history.jsonl")

    def load(content: bytes, _: int) -> object:
        ground.fresh()
        read_history(written(path, content).parent)
        try:
            Ledger.open(ground.run).outcomes()
        finally:
            ground.care()
        return None

    return Loader([path.read_bytes()], (in_json, *BYTES), load)


def deleted(folder: Path) -> Loader:
    """`inputs/deleted.json`."""
    from advrisk.ledger.inputs import deleted_inputs

    ground = _Ground(folder)
    path = ground.one("deleted.json")

    def load(content: bytes, _: int) -> object:
        ground.fresh()
        written(path, content)
        deleted_inputs(ground.run)
        return ground.care()

    return Loader([path.read_bytes(), json.dumps({_DELETED: 1}).encode()], _JSON, load)


def care(folder: Path) -> Loader:
    """Any file of a run, of one kind as of another; then check, and repair."""
    ground = _Ground(folder)

    def load(content: bytes, which: int) -> object:
        ground.fresh()
        written(ground.files[which], content)
        return ground.care()

    return Loader([path.read_bytes() for path in ground.files], (in_json, in_archive, *BYTES), load)


def looks(folder: Path) -> Loader:
    """`looks.json`: which looks were taken at a run."""
    from advrisk.api import Run
    from advrisk.assess.stopping import stopping_words
    from advrisk.ledger.stopping import FILE, Look, Stopping, resting_ledger, write_stopping

    ground = _Ground(folder)
    look = Look("damage ±0.02", True, 1, 2, 0.5, 0.975, False, "a is 0.3 (0.1 to 0.5)")
    going = Stopping({"margin": "q"}, ("one", "two"), 4, 2, (look,))
    seeds = []
    for found in (going, replace(going, n_shards=1, n_samples_run=2, max_passes=100)):
        write_stopping(ground.run, found)
        seeds.append((ground.run / FILE).read_bytes())

    def load(content: bytes, _: int) -> object:
        written(ground.run / FILE, content)
        ledger, found = resting_ledger(ground.run)
        ledger.outcomes()
        return stopping_words(found), Run.open(ground.run).status()

    return Loader(seeds, _JSON, load)


def searches(folder: Path) -> Loader:
    """What searches wrote down of themselves."""
    from advrisk.ledger import Ledger
    from advrisk.ledger.searches import FOLDER, Course, Round, read_searches, write_course, write_current

    ground = _Ground(folder)
    axes = [{"name": "sigma", "low": 0.01, "high": 1.0, "log": True}]
    facts = {"model": "a", "name": "square", "norm": "linf", "eps": 0.1, "method": "ucb", "axes": axes}
    rounds = (Round("design", ({"sigma": 0.1}, {"sigma": 0.2}), ("pgd", "other")), Round("ucb", (), (), 2.0))
    write_course(ground.run, Course("one", facts | {"n_rounds": 2, "freeze": 1}, rounds, ("pgd",)))
    write_current(ground.run, ["one"])
    paths = [ground.run / FOLDER / name for name in ("one.json", "current.json")]
    seeds = [path.read_bytes() for path in paths]

    def load(content: bytes, which: int) -> object:
        paths[which].write_bytes(content)
        try:
            found = read_searches(Ledger.open(ground.run))
            return [(one.label, one.worst, one.n_worst, one.fruitless, one.rows(), one.as_dict()) for one in found]
        finally:
            paths[which].write_bytes(seeds[which])

    return Loader(seeds, _JSON, load)


LOADERS: dict[str, Callable[[Path], Loader]] = {
    "packed-segment": packed_segment,
    "manifest": manifest,
    "replaces": replaces,
    "history": history,
    "deleted": deleted,
    "care": care,
    "looks": looks,
    "searches": searches,
}
