"""What lies beside a ledger of a run that was looked at."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from advrisk.core.digest import digest
from advrisk.core.errors import LedgerError
from advrisk.ledger.stopping import FILE, Look, Stopping, read_stopping, write_stopping
from tests.durability import recorded

ORDER = ("s1", "s2", "s3")
FIRST = Look(
    *("decided", True, 1, 64, 0.25, 0.9875, False, "a is undecided against b"),
    question="q",
    shards=digest(["s1"]),
    plan=digest(list(ORDER)),
)
SECOND = replace(FIRST, n_shards=2, n_samples=128, met=True, said="ship a", shards=digest(["s1", "s2"]))
STATE = Stopping({"decided": "q"}, ORDER, 192, 4, (FIRST, SECOND), n_shards=2, n_samples_run=128)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert read_stopping(tmp_path) is None
    write_stopping(tmp_path, STATE)
    assert read_stopping(tmp_path) == STATE
    assert STATE.shards == ("s1", "s2")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"looks": [{"target": 1}]}', '{"looks": [], "order": []}'])
def test_what_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(LedgerError, match=r"looks\.json: cannot be read"):
        read_stopping(tmp_path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"n_samples": 192', '"n_samples": "many"'),
        ('"n_shards": 2,\n "n_samples_run"', '"n_shards": 4,\n "n_samples_run"'),
        ('"share": 0.25', '"share": 7'),
        ('"share": 0.25', '"share": 0.8'),
        ('"share": 0.25', '"share": 0'),
        ('"level": 0.9875', '"level": 1.0'),
        ('"met": true', '"met": 1'),
        ('"s1"', "1"),
        ('"said": "ship a"', '"said": null'),
    ],
)
def test_a_record_that_says_nonsense_is_refused(tmp_path: Path, old: str, new: str) -> None:
    write_stopping(tmp_path, STATE)
    text = (tmp_path / FILE).read_text()
    assert old in text
    (tmp_path / FILE).write_text(text.replace(old, new))
    with pytest.raises(LedgerError, match=r"looks\.json: cannot be read"):
        read_stopping(tmp_path)


def test_a_look_at_the_same_place_takes_the_place_of_the_first() -> None:
    again = replace(SECOND, said="ship b")
    assert STATE.with_looks(again).looks == (FIRST, again)
    assert STATE.spent("decided") == STATE.with_looks(again).spent("decided") == ([], [0.25, 0.25])
    more = replace(STATE, order=(*ORDER, "s4"))
    assert more.spent("decided") == ([0.25, 0.25], [])
    assert more.look("decided", 2) == SECOND  # at the same samples
    assert replace(STATE, order=("s1", "s9")).look("decided", 2) is None  # others are in their place
    assert STATE.look("decided", 2) == SECOND
    assert STATE.look("gate", 2) is None
    assert STATE.latest == (SECOND,)


def test_looks_at_another_question_are_kept_and_not_told() -> None:
    other = STATE.asking({"decided": "another"})
    assert other.looks == ()
    assert other.earlier == (FIRST, SECOND)
    assert other.decision_level is None
    assert other.asking({"decided": "q"}) == STATE
    assert other.asking({"gate": "q"}).looks == ()  # a question is that of one kind of target


def test_it_decides_at_the_level_of_the_last_look() -> None:
    later = replace(SECOND, n_shards=3, n_samples=192, level=0.995)
    assert STATE.decision_level == 0.9875
    assert STATE.with_looks(later).decision_level == 0.995
    assert STATE.with_looks(replace(SECOND, target="damage ±0.1", decides=False, level=0.999)).decision_level == 0.9875
    assert replace(STATE, looks=(replace(FIRST, decides=False),)).decision_level is None
    told = STATE.as_dict()
    last = {"target": "decided", "met": True, "said": "ship a", "decides": True, "level": 0.9875, "n_samples": 128}
    assert told["looks"] == [last]
    assert (told["rests"], told["n_samples_run"], told["decision_level"]) == (True, 128, 0.9875)


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (STATE, (SECOND,)),
        (replace(STATE, n_shards=0), (FIRST, SECOND)),
        (replace(STATE, n_shards=3, n_samples_run=192), ()),  # nobody looked there
        (replace(STATE, order=(*ORDER, "s4")), (SECOND,)),
        (replace(STATE, order=("s2", "s3"), n_shards=0), ()),  # the first samples were removed
        (replace(STATE, order=("s1",), n_shards=0), (FIRST,)),
        (replace(STATE, n_shards=0, gaps=frozenset({"s2"})), (FIRST,)),  # cells were lost
        (replace(STATE, n_shards=0, gaps=frozenset({"s1"})), ()),
        (replace(STATE, n_shards=0, gaps=frozenset({"s3"})), (FIRST, SECOND)),
    ],
)
def test_told_are_looks_at_what_is_there_and_shown(state: Stopping, told: tuple[Look, ...]) -> None:
    assert state.told == told
    assert state.latest == told[-1:]
    assert state.decision_level == 0.9875  # what is not told is spent


def test_what_is_missing_is_seen_by_whoever_reads(tmp_path: Path) -> None:
    write_stopping(tmp_path, replace(STATE, gaps=frozenset({"s1"})))
    assert read_stopping(tmp_path) == STATE
    text = (tmp_path / FILE).read_text()
    (tmp_path / FILE).write_text(text.replace('"n_looks_planned"', '"gaps": [[]], "n_looks_planned"'))
    assert read_stopping(tmp_path) == STATE


def test_looks_are_on_the_disk_before_the_file_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = recorded(monkeypatch)
    write_stopping(tmp_path, STATE)
    unfinished = f".{FILE}.{os.getpid()}"
    assert steps == [f"fsync {unfinished}", f"rename {unfinished} {FILE}", f"fsync {tmp_path.name}"]
