"""What is said of runs that stopped early, or were looked at: nothing that is not true of what is shown."""

import json
import shutil
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from advrisk import Run, Study
from advrisk.cli import DONE
from advrisk.ledger import repair

from .conftest import Command, study_of

N_SHARDS = 8
WIDE = {"COLUMNS": "1000"}


def quick(nets: Path, evaluate: int = 16 * N_SHARDS, **more: Any) -> dict[str, Any]:
    """Shards of sixteen samples, arms that take little, and a model that falls at once: the first look decides."""
    content = study_of(nets)
    content["data"]["evaluate"] = evaluate
    content["models"]["plain"].pop("weights")
    content["models"]["plain"]["expect_accuracy"] = 0
    content["assess"]["damage"]["thresholds"] = [0.05, 0.3]
    return content | {"arms": [{"attack": "fgsm", "norm": "linf", "eps": [0.05, 0.3]}]} | more


@pytest.fixture(scope="module")
def full(nets: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Study.from_dict(quick(nets)).run(tmp_path_factory.mktemp("full") / "run")


@pytest.fixture(scope="module")
def early(nets: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Decided at the first look, after two of eight shards."""
    content = quick(nets, gate=["broken.noisy at 0.05 <= 90 %"])
    run = Study.from_dict(content).run(tmp_path_factory.mktemp("early") / "run", target="decided")
    assert run.stopping is not None
    assert (run.stopping.rests, run.stopping.n_samples_run, run.stopping.n_samples) == (True, 32, 128)
    return run


def test_a_complete_run_is_looked_at_once_with_everything(nets: Path, full: Run, tmp_path: Path) -> None:
    shutil.copytree(full.folder, tmp_path / "run")
    study = Study.from_dict(quick(nets))
    for _ in range(2):
        run = study.run(tmp_path / "run", target="decided")
        assert run.stopping is not None
        assert not run.stopping.rests
        assert [(look.n_samples, look.met) for look in run.stopping.looks] == [(128, True)]
        assert run.status().complete
        assert len(run.damage().distances.samples) == 128
        assert run.stopping.looks[0].share == pytest.approx(0.8 / run.stopping.n_looks_planned)


def test_the_first_look_is_at_the_last_place_that_is_finished(nets: Path, early: Run, tmp_path: Path) -> None:
    shutil.copytree(early.folder, tmp_path / "run")
    study = Study.from_dict(quick(nets))
    limit = int(1.7 * early.status().n_passes)  # for three shards more
    spent = study.run(tmp_path / "run", max_passes=limit)
    assert spent.stopping is not None
    assert spent.stopping.n_shards == 5
    again = study.run(tmp_path / "run", target="broken at 0.3 ±0.3")
    assert again.stopping is not None
    assert again.stopping.n_shards == 4  # looks are planned after 2, 3, 4, 6 and 8
    assert [look.n_shards for look in again.stopping.told if not look.decides] == [4]


def told_of(run: Run) -> tuple[int, list[int]]:
    """How many samples are shown, and after how many each look that is told was taken."""
    state = run.status()
    return state.n_samples_run, [look.n_samples for look in state.looks]


def test_looks_at_samples_that_were_added_or_removed_are_not_told_of_others(
    nets: Path, full: Run, tmp_path: Path
) -> None:
    shutil.copytree(full.folder, tmp_path / "run")
    place = tmp_path / "run"
    assert told_of(Study.from_dict(quick(nets)).run(place, target="decided")) == (128, [128])
    fewer = Study.from_dict(quick(nets, evaluate=96)).run(place)
    assert told_of(fewer) == (96, [96])
    assert "of 96 samples" in fewer.status().stopped
    assert "128" not in fewer.status().stopped
    more = Study.from_dict(quick(nets, evaluate=160)).run(place, max_passes=1)  # begun, and not finished
    assert more.stopping is not None
    assert len(more.stopping.looks) == 2
    assert more.decision_level is not None
    assert more.decision_level >= max(look.level for look in more.stopping.told)
    whole = Study.from_dict(quick(nets, evaluate=160)).run(place)
    assert told_of(whole) == (160, [160])
    assert whole.damage().level == whole.decision_level == whole.status().looks[0].level
    assert sum(look.share for look in whole.stopping.looks if look.decides) < 1 if whole.stopping else False


def test_a_run_that_rests_tells_the_look_at_where_it_does(nets: Path, full: Run, tmp_path: Path) -> None:
    """Looked at with 96 samples; of 160, other shards come in between and are not finished."""
    study = Study.from_dict(quick(nets, evaluate=96))
    place = tmp_path / "run"
    study.run(place)
    assert told_of(study.run(place, target="decided")) == (96, [96])
    more = Study.from_dict(quick(nets, evaluate=160)).run(place, target="decided")
    n_samples, looks = told_of(more)
    assert looks == [n_samples]
    assert len(more.damage().distances.samples) == n_samples
    assert more.status().stopped.count("is the least bad)") == 1


def test_few_passes_a_command_go_on_all_the_same(nets: Path, full: Run, tmp_path: Path) -> None:
    """Every command does something, however little it may spend, until all is done."""
    study = Study.from_dict(quick(nets, evaluate=32))
    a_shard = full.status().n_passes // N_SHARDS
    done = [0]
    while not (run := study.run(tmp_path / "run", max_passes=a_shard // 8)).status().complete:
        done.append(run.query("SELECT count(*) AS n FROM cells")["n"][0].as_py())
        assert done[-1] > done[-2]
        assert len(done) < 20
    assert len(done) > 3
    assert run.stopping is not None
    assert not run.stopping.rests


def test_the_report_says_first_that_the_run_stopped_early(early: Run) -> None:
    page = early.report().read_text()
    told = "This run stopped early, after 32 of 128 samples: its target is reached."
    assert page.index("noisy is the least bad") < page.index(told) < page.index("How sure that is")
    assert "96 of the 128 samples to evaluate, as the run stopped early" in page
    assert "Stopped early, after 32 of 128 samples" in page.partition('<section id="damage">')[2], "beside the numbers"
    assert page.count("Verdicts and intervals here are at 99.") >= 1


def test_a_level_has_one_spelling_and_is_explained(early: Run, advrisk: Command) -> None:
    assert early.stopping is not None
    n_looks = early.stopping.n_looks_planned
    level = f"{100 * (1 - 0.05 * 0.8 / n_looks):.4g} %"
    why = (
        f"as there are up to {n_looks} interim analyses, each uses that level, "
        "so that all together keep the study's 95 %"
    )
    page = unescape(early.report().read_text())
    shown = advrisk("show", early.folder, env=WIDE).stdout
    for text in (page, shown, early.status().stopped):
        assert f"are at {level}: {why}" in text
    assert f"({level} interval)" in page
    assert f"Brackets hold {level} intervals." in page
    assert f"{early.decision_level:.6g}" not in shown


def test_a_gate_at_another_level_says_that_looks_promise_nothing_of_it(early: Run, advrisk: Command) -> None:
    own = advrisk("gate", early.folder, env=WIDE)
    other = advrisk("gate", early.folder, "--level", "0.95", env=WIDE)
    assert "Verdicts and intervals here are at 99." in own.stdout
    assert "Verdicts and intervals here are at 95 %, as requested, which the interim analyses do not " in other.stdout
    assert "as requested" not in own.stdout
    assert {one.estimate.level for one in early.gate(level=0.95).results if one.estimate} == {0.95}
    assert any("at 90 %, as requested" in note for note in early.damage(level=0.9).notes)


def test_status_says_first_that_it_stopped_early(early: Run, full: Run, advrisk: Command) -> None:
    done = advrisk("status", early.folder, env=WIDE).stdout
    assert done.splitlines()[0] == "digits-study: stopped early: 32 of 128 samples; 2 models, 3 arms"
    assert "complete" not in done
    assert "without `--target` for the full grid" in done
    facts = json.loads(advrisk("status", early.folder, "--json").stdout)
    assert (facts["n_samples"], facts["n_samples_run"]) == (128, 32)
    assert (facts["rests"], facts["complete"]) == (True, False)
    facts = json.loads(advrisk("status", full.folder, "--json").stdout)
    assert (facts["n_samples"], facts["n_samples_run"], facts["rests"], facts["complete"]) == (128, 128, False, True)
    assert "stopped early: 32 of 128 samples" in repr(early)
    assert "stopped early: 32 of 128 samples" in early.status()._repr_html_()


def test_rows_beyond_where_a_run_rests_come_with_a_hint(early: Run, full: Run, advrisk: Command) -> None:
    sql = "SELECT count(*) AS n FROM outcomes"
    said = "this run stopped early, after 32 of 128 samples"
    assert said in advrisk("ledger", "sql", early.folder, sql, "--json", env=WIDE).stderr
    assert said in advrisk("export", early.folder, "outcomes.csv", env=WIDE).stderr
    assert advrisk("ledger", "sql", full.folder, sql, env=WIDE).stderr == ""


def test_a_dry_run_says_where_it_would_look(
    nets: Path, early: Run, write_study: Callable[..., Path], advrisk: Command
) -> None:
    path = write_study(quick(nets))
    given = ("--dry-run", "--target", "decided", "--target", "damage ±0.1")
    done = advrisk("run", path, "--out", "nowhere", *given, env=WIDE)
    assert done.returncode == DONE, done.stderr
    assert "it looks after 32, 48, 64, 96, 128 samples" in done.stdout
    assert "`decided` at 99.2 %, `damage ±0.1` at 95 %" in done.stdout
    facts = json.loads(advrisk("run", path, "--out", "nowhere", *given, "--json").stdout)
    assert facts["looks"] == [32, 48, 64, 96, 128]
    assert 0 < facts["n_passes_to_look"] < facts["n_forward"] + facts["n_backward"]
    assert facts["n_passes_to_look"] * 4 == facts["n_forward"] + facts["n_backward"]  # two of eight shards
    assert early.status().n_passes <= facts["n_passes_to_look"]
    facts = json.loads(advrisk("run", path, "--out", early.folder, "--dry-run", "--json").stdout)
    assert (facts["looks"], facts["look_levels"]) == ([], {})


def test_looks_at_cells_that_were_lost_are_not_told(nets: Path, full: Run, tmp_path: Path) -> None:
    shutil.copytree(full.folder, tmp_path / "run")
    study = Study.from_dict(quick(nets))
    assert "Decided after 128 of 128" in study.run(tmp_path / "run", target="decided").status().stopped
    segment = max((tmp_path / "run" / "ledger").rglob("outcomes*.parquet"), key=lambda path: path.stat().st_size)
    segment.write_bytes(segment.read_bytes()[:-200])
    repair(tmp_path / "run")
    lost = Run.open(tmp_path / "run")
    assert not lost.status().done
    assert lost.status().looks == ()
    assert "Decided" not in lost.status().stopped
    assert lost.decision_level is not None  # the look is spent
    assert "Decided after 128 of 128" in study.run(tmp_path / "run").status().stopped


def test_what_was_seen_is_said_once(
    nets: Path, early: Run, write_study: Callable[..., Path], advrisk: Command, tmp_path: Path
) -> None:
    shutil.copytree(early.folder, tmp_path / "run")
    path = write_study(quick(nets, gate=["broken.noisy at 0.05 <= 90 %"]))
    done = advrisk("run", path, "--out", "run", "--target", "decided", env=WIDE)
    assert done.returncode == DONE, done.stderr
    assert (done.stdout + done.stderr).count("Verdicts and intervals here") == 1
    machine = advrisk("run", path, "--out", "run", "--target", "decided", "--json", env={"COLUMNS": "80"})
    facts = json.loads(machine.stdout)
    assert facts["looks"][0]["n_samples"] == facts["n_samples"] == 32
    assert (facts["stopped_by"], facts["complete"], facts["remaining"]) == ("target", False, {})
    assert facts["resume"].endswith("--out run --target decided")
    told = [line for line in machine.stderr.splitlines() if line.strip()]
    assert max(map(len, told)) <= 80
