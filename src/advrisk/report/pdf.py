"""The report on paper: the page, printed by a Chromium that is on this machine."""

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

from advrisk.core.errors import RunError
from advrisk.core.files import make_folder, whole_file

CHROMIUM = "ADVRISK_CHROMIUM"  # the variable that names the browser
_KNOWN = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
_FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",  # small in containers
    "--disable-extensions",
    "--disable-sync",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-pdf-header-footer",
)
LIMIT_S = 180.0
_SHOWN = 300  # characters of what a browser complains of


def write_pdf(page: str, target: Path, *, limit_s: float = LIMIT_S) -> Path:
    """Print a page to a PDF file, which is there in full or not at all."""
    browser = find_chromium()
    try:
        make_folder(target.parent)
        with tempfile.TemporaryDirectory(prefix="advrisk-pdf-") as folder, whole_file(target) as unfinished:
            source, printed = Path(folder) / "report.html", Path(folder) / "report.pdf"
            source.write_text(page, encoding="utf-8")
            _print(browser, source, printed, limit_s)
            shutil.copyfile(printed, unfinished)
    except OSError as error:
        raise RunError(f"{target}: the report cannot be written: {error.strerror or error}") from None
    return target


def find_chromium() -> str:
    """The browser that ADVRISK_CHROMIUM names, or the first known one on the PATH."""
    named = os.environ.get(CHROMIUM)
    if named:
        if found := shutil.which(named):
            return found
        raise RunError(f"{CHROMIUM} names {named!r}, which is no program that can be run; give the path of a Chromium")
    for name in _KNOWN:
        if found := shutil.which(name):
            return found
    raise RunError(
        f"a PDF is printed by Chromium or Google Chrome, and neither is on the PATH; install one, name it in "
        f"{CHROMIUM}, or write the HTML report and print it from any browser"
    )


def _print(browser: str, source: Path, printed: Path, limit_s: float) -> None:
    profile = source.with_name("profile")  # of its own: nothing of the user's browser is read or changed
    command = [browser, *_FLAGS, *_as_root(), f"--user-data-dir={profile}", f"--print-to-pdf={printed}"]
    said = source.with_name("said.txt")
    with said.open("wb") as log:
        code = _ended([*command, source.as_uri()], log, limit_s)
    if code is None:
        raise RunError(f"{browser}: did not print the report within {limit_s:g} s; try again, or print it by hand")
    if code or not printed.is_file() or not printed.stat().st_size:
        why = " ".join(said.read_text(encoding="utf-8", errors="replace").split())[-_SHOWN:] or f"exit code {code}"
        raise RunError(f"{browser}: could not print the report: {why}. Set {CHROMIUM} to another browser, or print it")


def _ended(command: list[str], log: IO[bytes], limit_s: float) -> int | None:
    """The exit code of a program, or None if it took too long; it is ended with all that it began."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _as_root() -> tuple[str, ...]:
    """Chromium refuses to run as root inside its sandbox; the page is our own and loads nothing."""
    return ("--no-sandbox",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()
