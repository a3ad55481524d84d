"""Detectors score what was kept: once, in full, under the cell it belongs to; and nothing they say is believed."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from advrisk.assess.damage.distances import smallest_distances
from advrisk.assess.damage.monte_carlo import monte_carlo_damage
from advrisk.core.errors import LedgerError, RunError, StudyError
from advrisk.ledger import Ledger
from advrisk.ledger.inputs import cell_inputs
from advrisk.ledger.maintenance.deleting import delete_inputs
from advrisk.risk.damage import compare_damage
from advrisk.risk.evasion import threshold
from advrisk.run.campaign import run_study
from advrisk.run.detectors import scoring
from advrisk.run.options import Options
from advrisk.run.progress import Progress
from advrisk.study import study_from
from advrisk.testing.ledgers import outcome_rows
from tests.unit.run.nets import untrained_pair


def content(**changes: Any) -> dict[str, Any]:
    """Two untrained nets, which are right or wrong by chance; success is a change of what they say."""
    return {
        "name": "scored",
        "device": "cpu",
        "data": {"source": "digits", "evaluate": 24, "calibrate": 10},
        "models": {
            "one": {"source": "object", "expect_accuracy": 0},
            "two": {"source": "object", "expect_accuracy": 0},
        },
        "success": "prediction",
        "arms": [{"attack": "fgsm", "norm": "linf", "eps": [0.1, 0.3]}],
        "shard": 8,
    } | changes


def run(folder: Path, *named: Any, objects: Any = None, options: Options | None = None, **changes: Any) -> Progress:
    """Run the study with these detectors: those it names, and objects."""
    study = study_from(content(detectors=list(named), **changes))
    options = options or Options(publish_every_s=0)
    return run_study(study, folder, options=options, modules=untrained_pair(), detectors=objects)


def score_rows(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = Ledger.open(folder).query("FROM scores ORDER BY ALL").to_pylist()
    return rows


class Mean:
    """The brightness of an input; counts what it was asked, and can be told to misbehave."""

    def __init__(self, *, fail_after: int | None = None, error: BaseException | None = None) -> None:
        self.n_asked = 0
        self.fail_after = fail_after
        self.error = error or KeyboardInterrupt()

    def score(self, x: np.ndarray) -> np.ndarray:
        if self.fail_after is not None and self.n_asked > self.fail_after:
            raise self.error
        self.n_asked += len(x)
        return x.reshape(len(x), -1).astype(np.float64).mean(1)


class Relative(Mean):
    """Brighter or darker than what is beside it."""

    def score(self, x: np.ndarray) -> np.ndarray:
        return super().score(x) - x.mean()


def test_every_success_and_every_clean_input_is_scored_as_the_formula_says(tmp_path: Path) -> None:
    assert run(tmp_path, "confidence").finished
    ledger = Ledger.open(tmp_path)
    cells = {row["cell"]: row for row in ledger.query("FROM cells").to_pylist()}
    wanted = {
        (row["cell"], row["sample"])
        for row in ledger.outcomes().to_pylist()
        if row["kind"] == "clean" or row["outcome"] == "success"
    }
    rows = [row for row in score_rows(tmp_path) if row["cell"] in cells]
    assert {(row["cell"], row["sample"]) for row in rows} == wanted
    assert len(rows) == len(wanted)
    nets = {name: module.eval() for name, module in untrained_pair().items()}
    for row in rows:
        cell = cells[row["cell"]]
        path = cell_inputs(tmp_path, row["cell"])
        if cell["arm"] == "clean":
            path = tmp_path / "inputs" / "shards" / f"{cell['shard']}.npz"
        with np.load(path) as file:
            x = file["x"][file["sample"].tolist().index(row["sample"])]
        with torch.no_grad():
            logits = nets[cell["model"]](torch.from_numpy(x)[None]).double()
        assert row["score"] == pytest.approx(1 - float(torch.softmax(logits, 1).amax()), rel=1e-4)
        assert row["detector"].startswith("confidence@")


def test_a_detector_that_is_added_later_attacks_nothing_again(tmp_path: Path) -> None:
    run(tmp_path)
    before = outcome_rows(tmp_path)
    progress = run(tmp_path, "confidence")
    assert (progress.n_cells, progress.n_skipped) == (0, 18)
    first = score_rows(tmp_path)
    assert progress.n_scored == progress.n_to_score == len(first) > 0
    progress = run(tmp_path, "confidence", {"name": "feature-squeezing", "bits": [1, 3]})
    assert progress.n_scored == 2 * len(first)
    assert outcome_rows(tmp_path) == before
    assert [row for row in score_rows(tmp_path) if row["detector"].startswith("confidence")] == first
    assert run(tmp_path, "confidence").n_to_score == 0


def test_samples_and_arms_that_are_added_later_are_scored_too(tmp_path: Path) -> None:
    run(tmp_path / "grown", "confidence", data={"source": "digits", "evaluate": 16, "calibrate": 6})
    changes = {"arms": [{"attack": "fgsm", "norm": "linf", "eps": [0.1, 0.2, 0.3]}]}
    run(tmp_path / "grown", "confidence", **changes)
    run(tmp_path / "fresh", "confidence", **changes)
    assert score_rows(tmp_path / "grown") == score_rows(tmp_path / "fresh")


def test_a_run_that_is_killed_while_scoring_goes_on(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "killed", objects={"mean": Mean(fail_after=60)})
    part = score_rows(tmp_path / "killed")
    again = Mean()
    progress = run(tmp_path / "killed", objects={"mean": again})
    run(tmp_path / "whole", objects={"mean": Mean()})
    whole = score_rows(tmp_path / "whole")
    assert 0 < len(part) < len(whole)
    assert score_rows(tmp_path / "killed") == whole
    assert progress.n_scored == len(whole) - len(part) == again.n_asked - 24  # and eight fixed inputs three times


class Tiny:
    """Numbers far below one."""

    def __init__(self, formula: Any) -> None:
        self.formula = formula

    def score(self, x: np.ndarray) -> np.ndarray:
        return 1e-9 * self.formula(x.reshape(len(x), -1).astype(np.float64))


def test_an_object_that_says_something_else_is_another_detector_however_small_its_numbers(tmp_path: Path) -> None:
    run(tmp_path, objects={"tiny": Tiny(lambda x: x.mean(1))})
    first = score_rows(tmp_path)
    progress = run(tmp_path, objects={"tiny": Tiny(lambda x: x.std(1))})
    assert progress.n_scored == len(first)
    assert len({row["detector"] for row in score_rows(tmp_path)}) == 2
    assert run(tmp_path, objects={"tiny": Tiny(lambda x: x.std(1))}).n_to_score == 0


def test_a_zero_has_no_sign(tmp_path: Path) -> None:
    run(tmp_path, objects={"tiny": Tiny(lambda x: 0.0 * x[:, 0])})
    assert run(tmp_path, objects={"tiny": Tiny(lambda x: -0.0 * x[:, 0])}).n_to_score == 0


def test_time_that_is_up_ends_the_scoring_too(tmp_path: Path) -> None:
    run(tmp_path)
    progress = run(tmp_path, "confidence", options=Options(max_s=-1.0))
    assert (progress.n_scored, progress.finished) == (0, False)
    assert progress.n_to_score > 0
    assert run(tmp_path, "confidence").finished


@pytest.mark.parametrize(
    ("score", "words"),
    [
        (lambda x: x, r"with shape \(8, 1, 8, 8\); one number each is needed"),
        (lambda x: np.zeros(len(x) + 1), r"with shape \(9,\); one number each is needed"),
        (lambda x: np.full(len(x), np.nan), "with nan, 8 times in 8; finite numbers are needed"),
        (lambda x: np.full(len(x), -np.inf), "with -inf, 8 times in 8; finite numbers are needed"),
        (lambda x: ["a"] * len(x), "the detector bad failed on fixed inputs: "),
        (lambda x: 1 / 0, "the detector bad failed on fixed inputs: ZeroDivisionError: division by zero"),
        (lambda x: np.random.default_rng().random(len(x)), "'bad' scores the same inputs differently each time"),
    ],
)
def test_a_detector_that_misbehaves_is_named_before_anything_runs(tmp_path: Path, score: Any, words: str) -> None:
    bad = Mean()
    bad.score = score  # type: ignore[method-assign]
    with pytest.raises(RunError, match=words) as caught:
        run(tmp_path / "run", objects={"bad": bad})
    assert "bad" in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_one_that_misbehaves_later_leaves_a_run_that_goes_on(tmp_path: Path) -> None:
    bad = Mean(fail_after=98, error=ValueError("tired"))  # clean and fixed inputs are 92
    with pytest.raises(RunError, match=r"the detector mean failed on fgsm.* against .*: ValueError: tired"):
        run(tmp_path, objects={"mean": bad})
    assert run(tmp_path, objects={"mean": Mean()}).finished


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ({"mine": object()}, "the detector 'mine' is object, which has no method score"),
        ({"a@b": Mean()}, "a detector needs a name without '@', ',' and slashes, found 'a@b'"),
        ({"": Mean()}, "a detector needs a name without '@', ',' and slashes, found ''"),
        ({3: Mean()}, "a detector needs a name without '@', ',' and slashes, found 3"),
        ([Mean()], "detectors must be a mapping of names to objects, found list"),
        ({"mean": Relative()}, "the detector 'mean' scores an input differently beside others"),
    ],
)
def test_an_object_that_is_no_detector(tmp_path: Path, objects: Any, words: str) -> None:
    with pytest.raises(RunError, match=words):
        run(tmp_path / "run", objects=objects)
    assert not (tmp_path / "run").exists()


def test_an_object_that_answers_differently_is_another_detector(tmp_path: Path) -> None:
    run(tmp_path, objects={"mean": Mean()})
    run(tmp_path, objects={"mean": Mean()})
    assert len({row["detector"] for row in score_rows(tmp_path)}) == 1
    other = Mean()
    other.score = lambda x: x.reshape(len(x), -1).max(1)  # type: ignore[method-assign]
    run(tmp_path, objects={"mean": other})
    assert len({row["detector"] for row in score_rows(tmp_path)}) == 2


# Inputs that are not there


def test_inputs_that_were_not_kept_are_crafted_again(tmp_path: Path) -> None:
    run(tmp_path / "kept", "confidence")
    run(tmp_path / "at-once", "confidence", keep_inputs="none")
    run(tmp_path / "later", keep_inputs="none")
    n_cells = len(Ledger.open(tmp_path / "later").finished_cells())
    assert run(tmp_path / "later", "confidence", keep_inputs="none").n_cells == 0
    assert len(Ledger.open(tmp_path / "later").finished_cells()) == n_cells
    assert not (tmp_path / "later" / "inputs").exists()
    assert score_rows(tmp_path / "kept") == score_rows(tmp_path / "at-once") == score_rows(tmp_path / "later")


def test_an_input_that_was_deleted_is_crafted_again(tmp_path: Path) -> None:
    run(tmp_path / "whole", "confidence")
    run(tmp_path / "cut")
    ledger = Ledger.open(tmp_path / "cut")
    sample = ledger.query("SELECT sample FROM outcomes WHERE outcome = 'success' AND kind = 'attack' LIMIT 1")
    delete_inputs(tmp_path / "cut", ledger, sample=sample["sample"].to_pylist()[0])
    run(tmp_path / "cut", "confidence")
    assert score_rows(tmp_path / "cut") == score_rows(tmp_path / "whole")


def test_one_that_resists_when_it_is_crafted_again_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, keep_inputs="none")
    monkeypatch.setattr(scoring, "craft_again", lambda *_: {})  # as on a machine that rounds otherwise
    with pytest.raises(RunError, match=r"made of sample .* was not kept, and crafted again it is no success, so conf"):
        run(tmp_path, "confidence", keep_inputs="none")


def test_an_input_file_that_is_spoilt_is_named(tmp_path: Path) -> None:
    run(tmp_path)
    path = sorted((tmp_path / "inputs" / "cells").rglob("*.npz"))[0]
    path.write_bytes(b"spoilt")
    with pytest.raises(LedgerError, match=f"{path.name}: cannot be read"):
        run(tmp_path, "confidence")


def test_settings_that_a_detector_itself_refuses_have_their_place(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"detectors\[1\]: feature-squeezing: found neither bits nor median"):
        run(tmp_path / "run", "confidence", {"name": "feature-squeezing", "bits": None, "median": None})
    assert not (tmp_path / "run").exists()


# What the scores are for


class Distance:
    """How far an input lies, in linf, from the nearest clean one: a detector of the size itself."""

    def __init__(self, clean: np.ndarray) -> None:
        self.clean = clean.astype(np.float64)

    def score(self, x: np.ndarray) -> np.ndarray:
        apart = np.abs(x[:, None].astype(np.float64) - self.clean[None]).reshape(len(x), len(self.clean), -1)
        return apart.max(2).min(1)


def test_a_detector_of_the_size_gives_the_damage_under_a_threshold(tmp_path: Path) -> None:
    from advrisk.parts.data import data

    clean = data.get("digits").function().x[:1797]
    arms = [{"attack": "minimum-norm", "norm": "linf"}, {"attack": "fgsm", "norm": "linf", "eps": 0.1}]
    run(tmp_path, objects={"size": Distance(clean)}, arms=arms)
    ledger = Ledger.open(tmp_path)
    distances = smallest_distances(ledger, norm="linf")
    sizes = np.unique(np.concatenate([found[found < np.inf] for found in distances.by_model.values()]))
    assert sizes.size > 10
    for tau in (sizes[:-1] + sizes[1:])[::4] / 2:
        found = monte_carlo_damage(ledger, distances, "size", threshold=tau, rng=np.random.default_rng(0))
        expected = compare_damage(distances.by_model, threshold(tau), rng=np.random.default_rng(0))
        assert found.estimates == expected.estimates


def test_a_rate_of_false_alarms_is_set_on_the_samples_to_calibrate(tmp_path: Path) -> None:
    run(tmp_path, objects={"mean": Mean()})
    ledger = Ledger.open(tmp_path)
    distances = smallest_distances(ledger, norm="linf")
    settings: dict[str, Any] = {"threshold": {"false_alarms": 0.1}, "rng": np.random.default_rng(0)}
    found = monte_carlo_damage(ledger, distances, "mean", **settings)
    samples = ledger.query("SELECT sample FROM samples WHERE split = 'calibrate'")["sample"].to_pylist()
    scores = {row["sample"]: row["score"] for row in score_rows(tmp_path)}
    expected = sorted(scores[name] for name in samples)[-2]  # one of ten above
    assert found.thresholds == {"one": expected, "two": expected}
    assert found.warnings == ()


def test_the_same_weights_under_two_names_are_calibrated_once(tmp_path: Path) -> None:
    twins = dict.fromkeys(("one", "two"), untrained_pair()["one"])
    study = study_from(content(detectors=["confidence"]))
    run_study(study, tmp_path, options=Options(publish_every_s=0), modules=twins)
    ledger = Ledger.open(tmp_path)
    (row,) = ledger.query("SELECT count(*) AS n FROM scores WHERE cell NOT IN (SELECT cell FROM cells)").to_pylist()
    assert row["n"] == 10
    settings: dict[str, Any] = {"threshold": {"false_alarms": 0.1}, "rng": np.random.default_rng(0)}
    found = monte_carlo_damage(ledger, smallest_distances(ledger, norm="linf"), "confidence", **settings)
    assert found.thresholds["one"] == found.thresholds["two"]
    assert found.warnings == ()


# Special arms and models


def test_successes_of_a_corruption_are_scored_for_whoever_names_it(tmp_path: Path) -> None:
    arms = [{"corruption": "gaussian-noise", "sigma": 0.5, "repeats": 3}]
    run(tmp_path, objects={"mean": Mean()}, arms=arms, success="label")
    ledger = Ledger.open(tmp_path)
    distances = smallest_distances(ledger, norm="l2", arms=["gaussian*"])
    found = monte_carlo_damage(ledger, distances, "mean", threshold=np.inf, rng=np.random.default_rng(0))
    assert found.estimates == found.success
    assert found.estimates["one"].value > 0


def test_a_surrogate_is_not_scored(tmp_path: Path) -> None:
    models = content()["models"] | {"two": {"source": "object", "expect_accuracy": 0, "surrogate": True}}
    arms = [{"attack": "transfer", "from": "two", "arm": {"attack": "fgsm", "norm": "linf", "eps": 0.3}}]
    run(tmp_path, "confidence", models=models, arms=arms)
    found = Ledger.open(tmp_path).query("SELECT DISTINCT model FROM scores JOIN cells USING (cell)")
    assert found["model"].to_pylist() == ["one"]


class Shaky(nn.Module):
    """Answers at random."""

    def __init__(self) -> None:
        super().__init__()
        self.net = untrained_pair()["one"]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        answer: torch.Tensor = self.net(x)
        return answer + 0.1 * torch.randn(answer.shape)


def test_a_model_that_answers_at_random_is_scored_alike_for_a_seed(tmp_path: Path) -> None:
    study = study_from(content(detectors=["confidence"], models={"one": {"source": "object", "expect_accuracy": 0}}))
    for name in ("first", "second"):
        run_study(study, tmp_path / name, modules={"one": Shaky()})
    assert score_rows(tmp_path / "first") == score_rows(tmp_path / "second")


KILLED = """
import os, sys
from pathlib import Path
from advrisk.run.campaign import run_study
from advrisk.run.options import Options
from advrisk.study import study_from
from tests.unit.run.nets import untrained_pair
sys.path.insert(0, {tests!r})
import test_scoring as kit

class Deadly(kit.Mean):
    def score(self, x):
        if self.n_asked > {after}:
            os._exit(9)
        return super().score(x)

kit.run(Path({folder!r}), objects={{"mean": Deadly()}})
"""


def test_a_process_that_dies_while_scoring_loses_nothing_it_published(tmp_path: Path) -> None:
    script = KILLED.format(tests=str(Path(__file__).parent), folder=str(tmp_path / "killed"), after=80)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 9, done.stderr
    part = score_rows(tmp_path / "killed")
    run(tmp_path / "killed", objects={"mean": Mean()})
    run(tmp_path / "whole", objects={"mean": Mean()})
    whole = score_rows(tmp_path / "whole")
    assert 0 < len(part) < len(whole)
    assert score_rows(tmp_path / "killed") == whole
