"""A labelling in progress: what is known keeps up with the answers, and what was settled stays."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advrisk.answers.records import Design, Labeller, LabellingSettings
from advrisk.assess.damage.answers import FORCED_CHOICE_UNTESTED
from advrisk.core.errors import LedgerError, RiskError, RunError
from advrisk.core.plain import plain_fields
from advrisk.risk.evasion import MonotoneEvasion, evasion_notes, read_evasion
from advrisk.web import labelling as module
from advrisk.web.labelling import Labelling, Wishes, open_labelling
from advrisk.web.stimuli import Pool
from advrisk.web.summary import summarise
from advrisk.web.trials import Asking

MakeRun = Callable[..., Path]
OpenRun = Callable[..., Labelling]


def give(labelling: Labelling, said: str = "changed", name: str = "Ann") -> None:
    token = labelling.invite(name)
    who = labelling.labeller(token)
    assert isinstance(who, Labeller)
    trial = labelling.question(who, Asking(labelling.settings.design))
    assert trial is not None
    labelling.store.put_seen(trial.id)
    labelling.store.put_answer(who.id, trial.nonce, said)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_summary_is_made_anew_in_the_background(labelling: Labelling, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = []

    def fails_once(*words: Any) -> Any:
        if not failed:
            failed.append(True)
            raise RiskError("for once")
        return summarise(*words)

    monkeypatch.setattr(module, "summarise", fails_once)
    labelling.start()
    try:
        give(labelling)
        until(lambda: bool(failed))
        assert labelling.state is None
        labelling.notice()
        until(lambda: labelling.state is not None and labelling.state["n_answers"] == 1)
        until(lambda: labelling.chooser.n_answers == 1)
    finally:
        labelling.stop()


def test_if_nothing_can_be_fitted_beside_the_requests_questions_follow_the_answers_all_the_same(
    labelling: Labelling, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: Any) -> Any:
        raise RunError("no process could be started")

    monkeypatch.setattr(module.FitProcess, "fit", refuses)
    labelling.start()
    try:
        until(lambda: labelling.behind)
        for n in (1, 2):
            give(labelling)
            assert labelling.chooser.n_answers == n
        assert labelling.state is None
    finally:
        labelling.stop()


def test_nothing_is_fitted_again_for_the_same_answers(labelling: Labelling, monkeypatch: pytest.MonkeyPatch) -> None:
    process = module.FitProcess("summary", labelling.pool, labelling.store.url, labelling.settings)
    fits = []
    monkeypatch.setattr(process, "fit", lambda: fits.append(labelling.store.revision()))
    for _ in range(2):
        labelling._update_summary(process)
    give(labelling)
    for _ in range(2):
        labelling._update_summary(process)
    assert fits == [(0, 0), (1, 0)]


@pytest.mark.parametrize("design", ["yes-no", "forced-choice"])
def test_the_doubts_about_a_curve_are_written_with_it(
    make_run: MakeRun, open_run: OpenRun, tmp_path: Path, design: Design
) -> None:
    """Changes of one model are noticed from a small size on, those of the other never."""
    labelling = open_run(make_run(), design=design)
    who = labelling.labeller(labelling.invite("Ann"))
    assert who is not None
    for place, example in enumerate(labelling.pool.examples):
        trial = labelling.store.put_trial(who.id, place, f"n{place}", labelling.pool.as_it_is(example))
        labelling.store.put_seen(trial.id)
        seen = example.model == "plain" and example.distance > 0.03
        said = {"yes-no": ("unchanged", "changed"), "forced-choice": ("first", "second")}[design][seen]
        labelling.store.put_answer(who.id, trial.nonce, said)
    written = labelling.write_curve(tmp_path / "evasion.json")
    assert written.n_answers == len(labelling.pool.examples)
    (note,) = evasion_notes(tmp_path / "evasion.json")
    assert written.notes == (note,)
    if design == "forced-choice":
        assert note == FORCED_CHOICE_UNTESTED
        with pytest.raises(RiskError, match="leave out `--curve monotone`"):
            labelling.write_curve(tmp_path / "falls.json", monotone=True)
    else:
        labelling.write_curve(tmp_path / "falls.json", monotone=True)
        assert isinstance(read_evasion(tmp_path / "falls.json"), MonotoneEvasion)
        assert plain_fields(labelling.current_summary())["shape"]["p_value"] > 0.01
        assert "differ between hard, plain" in note
        assert labelling.current_summary().warnings == written.notes


def test_an_open_question_outlives_the_process(make_run: MakeRun, open_run: OpenRun) -> None:
    folder = make_run()
    first = open_run(folder)
    token = first.invite("Ann")
    who = first.labeller(token)
    assert who is not None
    asked = first.question(who, Asking("yes-no"))
    first.store.close()
    again = open_run(folder)
    assert again.labeller(token) == who
    assert again.question(who, Asking("yes-no")) == asked


def test_what_is_not_said_stays_as_it_was(make_run: MakeRun, open_run: OpenRun) -> None:
    folder = make_run()
    first = open_run(folder, norm="l2", design="side-by-side", seconds=2.0)
    assert open_run(folder).settings == first.settings
    give(first)
    assert open_run(folder, create=False).pool.norm == "l2"
    for wish in ({"norm": "linf"}, {"design": "yes-no"}, {"seconds": 3.0}):
        with pytest.raises(LedgerError, match="do not belong to one curve"):
            open_run(folder, **wish)


def test_answers_of_another_run_are_refused(make_run: MakeRun, open_run: OpenRun) -> None:
    url = f"sqlite:///{make_run('one')}/answers.sqlite"
    give(open_run(make_run("two"), answers=url))
    with pytest.raises(LedgerError, match="holds answers of the run 'two'"):
        open_run(make_run("three"), answers=url)


@pytest.mark.parametrize("create", [True, False])
def test_answers_about_other_samples_are_refused(make_run: MakeRun, open_run: OpenRun, create: bool) -> None:
    """Another run may have the same name."""
    first = open_run(make_run())
    give(first)
    (name,) = first.store.samples()
    url = f"sqlite:///{first.pool.folder}/answers.sqlite"
    with pytest.raises(LedgerError, match=f"samples that .* does not hold, '{name}' for one"):
        open_run(make_run("other/run", prefix="t"), answers=url, create=create)
    assert len(open_run(make_run("third/run"), answers=url).store.answers()) == 1


def test_until_something_was_asked_everything_may_change(make_run: MakeRun, open_run: OpenRun) -> None:
    folder = make_run()
    open_run(folder, norm="l2", design="side-by-side", seconds=2.0)
    other = open_run(folder, norm="linf", design="forced-choice", seconds=3.0).settings
    assert (other.norm, other.design, other.seconds) == ("linf", "forced-choice", 3.0)
    elsewhere = open_run(make_run("two"), answers=f"sqlite:///{folder}/answers.sqlite").settings
    assert (elsewhere.run, elsewhere.design, elsewhere.seconds) == ("two", "yes-no", None)


def test_what_is_refused_leaves_no_database(make_run: MakeRun) -> None:
    folder = make_run()

    def refuse(settings: LabellingSettings, pool: Pool, store: object) -> None:
        assert (settings.design, pool.norm, store) == ("side-by-side", "linf", None)
        raise RunError("not like this")

    with pytest.raises(RunError, match="not like this"):
        open_labelling(folder, Wishes(design="side-by-side"), create=True, ready=refuse)
    assert not (folder / "answers.sqlite").exists()


def test_several_norms_without_a_study_need_a_word(make_run: MakeRun, open_run: OpenRun) -> None:
    from advrisk.ledger import Ledger, table_from

    folder = make_run()
    row = {"model": ["plain"], "arm": ["other"], "recipe": ["r"], "origin": ["import"], "kind": ["attack"]}
    Ledger.open(folder).append({"arms": table_from("arms", row | {"norm": ["l2"], "repeats": [1]})})
    with pytest.raises(RunError, match="say which with --norm"):
        open_run(folder)


def test_a_summary_counts_catch_trials_and_labellers(labelling: Labelling) -> None:
    for place in range(14):
        give(labelling, "changed" if place % 2 else "unchanged", name=("Ann", "Bob")[place // 7])
    found = labelling.current_summary()
    assert [(one.name, one.n_answers) for one in found.labellers] == [("Ann", 7), ("Bob", 7)]
    answers = labelling.store.answers()
    for one in found.labellers:
        catch = [answer for answer in answers if answer.labeller == one.name and answer.catch]
        assert one.n_catch == len(catch) >= 1
        assert one.n_catch_right == sum(answer.undetected for answer in catch)
    assert found.fitted
    assert set(found.damage) == {"plain", "hard"}
    assert plain_fields(found)["n_answers"] == 14
