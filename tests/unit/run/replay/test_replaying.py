"""A run that was made by attacks replays bit by bit; one whose rows were written does not."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from advrisk import Run, Study
from advrisk.core.errors import AdvriskError, RunError
from advrisk.ledger import check
from advrisk.run.replay import replaying
from advrisk.run.replay.record import Replay
from advrisk.study import study_from
from tests.unit.run.nets import untrained_pair
from tests.unit.run.replay.rewriting import Row, resisted, rewrite_rows

PLAIN = {"source": "object", "expect_accuracy": 0}
FGSM = {"attack": "fgsm", "norm": "linf", "eps": [0.1, 0.3]}
STUDY: dict[str, Any] = {
    "name": "small",
    "seed": 3,
    "device": "cpu",
    "data": {"source": "digits", "evaluate": 24},
    "models": {"one": PLAIN, "two": PLAIN},
    "success": "prediction",
    "arms": [FGSM, {"attack": "pgd", "norm": "linf", "eps": 0.1, "steps": 4}],
    "shard": 12,
}


def ran(folder: Path, modules: Mapping[str, nn.Module] | None = None, **changes: Any) -> Run:
    return Study.from_dict(STUDY | changes).run(folder, modules=modules or untrained_pair())


def replayed(run: Run, k: int, modules: Mapping[str, nn.Module] | None = None, draw: int = 1, **changes: Any) -> Replay:
    spec = study_from(STUDY | changes)
    return replaying.replay(spec, Run.open(run.folder).ledger, k, seed=draw, modules=modules or untrained_pair())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ran(tmp_path_factory.mktemp("made") / "run").folder


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Run:
    shutil.copytree(made, tmp_path / "run")
    return Run.open(tmp_path / "run")


def test_an_honest_run_replays_bit_by_bit_and_nothing_is_written(run: Run) -> None:
    before = {path: path.stat().st_mtime_ns for path in run.folder.rglob("*")}
    found = run.replay(5, seed=1, modules=untrained_pair())
    verified = found.verification()
    assert verified.held == ("Attacked again, 5 samples gave the same 40 rows bit by bit.",)
    assert verified.problems == ()
    assert "5 of 24 samples, drawn with the seed 1" in verified.notes[0]
    assert (found.n_whole, found.unreplayed, found.foreign) == (0, {}, {})
    assert {path: path.stat().st_mtime_ns for path in run.folder.rglob("*")} == before


def test_the_seed_draws_the_samples_and_is_new_without_one(run: Run) -> None:
    seeds = [replayed(run, 3, draw=seed).samples for seed in (1, 1, 2)]
    assert seeds[0] == seeds[1] != seeds[2]
    spec = study_from(STUDY)
    drawn = {replaying.replay(spec, run.ledger, 1, modules=untrained_pair()).seed for _ in range(2)}
    assert len(drawn) == 2


def test_rewritten_rows_are_found_whatever_their_digests(run: Run) -> None:
    def change(row: Row) -> Row | None:
        return resisted(row) if row["outcome"] == "success" and row["model"] == "one" else None

    n = rewrite_rows(run.folder, change)
    assert not check(run.folder).damaged, "digests say nothing against it"
    found = replayed(run, 24)
    assert len(found.differences) == n > 10
    assert {one.model for one in found.differences} == {"one"}
    first = found.verification().problems[0]
    assert first.startswith("Replayed, sample digits/")
    assert "fgsm-linf-0.1-ace against one: recorded resisted, class" in first
    assert "replayed success, class" in first
    assert found.models["two"].differences == []
    assert "more rows differ (" in found.verification().problems[-1]


def test_one_rewritten_sample_is_found_exactly_when_it_is_drawn(run: Run) -> None:
    target = run.query("SELECT min(sample) AS one FROM outcomes WHERE outcome = 'success'")["one"][0].as_py()

    def change(row: Row) -> Row | None:
        return resisted(row) if row["sample"] == target and row["outcome"] == "success" else None

    rewrite_rows(run.folder, change)
    for seed in range(4):
        found = replayed(run, 8, draw=seed)
        assert found.verification().holds == (target not in found.samples)
    assert found.chance_of_finding(0.04) == pytest.approx(8 / 24)
    assert found.chance_of_finding(0.25) == pytest.approx(
        1 - 16 * 15 * 14 * 13 * 12 * 11 / (24 * 23 * 22 * 21 * 20 * 19)
    )


@pytest.mark.parametrize("column", ["d_linf", "n_forward", "near_linf", "confidence"])
def test_other_numbers_of_a_row_count_too(run: Run, column: str) -> None:
    def change(row: Row) -> Row | None:
        return row | {column: row[column] * 2} if row["outcome"] == "success" and row["model"] == "one" else None

    n = rewrite_rows(run.folder, change)
    found = replayed(run, 24)
    assert len(found.differences) == n
    assert {one.columns for one in found.differences} == {(column,)}


def test_rewritten_answers_are_found(run: Run) -> None:
    n = rewrite_rows(run.folder, lambda row: row | {"logits": row["logits"][::-1]}, "outputs")
    found = replayed(run, 24)
    assert len(found.differences) == n == 192
    assert all(tally.same_arithmetic for tally in found.models.values())


def nudged(row: Row) -> Row:
    return row | {"logits": [value * (1 + 1e-5) for value in row["logits"]]}


def test_other_arithmetic_is_told_and_few_outcomes_may_differ(run: Run) -> None:
    rewrite_rows(run.folder, nudged, "outputs")
    found = replayed(run, 24)
    assert found.verification().holds
    assert "192 rows (0 bit by bit, 192 but for rounding)" in found.verification().held[0]

    flipped = iter(range(1))

    def one_flip(row: Row) -> Row | None:
        return resisted(row) if row["outcome"] == "success" and next(flipped, None) is not None else None

    assert rewrite_rows(run.folder, one_flip) == 1
    found = replayed(run, 24)
    assert found.verification().holds
    assert any("1 of 96 outcomes differ" in note for note in found.verification().notes)

    rewrite_rows(run.folder, lambda row: resisted(row) if row["outcome"] == "success" else None)
    assert not replayed(run, 24).verification().holds


def test_on_other_arithmetic_clean_rows_must_be_the_same_but_for_rounding(run: Run) -> None:
    rewrite_rows(run.folder, nudged, "outputs")
    first = iter(range(1))

    def change(row: Row) -> Row | None:
        is_first = row["kind"] == "clean" and next(first, None) is not None
        return row | {"prediction": (row["prediction"] + 1) % 10} if is_first else None

    rewrite_rows(run.folder, change)
    (one,) = replayed(run, 24).differences
    assert (one.arm, one.columns) == ("clean", ("prediction",))


def test_a_few_clean_answers_do_not_buy_the_tolerance_of_other_arithmetic(run: Run) -> None:
    samples = run.query("SELECT DISTINCT sample FROM samples WHERE shard IS NOT NULL ORDER BY 1 LIMIT 8")
    few = set(samples["sample"].to_pylist())
    rewrite_rows(run.folder, lambda row: nudged(row) if row["sample"] in few else None, "outputs")
    flipped = iter(range(1))

    def one_flip(row: Row) -> Row | None:
        return resisted(row) if row["outcome"] == "success" and next(flipped, None) is not None else None

    rewrite_rows(run.folder, one_flip)
    assert len(replayed(run, 24).differences) == 1


@pytest.mark.parametrize(
    ("changes", "swap", "words"),
    [
        ({"seed": 4}, False, "the study gives no such cell of one"),
        ({"success": "label"}, False, "the study gives no such cell of one"),
        ({"arms": [FGSM]}, False, "the study gives no such cell of two"),
        ({}, True, "one is another model here: its digest is"),
        ({"models": {"one": PLAIN}}, False, "the study has no model two"),
    ],
)
def test_rows_that_the_study_does_not_give_are_a_problem(
    run: Run, changes: dict[str, Any], swap: bool, words: str
) -> None:
    nets = untrained_pair()
    given = {"one": nets["two"], "two": nets["one"]} if swap else nets
    found = replayed(run, 4, given, **changes)
    assert not found.verification().holds
    assert any(words in problem for problem in found.verification().problems)


def test_errors_and_clocks_are_counted_and_named(run: Run) -> None:
    def change(row: Row) -> Row | None:
        return row | {"outcome": "error"} if row["arm"] == "fgsm-linf-0.1-ace" else None

    n = rewrite_rows(run.folder, change)
    rewrite_rows(run.folder, lambda row: row | {"flags": ["cut-short"]} if "pgd" in row["arm"] else None, "cells")
    found = replayed(run, 24)
    assert found.unreplayed == {
        "recorded as error, which need not happen again": n,
        replaying._CUT_SHORT: 48,
    }
    assert found.ended_otherwise == n
    assert any(f"{n} rows recorded as an error" in note for note in found.verification().notes)


def test_nothing_to_replay_is_no_success(tmp_path: Path, run: Run) -> None:
    rewrite_rows(run.folder, lambda row: row | {"flags": ["cut-short"]}, "cells")
    assert "No row could be compared with a replay." in replayed(run, 3).verification().problems
    with pytest.raises(RunError, match="draw at least one"):
        replayed(run, 0)


class Dropping(nn.Module):
    """Draws from torch's generator, so that rows depend on their batch."""

    def __init__(self) -> None:
        super().__init__()
        self.net = untrained_pair()["one"]

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.net(nn.functional.dropout(x, 0.2, training=True))
        return answer


