"""Runs by URL on a server that speaks Google's protocol, on loopback."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger, table_from, writable_storage
from advrisk.ledger.maintenance.checking import check
from advrisk.ledger.maintenance.compacting import compact
from advrisk.ledger.sync import lease, remote

from .servers import served

SERVER = """
import sys
from gcp_storage_emulator.server import create_server
server = create_server("127.0.0.1", int(sys.argv[1]), in_memory=True, default_bucket="bucket")
server.start()
sys.stdin.read()
server.stop()
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(SERVER) as place:
        yield place


@pytest.fixture
def url(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ADVRISK_CACHE", str(tmp_path / "first"))
    monkeypatch.setattr(lease, "_SETTLE_S", 0.01)
    return f"gs://anonymous@bucket/{tmp_path.name}?scheme=http&endpoint_override={address}"


def models(*names: str) -> dict[str, object]:
    return {"models": table_from("models", {"model": list(names)})}


def names_at(url: str) -> list[str]:
    return Ledger.open(url).query("SELECT model FROM models ORDER BY ALL")["model"].to_pylist()


def test_what_one_machine_writes_another_reads_merges_and_checks(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writable_storage(url) as opened:
        ledger = Ledger.open(opened, create=True)
        ledger.append(models("a"))
        monkeypatch.setenv("ADVRISK_CACHE", str(tmp_path / "second"))
        assert names_at(url) == ["a"], "a segment is there as soon as it is published"
        with pytest.raises(LedgerError, match="is writing to this folder"), writable_storage(url):
            pass
        ledger.append(models("b"))
    assert names_at(url) == ["a", "b"]
    with writable_storage(url) as opened:
        assert compact(opened).n_after == 1
    monkeypatch.setenv("ADVRISK_CACHE", str(tmp_path / "third"))
    assert names_at(url) == ["a", "b"]
    assert not check(url).findings
    assert [name for name in remote.Remote.open(url).listing() if not name.endswith(".zip")] == ["ledger/history.jsonl"]


def test_nobody_waits_long_for_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_RETRY_S", 1)
    with pytest.raises(LedgerError, match=r"gs://anonymous@bucket/x.*cannot be reached .*check the address"):
        Ledger.open("gs://anonymous@bucket/x?scheme=http&endpoint_override=127.0.0.1:9")


def test_an_option_that_nobody_knows_is_told() -> None:
    with pytest.raises(LedgerError, match="'colour'"):
        Ledger.open("gs://bucket/x?colour=red")
