"""What a certificate says where the same samples answered another question before."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advrisk.api.certificates import certificate_doubts, write_certificates
from advrisk.assess.certificate.question import assess_run
from advrisk.assess.certificate.settled import (
    caveats_of_samples,
    question_settings,
    stated_question,
)
from advrisk.assess.context import Context
from advrisk.core.digest import digest
from advrisk.core.errors import LedgerError, RiskError
from advrisk.ledger import Ledger, repair, table_from
from advrisk.ledger.frozen import Key, asked_question, frozen_list, frozen_lists, frozen_question, write_frozen
from advrisk.ledger.history import remove
from advrisk.risk.certificate import smallest_n
from advrisk.study import StudySpec, study_from

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


@pytest.fixture
def sound(made: Make) -> Ledger:
    """Two models that no attack breaks."""
    samples = [{"label": place % 7 % 3} for place in range(100)]
    return made({"m": dict.fromkeys(SIZES, "r" * 100), "n": {"pgd@linf:0.1": "r" * 100}}, samples=samples)


def ask(
    ledger: Ledger,
    without: Key | None = None,
    weights: str = "",
    first: int = 0,
    last: int | None = None,
    tries: int = 1,
    stated: dict[str, Any] | None = None,
    **changes: Any,
) -> None:
    """Freeze a question as a run does; `weights` are those of m, if they are others, `first` the first sample."""
    rows = ledger.query("SELECT sample, hash FROM samples ORDER BY place").to_pylist()[first:last]
    samples = [(row["sample"], row["hash"]) for row in rows]
    lists = [
        frozen_list(
            key,
            {arm: f"{key[0]}/{arm}{weights if key[0] == 'm' else ''}" for arm in arms},
            (),
            samples,
            dict.fromkeys(arms, tries),
        )
        for key, arms in LISTS.items()
        if key != without
    ]
    settings = {"alpha": 0.1, "zeta": 0.05, "method": "exact", "population": None} | changes
    write_frozen(ledger.reopened(), frozen_question(lists, samples, settings, stated=stated or {}))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"without": ("m", "linf", 0.2)}, "left out now: m within linf 0.2"),
        ({"without": ("n", "linf", 0.1)}, "left out now: n within linf 0.1"),
        (
            {"weights": ", others"},
            "another model of that name, or attacks that work otherwise: m within linf 0.1, m wi",
        ),
        ({"tries": 3}, "attacks are tried more or less often: m within linf 0.1"),
        ({"zeta": 0.4}, "zeta was 0.05 and is 0.4"),
        ({"alpha": 0.3}, "alpha was 0.1 and is 0.3"),
        ({"method": "betting"}, "method was exact and is betting"),
        ({"population": "as-sampled"}, "population was not said and is as-sampled"),
        ({"first": 15}, "of its 40 samples, 25 are used again"),
        ({"first": 39}, "of its 40 samples, 1 is used again"),
    ],
)
def test_whatever_is_changed_after_a_test_is_said(ledger: Ledger, changes: dict[str, Any], told: str) -> None:
    ask(ledger)
    assert caveats_of_samples(ledger.reopened(), 0.05) == []
    ask(ledger, **changes)
    (sentence,) = caveats_of_samples(ledger.reopened(), 0.05)
    assert told in sentence
    assert "take new samples, in a new folder" in sentence


def test_of_another_seed_only_the_seed_is_said_unless_a_model_has_another_digest(ledger: Ledger) -> None:
    ask(ledger, seed=7)
    ask(ledger, seed=8, weights=", drawn anew")
    (sentence,) = caveats_of_samples(ledger.reopened(), 0.05)
    assert ": seed was 7 and is 8. If what is asked now" in sentence
    ledger.reopened().append({"models": table_from("models", {"model": ["m"], "digest": ["another"]})})
    (sentence,) = caveats_of_samples(ledger.reopened(), 0.05)
    assert "seed was 7 and is 8; another model of that name, or attacks that work otherwise: m within" in sentence


def test_the_way_back_is_a_change_too_and_the_same_question_is_none(ledger: Ledger) -> None:
    ask(ledger)
    frozen_at = asked_question(ledger.reopened()).frozen_at  # type: ignore[union-attr]
    ask(ledger)
    ask(ledger, stated={"models": ["m", "n"]})  # the same in other words
    assert caveats_of_samples(ledger.reopened(), 0.05) == []
    ask(ledger, zeta=0.4)
    ask(ledger)
    (sentence,) = caveats_of_samples(ledger.reopened(), 0.05)
    assert "zeta was 0.4 and is 0.05" in sentence
    assert asked_question(ledger.reopened()).frozen_at == frozen_at  # type: ignore[union-attr]


def rewritten(ledger: Ledger, change: Callable[[list[dict[str, str]]], None]) -> Ledger:
    """The ledger after somebody changed its rows of questions, with digests and a history that fit."""
    rows = ledger.reopened().query("SELECT DISTINCT * FROM questions").to_pylist()
    segments = [path.parent for path in ledger.path.rglob("questions.parquet")]
    for segment in segments:
        shutil.rmtree(segment)
    remove(ledger.path, [segment.name for segment in segments])
    change(rows)
    columns = {name: [row[name] for row in rows] for name in ("question", "previous", "content")}
    if rows:
        ledger.reopened().append({"questions": table_from("questions", columns)})
    return ledger.reopened()


def drop_first(rows: list[dict[str, str]]) -> None:
    rows.remove(next(row for row in rows if not row["previous"]))


def lower_zeta(rows: list[dict[str, str]]) -> None:
    for row in rows:
        row["content"] = row["content"].replace('"zeta": 0.', '"zeta": 0.0')


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (drop_first, "one is missing, or two took the place of the same one"),
        (lower_zeta, "one was altered"),
        (lambda rows: rows.append(rows[0] | {"question": "other"}), "one was altered|two took the place"),
        (
            lambda rows: rows.append({"question": None, "previous": None, "content": None}),
            "one is missing, or two took",
        ),
        (list.clear, "samples to calibrate were met, but no question is frozen"),
    ],
)
def test_questions_cannot_be_taken_out_or_changed(
    ledger: Ledger, change: Callable[[list[dict[str, str]]], None], told: str
) -> None:
    ask(ledger)
    ask(ledger, zeta=0.4)
    assert assess_run(ledger.reopened(), None, {}).models[0].caveats
    with pytest.raises(
        LedgerError, match=f"({told}).*which attacks were tested on these samples is not known any more"
    ):
        assess_run(rewritten(ledger, change), None, {})


@pytest.mark.parametrize(("name", "value"), [("eps", "0.1"), ("arms", None), ("model", 3)])
def test_a_question_that_cannot_be_read_is_refused(ledger: Ledger, name: str, value: object) -> None:
    def change(rows: list[dict[str, str]]) -> None:
        content = json.loads(rows[0]["content"])
        content["question"]["lists"][0][name] = value
        rows[0]["content"] = json.dumps(content)
        rows[0]["question"] = digest([rows[0]["previous"], rows[0]["content"]])

    ask(ledger)
    with pytest.raises(LedgerError, match=rf"question\.lists\.0\.{name}: .*is not known any more"):
        frozen_lists(rewritten(ledger, change))


def test_cells_tell_of_a_question_that_was_trimmed_with_its_chain(ledger: Ledger) -> None:
    """Whoever writes the whole chain anew leaves the cells behind that only the question before asked for."""
    ask(ledger)
    rewritten(ledger, list.clear)
    ask(ledger, without=("n", "linf", 0.1))
    caveat, on_repair = assess_run(ledger.reopened(), None, {}).models[0].caveats
    assert "met by attacks that no frozen question lists: pgd@linf:0.1 against n." in caveat
    assert on_repair.startswith("A repair removed 1 segment from the ledger (0")


@pytest.mark.parametrize(
    ("with_history", "told"),
    [
        (False, "removed 1 segment from the ledger (0"),
        (True, "wrote the history of the ledger anew"),
    ],
)
def test_a_question_that_a_repair_took_out_is_a_caveat(sound: Ledger, with_history: bool, told: str) -> None:
    """It differs in alpha alone, so that no cell tells of it."""
    ask(sound, alpha=0.01)
    (segment,) = [path.parent for path in sound.path.rglob("questions.parquet")]
    assert caveats_of_samples(sound.reopened(), 0.05) == []
    sound.append({"samples": sound.query("FROM samples")})
    shutil.rmtree(segment)
    if with_history:
        (sound.path / "history.jsonl").unlink()
    repair(sound.path.parent)
    ask(sound)
    for model in assess_run(sound.reopened(), None, {}).models:
        assert model.verdict == "certified, with caveats"
        assert model.caveats[0].startswith(f"A repair {told}")


def test_tests_on_other_samples_are_a_caveat_with_their_number(ledger: Ledger) -> None:
    ask(ledger, last=10)
    assert caveats_of_samples(ledger.reopened(), 0.05) == []
    ask(ledger, first=10, last=20)
    (caveat,) = caveats_of_samples(ledger.reopened(), 0.05)
    assert caveat.startswith("1 other question of this run met other samples before. Of 2 tests, some are wrong up to ")
    assert "Of 2 tests, some are wrong up to 10 % of the time" in caveat
    ask(ledger, first=20)
    for _ in range(2):
        (caveat,) = caveats_of_samples(ledger.reopened(), 0.05)
        assert "2 other questions of this run met other samples before. Of 3 tests, some are wrong up to 15 %" in caveat
        ask(ledger, first=20)  # the same question is no other test
    ask(ledger, first=20, zeta=0.04)
    again, elsewhere = caveats_of_samples(ledger.reopened(), 0.04)
    assert "zeta was 0.05 and is 0.04" in again
    assert "Of 4 tests, some are wrong up to 16 %" in elsewhere, "those on the same samples are tests, too"


def test_what_was_tried_elsewhere_leaves_no_claim_without_a_caveat(sound: Ledger) -> None:
    ask(sound, last=50)
    rows = sound.query("FROM samples").to_pylist()
    moved = [row | {"split": "dropped-calibrate"} for row in rows if int(row["sample"][1:]) < 50]
    sound.append({"samples": table_from("samples", {name: [row[name] for row in moved] for name in moved[0]})})
    ask(sound, first=50)
    for model in assess_run(sound.reopened(), None, {}).models:
        assert (model.certified, model.verdict) == (False, "certified, with caveats")
        assert model.caveats[0].startswith("1 other question of this run met other samples before.")


STUDY: dict[str, Any] = {
    "name": "two",
    "data": {"source": "digits", "evaluate": 10, "calibrate": 40},
    "models": {"m": {"source": "demo", "name": "plain"}},
    "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.1}],
}
TWO: dict[str, Any] = STUDY | {
    "models": {"m": {"source": "demo", "name": "plain"}, "n": {"source": "demo", "name": "hardened"}},
    "arms": [{"attack": ["pgd", "square"], "norm": "linf", "eps": [0.1, 0.2]}, {"corruption": "fog"}],
    "assess": {"certificate": {}},
}

PREMISE = {"norm_bound": 1, "noise": 0.01, "kernel": "matern-5/2", "length_scale": 0.3, "delta": 0.05}


def frozen_from(ledger: Ledger, study: StudySpec) -> None:
    ask(ledger, **question_settings(study), stated=stated_question(study))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"assess": {"certificate": {"arms": ["square*"]}}}, r"arms was not said and is \[\"square\*\"\]"),
        ({"assess": {"certificate": {"alpha": 0.2}}}, r"alpha was 0\.1 and is 0\.2"),
        ({"assess": {"certificate": {"zeta": 0.4}}}, r"zeta was 0\.05 and is 0\.4"),
        ({"assess": {"certificate": {"method": "betting"}}}, "method was exact and is betting"),
        ({"assess": {"certificate": {"population": "as-sampled"}}}, "population was not said and is as-sampled"),
        ({"assess": {}}, "does not ask for a certificate any more"),
        (
            {"arms": [{"attack": "square", "norm": "linf", "eps": [0.1, 0.2]}]},
            r"arms without .*\"pgd\", \"square\".* and with",
        ),
        ({"arms": [{"attack": ["pgd", "square"], "norm": "linf", "eps": 0.1}]}, r"with .*\"eps\": \[0\.1\]"),
        ({"models": {"m": STUDY["models"]["m"]}}, "models without n"),
        ({"data": {"source": "digits", "evaluate": 10, "calibrate": 30}}, r"data\.calibrate was 40 and is 30"),
        ({"data": {"source": "digits", "evaluate": 10, "calibrate": 40, "order": "file"}}, "order was shuffled and is"),
        ({"seed": 8}, "seed was 0 and is 8"),
        ({"success": "prediction"}, "success was label and is prediction"),
        ({"search": [{"attack": "nes", "norm": "linf", "eps": 0.1}]}, 'search with .*"nes"'),
    ],
)
def test_a_study_that_asks_anything_else_than_what_was_frozen_is_refused(
    ledger: Ledger, changes: dict[str, Any], told: str
) -> None:
    frozen_from(ledger, study_from(TWO))
    with pytest.raises(RiskError, match=told):
        assess_run(ledger.reopened(), study_from(TWO | changes), {})


def test_what_does_not_decide_may_change_and_without_a_study_the_frozen_question_stands(ledger: Ledger) -> None:
    frozen_from(ledger, study_from(TWO | {"assess": {"certificate": {"zeta": 0.04}}}))
    arms = [TWO["arms"][0], {"corruption": "rain"}]
    same = TWO | {"name": "renamed", "arms": arms, "assess": {"certificate": {"zeta": 0.04}}}
    for study in (study_from(same), None):
        found = assess_run(ledger.reopened(), study, {})
        assert (found.zeta, [one.caveats for one in found.models]) == (0.04, [(), ()])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"alpha": 0.3}, "alpha = 0.3 was chosen later; 0.1 was frozen before the test. "),
        ({"zeta": 0.96}, "zeta = 0.96 was chosen later; 0.05 was frozen before the test. "),
        ({"method": "hoeffding-bentkus"}, "method = hoeffding-bentkus was chosen later; exact was frozen"),
        ({"arms": ["pgd@linf:0.1"]}, "Only attacks called pgd@linf:0.1 are counted here, and not all"),
        ({"population": "as-sampled"}, "population was stated later, and otherwise than it was frozen"),
        ({"search_guarantee": PREMISE}, "search_guarantee was stated later, and otherwise than it was frozen"),
    ],
)
def test_whatever_is_chosen_after_the_test_is_a_caveat(sound: Ledger, given: dict[str, Any], told: str) -> None:
    ask(sound)
    plain = assess_run(sound.reopened(), None, {})
    assert [(one.certified, one.caveats, one.verdict) for one in plain.models] == [(True, (), "certified")] * 2
    found = assess_run(sound.reopened(), None, given)
    assert all(one.certified for one in found.lists)
    for model in found.models:
        assert (model.certified, model.verdict) == (False, "certified, with caveats")
        assert model.caveats[0].startswith(told)


def test_one_model_may_be_named_by_itself(sound: Ledger) -> None:
    ask(sound)
    found = Context(ledger=sound.reopened()).result("certificate", models="m")
    assert [one.model for one in found.models] == ["m"]


@pytest.mark.parametrize("settings", [{"order": "odd"}, {"order": ["file"]}, {"seed": "7"}])
def test_frozen_settings_that_no_run_writes_are_refused(
    sound: Ledger, tmp_path: Path, settings: dict[str, Any]
) -> None:
    ask(sound, **settings)
    asked: dict[str, Any] = {"models": None, "norm": None, "eps": None, "out": tmp_path / "out", "key": None}
    with pytest.raises(LedgerError, match="settings of the frozen question: found order"):
        write_certificates(sound.reopened(), None, {}, name="x", **asked)


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
