"""Every benchmark runs, at a size at which its figures mean nothing; every file of `bench/` is in one shard."""

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

from bench import __main__ as runner
from bench.shards import SHARDS, SUPPORT, benchmarks
from studies.page import places

ROOT = Path(__file__).parents[3]
FOREIGN = ("ADVRISK_ZOO", "ADVRISK_DATA", "ADVRISK_ORACLES")
PEERS = ("adv_lib", "art", "foolbox", "mapie", "pyautoattack", "ray", "secmlt", "torchattacks")
BESIDE_PEERS = ("attacks", "certificate", "hopskipjump")


@pytest.fixture(autouse=True)
def nothing_foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither other people's data and classifiers, nor another Python."""
    for name in FOREIGN:
        monkeypatch.delenv(name, raising=False)


def lines_of(name: str, capfd: pytest.CaptureFixture[str]) -> list[str]:
    assert runner.main([name, "--tiny"]) == 0
    return capfd.readouterr().out.splitlines()


@pytest.mark.filterwarnings("default")  # other libraries warn of what is theirs
@pytest.mark.parametrize("name", benchmarks())
def test_a_benchmark_runs(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    lines = lines_of(name, capfd)
    heading = next(place for place, line in enumerate(lines) if line.startswith(f"== {name}: "))
    times = next(place for place, line in enumerate(lines) if line.startswith("benchmark "))
    assert times - heading > 3, lines
    assert re.fullmatch(rf"{name} +\d+ +\d+", lines[times + 1])


@pytest.mark.parametrize("name", BESIDE_PEERS)
def test_peers_that_are_not_installed_are_named(
    name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in list(sys.modules):
        if module.split(".")[0] in PEERS:
            monkeypatch.delitem(sys.modules, module)
    for peer in PEERS:
        monkeypatch.setitem(sys.modules, peer, None)
    assert any("not installed" in line for line in lines_of(name, capfd))


def test_every_file_is_a_benchmark_or_supports_one() -> None:
    files = {path.stem for path in (ROOT / "bench").glob("*.py")} - {"__init__", "__main__"}
    assert files == set(benchmarks()) | set(SUPPORT)
    assert len(benchmarks()) == len(set(benchmarks())), "each is in one shard"
    assert not set(benchmarks()) & set(SUPPORT)


@pytest.mark.parametrize("name", benchmarks())
def test_a_benchmark_can_be_made_tiny_and_run_by_itself(name: str) -> None:
    main = importlib.import_module(f"bench.{name}").main
    assert inspect.signature(main).parameters["tiny"].kind is inspect.Parameter.KEYWORD_ONLY
    assert 'if __name__ == "__main__":' in (ROOT / "bench" / f"{name}.py").read_text(encoding="utf-8")


def test_make_runs_every_shard() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    (shards,) = re.findall(r"^BENCH := (.*)$", text, re.MULTILINE)
    assert shards.split() == list(SHARDS)


def test_the_page_has_a_place_for_every_benchmark() -> None:
    found = places((ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8"))
    assert sorted(found) == sorted(benchmarks())


def test_what_is_printed_is_written_into_the_page(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Figures\n<!-- damage -->\nold\n<!-- /damage -->\nafter\n", encoding="utf-8")
    assert runner.main(["damage", "--tiny", "--page", str(page)]) == 0
    printed = capfd.readouterr().out.split("every two distances.\n")[1].split("\n\nbenchmark")[0]
    inside = page.read_text(encoding="utf-8").split("<!-- damage -->\n")[1].split("\n<!-- /damage -->\nafter")[0]
    assert inside == f"```text\n{printed}\n```"


def test_a_name_that_is_no_benchmark_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["damages"]) == 2
    assert "there is no benchmark 'damages'; did you mean 'damage'?" in capfd.readouterr().err
