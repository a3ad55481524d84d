"""Searches import shutil
from their study to frozen lists, on a surface that can be counted by hand."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advrisk import Run
from advrisk.assess.certificate.assessment import assess_certificates
from advrisk.assess.certificate.document import certificate_document
from advrisk.assess.certificate.question import assess_run
from advrisk.assess.certificate.verification import verify_document
from advrisk.assess.search.question import search_words
from advrisk.assess.status import run_status
from advrisk.core.errors import LedgerError, StudyError
from advrisk.ledger import Ledger
from advrisk.ledger.frozen import FrozenList, asked_question, frozen_lists
from advrisk.ledger.history import remove
from advrisk.ledger.searches import SearchRecord, read_searches
from advrisk.risk.certificate import calibration_order
from advrisk.run.progress import Progress
from advrisk.run.search.loop import BrokenSamples, can_still_win
from advrisk.study import study_from

from .conftest import Hill, reach

GRID = {"method": "grid", "rounds": 3, "batch": 3}


def searched(folder: Path) -> list[SearchRecord]:
    return read_searches(Ledger.open(folder))


def tuned(folder: Path) -> np.ndarray:
    """The numbers of the samples to tune on, from their ids: (n + 0.5) / 100."""
    rows = Ledger.open(folder).query("SELECT sample FROM samples WHERE split = 'tune'")["sample"].to_pylist()
    return np.array([(int(name.rpartition("/")[2]) + 0.5) / 100 for name in rows], dtype=np.float32)


def test_every_setting_of_a_grid_is_counted_as_by_hand(hill: Hill) -> None:
    folder = hill.run(hill.study(GRID | {"race": False}))
    (one,) = searched(folder)
    sizes = [trial.setting["size"] for trial in one.trials]
    assert sizes == pytest.approx(np.geomspace(1e-4, 1, 9), rel=1e-5)
    numbers = tuned(folder)
    assert [trial.failures for trial in one.trials] == [int((numbers < reach(size)).sum()) for size in sizes]
    assert {trial.n for trial in one.trials} == {36}
    assert [trial.round for trial in one.trials] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert one.finished
    assert one.worst is not None
    assert one.worst.setting["size"] == pytest.approx(0.01)
    assert [trial.arm for trial in one.trials if trial.frozen] == [one.worst.arm]


def frozen(folder: Path) -> list[FrozenList]:
    return frozen_lists(Ledger.open(folder))


def test_racing_finds_the_same_worst_with_fewer_rows(hill: Hill) -> None:
    whole, raced = (
        hill.run(hill.study(GRID | {"race": race, "freeze": 2}), name) for race, name in ((False, "a"), (True, "b"))
    )
    (slow,), (quick,) = searched(whole), searched(raced)
    assert [trial.arm for trial in quick.trials if trial.frozen] == [trial.arm for trial in slow.trials if trial.frozen]
    assert len([trial for trial in quick.trials if trial.frozen]) == 2
    worst = {trial.arm: (trial.failures, trial.n) for trial in slow.trials}
    assert all((trial.failures, trial.n) == worst[trial.arm] for trial in quick.trials if trial.frozen)
    assert sum(trial.n for trial in quick.trials) < sum(trial.n for trial in slow.trials)


def test_gp_ucb_finds_the_top_of_the_hill_and_freezes_it(hill: Hill) -> None:
    folder = hill.run(hill.study({"rounds": 4, "batch": 2}))
    (one,) = searched(folder)
    assert [trial.by for trial in one.trials] == ["design"] * 4 + ["gp-ucb"] * 8
    assert one.worst is not None
    assert one.worst.failures >= int((tuned(folder) < 0.97).sum())
    (found,) = frozen(folder)
    assert found.key == ("larger", "linf", 2.0)
    assert found.searched == (one.worst.arm,)
    assert set(found.arms) == {one.worst.arm, "hill-linf-2,size=0.03"}
    assert found.n_samples == 12
    rows = Ledger.open(folder).query(
        "SELECT o.arm, count(*) AS n FROM outcomes o JOIN samples USING (sample) WHERE split = 'calibrate' GROUP BY ALL"
    )
    assert {row["arm"]: row["n"] for row in rows.to_pylist()} == dict.fromkeys([*found.arms, "clean"], 12)
    origins = Ledger.open(folder).query("SELECT origin, count(*) AS n FROM arms GROUP BY ALL").to_pylist()
    assert {row["origin"]: row["n"] for row in origins} == {"study": 2, "frozen": 1, "search": 11}


def stopped(hill: Hill, content: dict[str, Any], name: str, after: int) -> None:
    """A run that is interrupted once so many cells are done."""

    def stop(progress: Progress) -> None:
        if progress.n_done >= after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hill.run(content, name, on_progress=stop)


@pytest.mark.parametrize(
    "search", [pytest.param({"rounds": 2, "batch": 2}, marks=pytest.mark.slow), GRID], ids=["gp-ucb", "racing"]
)
def test_a_search_that_was_stopped_goes_the_same_way(hill: Hill, search: dict[str, Any]) -> None:
    content = hill.study(search)
    through = hill.run(content, "through")
    for after in (9, 14):
        stopped(hill, content, "stopped", after)
        assert not any(one.finished for one in searched(hill.folder / "stopped"))
    again = hill.run(content, "stopped")
    assert searched(again) == searched(through)
    (one,), (other,) = frozen(again), frozen(through)
    assert one.id == other.id


def test_nothing_is_run_twice_and_more_rounds_go_on(hill: Hill) -> None:
    few = {"method": "random", "rounds": 3}
    folder = hill.run(hill.study(few))
    done: list[Progress] = []
    hill.run(hill.study(few), on_progress=done.append)
    assert done[-1].n_cells == done[-1].n_done == 0
    before = searched(folder)[0].trials
    hill.run(hill.study(few | {"rounds": 5}))
    (after,) = searched(folder)
    assert [trial.arm for trial in after.trials][:3] == [trial.arm for trial in before]
    assert len(after.trials) == 5


def test_time_that_runs_out_freezes_nothing(hill: Hill) -> None:
    folder = hill.run(hill.study(GRID), deadline=0.0)
    assert asked_question(Ledger.open(folder)) is None
    assert searched(folder) == []


def test_a_tested_list_that_another_replaces_is_remembered(hill: Hill) -> None:
    folder = hill.run(hill.study(GRID))
    (first,) = frozen(folder)
    assert first.earlier == ()
    hill.run(hill.study(GRID | {"freeze": 2}))
    (second,) = frozen(folder)
    assert [one.id for one in second.earlier] == [first.id]
    assert len(second.arms) == 3
    hill.run(hill.study(GRID))
    (back,) = frozen(folder)
    assert (back.id, back.frozen_at) == (first.id, first.frozen_at)
    assert [one.id for one in back.earlier] == [second.id]


def test_a_list_that_was_never_tested_is_forgotten(hill: Hill) -> None:
    content = hill.study(GRID)

    def stop(progress: Progress) -> None:
        if progress.phase == "calibrating":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hill.run(content, on_progress=stop)
    assert asked_question(Ledger.open(hill.folder / "run")) is not None
    folder = hill.run(hill.study(GRID | {"freeze": 2}))
    (found,) = frozen(folder)
    assert found.earlier == ()


def test_arms_of_a_search_that_is_gone_are_dropped(hill: Hill) -> None:
    hill.run(hill.study(GRID))
    folder = hill.run(hill.study())
    origins = set(Ledger.open(folder).query("SELECT DISTINCT origin FROM arms")["origin"].to_pylist())
    assert origins == {"study", "dropped"}
    assert searched(folder) == []
    (found,) = frozen(folder)
    assert found.searched == ()


def test_fewer_samples_to_calibrate_are_not_counted_and_not_given_away(hill: Hill) -> None:
    folder = hill.run(hill.study(data={"calibrate": 20, "tune": 0}, search=[]), "fewer")
    folder = hill.run(hill.study(data={"calibrate": 7, "tune": 0}, search=[]), "fewer")
    rows = Ledger.open(folder).query(
        "SELECT count(DISTINCT sample) AS n FROM outcomes JOIN samples USING (sample) WHERE split = 'calibrate'"
    )
    assert rows["n"].to_pylist() == [7]
    (found,) = frozen(folder)
    assert found.n_samples == 7
    assert len(found.earlier) == 1, "looking at 20 samples and then at 7 of them is a second use"
    with pytest.raises(Exception, match=r"was used as 'calibrate' in this run and is now 'evaluate'"):
        hill.run(hill.study(data={"evaluate": 93, "calibrate": 7, "tune": 0}, search=[]), "fewer")


def test_the_same_input_in_two_splits_is_refused(hill: Hill) -> None:
    with np.load(hill.data) as held:
        x, y = held["x"], held["y"]
    np.savez(hill.data, x=np.concatenate([x, x[:50]]), y=np.concatenate([y, y[:50]]))
    with pytest.raises(StudyError, match=r"the same input stands in two splits, \d+ times?: hill/\d+ \(\w+\) and"):
        hill.run(hill.study(GRID, data={"evaluate": 20, "tune": 60, "calibrate": 60}))


def test_whole_numbers_are_searched_and_ties_go_by_name(hill: Hill) -> None:
    folder = hill.run(hill.study({"method": "grid", "rounds": 4, "over": {"steps": [1, 4]}, "size": 0.01}))
    (one,) = searched(folder)
    assert [trial.setting["steps"] for trial in one.trials] == [1, 2, 3, 4]
    assert len({trial.failures for trial in one.trials}) == 1, "steps change nothing on this hill"
    frozen = [trial.arm for trial in one.trials if trial.frozen]
    assert frozen == [min(trial.arm for trial in one.trials)], "of equals the first by name"


def test_samples_to_calibrate_are_run_in_the_order_of_looks_whatever_their_file_says(hill: Hill) -> None:
    def met(shard: int, seed: int = 0) -> list[str]:
        data = {"calibrate": 30, "tune": 0, "order": "file"}
        folder = hill.run(hill.study(data=data, search=[], shard=shard, seed=seed), f"shards of {shard}, seed {seed}")
        rows = Ledger.open(folder).query(
            "SELECT sample FROM all_outcomes o JOIN samples USING (sample) "
            "WHERE split = 'calibrate' AND o.kind = 'clean' ORDER BY o.filename, o.file_row_number"
        )
        return [str(name) for name in rows["sample"].to_pylist()]

    found = met(7)
    assert found == met(12) == met(7, seed=1), "nobody can choose a seed for the bets that it wins"
    assert len(found) == 30
    hashes = Ledger.open(hill.folder / "shards of 7, seed 0").query("SELECT sample, hash FROM samples").to_pylist()
    assert tuple(found) == calibration_order({row["sample"]: row["hash"] for row in hashes if row["sample"] in found})
    assert found != sorted(found)


def test_samples_that_end_with_an_error_are_left_out_of_the_rate_and_the_setting_is_flagged(hill: Hill) -> None:
    folder = hill.run(hill.study(GRID | {"sound_below": 0.005}))
    (one,) = searched(folder)
    lost = [trial for trial in one.trials if trial.setting["size"] >= 0.005]
    assert {(trial.failures, trial.n, trial.n_errors, trial.rate) for trial in lost} == {(0, 0, 36, None)}
    assert one.worst is not None
    assert one.worst.setting["size"] == pytest.approx(10**-2.5, rel=1e-4)
    assert "5 settings ended on some samples with an error or a timeout" in " ".join(search_words(one))


def test_what_is_known_of_a_sample_from_its_rows() -> None:
    tally = BrokenSamples({"a": 0, "b": 0, "c": 0})
    rows = [("a", "success", 0), ("b", "success", 1), ("c", "timeout", None)]
    for criterion in ("label", "prediction"):
        told = [
            {"sample": name, "outcome": outcome, "clean_prediction": said, "criterion": criterion}
            for name, outcome, said in rows
        ]
        tally._take_in(criterion, told)
    assert tally.broken["label"] == {"a", "b"}, "b was refused when clean, whatever stands behind it"
    assert tally.broken["prediction"] == {"a"}
    assert tally.unanswered["label"] == {"c"}


def test_a_race_is_lost_only_against_what_others_keep() -> None:
    assert can_still_win(0.5, [0.5, 0.2], freeze=1)
    assert not can_still_win(0.49, [0.5, 0.2], freeze=1)
    assert can_still_win(0.49, [0.5, 0.2], freeze=2)
    assert can_still_win(0.0, [], freeze=1)


BETS = {"alpha": 0.5, "zeta": 0.2, "method": "betting"}


def test_bets_stop_once_every_list_is_decided_and_the_run_is_complete(hill: Hill) -> None:
    weak = [{"attack": "hill", "norm": "linf", "eps": 2, "size": 0.0001}]
    content = hill.study(data={"calibrate": 30, "tune": 0}, search=[], shard=4, arms=weak)
    content["assess"] = {"certificate": BETS}
    told: list[Progress] = []
    folder = hill.run(content, on_progress=told.append)
    run = Run.open(folder)
    (one,) = assess_certificates(run.ledger, **BETS).lists
    decided_at = one.look.decided_at
    assert decided_at is not None
    assert one.look.n == -(-decided_at // 4) * 4 < 30, "the shard in which it was decided is the last"
    assert one.certified
    assert told[-1].finished
    state = run_status(run.ledger, study_from(content), {})
    assert (state.complete, state.n_calibrated) == (True, 2 * one.look.n // 4)
    again: list[Progress] = []
    hill.run(content, on_progress=again.append)
    assert (again[-1].n_cells, again[-1].finished) == (0, True)
    found = assess_certificates(run.ledger, **BETS)
    assert "All lists were decided after" in " ".join(found.notes)
    written = certificate_document(run.ledger, found, found.models[0], every=found.lists, study="hill", seed=0)
    (caveat,) = written["claim"]["caveats"]
    assert "weak" in caveat, "certified but for that"
    assert verify_document(written).problems == ()


def test_bets_that_nobody_wins_and_other_methods_go_to_the_end(hill: Hill) -> None:
    for method, size in (("betting", 0.01), ("exact", 0.0001)):
        arms = [{"attack": "hill", "norm": "linf", "eps": 2, "size": size}]
        content = hill.study(data={"calibrate": 30, "tune": 0}, search=[], shard=12, arms=arms)
        content["assess"] = {"certificate": BETS | {"method": method}}
        folder = hill.run(content, method)
        state = run_status(Ledger.open(folder), study_from(content), {})
        assert (state.complete, state.n_calibrated) == (True, 2 * 3)


def test_ties_go_to_what_is_nearest_to_the_attacks_own_setting(hill: Hill) -> None:
    content = hill.study(GRID | {"eps": 0.001, "freeze": 2})
    folder = hill.run(content)
    (one,) = searched(folder)
    assert {trial.failures for trial in one.trials} == {0}
    frozen = sorted(trial.setting["size"] for trial in one.trials if trial.frozen)
    assert frozen[-1] == pytest.approx(0.1) or frozen[0] == pytest.approx(0.1), "size is 0.1 by default"
    assert frozen[1] / frozen[0] == pytest.approx(10**0.5, rel=1e-4), "and one of its neighbours"
    found = assess_run(Ledger.open(folder), study_from(content), {})
    (note,) = [note for note in found.notes if "found nothing that breaks a sample on the 36 samples" in note]
    assert note.startswith("hill-linf-0.001 over size against larger: ")


def test_a_run_that_lost_what_it_froze_is_refused(hill: Hill) -> None:
    content = hill.study({"method": "random", "rounds": 1})
    folder = hill.run(content)
    (path,) = folder.rglob("questions.parquet")
    shutil.rmtree(path.parent)
    remove(folder / "ledger", [path.parent.name])
    with pytest.raises(LedgerError, match="samples to calibrate were met, but no question is frozen"):
        assess_run(Ledger.open(folder), study_from(content), {})
    with pytest.raises(LedgerError, match=r"no question is frozen; .*choose another folder and other samples"):
        hill.run(content)
