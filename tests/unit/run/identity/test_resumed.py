"""Finished cells are reused only of a model that still answers the study's own samples as recorded."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from advrisk import Run, Study
from advrisk.core.errors import StudyError
from advrisk.run.executors import choice
from advrisk.run.identity import resumed
from advrisk.run.progress import Progress
from tests.unit.run.identity.nets import PLAIN, ROLLED, SAME, write_net

FACTORY = {"source": "torch", "factory": "nets_of_a_test:Plain", "expect_accuracy": 0}
STUDY: dict[str, Any] = {
    "name": "small",
    "data": {"source": "digits", "evaluate": 96},
    "models": {"plain": FACTORY},
    "success": "prediction",
    "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.1}],
    "shard": 32,
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where factories are found, without bytecode that would outlive a change within a second."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    monkeypatch.setattr(choice, "worker_count", lambda *_: 0)  # in this process, which takes no seconds to start
    write_net(tmp_path, PLAIN)
    return tmp_path


def run(home: Path, modules: dict[str, nn.Module] | None = None, **changes: Any) -> tuple[Run, Progress]:
    told: list[Progress] = []
    done = Study.from_dict(STUDY | changes).run(home / "run", workers=1, modules=modules, on_progress=told.append)
    return done, told[0]


def test_a_forward_that_changes_on_dark_images_alone_is_refused(home: Path) -> None:
    done, _ = run(home)
    (before,) = done.query("FROM models").to_pylist()
    write_net(home, ROLLED)
    with pytest.raises(StudyError) as refused:
        run(home)
    text = str(refused.value)
    assert "models.plain: answers" in text
    assert "of 96 otherwise" in text
    assert "its source files changed since" in text
    assert "sample digits/" in text
    assert "recorded class" in text
    assert "now class" in text
    assert "choose another folder (--out)" in text
    again, _ = run(home.joinpath("elsewhere"))
    (after,) = again.query("FROM models").to_pylist()
    assert after["digest"] == before["digest"], "the digest alone would have reused all cells"
    assert after["source_digest"] != before["source_digest"]


def test_a_dry_run_refuses_what_the_run_would(home: Path) -> None:
    run(home)
    write_net(home, ROLLED)
    with pytest.raises(StudyError, match="otherwise than its finished cells say"):
        Study.from_dict(STUDY).dry_run(home / "run", workers=1)


def test_other_code_with_the_same_answers_is_noted_once(home: Path) -> None:
    _, first = run(home)
    assert first.doubts == ()
    write_net(home, SAME)
    _, second = run(home)
    (note,) = second.doubts
    assert "models.plain: its source files changed" in note
    assert "its answers to 96 clean samples are the same" in note
    assert second.n_skipped == 6
    assert run(home)[1].doubts == ()


def test_a_change_behind_a_defence_is_refused_too(home: Path) -> None:
    changes = {"defences": {"squeezed": {"of": "plain", "name": "feature-squeezing", "bits": 4}}}
    run(home, **changes)
    write_net(home, ROLLED)
    with pytest.raises(StudyError, match=r"(?s)models\.plain: answers.*defences: squeezed answers"):
        run(home, **changes)


def test_a_surrogate_is_compared_by_the_classes_that_its_attacks_recorded(home: Path) -> None:
    changes = {
        "models": {"plain": FACTORY | {"surrogate": True}, "other": FACTORY | {"factory": "tests.unit.run.nets:small"}},
        "arms": [{"attack": "transfer", "from": "plain", "arm": STUDY["arms"][0]}],
    }
    run(home, **changes)
    assert run(home, **changes)[1].n_skipped > 0
    write_net(home, ROLLED)
    with pytest.raises(StudyError, match=r"models\.plain: answers"):
        run(home, **changes)


class Half(nn.Module):
    """Answers at random; `shift` makes it another model."""

    def __init__(self, shift: int = 0) -> None:
        super().__init__()
        self.shift, self.drop = shift, nn.Dropout(0.2)
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(0)
            self.line = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.line(nn.functional.dropout(x.flatten(1), 0.05, training=True)) * 20
        return answer.roll(self.shift, 1)

    def extra_repr(self) -> str:
        return "the same"


def test_random_models_are_compared_by_unanimous_draws(home: Path) -> None:
    changes = {"models": {"half": {"source": "object", "expect_accuracy": 0}}}
    run(home, {"half": Half()}, **changes)
    assert run(home, {"half": Half()}, **changes)[1].n_skipped == 6
    with pytest.raises(StudyError, match=r"class \d in all of 11 draws, now class \d in all of 11"):
        run(home, {"half": Half(shift=1)}, **changes)


class Rounding(nn.Module):
    """The same net with a little noise on its logits that weights and layers do not show."""

    def __init__(self, noise: float) -> None:
        super().__init__()
        self.noise = noise
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(0)
            self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.net(x)
        # None on the fixed inputs, whose mean is near 0.5.
        dark = (x.mean((1, 2, 3)) < 0.35)[:, None]
        wave = torch.cos(1e4 * x.flatten(1)[:, :10])
        return torch.where(dark, answer + self.noise * wave, answer)


@pytest.mark.parametrize(("noise", "refused"), [(1e-3, False), (0.3, True)])
def test_rounding_is_not_another_model(home: Path, noise: float, refused: bool) -> None:
    changes = {"models": {"net": {"source": "object", "expect_accuracy": 0}}}
    run(home, {"net": Rounding(0.0)}, **changes)
    if refused:
        with pytest.raises(StudyError, match="a logit moved by"):
            run(home, {"net": Rounding(noise)}, **changes)
    else:
        assert run(home, {"net": Rounding(noise)}, **changes)[1].n_skipped == 6


class Centred(Rounding):
    """Its answers depend on its batch mates."""

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.net(x)
        return answer - answer.mean(0)


def test_a_model_that_depends_on_its_batch_resumes(home: Path) -> None:
    changes = {"models": {"net": {"source": "object", "expect_accuracy": 0}}}
    run(home, {"net": Centred(0.0)}, **changes)
    assert run(home, {"net": Centred(0.0)}, **changes)[1].n_skipped == 6


class Failing(Rounding):
    __qualname__ = "Rounding"  # as torch prints it

    def forward(self, x: Tensor) -> Tensor:
        if bool((x.mean((1, 2, 3)) < 0.28).any()):
            raise RuntimeError("too dark")
        answer: Tensor = self.net(x)
        return answer

    def _get_name(self) -> str:
        return "Rounding"


def test_a_model_that_fails_now_is_refused(home: Path) -> None:
    changes = {"models": {"net": {"source": "object", "expect_accuracy": 0}}}
    run(home, {"net": Rounding(0.0)}, **changes)
    with pytest.raises(StudyError, match="recorded an answer, now RuntimeError: too dark"):
        run(home, {"net": Failing(0.0)}, **changes)


def test_whole_shards_are_asked_about_up_to_a_limit(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    compared = resumed.ask_again
    monkeypatch.setattr(
        resumed, "ask_again", lambda *given, **more: asked.append(len(given[1])) or compared(*given, **more)
    )
    monkeypatch.setattr(resumed, "MOST_SAMPLES", 40)
    run(home)
    assert asked == []
    run(home)
    assert asked == [2], "32 samples and 32 more; the third shard is left out"
    write_net(home, SAME)
    _, progress = run(home)
    assert asked == [2, 3], "all, where the source changed"
    assert "96 clean samples" in progress.doubts[0]


def test_another_digest_makes_new_cells_and_is_no_matter_here(home: Path) -> None:
    run(home)
    shutil.copy(home / "nets_of_a_test.py", home / "kept.py")
    write_net(home, PLAIN.replace("self.net(x)", "2 * self.net(x)"))
    assert run(home)[1].n_skipped == 0