def test_rows_that_depend_on_their_batch_are_replayed_by_whole_shards(tmp_path: Path) -> None:
    changes = {"models": {"random": PLAIN}, "arms": [FGSM]}
    run = ran(tmp_path / "run", {"random": Dropping()}, **changes)
    found = replayed(run, 3, {"random": Dropping()}, **changes)
    assert found.verification().holds
    assert found.n_whole == found.n_rows == 9


class Centred(Dropping):
    """Answers depend on batch mates, and nothing says so."""

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.net(x)
        return answer - 0.1 * answer.mean(0)


def test_whole_shards_are_tried_where_the_samples_alone_give_other_rows(tmp_path: Path) -> None:
    changes = {"models": {"centred": PLAIN}, "arms": [FGSM]}
    run = ran(tmp_path / "run", {"centred": Centred()}, **changes)
    found = replayed(run, 3, {"centred": Centred()}, **changes)
    assert found.verification().held == ("Attacked again, 3 samples gave the same 9 rows bit by bit.",)
    assert found.n_whole > 0


# Every family that attacks sample by sample, at few queries.
_FEW = {"max_queries": 24}
FAMILIES: dict[str, dict[str, Any]] = {
    "gradients": {"attack": ["bim", "pgd", "apgd", "apgd-t"], "norm": ["linf", "l2"], "eps": 0.1, **_FEW},
    "l1": {"attack": ["fgsm", "apgd", "square"], "norm": "l1", "eps": 2.0, **_FEW},
    "autoattack": {"attack": "autoattack", "norm": "linf", "eps": 0.05, "steps": 4, "queries": 20},
    "carlini-wagner": {"attack": "carlini-wagner", "norm": ["l2", "linf"], **_FEW},
    "deepfool": {"attack": "deepfool", "norm": ["l2", "linf"]},
    "fab": {"attack": ["fab", "fab-t"], "norm": "l2", **_FEW},
    "feature-search": {"attack": "feature-search", "norm": "l0", **_FEW},
    "fmn": {"attack": "fmn", "norm": ["linf", "l0"], **_FEW},
    "hopskipjump": {"attack": "hopskipjump", "norm": ["l2", "linf"], "max_queries": 80},
    "minimum-norm": {"attack": "minimum-norm", "norm": "l2", **_FEW},
    "black-box": {"attack": ["nes", "square"], "norm": ["linf", "l2"], "eps": 0.1, **_FEW},
    "pgd-adam": {"attack": "pgd-adam", "norm": "linf", "eps": 0.1, **_FEW},
    "pixel": {"attack": "pixel", "norm": "l0", **_FEW},
    "spatial": {"attack": ["spatial", "spatial-gradient"], **_FEW},
    "threshold": {"attack": "threshold", "norm": "linf", **_FEW},
    "transfer": {"attack": "transfer", "from": "two", "arm": {"attack": "pgd", "norm": "linf", "eps": 0.1, "steps": 4}},
    "adaptive": {"attack": "adaptive", "norm": "linf", "eps": 0.1, "detector": "confidence", "steps": 4, "rounds": 1},
    "corruptions": {"corruption": ["gaussian-noise", "fog", "rain"], "level": 2, "repeats": 2},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_of_every_family_depend_on_no_other_sample(tmp_path: Path, family: str) -> None:
    changes: dict[str, Any] = {
        "arms": [FAMILIES[family]],
        "data": {"source": "digits", "evaluate": 6},
        "models": {"one": PLAIN, "two": PLAIN | {"surrogate": True}} if family == "transfer" else {"one": PLAIN},
        "defences": {"noisy": {"of": "one", "name": "gauss-at-input", "sigma": 0.05}},
        "detectors": ["confidence"],
        "keep_inputs": "none",
        "shard": 6,
    }
    nets = {name: net for name, net in untrained_pair().items() if name in changes["models"]}
    run = ran(tmp_path / "run", nets, **changes)
    found = replayed(run, 3, nets, **changes)
    assert found.verification().problems == ()
    assert {name: tally.n for name, tally in found.models.items()} == {
        name: tally.n_equal for name, tally in found.models.items()
    }
    assert found.n_whole == 0, "no whole shard had to be attacked again"
    assert found.n_rows >= 3 * 2


def test_arms_of_other_libraries_are_replayed_by_whole_shards(tmp_path: Path) -> None:
    pytest.importorskip("foolbox")
    arm = {"attack": "foolbox", "method": "LinfFastGradientAttack", "norm": "linf", "eps": 0.1}
    changes = {"arms": [arm], "models": {"one": PLAIN}}
    nets = {"one": untrained_pair()["one"]}
    found = replayed(ran(tmp_path / "run", nets, **changes), 3, nets, **changes)
    assert found.verification().holds
    assert found.n_whole == 3


def test_relative_paths_of_the_runs_own_study_ask_for_another(tmp_path: Path) -> None:
    torch.save(untrained_pair()["one"].state_dict(), tmp_path / "one.pt")
    content = STUDY | {
        "models": {
            "one": {"source": "torch", "factory": "tests.unit.run.nets:small", "weights": "one.pt"}
            | {"expect_accuracy": 0}
        },
        "arms": [FGSM],
    }
    import yaml

    (tmp_path / "study.yaml").write_text(yaml.safe_dump(content))
    run = Study.load(tmp_path / "study.yaml").run(tmp_path / "deep" / "run", workers=1)
    with pytest.raises(AdvriskError, match="give a study that says where: --study FILE"):
        run.replay(2)
    assert run.replay(2, study=tmp_path / "study.yaml").verification().holds
