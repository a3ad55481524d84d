"""A study whose attacker knows the detector, as a user runs it: in workers, with objects, and again."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from advrisk import Run, Study
from advrisk.assess.damage.words import findings
from advrisk.core.errors import StudyError
from advrisk.run.walk_back import LINE

Command = Callable[..., "subprocess.CompletedProcess[str]"]
Study_ = dict[str, Any]

EPS = 0.25
PGD = {"attack": "pgd", "norm": "linf", "eps": EPS, "steps": 20, "keep": "last"}
KNOWING = {"attack": "adaptive", "norm": "linf", "eps": EPS, "steps": 10, "rounds": 2}
SQUEEZED = f"adaptive-linf-{EPS}-ace,detector=feature-squeezing,steps=10,rounds=2"


@pytest.fixture
def watched(study: Study_) -> Study_:
    arms = [PGD, KNOWING | {"detector": ["confidence", "feature-squeezing"]}]
    return study | {"arms": arms, "detectors": ["confidence", "feature-squeezing"], "models": plain(study)}


def plain(study: Study_) -> dict[str, Any]:
    return {"plain": study["models"]["plain"]}


def scores(run: Run, detector: str, arm: str) -> NDArray[np.float64]:
    found = run.query(
        "SELECT score FROM scores s JOIN outcomes o USING (cell, sample) "
        "WHERE o.arm = $arm AND s.detector LIKE $detector AND (o.kind = 'clean' OR o.outcome = 'success')",
        {"arm": arm, "detector": f"{detector}@%"},
    )
    return found["score"].to_numpy()


def auroc(run: Run, detector: str, arm: str) -> float:
    clean, attacked = scores(run, detector, "clean"), scores(run, detector, arm)
    truth = np.r_[np.zeros(len(clean)), np.ones(len(attacked))]
    return float(roc_auc_score(truth, np.r_[clean, attacked]))


def rows(run: Run, table: str = "outcomes") -> list[tuple[Any, ...]]:
    columns = {
        "outcomes": "cell, sample, arm, outcome, n_forward, n_backward, n_forward_first, d_linf",
        "scores": "cell, sample, detector, score",
    }[table]
    return sorted(
        map(tuple, (row.values() for row in run.query(f"SELECT {columns} FROM {table}").to_pylist())), key=str
    )


def test_a_detector_that_is_known_is_worth_less(watched: Study_, tmp_path: Path) -> None:
    run = Study.from_dict(watched).run(tmp_path / "run")
    blind = run.query("SELECT count(*) n FROM outcomes WHERE arm LIKE 'pgd%' AND outcome = 'success'")["n"][0].as_py()
    knowing = run.query("SELECT count(*) n FROM outcomes WHERE arm = $arm AND outcome = 'success'", {"arm": SQUEEZED})
    assert knowing["n"][0].as_py() >= 0.9 * blind > 10
    squeezing = auroc(run, "feature-squeezing", f"pgd-linf-{EPS}-ace,steps=20,keep=last")
    assert auroc(run, "feature-squeezing", SQUEEZED) < squeezing - 0.1
    (params,) = run.query("SELECT params FROM arms WHERE arm = $arm", {"arm": SQUEEZED})["params"].to_pylist()
    assert re.fullmatch(r"feature-squeezing@[0-9a-f]{8}", json.loads(params)["detector"])
    families = run.query("SELECT DISTINCT family FROM outcomes WHERE kind = 'attack' ORDER BY 1")["family"].to_pylist()
    assert families == ["adaptive", "pgd"]
    _more_arms_do_no_less_damage(run)


def _more_arms_do_no_less_damage(run: Run) -> None:
    """All arms end at the same eps, so nothing but the score sets their successes apart; and it is said who knows."""
    alarm = {"name": "feature-squeezing", "false_alarms": 0.1}
    blind, knowing = run.damage(detector=alarm, arms=["pgd*"]), run.damage(detector=alarm)
    assert blind.detector is not None
    assert knowing.detector is not None
    assert knowing.estimates["plain"].value > blind.estimates["plain"].value
    assert knowing.detector.nearest["plain"] == knowing.estimates["plain"]
    assert (blind.detector.known_to, knowing.detector.known_to) == ((), (SQUEEZED,))
    assert any("one who knows the detector does more" in sentence for sentence in findings(blind))
    assert any("1 arm knows the detector and is counted" in sentence for sentence in findings(knowing))
    assert knowing.as_dict()["detector"]["known_to"] == [SQUEEZED]


@pytest.mark.slow
def test_workers_do_not_matter_and_nothing_is_done_twice(watched: Study_, tmp_path: Path) -> None:
    study = Study.from_dict(watched)
    one, two = study.run(tmp_path / "one", workers=1), study.run(tmp_path / "two", workers=2)
    assert rows(one) == rows(two)
    assert rows(one, "scores") == rows(two, "scores")
    before = sorted(path.name for path in (tmp_path / "one").rglob("*.parquet"))
    again = study.run(tmp_path / "one", workers=1)
    assert sorted(path.name for path in (tmp_path / "one").rglob("*.parquet")) == before
    assert rows(again) == rows(two)


@pytest.mark.slow
def test_another_detector_is_another_arm(watched: Study_, tmp_path: Path) -> None:
    run = Study.from_dict(watched).run(tmp_path / "run", workers=1)
    cells = {row[0] for row in rows(run)}
    more = watched | {"detectors": ["confidence", {"name": "feature-squeezing", "bits": [5, 1]}]}
    more["arms"] = [*watched["arms"], KNOWING | {"detector": "feature-squeezing,bits=1"}]
    grown = Study.from_dict(more).run(tmp_path / "run", workers=1)
    new = [row for row in rows(grown) if row[0] not in cells]
    assert {row[2] for row in new} == {f"adaptive-linf-{EPS}-ace,detector=feature-squeezing,bits=1,steps=10,rounds=2"}
    assert len(new) == 64


class Dark:
    """A user's own detector: how dark the picture is. Torch knows nothing of it."""

    def score(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        return -x.astype(np.float64).reshape(len(x), -1).sum(1)


@pytest.mark.slow
def test_an_object_of_the_users(watched: Study_, tmp_path: Path) -> None:
    arms = [PGD, KNOWING | {"detector": "dark", "steps": 6, "samples": 20}]
    study = Study.from_dict(watched | {"arms": arms, "detectors": []})
    dry = study.dry_run(tmp_path / "run", detectors={"dark": Dark()})
    run = study.run(tmp_path / "run", workers=2, detectors={"dark": Dark()})
    knowing = f"adaptive-linf-{EPS}-ace,detector=dark,steps=6,rounds=2,samples=20"
    assert auroc(run, "dark", knowing) < auroc(run, "dark", f"pgd-linf-{EPS}-ace,steps=20,keep=last") - 0.1
    passes = run.query("SELECT n_forward, n_backward FROM outcomes WHERE arm = $arm", {"arm": knowing}).to_pylist()
    most = 2 * 7 + 2 * 6 * 20
    assert max(row["n_forward"] for row in passes) <= most
    # The slopes of the objective; the judge's two passes, and the six of its walk back.
    assert dry.by_arm[knowing] == 64 * (most + 2 * 6 + 2 + 6)
    with pytest.raises(StudyError, match="this study has none"):
        study.run(tmp_path / "other", workers=1)
    assert not (tmp_path / "other").exists()


@pytest.mark.slow
def test_what_a_dry_run_promises_is_kept(watched: Study_, tmp_path: Path) -> None:
    study = Study.from_dict(watched)
    dry = study.dry_run(tmp_path / "run")
    assert not (tmp_path / "run").exists()
    # A point, and twice what squeezes it; the judge's two passes, and the six of its walk back.
    assert dry.by_arm[SQUEEZED] == 64 * (2 * 11 * 3 + 2 * 10 * 4 + 2 + 6)
    run = study.run(tmp_path / "run", workers=1)
    spent = run.query("SELECT max(n_forward) f, max(n_backward) b FROM outcomes WHERE arm = $arm", {"arm": SQUEEZED})
    assert spent["f"][0].as_py() == 2 * 11 * 3
    assert 20 < spent["b"][0].as_py() <= 2 * 10 * 4


@pytest.mark.usefixtures("in_workers")
def test_a_detector_that_learns(watched: Study_, tmp_path: Path) -> None:
    """It must learn before anybody can know it; workers read what it learned."""
    learned = [{"name": "lid", "arms": [PGD]}]
    arms = [PGD, KNOWING | {"detector": "lid", "steps": 5}]
    data = {"source": "digits", "evaluate": 32, "train": 200}
    asked = watched | {"arms": arms, "detectors": learned, "data": data}
    study = Study.from_dict(asked)
    (arm,) = study.dry_run(tmp_path / "run").uncounted
    assert arm.startswith(f"adaptive-linf-{EPS}-ace,detector=lid")
    run = study.run(tmp_path / "run", workers=1)
    assert run.query("SELECT count(*) n FROM outcomes WHERE outcome = 'error'")["n"][0].as_py() == 0
    detector = arm.partition("detector=")[2].removesuffix(",steps=5,rounds=2")
    assert auroc(run, detector, arm) < auroc(run, detector, f"pgd-linf-{EPS}-ace,steps=20,keep=last")
    spent = run.query("SELECT DISTINCT n_forward n FROM outcomes WHERE arm = $arm AND n_forward > 0", {"arm": arm})
    assert spent["n"].to_pylist() == [2 * 6 * 2]  # a point, and the look inside the model
    longer = Study.from_dict(asked | {"arms": [PGD, KNOWING | {"detector": "lid", "steps": 7}]})
    dry = longer.dry_run(tmp_path / "run")
    assert dry.uncounted == []
    assert dry.by_arm[arm.replace("steps=5,", "steps=7,")] == 32 * (2 * 8 * 2 + 2 + LINE + 2 * 7 * 3)


@pytest.mark.slow
def test_shards_do_not_matter(watched: Study_, tmp_path: Path) -> None:
    """Neither without a limit nor with one that ends every sample early."""
    found = []
    for shard in (3, 16):
        study = watched | {
            "arms": [KNOWING | {"detector": "lid"}, KNOWING | {"detector": "lid", "max_queries": 13}],
            "detectors": [{"name": "lid", "arms": [PGD]}],
            "data": {"source": "digits", "evaluate": 16, "train": 200},
            "shard": shard,
        }
        found.append(Study.from_dict(study).run(tmp_path / str(shard), workers=1))
    few, many = (sorted(row[1:] for row in rows(run) if row[2] != "clean") for run in found)
    assert few == many
    assert {row[3] for row in few} - {0} == {12, 44}  # already wrong: never asked


def test_too_few_passes_for_a_point_are_an_error_not_robustness(watched: Study_, tmp_path: Path) -> None:
    arm = KNOWING | {"detector": "feature-squeezing", "max_queries": 2}
    run = Study.from_dict(watched | {"arms": [arm]}).run(tmp_path / "run", workers=1)
    found = run.query("SELECT DISTINCT outcome, message FROM outcomes WHERE family = 'adaptive'").to_pylist()
    (error,) = (row["message"] for row in found if row["outcome"] != "already_wrong")
    assert error == "a point takes 3 passes with feature-squeezing, but max_queries is 2; allow more"


def test_is_listed_with_what_it_needs(advrisk: Command) -> None:
    listed = advrisk("list", "attacks", "adaptive")
    assert listed.returncode == 0
    assert "needs `detector`, one of the study's detectors" in " ".join(listed.stdout.split())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"detectors": []}, "this study has none"),
        ({"arms": [KNOWING]}, "adaptive needs `detector`"),
        ({"arms": [KNOWING | {"detector": "confidnce"}]}, "did you mean 'confidence'"),
        ({"arms": [PGD | {"detector": "confidence"}]}, "detector"),
    ],
)
def test_mistakes_are_told_and_leave_nothing_behind(
    change: Study_, message: str, watched: Study_, write_study: Callable[..., Path], advrisk: Command, tmp_path: Path
) -> None:
    done = advrisk("run", write_study(watched | change), "--out", tmp_path / "run")
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()
