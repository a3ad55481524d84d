"""The page on installation, the Dockerfile and the Makefile name extras and files that exist."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
FOR_DEVELOPERS = {"test", "dev", "docs", "audit", "bench"}
PAGE = (ROOT / "docs" / "installation.md").read_text("utf-8")


def instructions() -> list[tuple[str, list[str]]]:
    """Those of the Dockerfile: the keyword and its words."""
    lines = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ").splitlines()
    words = [shlex.split(line, comments=True) for line in lines]
    return [(line[0], line[1:]) for line in words if line]


def extras_in(text: str) -> set[str]:
    """Every extra that is asked for, as in `advrisk[run,label]` or `….whl[run]`."""
    return {name for listed in re.findall(r"(?:advrisk|whl\"?)\[([\w,-]+)\]", text) for name in listed.split(",")}


def test_every_file_that_the_image_copies_exists() -> None:
    copied = [
        words[:-1] for keyword, words in instructions() if keyword == "COPY" and not words[0].startswith("--from")
    ]
    assert copied
    assert [name for names in copied for name in names if not (ROOT / name).exists()] == []


def test_the_image_copies_what_the_wheel_is_built_from() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    copied = {name for keyword, words in instructions() if keyword == "COPY" for name in words[:-1]}
    assert {"pyproject.toml", "src", project["readme"], *project["license-files"]} <= copied


def test_stages_and_extras_of_the_image_exist() -> None:
    stages = {words[2] for keyword, words in instructions() if keyword == "FROM" and len(words) == 3}
    taken = {
        word.removeprefix("--from=") for _, words in instructions() for word in words if word.startswith("--from=")
    }
    assert taken == stages
    settings = dict(words[0].split("=", 1) for keyword, words in instructions() if keyword == "ARG")
    assert settings["EXTRAS"] in EXTRAS
    given = re.findall(r"--build-arg (\w+)=([\w,]*)", PAGE)
    assert {name for name, _ in given} == settings.keys()
    assert {one for name, value in given if name == "EXTRAS" for one in value.split(",") if one} <= EXTRAS.keys()


def test_the_dockerfile_has_no_complaint_of_hadolint() -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    if (hadolint := shutil.which("hadolint", path=path)) is None:
        pytest.skip("pip install 'advrisk[test]' brings hadolint")
    done = subprocess.run([hadolint, "--no-color", ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_page_lists_every_extra_and_no_other() -> None:
    assert extras_in(PAGE) == EXTRAS.keys() - FOR_DEVELOPERS


@pytest.mark.parametrize("name", ["README.md", "Makefile", ".ci/run", "CONTRIBUTING.md", "docs", "src", "studies"])
def test_no_text_asks_for_an_extra_that_does_not_exist(name: str) -> None:
    paths = [ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*.[mpy]*")
    texts = {path: path.read_text("utf-8") for path in paths if path.suffix in ("", ".md", ".py", ".yml", ".yaml")}
    assert {str(path): extra for path, text in texts.items() for extra in extras_in(text) - EXTRAS.keys()} == {}


def test_make_installs_extras_that_exist() -> None:
    text = (ROOT / "Makefile").read_text("utf-8")
    assert set(re.findall(r"\$\(VENV\)/\.(\w+)", text)) - {"peers"} <= EXTRAS.keys()
