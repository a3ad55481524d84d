"""Runs by URL, against a real S3 server on loopback: the same commands, the same rows, nothing half."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from advrisk import Run, Study
from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger, lease, mirror, remote, table_from, working_folder
from advrisk.ledger.compacting import compact
from advrisk.ledger.diffing import diff_ledgers
from advrisk.ledger.segments import segment_folders

from .conftest import study_of
from .servers import served

Command = Callable[..., Any]

SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=int(sys.argv[1]), verbose=False)
server.start()
sys.stdin.read()
server.stop()
"""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with served(SERVER) as address:
        yield address


@pytest.fixture(scope="module")
def storage(endpoint: str) -> Iterator[fs.S3FileSystem]:
    """The server, found through the environment, as users would name it."""
    names = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_REGION": "us-east-1"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (names | {"AWS_ENDPOINT_URL": f"http://{endpoint}"}).items():
            patch.setenv(name, value)
        patch.setattr(lease, "_SETTLE_S", 0.01)
        made = fs.S3FileSystem(endpoint_override=endpoint, scheme="http", allow_bucket_creation=True)
        made.create_dir("bucket")
        yield made


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
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
    return small


@pytest.fixture(scope="module")
def local(content: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("local") / "run"
    Study.from_dict(content).run(folder)
    return folder


def keys(storage: fs.S3FileSystem, prefix: str) -> list[str]:
    found = storage.get_file_info(fs.FileSelector(prefix, recursive=True, allow_not_found=True))
    return sorted(one.path.removeprefix(f"{prefix}/") for one in found if one.type == fs.FileType.File)


def test_the_verbs_take_a_url(
    storage: fs.S3FileSystem,
    machine: Callable[[str], None],
    content: dict[str, Any],
    local: Path,
    write_study: Callable[..., Path],
    advrisk: Command,
) -> None:
    url = "s3://bucket/runs/one"
    done = advrisk("run", write_study(content), "--out", url)
    assert done.returncode == 0, done.stderr
    assert diff_ledgers(url, local).equal
    held = keys(storage, "bucket/runs/one")
    assert "lease.json" not in held
    assert {"study.yaml", "report.html"} <= set(held)
    assert all(name.endswith(".zip") for name in held if name.startswith("ledger/")), "one object for each segment"
    assert len([name for name in held if name.startswith("inputs/")]) == len(list((local / "inputs").rglob("*.np*")))
    machine("second")
    assert json.loads(advrisk("status", url, "--json").stdout)["complete"]
    assert advrisk("show", url).returncode == 0
    assert advrisk("report", url, "--out", "s3://bucket/pages/mine.html").returncode == 0
    assert keys(storage, "bucket/pages") == ["mine.html"]
    assert Run.open(url).damage().comparison.estimates == Run.open(local).damage().comparison.estimates
    assert advrisk("ledger", "check", url).returncode == 0
    compacted = advrisk("ledger", "compact", url)
    assert compacted.stdout.endswith(" segments before, 1 now\n"), compacted.stderr
    assert len([name for name in keys(storage, "bucket/runs/one") if name.endswith(".zip")]) == 1
    again = advrisk("run", write_study(content), "--out", url)
    assert again.returncode == 0
    assert diff_ledgers(url, local).equal
    assert len([name for name in keys(storage, "bucket/runs/one") if name.endswith(".zip")]) == 1, "nothing was run"


def test_what_was_put_there_is_not_run_again_on_another_machine(
    storage: fs.S3FileSystem,
    machine: Callable[[str], None],
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
            Study.from_dict(content).run(url, publish_every_s=0.0)
    first = Ledger.open(url).finished_cells()
    assert len(first) == 3, "what was put there, after the question; the rest is lost"
    machine("second")
    assert Ledger.open(url).finished_cells() == first
    Study.from_dict(content).run(url)
    assert diff_ledgers(url, local).equal
    n_runs = Ledger.open(url).query(
        "SELECT count(DISTINCT run) AS n FROM cells WHERE cell IN (SELECT unnest($f))", {"f": sorted(first)}
    )
    assert n_runs["n"][0].as_py() == 1, "these are from the first machine"


def test_half_a_segment_is_refused_found_and_repaired(
    storage: fs.S3FileSystem,
    machine: Callable[[str], None],
    content: dict[str, Any],
    local: Path,
    advrisk: Command,
) -> None:
    url = "s3://bucket/runs/half"
    Study.from_dict(content).run(url, publish_every_s=0.0)
    name = [one for one in keys(storage, "bucket/runs/half") if one.endswith(".zip")][-1]
    path = f"bucket/runs/half/{name}"
    with storage.open_input_file(path) as file:
        data = file.read()
    with storage.open_output_stream(path) as file:
        file.write(data[: len(data) // 2])
    machine("second")
    with pytest.raises(LedgerError, match=r"zip: cannot be read .*ledger check s3://bucket/runs/half --repair"):
        Ledger.open(url)
    assert advrisk("ledger", "check", url).returncode == 1
    assert advrisk("ledger", "check", url, "--repair").returncode == 0
    assert name not in keys(storage, "bucket/runs/half")
    Study.from_dict(content).run(url)
    assert diff_ledgers(url, local).equal
    assert advrisk("ledger", "check", url).returncode == 0


def test_one_writer_at_a_time(storage: fs.S3FileSystem, machine: Callable[[str], None]) -> None:
    url = "s3://bucket/runs/leased"
    holder = f"process {os.getpid()} on .* is writing to this folder"
    with working_folder(url):
        assert keys(storage, "bucket/runs/leased") == ["lease.json"]
        machine("second")
        with pytest.raises(LedgerError, match=holder), working_folder(url):
            pass
    assert keys(storage, "bucket/runs/leased") == []
    with working_folder(url):
        pass


def test_who_was_not_heard_of_for_long_is_replaced_and_publishes_nothing_more(
    storage: fs.S3FileSystem, machine: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, models = "s3://bucket/runs/lost", {"models": table_from("models", {"model": ["a"]})}
    taken = "another process writes to this folder now"
    homes = []

    def outlasted() -> None:
        with working_folder(url) as home:
            homes.append(home)
            Ledger.open(home, create=True).append(models)
            monkeypatch.setattr(lease, "LASTS_S", -1.0)
            machine("second")
            with working_folder(url) as other:
                Ledger.open(other).append(models)
            Ledger.open(home).append(models)

    with pytest.raises(LedgerError, match=taken) as caught:
        outlasted()
    assert taken in caught.value.__notes__[0], "nor is anything else put there"
    assert len(keys(storage, "bucket/runs/lost")) == 2
    assert len(segment_folders(homes[0] / "ledger")) == 1, "what was not put there was never published"


def test_an_address_that_is_wrong_is_told(
    storage: fs.S3FileSystem, machine: Callable[[str], None], advrisk: Command
) -> None:
    assert "holds no ledger" in advrisk("show", "s3://bucket/nothing").stderr
    wrong = advrisk("show", "s3://bucket/x?endpoint=a")
    assert (wrong.returncode, "unknown option 'endpoint'" in wrong.stderr) == (2, True)


def test_what_cannot_be_kept_there_is_refused(
    storage: fs.S3FileSystem, machine: Callable[[str], None], advrisk: Command, tmp_path: Path
) -> None:
    url = "s3://bucket/runs/small"
    with working_folder(url) as home:
        Ledger.open(home, create=True).append({"models": table_from("models", {"model": ["a"]})})
    assert "answers cannot be kept there" in advrisk("label", url).stderr
    with pytest.raises(LedgerError, match="certificates cannot be written there"):
        Run.open(url).certify()


def test_a_reader_starts_anew_where_segments_are_merged_meanwhile(
    storage: fs.S3FileSystem, machine: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, real = "s3://bucket/runs/merged", remote.Remote.get
    with working_folder(url) as home:
        ledger = Ledger.open(home, create=True)
        for name in "abc":
            ledger.append({"models": table_from("models", {"model": [name]})})
    merged = []

    def get(self: remote.Remote, name: str) -> bytes:
        if not merged and name.endswith(".zip"):
            merged.append(name)
            with working_folder(url) as home:
                compact(home)
        return real(self, name)

    machine("second")
    monkeypatch.setattr(mirror, "_AT_ONCE", 1)
    monkeypatch.setattr(remote.Remote, "get", get)
    assert Ledger.open(url).query("SELECT model FROM models ORDER BY ALL")["model"].to_pylist() == ["a", "b", "c"]
    assert len(segment_folders(Ledger.open(url).path)) == 1
