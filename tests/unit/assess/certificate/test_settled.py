"""What a certificate says where the same samples answered another question before."""

import json
from typing import Any

import pytest

from advrisk.api.certificates import certificate_doubts
from advrisk.assess.certificate.question import asked_certificate, assess_run
from advrisk.assess.certificate.settled import not_settled, used_before
from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger
from advrisk.ledger.frozen import Key, asked_question, frozen_list, frozen_lists, frozen_question, write_frozen
from advrisk.risk.certificate import smallest_n
from advrisk.study import study_from

from .conftest import Make

SIZES = {"pgd@linf:0.1": "r" * 40, "pgd@linf:0.2": "s" * 40}
LISTS: dict[Key, tuple[str, ...]] = {
    ("m", "linf", 0.1): ("pgd@linf:0.1",),
    ("m", "linf", 0.2): ("pgd@linf:0.2",),
    ("n", "linf", 0.1): ("pgd@linf:0.1",),
}


@pytest.fixture
def ledger(made: Make) -> Ledger:
    samples = [{"label": place % 7 % 3} for place in range(40)]
    return made({"m": SIZES, "n": {"pgd@linf:0.1": "r" * 40}}, samples=samples)


def ask(ledger: Ledger, without: Key | None = None, weights: str = "", first: int = 0, **changes: Any) -> None:
    """Settle a question as a run does; `weights` are those of m, if they are others, `first` the first sample."""
    rows = ledger.query("SELECT sample, hash FROM samples ORDER BY place").to_pylist()[first:]
    samples = [(row["sample"], row["hash"]) for row in rows]
    lists = [
        frozen_list(key, {arm: f"{key[0]}/{arm}{weights if key[0] == 'm' else ''}" for arm in arms}, (), samples)
        for key, arms in LISTS.items()
        if key != without
    ]
    settings = {"alpha": 0.1, "zeta": 0.05, "method": "exact", "population": None} | changes
    write_frozen(ledger.path.parent, ledger, frozen_question(lists, samples, **settings))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"without": ("m", "linf", 0.2)}, "left out now: m within linf 0.2"),
        ({"without": ("n", "linf", 0.1)}, "left out now: n within linf 0.1"),
        (
            {"weights": ", others"},
            "another model of that name, or attacks that work otherwise: m within linf 0.1, m wi",
        ),
        ({"zeta": 0.4}, "zeta was 0.05 and is 0.4"),
        ({"alpha": 0.3}, "alpha was 0.1 and is 0.3"),
        ({"method": "betting"}, "method was exact and is betting"),
        ({"population": "as-sampled"}, "population was not said and is as-sampled"),
        ({"first": 15}, "of its 40 samples, 25 are used again"),
    ],
)
def test_whatever_is_changed_after_a_test_is_said(ledger: Ledger, changes: dict[str, Any], told: str) -> None:
    ask(ledger)
    assert used_before(ledger) == []
    ask(ledger, **changes)
    (sentence,) = used_before(ledger)
    assert told in sentence
    assert "take new samples, in a new folder" in sentence


def test_the_way_back_is_a_change_too_and_the_same_question_is_none(ledger: Ledger) -> None:
    ask(ledger)
    frozen_at = asked_question(ledger.path).frozen_at  # type: ignore[union-attr]
    ask(ledger)
    assert used_before(ledger) == []
    ask(ledger, zeta=0.4)
    ask(ledger)
    (sentence,) = used_before(ledger)
    assert "zeta was 0.4 and is 0.05" in sentence
    assert asked_question(ledger.path).frozen_at == frozen_at  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("eps", "0.1", r"questions\.0\.lists\.0\.eps"),
        ("arms", None, r"lists\.0\.arms"),
        ("model", 3, r"lists\.0\.model"),
    ],
)
def test_a_file_that_says_something_else_is_refused(ledger: Ledger, name: str, value: object, told: str) -> None:
    ask(ledger)
    path = ledger.path.parent / "frozen.json"
    content = json.loads(path.read_text())
    content["questions"][0]["lists"][0][name] = value
    path.write_text(json.dumps(content))
    with pytest.raises(
        LedgerError, match=rf"frozen\.json: cannot be read \(questions\.0\.lists\.0\.{name}: .*is not known any more"
    ):
        frozen_lists(ledger.path.parent)


def test_other_samples_clear_the_note_in_the_same_folder(ledger: Ledger) -> None:
    ask(ledger)
    path = ledger.path.parent / "frozen.json"
    content = json.loads(path.read_text())
    content["questions"][0] |= {"contents": ["others"], "samples": "others"}
    path.write_text(json.dumps(content | {"current": "gone"}))
    ask(ledger, zeta=0.4)
    assert len(json.loads(path.read_text())["questions"]) == 2, "it is remembered"
    assert used_before(ledger) == [], "and has no sample in common"


STUDY: dict[str, Any] = {
    "name": "two",
    "data": {"source": "digits", "evaluate": 10, "calibrate": 40},
    "models": {"m": {"source": "demo", "name": "plain"}},
    "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.1}],
}


def test_attacks_that_are_left_out_after_the_look_are_told(ledger: Ledger) -> None:
    ask(ledger)
    study = study_from(STUDY | {"assess": {"certificate": {}}})
    assert asked_certificate(study, {"arms": None}) == (study.assess.certificate, [])
    found = assess_run(ledger, study, {"arms": ["pgd@linf:0.1"]})
    assert all(one.certified for one in found.lists)
    assert "Only attacks called pgd@linf:0.1 are counted here, which the study does not say" in found.notes[0]


def test_what_the_study_says_since_the_test_is_held_against_what_was_settled(ledger: Ledger) -> None:
    ask(ledger)
    study = study_from(STUDY | {"assess": {"certificate": {"zeta": 0.4}}})
    found = assess_run(ledger, study, {})
    assert "zeta = 0.4 is not what was settled before the test, which is 0.05." in found.notes
    settings = {"alpha": 0.1, "zeta": 0.05, "method": "exact", "population": None}
    assert not_settled(ledger, **settings) == []


@pytest.mark.parametrize(
    ("changes", "n_sequences"),
    [
        ({}, 1),
        ({"arms": [*STUDY["arms"], {"attack": "deepfool", "norm": "l2"}]}, 1),
        ({"arms": [{"attack": "fgsm", "norm": ["linf", "l2"], "eps": 0.1}]}, 2),
        ({"arms": [{"attack": "fgsm", "norm": ["linf", "l2"], "eps": 0.1}], "only": ["*linf*"]}, 1),
        ({"arms": [{"attack": "threshold", "eps": 0.1}, {"attack": "pgd", "norm": "l2", "eps": 1}]}, 2),
        ({"search": [{"attack": "nes", "norm": "l2", "eps": 1}]}, 2),
    ],
)
def test_a_doubt_counts_the_pairs_of_a_model_and_a_norm_that_are_certified(
    changes: dict[str, Any], n_sequences: int
) -> None:
    asked = {"arms": changes["only"]} if "only" in changes else {}
    needed = smallest_n(0.1, 0.05 / n_sequences)
    for n, is_told in ((needed - 1, True), (needed, False)):
        data = {"source": "digits", "evaluate": 10, "calibrate": n, "tune": 5}
        study = {**STUDY, "data": data, **{k: v for k, v in changes.items() if k != "only"}}
        doubts = certificate_doubts(study_from(study | {"assess": {"certificate": asked}}))
        assert bool(doubts) == is_told
        assert all(f"at least {needed} are needed" in doubt for doubt in doubts)
