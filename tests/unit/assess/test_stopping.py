"""What people read of a run that stopped early, or may have."""

from dataclasses import replace

import pytest

from advrisk.assess.stopping import stopping_words
from advrisk.core.digest import digest
from advrisk.ledger.stopping import Look, Stopping

ORDER = ("s1", "s2", "s3")
FIRST = Look(
    *("decided", True, 1, 64, 0.25, 0.9875, False, "a is undecided against b"),
    question="q",
    shards=digest(["s1"]),
    plan=digest(list(ORDER)),
)
SECOND = replace(FIRST, n_shards=2, n_samples=128, met=True, said="ship a", shards=digest(["s1", "s2"]))
STATE = Stopping({"decided": "q"}, ORDER, 192, 4, (FIRST, SECOND), n_shards=2, n_samples_run=128)


def test_words_say_why_when_and_how_surely() -> None:
    early, decided, level = stopping_words(STATE)
    assert early == (
        "Stopped early, after 128 of 192 samples: its target is reached. Run the same command without "
        "`--target` for the full grid."
    )
    assert decided == "Decided after 128 of 192 samples (ship a) at 98.75 %, at interim analysis 2 of at most 4."
    assert level == (
        "Verdicts and intervals here are at 98.75 %: as there are up to 4 interim analyses, each uses that level, so "
        "that all together keep the study's level, whichever the run stopped at."
    )
    assert stopping_words(STATE, level=0.95)[-1] == (
        "Verdicts and intervals here are at 95 %, as requested, which the interim analyses do not guarantee: with up "
        "to 4 interim analyses, each uses 98.75 %, so that all together keep the study's level, "
        "whichever the run stopped at."
    )
    assert stopping_words(STATE, level=0.9875) == stopping_words(STATE)
    spent = stopping_words(replace(STATE, looks=(), max_passes=1000))
    assert spent == [
        "Stopped early, after 128 of 192 samples: another shard would probably have gone beyond 1,000 passes. Run the "
        "same command again to resume, or without `--max-passes` for the full grid."
    ]
    assert stopping_words(replace(STATE, n_shards=0, looks=(FIRST,)))[0] == (
        "The target `decided` is not reached after 64 of 192 samples (at 98.75 %, at interim analysis 1 of at most 4): "
        "a is undecided against b."
    )
    margin = replace(FIRST, target="damage ±0.1", decides=False, met=True, level=0.95, said="known")
    assert stopping_words(replace(STATE, n_shards=0, looks=(margin,))) == [
        "The target `damage ±0.1` was reached after 64 of 192 samples: known."
    ]


def test_looks_at_another_question_are_not_told() -> None:
    assert stopping_words(STATE.asking({"decided": "another"})) == [
        "Stopped early, after 128 of 192 samples: its earlier target was reached. Run the study again for its "
        "present target. Run the same command without `--target` for the full grid."
    ]


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
def test_level_words_name_looks_at_other_samples(state: Stopping, told: tuple[Look, ...]) -> None:
    assert any("Interim analyses of other samples" in one for one in stopping_words(state)) == (not told)


def test_looks_before_samples_were_added_are_among_those_at_most() -> None:
    more = replace(STATE, order=(*ORDER, "s4"), n_shards=0, n_looks_planned=3)
    assert "at interim analysis 2 of at most 5" in stopping_words(more)[0]
