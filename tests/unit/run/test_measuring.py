"""Measures are taken once, at clean inputs, and depend on nothing but seed, measure, model and sample."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from advrisk.api.parts import describe_parts
from advrisk.assess.measures import read_measures
from advrisk.cli.app import app
from advrisk.core.errors import StudyError
from advrisk.core.traits import MeasureTraits
from advrisk.ledger import Ledger
from advrisk.parts.measures import measures
from advrisk.risk.proportion import mean_estimate
from advrisk.run.campaign import run_study
from advrisk.run.dry import dry_run
from advrisk.run.options import Options
from advrisk.run.progress import Progress
from advrisk.study import study_from
from tests.unit.run.nets import untrained_pair

CLEVER = {"name": "clever", "norm": "linf", "radius": 0.1, "batches": 10, "batch": 4}


def content(*named: Any, **changes: Any) -> dict[str, Any]:
    return {
        "name": "measured",
        "device": "cpu",
        "data": {"source": "digits", "evaluate": 14},
        "models": {
            "one": {"source": "object", "expect_accuracy": 0},
            "two": {"source": "object", "expect_accuracy": 0},
        },
        "arms": [{"corruption": "gaussian-noise", "sigma": 0.1}],
        "measures": list(named),
        "shard": 8,
    } | changes


def run(
    folder: Path,
    *named: Any,
    options: Options | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
    **changes: Any,
) -> Progress:
    study = study_from(content(*named, **changes))
    return run_study(study, folder, options=options or Options(), modules=untrained_pair(), on_progress=on_progress)


def rows(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Ledger.open(folder).query("FROM measures ORDER BY ALL").to_pylist()
    return found


def values(folder: Path) -> dict[tuple[str, str, str], float]:
    """(model, sample, measure) -> value."""
    sql = "SELECT o.model, m.* FROM measures m JOIN outcomes o USING (cell, sample)"
    return {
        (row["model"], row["sample"], row["measure"]): row["value"]
        for row in Ledger.open(folder).query(sql).to_pylist()
    }


@pytest.fixture
def mine() -> Iterator[list[int]]:
    """A measure called `mine`: the sample's label, noted as it is asked for; 99 stands for trouble."""
    asked: list[int] = []

    @measures.register("mine", traits=MeasureTraits("tests", needs="labels"))
    def function(
        x: Any, label: int, model: Any, space: Any, noise: Any, *, trouble: str = "", after: int = 99
    ) -> float:
        if len(asked) >= after and trouble:
            if trouble == "ctrl-c":
                raise KeyboardInterrupt
            if trouble == "error":
                raise ArithmeticError("no number today")
            return float("nan")
        asked.append(label)
        return float(label)

    yield asked
    del measures._parts["mine"]


def test_every_sample_of_every_model_has_its_number_under_its_clean_cell(tmp_path: Path) -> None:
    progress = run(tmp_path, CLEVER)
    assert progress.finished
    assert progress.n_measured == progress.n_to_measure == 28
    found = rows(tmp_path)
    clean = Ledger.open(tmp_path).query("SELECT cell, sample, outcome FROM outcomes WHERE kind = 'clean'").to_pylist()
    assert {(row["cell"], row["sample"]) for row in found} == {(row["cell"], row["sample"]) for row in clean}
    wrong = {(row["cell"], row["sample"]) for row in clean if row["outcome"] == "success"}
    for row in found:
        assert row["measure"].startswith("clever,norm=linf,radius=0.1,batches=10,batch=4@")
        assert (row["value"] == 0) == ((row["cell"], row["sample"]) in wrong)
        assert 0 <= row["value"] <= 0.1


def test_what_is_there_is_not_measured_again(tmp_path: Path, mine: list[int]) -> None:
    assert run(tmp_path, "mine").n_to_measure == 28
    first = rows(tmp_path)
    again = run(tmp_path, "mine", CLEVER | {"samples": 2})
    assert (again.n_to_measure, again.n_measured, len(mine)) == (4, 4, 28)
    assert [row for row in rows(tmp_path) if row["measure"].startswith("mine")] == first


def test_more_samples_can_be_asked_for_later(tmp_path: Path, mine: list[int]) -> None:
    run(tmp_path, {"name": "mine", "samples": 3})
    few = {sample for _, sample, _ in values(tmp_path)}
    placed = Ledger.open(tmp_path).query("SELECT sample FROM samples ORDER BY shard, place").to_pylist()
    assert len(few) == 3
    assert few <= {row["sample"] for row in placed}
    run(tmp_path, {"name": "mine", "samples": 10})
    more = {sample for _, sample, _ in values(tmp_path)}
    assert few < more
    assert (len(more), len(mine)) == (10, 20)


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path: Path, mine: list[int]) -> None:
    line = {"name": "mine", "trouble": "ctrl-c", "after": 20}
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, line)
    assert len(rows(tmp_path)) == 20
    mine.clear()
    progress = run(tmp_path, line)
    assert (progress.n_measured, len(mine), len(rows(tmp_path))) == (8, 8, 28)


def test_numbers_are_the_same_whatever_the_shards(tmp_path: Path) -> None:
    run(tmp_path / "a", CLEVER, shard=8)
    run(tmp_path / "b", CLEVER, shard=3)
    run(tmp_path / "c", CLEVER, data={"source": "digits", "evaluate": 5})
    whole = values(tmp_path / "a")
    assert values(tmp_path / "b") == whole
    part = values(tmp_path / "c")
    assert len(part) == 10
    assert part.items() <= whole.items()


