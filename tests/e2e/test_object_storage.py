"""Runs by URL, against a real S3 server on loopback: the same commands, the same rows, nothing half."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import fs

from advrisk import Run, Study
from advrisk.assess.damage.examples import Example, nearest_examples
from advrisk.core.errors import LedgerError, RunError
from advrisk.ledger import Ledger, check, readable_storage, repair, table_from, writable_storage
from advrisk.ledger.maintenance.compacting import compact
from advrisk.ledger.maintenance.diffing import diff_ledgers
from advrisk.ledger.rewriting import read_tables
from advrisk.ledger.segments import publish, segment_folders
from advrisk.ledger.sync import lease, pull, remote
from advrisk.ledger.sync.copies import copy_folder

from .conftest import study_of
from .servers import get, keys, put, s3_served, zips

Command = Callable[..., Any]
Machine = Callable[[str], None]
Copied = Callable[[str], str]

MODELS = {"models": table_from("models", {"model": ["a"]})}


@pytest.fixture(scope="module")
def storage() -> Iterator[fs.S3FileSystem]:
    with s3_served() as made:
        yield made


@pytest.fixture
def endpoint(storage: fs.S3FileSystem) -> str:
    return os.environ["AWS_ENDPOINT_URL"].removeprefix("http://")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """From now on this is another machine: it has no copies of anything."""

    def called(name: str) -> None:
        monkeypatch.setenv("ADVRISK_CACHE", str(tmp_path / "caches" / name))

    called("first")
    return called


@pytest.fixture(scope="module")
def content(nets: Path) -> dict[str, Any]:
    small = study_of(nets)
    small["data"]["evaluate"] = 32
    small["arms"] = [{"attack": "fgsm", "norm": "linf", "eps": [0.1, 0.2]}]
    small["scenarios"] = {"town": {"fgsm": {"weight": 0.5}}}
    small["gate"] = ["broken.* at 0.2 <= 100 %"]
    return small


@pytest.fixture(scope="module")
def local(content: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("local") / "run"
    Study.from_dict(content).run(folder, workers=1)
    return folder


@pytest.fixture(scope="module")
def published(local: Path, storage: fs.S3FileSystem, tmp_path_factory: pytest.TempPathFactory) -> str:
    """That run at a URL, put there by somebody else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ADVRISK_CACHE", str(tmp_path_factory.mktemp("elsewhere")))
        with writable_storage("s3://bucket/runs/made") as made:
            home = made.folder
            (home / "ledger" / "segments").mkdir(parents=True)
            for name in ("inputs", "study.yaml"):
                (shutil.copytree if (local / name).is_dir() else shutil.copy)(local / name, home / name)
            for segment in segment_folders(local / "ledger"):
                publish(made, read_tables(segment))
    return "bucket/runs/made"


@pytest.fixture
def copied(storage: fs.S3FileSystem, published: str) -> Copied:
    """The URL of a copy of the run that no machine has seen before."""

    def copy(name: str) -> str:
        for key in keys(storage, published):
            storage.copy_file(f"{published}/{key}", f"bucket/runs/{name}/{key}")
        return f"s3://bucket/runs/{name}"

    return copy


def inputs_here(url: str) -> list[str]:
    home = Ledger.open(url).path.parent
    return sorted(path.parent.parent.name for path in (home / "inputs").rglob("*.npz"))


def down(self: remote.Remote, name: str, *rest: object) -> None:
    if not lease.is_lease(name):
        raise LedgerError("the network is down")


