"""Addresses: what is a URL, what is a folder, and what is refused."""

from pathlib import Path

import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger, locked, readable_folder, working_folder
from advrisk.ledger.remote import Remote, local_path, url_of


@pytest.mark.parametrize("given", ["s3://bucket/a/b", "s3://bucket/a/b/", "s3:/bucket/a/b", Path("s3://bucket/a/b")])
def test_a_url_is_known_also_as_a_path(given: str | Path) -> None:
    assert url_of(given) == "s3://bucket/a/b"


@pytest.mark.parametrize("given", ["runs/a", "/runs/a", "s3", "s3:", "s3x://a", "file:///a", "http://a", "", "c:/a"])
def test_a_folder_is_no_url(given: str) -> None:
    assert url_of(given) is None


def test_a_file_url_is_a_folder(tmp_path: Path) -> None:
    assert local_path(f"file://{tmp_path}") == local_path(Path(f"file://{tmp_path}")) == tmp_path
    made = Ledger.open(f"file://{tmp_path}/run", create=True)
    assert made.path == tmp_path / "run" / "ledger"
    with working_folder(f"file://{tmp_path}/run") as home:
        assert home == readable_folder(tmp_path / "run") == tmp_path / "run"


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
