"""A PDF is printed by a browser that may be missing, fail or hang; the file is there in full or not at all."""

import stat
import time
from pathlib import Path

import pytest

from advrisk.core.errors import RunError
from advrisk.report.pdf import find_chromium, write_pdf


def browser(folder: Path, body: str) -> Path:
    """A program that stands in for Chromium."""
    path = folder / "browser"
    path.write_text(
        f'#!/bin/sh\nfor word in "$@"; do case $word in --print-to-pdf=*) out=${{word#*=}};; esac; done\n{body}\n'
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_browser_that_is_missing_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ADVRISK_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunError, match=r"neither is on the PATH; install one, name it in ADVRISK_CHROMIUM"):
        write_pdf("<p>", tmp_path / "out" / "report.pdf")
    assert not (tmp_path / "out").exists()


def test_a_named_browser_comes_first_and_must_be_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    named = browser(tmp_path, "true")
    monkeypatch.setenv("ADVRISK_CHROMIUM", str(named))
    assert find_chromium() == str(named)
    monkeypatch.setenv("ADVRISK_CHROMIUM", str(tmp_path / "none"))
    with pytest.raises(RunError, match="no program that can be run"):
        find_chromium()


@pytest.mark.parametrize(
    ("body", "limit_s", "complaint"),
    [
        ("echo no display >&2; exit 3", 20, "could not print the report: no display"),
        ("exit 0", 20, "could not print the report: exit code 0"),
        ("printf x > $out; exit 1", 20, "could not print the report"),
        ("printf half > $out; exec sleep 60", 0.5, "did not print the report within 0.5 s"),
    ],
)
def test_a_browser_that_fails_leaves_what_was_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str, limit_s: float, complaint: str
) -> None:
    monkeypatch.setenv("ADVRISK_CHROMIUM", str(browser(tmp_path, body)))
    target = tmp_path / "out" / "report.pdf"
    target.parent.mkdir()
    target.write_text("the last one")
    with pytest.raises(RunError, match=complaint):
        write_pdf("<p>", target, limit_s=limit_s)
    assert target.read_text() == "the last one"
    assert [path.name for path in target.parent.iterdir()] == ["report.pdf"]


def test_of_a_browser_that_hangs_nothing_lives_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    child = tmp_path / "child"
    monkeypatch.setenv("ADVRISK_CHROMIUM", str(browser(tmp_path, f"sleep 60 & echo $! > {child}; wait")))
    with pytest.raises(RunError, match="did not print"):
        write_pdf("<p>", tmp_path / "report.pdf", limit_s=1.0)
    status = Path(f"/proc/{child.read_text().strip()}/stat")
    for _ in range(100):
        if not status.exists() or status.read_text().split()[2] == "Z":  # a zombie waits for whoever adopted it
            return
        time.sleep(0.05)
    pytest.fail("a child of the browser still runs")


def test_what_the_browser_prints_takes_its_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ADVRISK_CHROMIUM", str(browser(tmp_path, "printf %%PDF > $out")))
    assert write_pdf("<p>", tmp_path / "new" / "report.pdf").read_text() == "%PDF"


def test_a_place_that_cannot_be_written_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ADVRISK_CHROMIUM", str(browser(tmp_path, "printf %%PDF > $out")))
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        write_pdf("<p>", tmp_path / "file" / "report.pdf")
