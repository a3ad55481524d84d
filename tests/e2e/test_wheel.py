"""The wheel: outside the checkout it has all files, its extras, and a demo that runs."""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
BUILD = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"

Program = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by what the Dockerfile copies for it, and by nothing else of the checkout."""
    pytest.importorskip("hatchling", reason="pip install 'advrisk[test]' brings it")
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheels")
    for name in ("pyproject.toml", "README.md", "LICENSE", "src"):
        (source / name).symlink_to(ROOT / name)
    words = [sys.executable, "-c", BUILD, str(folder)]
    built = subprocess.run(words, cwd=source, capture_output=True, text=True, check=True)
    return folder / built.stdout.strip()


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Runs `python -m advrisk` of an environment with the wheel, beside the packages of this one."""
    folder = tmp_path_factory.mktemp("outside")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    with ZipFile(wheel) as archive:
        archive.extractall(site)
    (site / "beside.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def call(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [str(folder / "venv" / "bin" / "python"), *words]
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
        )

    return call


def test_every_file_of_the_package_is_in_the_wheel(wheel: Path) -> None:
    files = (path for path in (ROOT / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    with ZipFile(wheel) as archive:
        missing = {path.relative_to(ROOT / "src").as_posix() for path in files} - set(archive.namelist())
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        facts = message_from_bytes(archive.read(metadata))
    assert missing == set()
    assert {"all", "label", "ray", "run", "search"} <= set(facts.get_all("Provides-Extra", []))
    plain = [one for one in facts.get_all("Requires-Dist", []) if "extra ==" not in one]
    assert not [one for one in plain if one.startswith(("torch", "botorch", "scikit-learn", "fastapi", "sqlalchemy"))]


def test_an_installed_program_starts_outside_the_checkout(wheel: Path, program: Program) -> None:
    where = program("-c", "import advrisk; print(advrisk.__file__)").stdout
    assert "outside" in where
    assert str(ROOT) not in where
    assert program("-m", "advrisk", "--version").stdout.strip() == wheel.name.split("-")[1]
    assert program("-m", "advrisk", "init").returncode == 0


@pytest.mark.slow
def test_the_demo_runs_outside_the_checkout(program: Program, tmp_path: Path) -> None:
    done = program("-m", "advrisk", "demo", "--out", str(tmp_path / "demo"))
    assert done.returncode == 0, done.stderr
    assert "trades" in done.stdout
    assert (tmp_path / "demo" / "report.html").stat().st_size > 100_000
    assert program("-m", "advrisk", "status", str(tmp_path / "demo")).returncode == 0