def test_the_verbs_take_a_url(
    storage: fs.S3FileSystem,
    machine: Machine,
    content: dict[str, Any],
    local: Path,
    write_study: Callable[..., Path],
    advrisk: Command,
) -> None:
    url = "s3://bucket/runs/one"
    done = advrisk("run", write_study(content), "--out", url, "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert f"report: {url}/report.html" in done.stdout
    assert diff_ledgers(url, local).equal
    held = keys(storage, "bucket/runs/one")
    assert "lease.json" not in held
    assert {"study.yaml", "report.html"} <= set(held)
    assert all(name.endswith(".zip") for name in held if name.startswith("ledger/segments/")), "one object for each"
    assert len([name for name in held if name.startswith("inputs/")]) == len(list((local / "inputs").rglob("*.np*")))
    machine("second")
    assert json.loads(advrisk("status", url, "--json").stdout)["complete"]
    assert advrisk("show", url).returncode == 0
    assert Run.open(url).damage().comparison.estimates == Run.open(local).damage().comparison.estimates
    assert advrisk("ledger", "check", url).returncode == 0
    compacted = advrisk("ledger", "compact", url)
    assert compacted.stdout.endswith(" segments before, 1 now\n"), compacted.stderr
    assert len(zips(storage, "bucket/runs/one")) == 1
    Study.from_dict(content).run(url, workers=1)
    assert diff_ledgers(url, local).equal
    assert len(zips(storage, "bucket/runs/one")) == 1, "nothing was run"


def test_what_was_put_there_is_not_run_again_on_another_machine(
    storage: fs.S3FileSystem,
    machine: Machine,
    content: dict[str, Any],
    local: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, real, n_put = "s3://bucket/runs/stopped", remote.Remote.put, 0

    def breaks(self: remote.Remote, name: str, data: bytes) -> None:
        nonlocal n_put
        n_put += name.endswith(".zip")
        if n_put > 4:
            raise LedgerError("the network is down")
        real(self, name, data)

    with monkeypatch.context() as patch:
        patch.setattr(remote.Remote, "put", breaks)
        with pytest.raises(LedgerError, match="the network is down"):
            Study.from_dict(content).run(url, publish_every_s=0.0, workers=1)
    first = Ledger.open(url).finished_cells()
    assert len(first) == 3, "what was put there, after the question; the rest is lost"
    machine("second")
    assert Ledger.open(url).finished_cells() == first
    Study.from_dict(content).run(url, workers=1)
    assert diff_ledgers(url, local).equal
    n_runs = Ledger.open(url).query(
        "SELECT count(DISTINCT run) AS n FROM cells WHERE cell IN (SELECT unnest($f))", {"f": sorted(first)}
    )
    assert n_runs["n"][0].as_py() == 1, "these are from the first machine"


def test_half_a_segment_is_refused_found_and_repaired(
    storage: fs.S3FileSystem, machine: Machine, content: dict[str, Any], local: Path, copied: Copied, advrisk: Command
) -> None:
    url = copied("half")
    assert advrisk("ledger", "check", url).returncode == 0
    with writable_storage(url):
        pass  # this machine has a copy to write to, one to read, and one to check
    Ledger.open(url)
    name = zips(storage, "bucket/runs/half")[-1]
    data = get(storage, f"bucket/runs/half/{name}")
    put(storage, f"bucket/runs/half/{name}", data[: len(data) // 2])
    for where in ("first", "second"):
        machine(where)
        with pytest.raises(LedgerError, match=r"zip: cannot be read .*ledger check 's3://bucket/runs/half' --repair"):
            Ledger.open(url)
        with pytest.raises(LedgerError, match="zip: cannot be read"), writable_storage(url):
            pass
        assert advrisk("ledger", "check", url).returncode == 1, where
    machine("first")
    assert advrisk("ledger", "check", url, "--repair").returncode == 0
    assert name not in keys(storage, "bucket/runs/half")
    Study.from_dict(content).run(url, workers=1)
    assert diff_ledgers(url, local).equal
    assert advrisk("ledger", "check", url).returncode == 0


def test_damage_that_leaves_size_and_time_is_found_by_who_looks_for_it(
    storage: fs.S3FileSystem, machine: Machine, monkeypatch: pytest.MonkeyPatch, advrisk: Command
) -> None:
    url, real = "s3://bucket/runs/rotten", remote.Remote.fetch
    with writable_storage(url) as opened:
        Ledger.open(opened, create=True).append(MODELS)
    assert advrisk("ledger", "check", url).returncode == 0

    def rotten(self: remote.Remote, name: str, target: Path) -> None:
        real(self, name, target)
        data = bytearray(target.read_bytes())
        data[len(data) // 2] ^= 1
        target.write_bytes(data)

    monkeypatch.setattr(remote.Remote, "fetch", rotten)
    assert advrisk("ledger", "check", url).returncode == 1
    assert advrisk("ledger", "check", url, "--repair").returncode == 0
    assert zips(storage, "bucket/runs/rotten") == []


def _encrypted(data: bytearray) -> None:
    for begin, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(begin) + at] |= 1


def _no_text(data: bytearray) -> None:
    for begin, at, name in ((b"PK\3\4", 6, 30), (b"PK\1\2", 8, 46)):
        data[data.index(begin) + at + 1] |= 8
        data[data.index(begin) + name] = 0xFF


@pytest.mark.parametrize("spoil", [_encrypted, _no_text])
def test_a_segment_that_nobody_wrote_is_damaged(
    spoil: Callable[[bytearray], None], storage: fs.S3FileSystem, machine: Machine, advrisk: Command
) -> None:
    url = f"s3://bucket/runs/strange{spoil.__name__}"
    with writable_storage(url) as opened:
        Ledger.open(opened, create=True).append(MODELS)
    path = f"{url[5:]}/{zips(storage, url[5:])[0]}"
    data = bytearray(get(storage, path))
    spoil(data)
    put(storage, path, bytes(data))
    machine("second")
    with pytest.raises(LedgerError, match="zip: cannot be read"):
        Ledger.open(url)
    assert advrisk("ledger", "check", url).returncode == 1


def test_one_writer_at_a_time(storage: fs.S3FileSystem, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "s3://bucket/runs/leased"
    holder = f"process {os.getpid()} on .* is writing to this folder"
    with writable_storage(url):
        assert keys(storage, "bucket/runs/leased") == ["lease.json"]
        machine("second")
        monkeypatch.setattr(time, "time", lambda now=time.time: now() + 3600.0)  # by its own clock
        with pytest.raises(LedgerError, match=holder), writable_storage(url):
            pass
    assert keys(storage, "bucket/runs/leased") == []
    with writable_storage(url):
        pass


@pytest.mark.parametrize("still_there", [True, False])
def test_of_two_that_start_at_once_the_one_whose_words_are_gone_gives_up(
    still_there: bool, storage: fs.S3FileSystem, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"s3://bucket/runs/raced-{still_there}"

    def other(_: float) -> None:
        put(storage, f"{url[5:]}/lease.json", b'{"token": "another", "holder": "somebody else"}')
        if not still_there:
            storage.delete_file(f"{url[5:]}/lease.json")

    monkeypatch.setattr(lease.time, "sleep", other)
    with pytest.raises(LedgerError, match="is writing to this folder"), writable_storage(url):
        pytest.fail("the other one writes")


def test_who_was_not_heard_of_for_long_is_replaced_and_publishes_nothing_more(
    storage: fs.S3FileSystem, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, taken, homes = "s3://bucket/runs/lost", "another process writes to this folder now", []

    def outlasted() -> None:
        with writable_storage(url) as opened:
            homes.append(opened.folder)
            Ledger.open(opened, create=True).append(MODELS)
            monkeypatch.setattr(lease, "LASTS_S", -1.0)
            machine("second")
            with writable_storage(url) as other:
                Ledger.open(other).append(MODELS)
            (opened.folder / "late.json").write_text("{}")
            Ledger.open(opened).append(MODELS)

    with pytest.raises(LedgerError, match=taken) as caught:
        outlasted()
    assert taken in caught.value.__notes__[0], "nor is anything else put there"
    assert len(zips(storage, "bucket/runs/lost")) == 2
    assert len(segment_folders(homes[0] / "ledger")) == 1, "what was not put there was never published"


def test_what_another_writer_put_there_meanwhile_stays(storage: fs.S3FileSystem, machine: Machine) -> None:
    url, root = "s3://bucket/runs/both", "bucket/runs/both"
    with writable_storage(url) as opened:
        Ledger.open(opened, create=True).append(MODELS)
        Ledger.open(opened).append(MODELS)
    data = get(storage, f"{root}/{zips(storage, root)[0]}")
    late = ["ledger/segments/00000002-0badcafe.zip", "inputs/cells/3f/3f00.npz", "detectors/lid@1/plain.safetensors"]
    with writable_storage(url) as opened:
        for name in late:
            put(storage, f"{root}/{name}", data)
        assert compact(opened).n_after == 1
    assert set(late) <= set(keys(storage, root))
    assert len(zips(storage, root)) == 2, "what this writer had seen and merged is gone"


def test_a_segment_that_vanished_there_is_told(storage: fs.S3FileSystem, machine: Machine) -> None:
    url, root = "s3://bucket/runs/vanished", "bucket/runs/vanished"

    def robbed() -> None:
        with writable_storage(url) as opened:
            Ledger.open(opened, create=True).append(MODELS)
            storage.delete_file(f"{root}/{zips(storage, root)[0]}")

    with pytest.raises(LedgerError, match=r"vanished/ledger/.*zip: was put there, and is gone"):
        robbed()


def test_a_segment_that_is_lost_there_is_missed_and_repaired(storage: fs.S3FileSystem, machine: Machine) -> None:
    url, root = "s3://bucket/runs/robbed", "bucket/runs/robbed"
    with writable_storage(url) as opened:
        ledger = Ledger.open(opened, create=True)
        for name in "abc":
            ledger.append({"models": table_from("models", {"model": [name]})})
    lost = zips(storage, root)[1]
    storage.delete_file(f"{root}/{lost}")
    for name in ("first", "second"):
        machine(name)
        with pytest.raises(LedgerError, match=rf"{Path(lost).stem}: is lost"):
            Ledger.open(url).query("FROM models")
        assert [finding.kind for finding in check(url).findings] == ["missing"]
    repair(url)
    assert not check(url).damaged
    machine("first")
    assert Ledger.open(url).query("SELECT model FROM models ORDER BY ALL")["model"].to_pylist() == ["a", "c"]


@pytest.mark.parametrize("call", ["listing", "get", "fetch"])
def test_a_reader_misses_nothing_while_segments_are_published(
    storage: fs.S3FileSystem, machine: Machine, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """A history that is older than the listing lacks lines; a newer one names what is not listed."""
    url, real, added = f"s3://bucket/runs/during-{call}", getattr(remote.Remote, call), iter("def")
    with writable_storage(url) as opened:
        for name in "abc":
            Ledger.open(opened, create=True).append({"models": table_from("models", {"model": [name]})})

    def meanwhile(self: remote.Remote, *given: Any) -> Any:
        done = real(self, *given)
        with monkeypatch.context() as patch:
            patch.setattr(remote.Remote, call, real)
            if names := [*added]:
                with writable_storage(url) as opened:
                    for name in names:
                        Ledger.open(opened).append({"models": table_from("models", {"model": [name]})})
        return done

    machine("second")
    monkeypatch.setattr(pull, "_AT_ONCE", 1)
    monkeypatch.setattr(remote.Remote, call, meanwhile)
    found = Ledger.open(url).query("SELECT model FROM models ORDER BY ALL")["model"].to_pylist()
    assert found in (["a", "b", "c"], ["a", "b", "c", "d", "e", "f"])
    assert next(added, None) is None


def test_what_was_deleted_here_and_not_there_is_deleted_by_the_same_command(
    storage: fs.S3FileSystem, machine: Machine, copied: Copied, monkeypatch: pytest.MonkeyPatch, advrisk: Command
) -> None:
    url = copied("secret")
    sample = Ledger.open(url).query("SELECT sample FROM samples WHERE shard IS NOT NULL LIMIT 1")["sample"][0].as_py()

    monkeypatch.setattr(lease, "LASTS_S", -1.0)
    for needed, words in (("put_file", ("--sample", sample)), ("delete", ("--model", "plain"))):
        with monkeypatch.context() as patch:
            patch.setattr(remote.Remote, needed, down)
            assert "the network is down" in advrisk("ledger", "delete-inputs", url, *words).stderr
        done = advrisk("ledger", "delete-inputs", url, *words)
        assert (done.returncode, done.stdout == "0 files changed\n") == (0, False), done
    machine("second")
    kept = {path.stem: np.load(path)["sample"] for path in (readable_storage(url).folder / "inputs").rglob("*.npz")}
    assert kept
    assert not any(sample in held for held in kept.values())
    cells = Ledger.open(url).query("SELECT cell FROM cells WHERE model = 'plain'")["cell"].to_pylist()
    assert not kept.keys() & set(cells)


def test_inputs_are_fetched_by_who_needs_them(
    storage: fs.S3FileSystem,
    machine: Machine,
    copied: Copied,
    content: dict[str, Any],
    local: Path,
    monkeypatch: pytest.MonkeyPatch,
    advrisk: Command,
) -> None:
    url = copied("lazy")
    assert advrisk("status", url).returncode == 0
    assert inputs_here(url) == []
    there = Run.open(url)
    with monkeypatch.context() as patch:
        patch.setattr(remote.Remote, "fetch", down)
        with pytest.raises(RunError, match="the network is down"):
            pictures(there)
    assert pictures(there) == pictures(Run.open(local))
    all_kept = len(list((local / "inputs").rglob("*.npz")))
    assert 0 < len(inputs_here(url)) < all_kept
    assert advrisk("export", url, "kept.npz").stdout == advrisk("export", local, "own.npz").stdout.replace(
        "own", "kept"
    )
    machine("second")
    done = Study.from_dict(content).run(url, workers=1)
    assert {path.name for path in (copy_folder(url, "write") / "inputs").iterdir()} == {"bounds.npy", "shards"}
    assert done.status().complete
    assert len(list((readable_storage(url).folder / "inputs").rglob("*.npz"))) == all_kept


def pictures(run: Run) -> list[Example]:
    found = nearest_examples(run.folder, run.ledger, run.damage().distances, count=2)
    assert found
    return found


def test_what_is_written_goes_where_it_is_said(
    endpoint: str,
    storage: fs.S3FileSystem,
    machine: Machine,
    copied: Copied,
    tmp_path: Path,
    advrisk: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, options = copied("told"), f"?endpoint_override={endpoint}&scheme=http"
    monkeypatch.delenv("AWS_ENDPOINT_URL")  # so the options are what is gone by
    run = f"{url}{options}"
    for words, name in (
        (("report", run, "--json", "--out"), "mine.json"),
        (("evidence", run, "--out"), "pack.zip"),
        (("export", run), "rows.csv"),
        (("export", run), "my%20inputs.npz"),
        (("export", run, "--table", "risk", "--model", "plain"), "risk.nc"),
        (("show", "damage", run, "--csv"), "damage.csv"),
        (("show", "failures", run, "--out"), "sheet.png"),
        (("gate", run, "--junit"), "junit.xml"),
    ):
        place = f"s3://bucket/pages/{name}{options}"
        done = advrisk(*words, place)
        assert done.returncode == 0, done.stderr
        assert name.replace("%20", " ") in keys(storage, "bucket/pages")
        assert place in done.stdout + done.stderr or words[0] == "gate"
    beside = f"file://{tmp_path}/my%20report.md"
    assert advrisk("report", run, "--markdown", "--out", beside).returncode == 0
    assert (tmp_path / "my report.md").is_file()
    assert not [entry for entry in tmp_path.iterdir() if ":" in entry.name]


def test_what_cannot_be_written_there_is_refused(
    storage: fs.S3FileSystem, machine: Machine, copied: Copied, tmp_path: Path, advrisk: Command
) -> None:
    url = copied("refused")
    before = keys(storage, "bucket/runs/refused")
    put(storage, "bucket/foreign/pack.zip", b"PK not ours")
    for words, said in (
        (("evidence", url), "say where, as a .zip"),
        (("evidence", url, "--out", "s3://bucket/pack"), "being several files"),
        (("evidence", url, "--out", "s3://bucket/foreign/pack.zip"), "s3://bucket/foreign/pack.zip: is there already"),
        (("report", url, "--csv"), "being several files"),
        (("report", url, "--csv", "--out", "s3://bucket/tables"), "being several files"),
        (("report", url, "--out", "s3://bucket/mine.pdf"), "s3://bucket/mine.pdf: such a report is called *.html"),
        (("report", url, "--out", "az://bucket/mine.html"), "such an address is not known"),
        (("certify", url, "--out", "s3://bucket/certificates"), "being several files"),
        (("train", "recipe.yaml", "--out", "az://x"), "recipe.yaml"),
        (("label", url), "answers cannot be kept there"),
        (("show", "s3://bucket/nothing"), "s3://bucket/nothing: holds no ledger"),
        (("show", "s3://bucket/x?endpoint=a"), "unknown option 'endpoint'"),
        (("status", "s3://nobucket/x"), "s3://nobucket: there is no such bucket"),
        (("report", url, "--json", "--out", "s3://nobucket/x.json"), "s3://nobucket: there is no such bucket"),
        (("ledger", "compact", "s3://nobucket/x"), "s3://nobucket: there is no such bucket"),
        (("verify", "s3://bucket/none.zip"), "s3://bucket/none.zip: there is no such file"),
    ):
        done = advrisk(*words)
        assert (done.returncode, said in done.stderr) == (2, True), done
    assert keys(storage, "bucket/runs/refused") == before
    assert keys(storage, "bucket/foreign") == ["pack.zip"]
    assert not [entry for entry in tmp_path.iterdir() if ":" in entry.name]
    put(storage, "bucket/runs/refused/evasion.json", b"{}")
    with pytest.raises(RunError, match=r"refused/evasion.json: belongs to the run"):
        Run.open(url).report(f"{url}/evasion.json", form="json")
    with pytest.raises(LedgerError, match="certificates cannot be written there"):
        Run.open(url).certify()


def test_a_pack_is_verified_where_it_lies(
    storage: fs.S3FileSystem,
    machine: Machine,
    copied: Copied,
    tmp_path: Path,
    advrisk: Command,
    advrisk_process: Command,
) -> None:
    run, place = copied("evident"), "s3://bucket/packs/ev.zip"
    written = advrisk_process("evidence", run, "--out", place)
    assert [name.name[16:] for name in (tmp_path / "caches" / "first").iterdir()] == ["-read"], "no copy is left"
    assert written.stdout.rstrip().endswith(f"Check it: advrisk verify {place}"), written
    assert advrisk("verify", place, "--run", run).returncode == 0
    put(storage, "bucket/packs/cut.zip", get(storage, "bucket/packs/ev.zip")[:-99])
    cut = advrisk("verify", "s3://bucket/packs/cut.zip")
    assert cut.returncode == 1
    assert "s3://bucket/packs/cut.zip" in " ".join(cut.stdout.split())
    put(storage, "bucket/packs/other.json", b"[1]")
    other = advrisk("verify", "s3://bucket/packs/other.json")
    assert other.returncode == 2
    assert "s3://bucket/packs/other.json: is neither" in other.stderr


def test_a_run_that_was_killed_early_is_called_by_its_name(
    storage: fs.S3FileSystem, machine: Machine, content: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, real = "s3://bucket/runs/early", remote.Remote.put

    def breaks(self: remote.Remote, name: str, data: bytes) -> None:
        real(self, name, data)
        if name.endswith(".zip"):
            raise LedgerError("the network is down")

    with monkeypatch.context() as patch:
        patch.setattr(remote.Remote, "put", breaks)
        patch.setattr("advrisk.ledger.sync.copies.WriteCopy.push_rest", lambda _: None)  # as after a kill
        with pytest.raises(LedgerError, match="the network is down"):
            Study.from_dict(content).run(url, workers=1)
    assert "study.yaml" in keys(storage, "bucket/runs/early")
    machine("second")
    assert Run.open(url).status().study == content["name"]
    storage.delete_file("bucket/runs/early/study.yaml")
    run = Run.open(url)
    assert (run.name, run.status().study) == ("early", "early")
    assert repr(run).startswith("Run('s3://bucket/runs/early': ")


def test_a_copy_for_readers_is_not_written_to(storage: fs.S3FileSystem, machine: Machine, copied: Copied) -> None:
    url = copied("appended")
    with pytest.raises(LedgerError, match=r"s3://bucket/runs/appended: was opened to be read; write to it in `with"):
        Ledger.open(url).append(MODELS)
    n_before = len(zips(storage, "bucket/runs/appended"))
    with writable_storage(url) as opened:
        Ledger.open(opened).append(MODELS)
    assert len(zips(storage, "bucket/runs/appended")) == n_before + 1
    bounds = opened.folder / "inputs" / "bounds.npy"
    was = bounds.read_bytes()
    bounds.write_bytes(was[::-1])  # as a command leaves it whose upload failed
    with writable_storage(url):
        assert bounds.read_bytes() == was


def test_a_reader_starts_anew_where_segments_are_merged_meanwhile(
    storage: fs.S3FileSystem, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, real = "s3://bucket/runs/merged", remote.Remote.fetch
    with writable_storage(url) as opened:
        ledger = Ledger.open(opened, create=True)
        for name in "abc":
            ledger.append({"models": table_from("models", {"model": [name]})})
    merged = []

    def fetch(self: remote.Remote, name: str, target: Path) -> None:
        if not merged and name.endswith(".zip"):
            merged.append(name)
            with writable_storage(url) as opened:
                compact(opened)
        real(self, name, target)

    machine("second")
    monkeypatch.setattr(pull, "_AT_ONCE", 1)
    monkeypatch.setattr(remote.Remote, "fetch", fetch)
    assert Ledger.open(url).query("SELECT model FROM models ORDER BY ALL")["model"].to_pylist() == ["a", "b", "c"]
    assert len(segment_folders(Ledger.open(url).path)) == 1
