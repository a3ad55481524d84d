"""Runs that stop when enough is known, or spent: what they hold, what they say, and how they go on."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from advrisk import Run, Study
from advrisk.api import study as targets
from advrisk.assess.interim import InterimResult
from advrisk.cli import DONE, UNDECIDED
from advrisk.core.errors import StudyError
from advrisk.ledger import Ledger
from advrisk.ledger.stopping import read_stopping
from advrisk.study import parse_targets
from advrisk.testing.ledgers import outcome_rows

from .conftest import Command, study_of

ARMS = [{"attack": "fgsm", "norm": "linf", "eps": [0.05, 0.3]}]
N_SHARDS = 8
PASSES = """
    SELECT shard, sum(n_forward + n_backward + n_judge)::BIGINT AS n FROM outcomes JOIN samples USING (sample)
    WHERE split = 'evaluate' GROUP BY ALL
"""


def quick(content: dict[str, Any]) -> dict[str, Any]:
    """Eight shards of sixteen samples, and arms that take little."""
    content["data"]["evaluate"] = 16 * N_SHARDS
    content["assess"]["damage"]["thresholds"] = [0.05, 0.3]
    return content | {"arms": ARMS}


@pytest.fixture(scope="module")
def full(nets: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The whole grid."""
    return Study.from_dict(quick(study_of(nets))).run(tmp_path_factory.mktemp("full") / "run")


