"""Every segment that was published is there, was replaced, or is missed; whoever is killed loses nothing by that."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger, SegmentWriter, check, compact, merge_ledgers, repair
from advrisk.ledger.history import FILE, read_history
from advrisk.ledger.manifest import read_manifest
from advrisk.ledger.segments import segment_folders
from tests.stamps import as_of_an_earlier_version

Tables = dict[str, Any]


class Crash(BaseException):
    """The process ends here."""


@pytest.fixture
def run(ledger: Ledger, cell: Callable[..., Tables], arms: Callable[..., Tables]) -> Path:
    """A question, and three cells in three segments."""
    ledger.append(arms(("plain", "push", "r1")))
    for number in range(3):
        ledger.append(cell(f"c{number}", repeat=number))
    return ledger.path.parent


def segments(run: Path) -> list[Path]:
    return segment_folders(run / "ledger")


def cells(run: Path) -> set[str]:
    return Ledger.open(run).finished_cells()


def damage(run: Path) -> list[tuple[str, str]]:
    return [(one.kind, Path(one.place).name) for one in check(run).findings if one.damage]


@pytest.mark.parametrize("which", range(4))
def test_a_lost_segment_is_missed_by_readers_and_by_a_check(run: Path, which: int) -> None:
    lost = segments(run)[which]
    shutil.rmtree(lost)
    with pytest.raises(LedgerError, match=rf"{lost.name}: is lost: it was published.*backup.*check RUN --repair"):
        Ledger.open(run).outcomes()
    assert damage(run) == [("missing", lost.name)]


@pytest.mark.parametrize("act", [compact, lambda run: merge_ledgers(run, run.with_name("other"))])
def test_a_ledger_with_a_lost_segment_is_not_merged(run: Path, act: Callable[[Path], object]) -> None:
    shutil.copytree(run, run.with_name("other"))
    shutil.rmtree(segments(run)[1])
    with pytest.raises(LedgerError, match="is lost"):
        act(run)
    assert [kind for kind, _ in damage(run)] == ["missing"]


def test_a_repair_removes_what_is_lost_and_its_cells_are_run_again(run: Path, cell: Callable[..., Tables]) -> None:
    shutil.rmtree(segments(run)[2])
    repair(run)
    assert (damage(run), cells(run)) == ([], {"c0", "c2"})
    Ledger.open(run).append(cell("c1", repeat=1))
    assert (damage(run), cells(run)) == ([], {"c0", "c1", "c2"})
    shutil.rmtree(segments(run)[-1])
    assert damage(run) != [], "what was made again can be lost again"


def test_a_lost_segment_that_is_put_back_is_whole(run: Path) -> None:
    lost = segments(run)[1]
    backup = shutil.copytree(lost, run / "backup")
    shutil.rmtree(lost)
    assert check(run).damaged
    shutil.copytree(backup, lost)
    assert (damage(run), cells(run)) == ([], {"c0", "c1", "c2"})


def test_merged_segments_are_required_in_place_of_those_they_replaced(run: Path, cell: Callable[..., Tables]) -> None:
    compact(run)
    Ledger.open(run).append(cell("c3", repeat=3))
    compact(run)
    assert (damage(run), len(segments(run))) == ([], 1)
    shutil.rmtree(segments(run)[0])
    assert check(run).damaged


def test_the_whole_ledger_is_missed(run: Path) -> None:
    for segment in segments(run):
        shutil.rmtree(segment)
    with pytest.raises(LedgerError, match="is lost, and 3 more: it was published"):
        Ledger.open(run).query("SELECT 1")


@pytest.mark.parametrize("call", range(5))
def test_a_writer_that_is_killed_while_it_publishes_leaves_a_whole_ledger(
    run: Path, cell: Callable[..., Tables], monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """Before the segment has its name; after that, and before its line is written; after that."""
    steps: list[str] = []

    def stopping(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def act(*given: Any, **named: Any) -> Any:
            if len(steps) == call:
                raise Crash
            steps.append(name)
            return real(*given, **named)

        return act

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", stopping("rename", Path.rename))
        patch.setattr(os, "replace", stopping("replace", os.replace))
        patch.setattr("advrisk.core.files.make_durable", stopping("durable", lambda _: None))
        if call < 4:
            with pytest.raises(Crash):
                Ledger.open(run).append(cell("c3", repeat=3))
        else:
            Ledger.open(run).append(cell("c3", repeat=3))
            assert steps == ["rename", "durable", "replace", "durable"]
    there = cells(run)
    assert there == ({"c0", "c1", "c2"} if call == 0 else {"c0", "c1", "c2", "c3"})
    assert damage(run) == []
    with SegmentWriter(Ledger.open(run)) as writer:
        writer.add(cell("c4", repeat=4))
    assert check(run).findings == []
    assert read_history(run / "ledger").required == {one.name for one in segments(run)}
    lost = segments(run)[-2]
    shutil.rmtree(lost)
    assert damage(run) == [("missing", lost.name)], "the line that a killed writer owed was added"


def test_a_reader_is_not_disturbed_by_a_writer(
    run: Path, cell: Callable[..., Tables], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two segments are published after the history was read, and before segments are listed."""
    from advrisk.ledger import verified

    real, later = verified.listed_segments, iter([3, 4])

    def meanwhile(ledger: Path) -> Any:
        for number in later:
            Ledger(Ledger.open(run).storage).append(cell(f"c{number}", repeat=number))
        return real(ledger)

    monkeypatch.setattr(verified, "listed_segments", meanwhile)
    assert cells(run) == {"c0", "c1", "c2", "c3", "c4"}


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (lambda path: path.unlink(), "altered"),
        (lambda path: path.write_text(""), "altered"),
        (lambda path: path.write_text("".join(path.read_text().splitlines(keepends=True)[1:])), "altered"),
        (lambda path: path.write_text("no JSON\n"), "unreadable"),
        (lambda path: path.write_text('{"segment": "../../x", "digest": null}\n'), "unreadable"),
        (lambda path: path.write_bytes(b"\xff" * 9), "unreadable"),
        (lambda path: path.write_text("[" * 100_000), "unreadable"),
    ],
)
def test_a_damaged_history_is_found_and_written_anew(run: Path, spoil: Callable[[Path], object], kind: str) -> None:
    path = run / "ledger" / FILE
    spoil(path)
    with pytest.raises(LedgerError, match=r"history\.jsonl: (was altered|cannot be read).*check RUN --repair"):
        Ledger.open(run).query("SELECT 1")
    assert (kind, FILE) in damage(run)
    repair(run)
    assert (damage(run), cells(run)) == ([], {"c0", "c1", "c2"}), "no cell is lost by that"
    shutil.rmtree(segments(run)[1])
    assert [found for found, _ in damage(run)] == ["missing"]


def test_ledgers_of_earlier_versions_stay_readable_and_get_a_history(run: Path, cell: Callable[..., Tables]) -> None:
    for segment in segments(run):
        as_of_an_earlier_version(segment)
    assert (damage(run), cells(run)) == ([], {"c0", "c1", "c2"})
    assert not (run / "ledger" / FILE).exists(), "readers write nothing"
    Ledger.open(run).append(cell("c3", repeat=3))
    shutil.rmtree(segments(run)[1])
    assert [kind for kind, _ in damage(run)] == ["missing"]


def test_a_line_for_each_segment_names_its_digest(run: Path) -> None:
    lines = [json.loads(line) for line in (run / "ledger" / FILE).read_text().splitlines()]
    manifests = {segment.name: read_manifest(segment) for segment in segments(run)}
    assert lines == [{"segment": name, "digest": one and one.digest} for name, one in manifests.items()]