def test_another_seed_gives_other_numbers(tmp_path: Path) -> None:
    run(tmp_path / "a", CLEVER, data={"source": "digits", "evaluate": 14, "order": "file"})
    run(tmp_path / "b", CLEVER, seed=1, data={"source": "digits", "evaluate": 14, "order": "file"})
    one, other = values(tmp_path / "a"), values(tmp_path / "b")
    assert one.keys() == other.keys()
    assert any(one[name] != other[name] for name in one)  # not all: around some inputs the slope is the same everywhere


def test_nothing_is_begun_after_the_deadline(tmp_path: Path, mine: list[int]) -> None:
    run(tmp_path)
    progress = run(tmp_path, "mine", options=Options(max_s=0))
    assert (progress.n_measured, progress.n_to_measure, progress.finished) == (0, 28, False)
    assert mine == []


@pytest.mark.parametrize(
    ("trouble", "complaint"),
    [
        ("error", r"the measure mine,.* of \w+ at sample .* failed: ArithmeticError: no number today"),
        ("nan", r"the measure mine,.* of \w+ at sample .* is nan; a finite number is needed"),
    ],
)
def test_what_goes_wrong_is_named_and_stops_nothing(
    tmp_path: Path, mine: list[int], trouble: str, complaint: str
) -> None:
    told: list[Progress] = []
    line = {"name": "mine", "trouble": trouble, "after": 3}
    progress = run(tmp_path, line, CLEVER | {"samples": 1}, detectors=["feature-squeezing"], on_progress=told.append)
    assert re.search(complaint, progress.trouble)
    assert (progress.n_measured, progress.n_unmeasured, progress.finished) == (28 + 2, 25, True)
    assert next(one.n_unmeasured for one in told if one.n_measured == 4) == 1
    found = rows(tmp_path)
    assert [row["value"] for row in found if row["measure"].startswith("mine")].count(None) == 25
    assert all(row["value"] is not None for row in found if row["measure"].startswith("clever"))
    assert 0 < progress.n_scored == progress.n_to_score
    assert sum(one.n for of in read_measures(Ledger.open(tmp_path)).values() for one in of.values()) == 3 + 2


def test_the_command_line_says_why_and_ends_with_3(
    tmp_path: Path, mine: list[int], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("advrisk.run.executors.choice.worker_count", lambda *_: 0)
    monkeypatch.setattr("advrisk.study.vocabulary.unknown_names", lambda *_: [])  # `mine` is in no source
    study = content(
        {"name": "mine", "trouble": "error", "after": 3}, models={"one": {"source": "demo", "name": "plain"}}
    )
    study["data"] |= {"source": "mnist-5k", "evaluate": 5}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    for why in ("at sample .* failed: ArithmeticError: no number today", "`--retry-errors` tries again"):
        with pytest.raises(SystemExit) as ended:
            app(["run", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "run")])
        assert ended.value.code == 3
        assert re.search(f"2 measures gave no number: .*{why}", capfd.readouterr().err)


def test_failures_are_tried_again_if_asked_for(tmp_path: Path, mine: list[int]) -> None:
    line = {"name": "mine", "trouble": "error", "after": 3}
    run(tmp_path, line)
    again = run(tmp_path, line)
    assert (again.n_to_measure, again.n_unmeasured, again.trouble) == (0, 25, "")
    mine.clear()  # three go well from now on
    retried = run(tmp_path, line, options=Options(retry_errors=True))
    assert (retried.n_to_measure, retried.n_measured, retried.n_unmeasured) == (25, 25, 22)
    assert "no number today" in retried.trouble
    assert run(tmp_path, line).n_unmeasured == 22
    assert sum(one.n for of in read_measures(Ledger.open(tmp_path)).values() for one in of.values()) == 6
    assert run(tmp_path, "mine").n_unmeasured == 0  # another measure; what failed is not asked for any more


def test_an_unknown_measure_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"measures\[0\]: no measures called 'clover'; did you mean 'clever'\?"):
        run(tmp_path / "run", "clover")
    assert not (tmp_path / "run").exists()


def test_means_are_read_for_each_model(tmp_path: Path, mine: list[int]) -> None:
    run(tmp_path, "mine", {"name": "mine", "after": 98, "samples": 4})
    found = read_measures(Ledger.open(tmp_path), level=0.9)
    whole = values(tmp_path)
    assert set(found) == {"one", "two"}
    for model, by_measure in found.items():
        assert [estimate.n for estimate in by_measure.values()] == [4, 14]
        for measure, estimate in by_measure.items():
            own = [value for (of, _, name), value in whole.items() if (of, name) == (model, measure)]
            assert estimate.as_dict() == pytest.approx(mean_estimate(own, level=0.9).as_dict())


def test_a_dry_run_counts_passes(tmp_path: Path) -> None:
    study = study_from(content(CLEVER | {"samples": 6}))
    plan = dry_run(study, tmp_path, modules=untrained_pair())
    assert plan.by_measure == {"clever,norm=linf,radius=0.1,batches=10,batch=4": (2 * 6 * 41, 2 * 6 * 40 * 9)}
    run(tmp_path, CLEVER | {"samples": 4})
    plan = dry_run(study, tmp_path, modules=untrained_pair())
    assert list(plan.by_measure.values()) == [(2 * 2 * 41, 2 * 2 * 40 * 9)]


def test_measures_are_listed() -> None:
    (part,) = (part for part in describe_parts("measures")["measures"] if part["name"] == "clever")
    assert "needs gradients" in part["facts"]
