"""Detectors learn before anything is attacked: from the samples set aside, once, and so that others can go on."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from advrisk.assess.damage.walk import detectors_of, find_detector, own_detectors
from advrisk.core.errors import DataError, RunError, StudyError
from advrisk.core.traits import DetectorTraits
from advrisk.engine import Model
from advrisk.ledger import Ledger
from advrisk.ledger.inputs import detector_state, read_inputs
from advrisk.ledger.known_detectors import read_known_detectors
from advrisk.ledger.maintenance.deleting import delete_inputs
from advrisk.parts.attacks import attacks
from advrisk.parts.detectors import Examples, State, detectors
from advrisk.parts.models.small import SmallCnn
from advrisk.run.campaign import run_study
from advrisk.run.detectors.ready import read_state, write_state
from advrisk.run.options import Options
from advrisk.run.progress import Progress
from advrisk.study import study_from

LESSONS: list[Examples] = []


@dataclass(frozen=True, kw_only=True)
class Apart:
    """How far an input lies towards the mean of the attacks, from that of the clean inputs."""

    mischief: str = ""

    def fit(self, examples: Examples, model: Model, *, on_progress: Callable[[float], None]) -> State:
        LESSONS.append(examples)
        if self.mischief == "refuse":
            raise DataError("these are not enough")
        if self.mischief == "fail":
            raise ZeroDivisionError("oh")
        on_progress(0.5)
        torch.rand(1)  # whatever it does to the global generator
        way = (examples.adversarial if len(examples.adversarial) else examples.clean).mean(0) - examples.clean.mean(0)
        if self.mischief == "nan":
            return {"way": way * torch.nan}
        return {"way": way, "seed": torch.tensor(examples.seed)} if self.mischief != "list" else {"way": [1]}  # type: ignore[dict-item]

    def score(self, x: Tensor, model: Model, state: State) -> Tensor:
        return (x.double() * state["way"]).flatten(1).sum(1)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    LESSONS.clear()
    detectors.register("apart", traits=DetectorTraits("tests", learns="attacks"))(Apart)
    detectors.register("near", traits=DetectorTraits("tests", learns="clean"))(Apart)
    yield
    for name in ("apart", "near"):
        del detectors._parts[name]


def modules() -> dict[str, nn.Module]:
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        return {"one": SmallCnn(size=8, width=4)}


def content(**changes: Any) -> dict[str, Any]:
    return {
        "name": "fitted",
        "device": "cpu",
        "data": {"source": "digits", "evaluate": 12, "calibrate": 5, "train": 50},
        "models": {"one": {"source": "object", "expect_accuracy": 0}},
        "success": "prediction",
        "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.3}],
        "detectors": [{"name": "apart", "arms": [{"attack": "pgd", "norm": "linf", "eps": 0.3, "keep": "last"}]}],
        "shard": 16,
    } | changes


def run(folder: Path, **changes: Any) -> list[Progress]:
    told: list[Progress] = []
    run_study(
        study_from(content(**changes)),
        folder,
        options=Options(publish_every_s=0),
        modules=modules(),
        on_progress=told.append,
    )
    return told


def score_rows(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = Ledger.open(folder).query("FROM scores ORDER BY ALL").to_pylist()
    return rows


def only_state(folder: Path) -> Path:
    (path,) = (folder / "detectors").rglob("*.safetensors")
    return path


def test_it_learns_from_the_samples_set_aside_and_from_what_its_arm_made_of_them(tmp_path: Path) -> None:
    told = run(tmp_path)
    (given,) = LESSONS
    samples = {row["sample"]: row for row in Ledger.open(tmp_path).query("FROM samples").to_pylist()}
    assert sum(row["split"] == "train" for row in samples.values()) == len(given.clean) == 50
    module = modules()["one"].eval()
    with torch.no_grad():
        before, after = module(given.clean).argmax(1), module(given.adversarial).argmax(1)
    assert (after != before[given.origin]).all()  # successes, and no others
    moved = (given.adversarial - given.clean[given.origin]).abs().flatten(1).amax(1)
    assert ((moved > 0) & (moved <= 0.3 + 1e-6)).all()
    assert len(set(given.origin.tolist())) == len(given.origin) >= 10
    assert [one.learning for one in told if one.learning][-1].startswith("fitting apart,arms=pgd-linf-0.3-ace")
    way = given.adversarial.mean(0) - given.clean.mean(0)
    torch.testing.assert_close(load_file(only_state(tmp_path))["way"], way)
    assert len(score_rows(tmp_path)) > 12


def test_what_is_learned_once_is_read_again(tmp_path: Path) -> None:
    run(tmp_path)
    rows = score_rows(tmp_path)
    run(tmp_path, data=content()["data"] | {"evaluate": 20})
    assert len(LESSONS) == 1
    more = score_rows(tmp_path)
    assert len(more) > len(rows)
    assert {tuple(row.values()) for row in rows} <= {tuple(row.values()) for row in more}


def test_the_same_seed_learns_the_same_and_says_the_same(tmp_path: Path) -> None:
    for name in ("a", "b"):
        run(tmp_path / name)
    assert only_state(tmp_path / "a").name == only_state(tmp_path / "b").name
    first, again = (load_file(only_state(tmp_path / name)) for name in ("a", "b"))
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert score_rows(tmp_path / "a") == score_rows(tmp_path / "b")


def test_more_samples_to_learn_from_make_another_detector(tmp_path: Path) -> None:
    run(tmp_path)
    run(tmp_path, data=content()["data"] | {"train": 60})
    assert len(LESSONS) == 2
    assert len({row["detector"] for row in score_rows(tmp_path)}) == 2


def test_one_that_learns_from_clean_inputs_is_given_no_others(tmp_path: Path) -> None:
    run(tmp_path, detectors=["near"])
    (given,) = LESSONS
    assert given.adversarial.shape == (0, 1, 8, 8)
    assert len(given.clean) == 50


def test_two_arms_teach_together(tmp_path: Path) -> None:
    arms = [{"attack": "fgsm", "norm": "linf", "eps": [0.3, 0.5]}]
    run(tmp_path, detectors=[{"name": "apart", "arms": arms}])
    (given,) = LESSONS
    counts = np.bincount(given.origin.numpy())
    assert counts.max() == 2
    assert len(given.adversarial) == len(given.origin) == counts.sum()


def test_a_state_that_is_spoilt_is_named(tmp_path: Path) -> None:
    run(tmp_path)
    only_state(tmp_path).write_bytes(b"spoilt")
    with pytest.raises(RunError, match=r"one\.safetensors: cannot be read.*delete it, and the detector will learn"):
        run(tmp_path)
    only_state(tmp_path).unlink()
    run(tmp_path)
    assert len(LESSONS) == 2
    state, note = read_state(only_state(tmp_path))
    save_file({name: -tensor for name, tensor in state.items()}, only_state(tmp_path), metadata=note)
    with pytest.raises(RunError, match=r"one\.safetensors: was changed since it was written; delete it"):
        run(tmp_path)


def test_a_state_of_another_model_is_learned_anew(tmp_path: Path) -> None:
    run(tmp_path)
    path = only_state(tmp_path)
    state, note = read_state(path)
    write_state(path, state, note | {"model": "another"})
    run(tmp_path)
    assert len(LESSONS) == 2
    assert load_file(path)["way"].abs().sum() > 0


def test_too_few_successes_end_the_run_before_anything_is_attacked(tmp_path: Path) -> None:
    weak = [{"attack": "fgsm", "norm": "linf", "eps": 0.00001}]
    with pytest.raises(StudyError, match=r"detectors\[0\]: apart learns from successful attacks, but of 50 samples of"):
        run(tmp_path, detectors=[{"name": "apart", "arms": weak}])
    assert Ledger.open(tmp_path).query("SELECT count(*) AS n FROM outcomes")["n"].to_pylist() == [0]


@pytest.mark.parametrize(
    ("mischief", "words"),
    [
        ("refuse", r"detectors\[0\]: near could not learn from one: these are not enough"),
        ("fail", "the detector near failed to learn from one: ZeroDivisionError: oh"),
        ("nan", "the detector near learned 'way' of one with numbers that are not finite"),
        ("list", "the detector near learned 'way', a list; tensors are needed"),
    ],
)
def test_one_that_cannot_learn_is_named_and_nothing_is_kept(tmp_path: Path, mischief: str, words: str) -> None:
    with pytest.raises((RunError, StudyError), match=words):
        run(tmp_path, detectors=[{"name": "near", "mischief": mischief}])
    assert not (tmp_path / "detectors").exists()


def test_crafting_that_was_kept_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path)
    only_state(tmp_path).unlink()
    monkeypatch.setattr("advrisk.run.cell.perturb", lambda *_, **__: pytest.fail("crafted again"))
    run(tmp_path)
    assert torch.equal(LESSONS[0].adversarial, LESSONS[1].adversarial)


@pytest.mark.parametrize("by", ["model", "sample"])
def test_what_was_learned_goes_with_the_inputs_it_was_learned_from(tmp_path: Path, by: str) -> None:
    run(tmp_path)
    ledger = Ledger.open(tmp_path)
    of_split = "SELECT sample FROM samples WHERE split = $split ORDER BY sample LIMIT 1"
    name = {split: ledger.query(of_split, {"split": split})["sample"].to_pylist()[0] for split in ("train", "evaluate")}
    delete_inputs(tmp_path, ledger, sample=name["evaluate"])
    assert only_state(tmp_path).is_file()
    delete_inputs(tmp_path, ledger, **{by: {"model": "one", "sample": name["train"]}[by]})
    assert not list((tmp_path / "detectors").rglob("*.safetensors"))
    held = [sample for path in (tmp_path / "inputs" / "examples").rglob("*.npz") for sample in read_inputs(path)]
    assert name["train"] not in held
    assert (by == "sample") == bool(held)


def test_a_state_lies_under_a_short_name(tmp_path: Path) -> None:
    assert detector_state(tmp_path, "lid,neighbours=10,layers=a+b@12345678", "plain").relative_to(tmp_path) == Path(
        "detectors/lid@12345678/plain.safetensors"
    )


def test_an_arm_that_fails_ends_the_lesson_and_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise ValueError("oh")

    with monkeypatch.context() as broken:
        broken.setitem(attacks._parts, "pgd", replace(attacks.get("pgd"), function=failing))
        with pytest.raises(RunError, match=r"pgd-linf-0\.3.*, which detectors learn from, failed on sample .*: oh"):
            run(tmp_path)
    run(tmp_path)
    assert len(LESSONS[0].adversarial) >= 10


def test_a_clock_does_not_decide_what_is_learned(tmp_path: Path) -> None:
    run(tmp_path / "slow", max_cell_s=1e-6)
    run(tmp_path / "free")
    assert torch.equal(LESSONS[0].adversarial, LESSONS[1].adversarial)


def test_time_that_is_up_ends_the_learning_too(tmp_path: Path) -> None:
    spec = study_from(content())
    progress = run_study(spec, tmp_path, options=Options(max_s=0), modules=modules())
    assert not progress.finished
    assert not LESSONS
    run(tmp_path)
    assert len(LESSONS) == 1


def test_the_same_weights_under_two_names_learn_the_same(tmp_path: Path) -> None:
    spec = study_from(
        content(
            models={
                "one": {"source": "object", "expect_accuracy": 0},
                "two": {"source": "object", "expect_accuracy": 0},
            }
        )
    )
    run_study(spec, tmp_path, options=Options(publish_every_s=0), modules={**modules(), "two": modules()["one"]})
    first, other = (load_file(path) for path in sorted((tmp_path / "detectors").rglob("*.safetensors")))
    assert all(torch.equal(first[key], other[key]) for key in first)


def test_what_an_input_may_become_is_part_of_a_detector(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((80, 1, 8, 8), dtype=np.float32), rng.integers(10, size=80)
    for frozen in (False, True):
        immutable = np.zeros((1, 8, 8), bool)
        immutable[0, 0] = frozen
        np.savez(tmp_path / "data.npz", x=x, y=y, immutable=immutable)
        data = {"source": "npz", "path": str(tmp_path / "data.npz"), "bounds": [0, 1], "classes": 10}
        strong = [{"attack": "pgd", "norm": "linf", "eps": 0.6, "keep": "last"}]
        found = {"data": data | {"evaluate": 5, "train": 70}, "detectors": [{"name": "apart", "arms": strong}]}
        run(tmp_path / "run", **found)
    assert len(LESSONS) == 2
    assert (LESSONS[1].adversarial[:, :, 0] == LESSONS[1].clean[LESSONS[1].origin][:, :, 0]).all()


def test_the_run_knows_its_detectors_and_a_name_means_its_own(tmp_path: Path) -> None:
    first = content()["data"]
    run(tmp_path)
    run(tmp_path, data=first | {"train": 60})
    run(tmp_path)  # as at first: it scores nothing, and counts again
    known = read_known_detectors(tmp_path)
    assert known is not None
    ledger = Ledger.open(tmp_path)
    assert find_detector(ledger, "apart") == known.study[0]
    assert own_detectors(ledger) == known.study
    assert len(detectors_of(ledger)) == 2
    with pytest.raises(RunError, match="the study has a detector called 'apart'; hand the object over by another name"):
        run_study(study_from(content()), tmp_path, modules=modules(), detectors={"apart": Bright()})


class Bright:
    def score(self, x: Any) -> Any:
        return x.reshape(len(x), -1).mean(1)