@pytest.fixture(scope="module")
def stopped(nets: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that may stop early, as its target is easy."""
    content = quick(study_of(nets))
    return Study.from_dict(content).run(tmp_path_factory.mktemp("stopped") / "run", target="broken at 0.3 ±0.2")


def rows_of(run: Run) -> list[Any]:
    return outcome_rows(run.folder)


def test_a_run_rests_once_its_target_is_met_and_its_rows_are_those_of_the_full_one(stopped: Run, full: Run) -> None:
    found = stopped.stopping
    assert found is not None
    assert found.rests
    assert 0 < found.n_samples_run < 16 * N_SHARDS
    assert found.n_samples_run == 16 * found.n_shards
    few, many = rows_of(stopped), rows_of(full)
    assert 0 < len(few) < len(many)
    assert all(row in many for row in few)
    samples = set(stopped.query("SELECT sample FROM samples WHERE split = 'evaluate'")["sample"].to_pylist())
    whole = full.query("SELECT count(*) AS n FROM outcomes WHERE sample IN (SELECT unnest($s))", {"s": sorted(samples)})
    assert whole["n"][0].as_py() == len(few)


def test_the_margin_is_kept_on_both_sides(stopped: Run) -> None:
    for row in stopped.damage().models:
        share = row.success_ratio[0.3]
        assert max(share.high - share.value, share.value - share.low) <= 0.2


def test_everything_tells_that_it_stopped_early(stopped: Run, advrisk: Command) -> None:
    said = f"Stopped early, after {stopped.stopping.n_samples_run if stopped.stopping else 0} of 128 samples"
    state = stopped.status()
    assert state.done
    assert said in state.stopped
    for words in (("status",), ("show",), ("select",)):
        done = advrisk(*words, stopped.folder, env={"COLUMNS": "400"})
        assert said in done.stdout
        assert "The target `broken at 0.3 ±0.2` was reached" in done.stdout
    assert said in json.loads(advrisk("status", stopped.folder, "--json").stdout)["stopped"]
    assert said in stopped.report().read_text()
    assert said in str(stopped.record()["damage"])


def test_without_a_target_it_goes_on_to_the_full_grid_and_remembers(nets: Path, full: Run, tmp_path: Path) -> None:
    study = Study.from_dict(quick(study_of(nets)))
    first = study.run(tmp_path / "run", target=["broken at 0.3 ±0.3", "damage ±0.3"])
    assert first.stopping is not None
    assert first.stopping.rests
    again = study.run(tmp_path / "run", target=["broken at 0.3 ±0.3", "damage ±0.3"])
    assert rows_of(again) == rows_of(first)
    assert again.stopping == first.stopping
    whole = study.run(tmp_path / "run")
    assert rows_of(whole) == rows_of(full)
    assert whole.stopping == replace(first.stopping, n_shards=0, n_samples_run=0)
    assert "was reached after" in whole.status().stopped
    assert "Stopped early" not in whole.status().stopped
    assert whole.status().n_samples == 128


def test_a_target_that_is_not_reached_runs_the_full_grid_and_says_so(
    nets: Path, full: Run, write_study: Callable[..., Path], advrisk: Command, tmp_path: Path
) -> None:
    done = advrisk(
        *("run", write_study(quick(study_of(nets))), "--out", "run", "--target", "damage +- 0.1 %"),
        env={"COLUMNS": "400"},
    )
    assert done.returncode == UNDECIDED, done.stderr
    assert done.stdout.count("The target `damage ±0.1 %` is not reached after 128 of 128 samples") == 1
    assert "is not reached" not in done.stderr
    assert rows_of(Run.open(tmp_path / "run")) == rows_of(full)


def test_the_same_command_again_does_not_rest_where_the_target_is_not_met(
    nets: Path, full: Run, tmp_path: Path
) -> None:
    """An earlier run's later looks say nothing of the first place."""
    shutil.copytree(full.folder, tmp_path / "run")
    study = Study.from_dict(quick(study_of(nets)))
    first = study.run(tmp_path / "run", target="damage ±0.1 %")
    again = study.run(tmp_path / "run", target="damage ±0.1 %")
    assert first.stopping is not None
    assert not first.stopping.rests
    assert again.stopping == first.stopping
    assert again.status().n_samples == 128


def test_the_same_command_again_rests_at_the_look_that_met_the_target(nets: Path, tmp_path: Path) -> None:
    study = Study.from_dict(quick(study_of(nets)))
    first = study.run(tmp_path / "run", target="broken at 0.3 ±0.06")
    again = study.run(tmp_path / "run", target="broken at 0.3 ±0.06")
    assert first.stopping is not None
    assert first.stopping.rests
    assert [look.met for look in first.stopping.looks] == [False] * (len(first.stopping.looks) - 1) + [True]
    assert len(first.stopping.looks) > 1
    assert again.stopping == first.stopping


def test_a_run_that_was_killed_between_looks_goes_on_to_the_next(
    nets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, n_looks = Study.from_dict(quick(study_of(nets))), 0
    precision = targets._precision

    def killed(*given: Any) -> InterimResult:
        nonlocal n_looks
        n_looks += 1
        if n_looks == 3:
            raise KeyboardInterrupt
        return precision(*given)

    monkeypatch.setattr(targets, "_precision", killed)
    with pytest.raises(KeyboardInterrupt):
        study.run(tmp_path / "run", target="damage ±0.1 %")
    again = study.run(tmp_path / "run", target="damage ±0.1 %")
    assert again.stopping is not None
    assert not again.stopping.rests
    assert again.stopping.looks[-1].n_samples == 128


def test_a_decision_shares_its_error_among_the_looks(nets: Path, tmp_path: Path) -> None:
    """A model that was never trained falls at once, so the first look decides; the level is stricter than 0.95."""
    content = quick(study_of(nets))
    content["models"]["plain"].pop("weights")
    content["models"]["plain"]["expect_accuracy"] = 0
    content["gate"] = ["broken.* at 0.3 >= 1 %", "error_rows == 0"]
    run = Study.from_dict(content).run(tmp_path / "run", target=["decided", "gate"])
    assert run.stopping is not None
    looks = [look for look in run.stopping.looks if look.target == "decided"]
    assert run.stopping.rests
    assert looks[-1].met
    assert looks[-1].said == f"{run.damage().least_bad} is the least bad"
    for look in looks:
        assert look.share == pytest.approx(0.8 / run.stopping.n_looks_planned)
        assert look.level == pytest.approx(1 - 0.05 * 0.8 / run.stopping.n_looks_planned)
    assert any("Decided after" in note for note in run.gate().notes)
    assert run.decision_level == max(look.level for look in run.stopping.latest)
    assert {one.estimate.level for one in run.gate().results if one.estimate} == {run.decision_level}
    found = run.damage()
    assert found.level == run.decision_level
    assert {pair.difference.method for pair in found.pairs} == {"paired V-statistic, jackknife, Gaffke"}
    assert run.damage(level=0.9).level == 0.9


def test_passes_that_may_be_spent_are_used_as_far_as_shards_fit(nets: Path, full: Run, tmp_path: Path) -> None:
    """After the first shard, the next is begun as long as what those before it took in the mean still fits.

    The full run tells what each shard takes, so where that ends is known exactly.
    """
    study, n_all = Study.from_dict(quick(study_of(nets))), full.status().n_passes
    limit = n_all // 2
    first = study.run(tmp_path / "run", max_passes=limit)
    assert first.stopping is not None
    took = {row["shard"]: row["n"] for row in full.query(PASSES).to_pylist()}
    spent, n_shards = 0, 0
    for shard in first.stopping.order:
        if n_shards and spent + spent / n_shards > limit:
            break
        spent, n_shards = spent + took[shard], n_shards + 1
    assert n_shards > 2
    assert first.stopping.n_shards == n_shards
    assert first.status().n_passes == spent
    assert limit - spent < spent / n_shards  # no shard more would have fitted
    assert first.status().done
    assert not first.status().complete
    assert f"{limit:,} passes" in first.status().stopped
    second = study.run(tmp_path / "run", max_passes=n_all)  # what was spent before is not counted again
    assert rows_of(second) == rows_of(full)
    assert second.stopping is not None
    assert not second.stopping.rests


def test_too_few_passes_for_a_shard_leave_the_run_unfinished(nets: Path, tmp_path: Path) -> None:
    run = Study.from_dict(quick(study_of(nets))).run(tmp_path / "run", max_passes=1)
    assert not run.status().complete
    assert run.status().n_cells == 1
    assert run.stopping is not None
    assert not run.stopping.rests


@pytest.mark.slow
def test_workers_give_the_same(nets: Path, stopped: Run, tmp_path: Path) -> None:
    content = quick(study_of(nets))
    run = Study.from_dict(content).run(tmp_path / "run", target="broken at 0.3 ±0.2", workers=2)
    assert run.stopping == stopped.stopping
    assert rows_of(run) == rows_of(stopped)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("in_workers")
def test_a_cluster_gives_the_same(nets: Path, stopped: Run, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    study = Study.from_dict(quick(study_of(nets)))
    run = study.run(tmp_path / "run", target="broken at 0.3 ±0.2", on="ray", workers=2)
    assert run.stopping == stopped.stopping
    assert rows_of(run) == rows_of(stopped)


@pytest.mark.parametrize(
    ("target", "change", "complaint"),
    [
        ("damage 0.02", {}, "has no margin"),
        ("damage.plian ±0.02", {}, "did you mean 'plain'?"),
        ("broken ±0.02", {}, "needs a size"),
        ("broken at 0.5 ±0.02", {}, "no attack in linf reaches the size 0.5"),
        ("broken at 0.1 ±0.1", {}, "no attack had an eps of 0.1, and none minimised the distance"),
        ("risk ±0.02", {}, "found no scenario"),
        ("auroc.confidence[plain] ±0.02", {}, "detectors score once the cells are done"),
        ("error_rows ±2", {}, "a margin is possible for damage"),
        ("gate", {}, "no requirement that more samples decide"),
        ("decided", {"order": "file"}, "order: shuffled"),
    ],
)
def test_what_cannot_be_looked_at_is_refused_before_anything_runs(
    nets: Path, tmp_path: Path, target: str, change: dict[str, Any], complaint: str
) -> None:
    content = quick(study_of(nets))
    content["data"] |= change
    with pytest.raises(StudyError, match="target") as raised:
        Study.from_dict(content).run(tmp_path / "run", target=target)
    assert complaint in str(raised.value)
    assert not (tmp_path / "run").exists()


def test_a_single_model_has_nothing_to_decide(nets: Path, tmp_path: Path) -> None:
    content = quick(study_of(nets))
    content["models"].pop("noisy")
    for target in ("decided", "damage ±0.1"):
        with pytest.raises(StudyError, match="only model"):
            Study.from_dict(content).run(tmp_path / "run", target=target)


def test_what_is_undecided_at_its_look_is_undecided_everywhere(
    nets: Path, full: Run, write_study: Callable[..., Path], advrisk: Command, tmp_path: Path
) -> None:
    """A gate that passes at 0.95 by a hair, and not at the level of a look; machines read it, too."""
    shutil.copytree(full.folder, tmp_path / "run")
    content = quick(study_of(nets))
    high = {row.model: row.success_ratio[0.05].high for row in full.damage().models}["noisy"]
    content["gate"] = [f"broken.noisy at 0.05 <= {high + 0.002:.4f}"]
    path = write_study(content)
    done = advrisk("run", path, "--out", "run", "--target", "gate", "--target", "gate", "--json")
    assert done.returncode == UNDECIDED, done.stderr
    (look,) = json.loads(done.stdout)["looks"]
    assert json.loads(done.stdout)["stopped_by"] is None, "all samples were run"
    assert (look["target"], look["met"], look["n_samples"]) == ("gate", False, 128)
    assert look["level"] > 0.99
    assert advrisk("gate", "run").returncode == UNDECIDED
    assert advrisk("gate", "run", "--level", "0.95").returncode == DONE
    assert json.loads(advrisk("status", "run", "--json").stdout)["looks"] == [look]


def test_another_question_has_looks_of_its_own_and_the_first_one_keeps_those_taken(
    nets: Path, full: Run, tmp_path: Path
) -> None:
    shutil.copytree(full.folder, tmp_path / "run")
    content = quick(study_of(nets))
    asked, other = (Study.from_dict(content | {"gate": [f"broken.noisy at 0.05 <= {limit}"]}) for limit in (0.5, 0.6))
    first = asked.run(tmp_path / "run", target="gate")
    assert first.decision_level is not None
    changed = other.run(tmp_path / "run")
    assert changed.decision_level is None
    assert changed.status().stopped == ""
    assert {one.estimate.level for one in changed.gate().results if one.estimate} == {0.95}
    again = asked.run(tmp_path / "run")
    assert again.decision_level == pytest.approx(first.decision_level)
    assert again.stopping is not None
    assert again.stopping.latest[0].n_samples == 128  # who reads the whole run looks at it


def test_samples_that_are_added_can_still_decide(nets: Path, tmp_path: Path) -> None:
    """All looks at 64 samples are spent when 64 more come: they share half of what was held back."""
    content = quick(study_of(nets))
    few = {**content, "data": {**content["data"], "evaluate": 64}}
    first = Study.from_dict(few).run(tmp_path / "run", target="decided").stopping
    assert first is not None
    assert [look.share for look in first.looks] == pytest.approx([0.8 / 3] * 3)
    assert not first.latest[0].met
    more = Study.from_dict(content).run(tmp_path / "run").stopping  # even without a target: who reads it looks
    assert more is not None
    (last,) = more.latest
    assert last.n_samples == 128
    assert last.share == pytest.approx(0.2 / 2 / 2)  # at 96 samples there might have been another
    assert sum(look.share for look in more.looks) < 1


@pytest.mark.parametrize(
    "given",
    [
        *({"max_passes": number} for number in (1e3, 0, -5, True, "300")),
        *({"target": target} for target in (3, [3], "", True)),
    ],
)
def test_what_is_given_from_python_is_checked(nets: Path, tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(StudyError, match=r"max_passes. is a whole number|target"):
        Study.from_dict(quick(study_of(nets))).run(tmp_path / "run", **given)
    assert not (tmp_path / "run").exists()


def test_no_target_may_be_said_as_none() -> None:
    assert parse_targets(None) == parse_targets(()) == ()
    assert [one.text for one in parse_targets(["gate", "damage ±0.1", "gate", "damage +- 0.1"])] == [
        "gate",
        "damage ±0.1",
    ]


def test_a_record_that_cannot_be_read_is_named(stopped: Run, tmp_path: Path) -> None:
    (tmp_path / "looks.json").write_text('{"looks": 3}')
    with pytest.raises(Exception, match=r"looks\.json: cannot be read"):
        read_stopping(tmp_path)
    assert Ledger.open(stopped.folder).shards is None
