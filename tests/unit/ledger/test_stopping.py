"""What lies beside a ledger of a run that was looked at."""

from dataclasses import replace
from pathlib import Path

import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger.stopping import FILE, Look, Stopping, read_stopping, stopping_words, write_stopping

FIRST = Look("decided", True, 1, 64, 0.25, 0.9875, False, "a is undecided against b")
SECOND = replace(FIRST, n_shards=2, n_samples=128, met=True, said="ship a")
STATE = Stopping("q", ("s1", "s2", "s3"), 192, 4, (FIRST, SECOND), n_shards=2, at=128)


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
        ('"n_shards": 2,\n "at"', '"n_shards": 4,\n "at"'),
        ('"share": 0.25', '"share": 7'),
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
    assert STATE.spent("decided") == STATE.with_looks(again).spent("decided") == [0.25, 0.25]
    assert STATE.look("decided", 2) == SECOND
    assert STATE.look("gate", 2) is None
    assert STATE.latest == (SECOND,)


def test_words_say_why_when_and_how_surely() -> None:
    early, decided, others = stopping_words(STATE)
    assert early == "Stopped early, after 128 of 192 samples: what was asked for is known."
    assert decided == (
        "Decided after 128 of 192 samples (ship a) at level 0.9875, at look 2 of at most 4, which share the error "
        "allowed."
    )
    assert "as if nobody had looked" in others
    spent = stopping_words(replace(STATE, looks=(), max_passes=1000))
    assert spent == [
        "Stopped early, after 128 of 192 samples: another shard would probably have gone beyond 1,000 passes."
    ]
    assert stopping_words(replace(STATE, n_shards=0, looks=(FIRST,))) == [
        "The target `decided` is not reached after 64 of 192 samples (at level 0.9875, at look 1 of at most 4, which "
        "share the error allowed): a is undecided against b."
    ]
