"""Addresses: what is a URL, what is a folder, and what is refused."""

import re
import socket
import time
from pathlib import Path

import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger, locked, readable_storage, writable_storage
from advrisk.ledger.sync.files import output_file, output_folder
from advrisk.ledger.sync.remote import (
    Remote,
    UnreachableError,
    last_part,
    local_path,
    parent_and_name,
    url_below,
    url_of,
)


@pytest.mark.parametrize(
    "given", ["s3://bucket/a/b", "s3://bucket/a/b/", "s3:/bucket/a/b", Path("s3://bucket/a/b"), "S3://bucket/a/b"]
)
def test_a_url_is_known_also_as_a_path(given: str | Path) -> None:
    assert url_of(given) == "s3://bucket/a/b"


@pytest.mark.parametrize("given", ["runs/a", "/runs/a", "s3", "s3:", "file:///a", "FILE:///a", "", "c:/a", "/az:/a"])
def test_a_folder_is_no_url(given: str) -> None:
    assert url_of(given) is None


@pytest.mark.parametrize("given", ["s3x://a", "http://a", "az://bucket/a", "hdfs:///a", Path("az://bucket/a")])
def test_an_address_that_nobody_knows_is_not_taken_for_a_folder(
    given: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LedgerError, match="such an address is not known; known are s3://, gs:// and file:///"):
        Ledger.open(given, create=True)
    with pytest.raises(LedgerError, match="such an address is not known"), output_file(given):
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "given",
    [
        "s3://KEY:se/cr@et@bucket/a",
        "s3://KEY:se/cret@bucket/a",
        "s3://KEY@bucket/a",
        "gs://KEY:secret@bucket",
        "s3://KEY:secret",
        "az://KEY:secret@bucket/a",
        Path("s3://KEY:secret@bucket/a"),
    ],
)
def test_no_secret_of_an_address_is_printed(given: str | Path) -> None:
    with pytest.raises(LedgerError) as refused:
        url_of(given)
    if "@" in str(given):
        assert not {"KEY", "se", "cret"} & set(re.split(r"\W+", str(refused.value).partition(": ")[0]))
    assert url_of("gs://anonymous@bucket/a") == "gs://anonymous@bucket/a"
    assert url_of("s3://bucket/me@home/a") == "s3://bucket/me@home/a"


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("file:///a/my%20runs", "/a/my runs"),
        ("file://localhost/a", "/a"),
        ("FILE:///a", "/a"),
        ("file:/a", "/a"),
        ("file:///a%23b", "/a#b"),
        ("a%20b", "a%20b"),
    ],
)
def test_what_a_file_url_stands_for(given: str, found: str) -> None:
    assert local_path(given) == Path(found)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("file://elsewhere/a", "names another machine, elsewhere"),
        ("file:///a?b=c", "a folder has no options"),
        ("s3://bucket/a#b", "write # as %23"),
        ("s3://?region=x", "names no bucket"),
        ("s3://[bucket/a", "is no address"),
    ],
)
def test_an_address_that_cannot_be_meant_is_refused(given: str, why: str) -> None:
    with pytest.raises(LedgerError, match=why):
        readable_storage(given)


def test_options_stay_with_an_address() -> None:
    url = "s3://bucket/my%20runs?endpoint_override=host:1&scheme=http"
    below = "s3://bucket/my%20runs/re%23port.html?endpoint_override=host:1&scheme=http"
    assert url_below(url, "re#port.html") == below
    assert parent_and_name(below) == (url, "re#port.html")
    assert Remote.open(f"{url}&region=us-east-1").root == "bucket/my runs"
    with pytest.raises(LedgerError, match="names no file"):
        parent_and_name("s3://bucket?scheme=http")


def test_what_is_written_by_file_url_is_in_its_place(tmp_path: Path) -> None:
    with output_file(f"file://localhost{tmp_path}/a%20b.txt") as path:
        path.write_text("here")
    assert (tmp_path / "a b.txt").read_text() == "here"
    with pytest.raises(LedgerError, match="s3://bucket/x: weights cannot be written there, being several files"):
        output_folder("s3://bucket/x", "weights")


def test_a_file_url_is_a_folder(tmp_path: Path) -> None:
    assert local_path(f"file://{tmp_path}") == local_path(Path(f"file://{tmp_path}")) == tmp_path
    made = Ledger.open(f"file://{tmp_path}/run", create=True)
    assert made.path == tmp_path / "run" / "ledger"
    with writable_storage(f"file://{tmp_path}/run") as opened:
        assert opened == readable_storage(tmp_path / "run")
        assert opened.folder == tmp_path / "run"


def test_a_url_cannot_be_locked_as_if_it_were_a_folder() -> None:
    with pytest.raises(LedgerError, match="s3://bucket/a: is no folder of this machine"), locked(Path("s3://bucket/a")):
        pass
    assert not Path("s3:").exists()


def test_unknown_options_are_refused() -> None:
    with pytest.raises(LedgerError, match="unknown option 'endpont'; known: region, scheme, endpoint_override"):
        Remote.open("s3://bucket/a?endpont=localhost")


def test_a_server_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVRISK_CACHE", str(tmp_path))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    url = "s3://bucket/a?endpoint_override=127.0.0.1:9&scheme=http&region=us-east-1"
    with pytest.raises(LedgerError, match=r"cannot be reached .*; check the address, and the credentials"):
        Ledger.open(url)


@pytest.mark.parametrize(
    ("url", "name"),
    [("s3://b/runs/my%20run?region=x", "my run"), ("s3://b", "b"), ("gs://anonymous@b", "b"), ("s3://b/r/", "r")],
)
def test_what_a_run_elsewhere_is_called(url: str, name: str) -> None:
    assert last_part(url) == name


@pytest.mark.slow
@pytest.mark.parametrize(("writes", "longest_s"), [(False, 15), (True, 40)])
def test_who_listens_and_does_not_answer_is_given_up(
    writes: bool, longest_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        place = Remote.open(f"s3://bucket/x?region=us-east-1&endpoint_override=127.0.0.1:{port}&scheme=http")
        began = time.monotonic()
        with pytest.raises(UnreachableError, match="cannot be reached"):
            place.put("a", b"x") if writes else place.seen("a")
        assert time.monotonic() - began < longest_s
