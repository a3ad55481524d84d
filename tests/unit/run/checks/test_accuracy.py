"""A model that is wired up wrongly stops a run before the attacks, with what was measured about it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from advrisk import Study
from advrisk.core.errors import StudyError
from advrisk.core.traits import SourceTraits
from advrisk.parts.models import Loaded, models
from advrisk.run.campaign import run_study
from advrisk.run.dry import dry_run
from advrisk.run.options import Options
from advrisk.study import study_from

IMAGENET = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1), torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
N_CLASSES = 6


def _signs() -> Tensor:
    """One colour per class."""
    return torch.rand(N_CLASSES, 3, 1, 1, generator=torch.Generator().manual_seed(1)).expand(-1, -1, 6, 6)


class Nearest(nn.Module):
    """Names the sign that is nearest to an image, after ImageNet's normalisation; `way` is how it is wired up."""

    def __init__(self, way: str = "right") -> None:
        super().__init__()
        self.way = way
        self.register_buffer("signs", (_signs() - IMAGENET[0]) / IMAGENET[1])
        self.order = [3, 5, 0, 1, 2, 4] if way == "permuted" else [0, 1, 2, 4, 3, 5] if way == "two exchanged" else None

    def forward(self, x: Tensor) -> Tensor:
        x = x.flip(1) if self.way == "reversed" else x / 255 if self.way == "bytes" else x
        if self.way not in ("unnormalised", "stated"):
            x = (x - IMAGENET[0]) / IMAGENET[1]
        scores = -(x[:, None] - self.signs).flatten(2).square().sum(2)
        if self.way == "constant":
            return scores * 0 + torch.arange(N_CLASSES)
        if self.way == "one higher":
            return nn.functional.pad(scores, (1, 0), value=-1e6)
        return scores if self.order is None else scores[:, self.order]


@pytest.fixture(scope="module")
def signs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    generator = torch.Generator().manual_seed(4)
    y = torch.arange(N_CLASSES).repeat(30)
    x = (_signs()[y] + 0.1 * torch.randn(len(y), 3, 6, 6, generator=generator)).clamp(0, 1)
    path = tmp_path_factory.mktemp("data") / "signs.npz"
    np.savez(path, x=x.numpy(), y=y.numpy())
    return path


def study(signs: Path, evaluate: int = 120, **model: Any) -> Any:
    content = {
        "name": "wired",
        "device": "cpu",
        "data": {"source": "npz", "path": str(signs), "bounds": [0, 1], "evaluate": evaluate},
        "models": {"net": {"source": "object"} | model},
        "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.01}],
    }
    return study_from(content)


def refusal(asked: Any, folder: Path, module: nn.Module | None) -> str:
    modules = {} if module is None else {"net": module}
    with pytest.raises(StudyError) as found:
        run_study(asked, folder, options=Options(publish_every_s=0), modules=modules)
    assert not folder.exists(), "what is refused leaves nothing behind"
    with pytest.raises(StudyError) as dry:
        dry_run(asked, folder, modules=modules)
    assert str(dry.value) == str(found.value)
    return str(found.value)


@pytest.mark.parametrize(
    ("way", "settings", "explanation"),
    [
        ("reversed", {}, "measured: with channels reversed (RGB as BGR) the accuracy is 100.0 % (100 samples)"),
        ("bytes", {}, "measured: with inputs × 255 the accuracy is 100.0 % (120 samples)"),
        ("unnormalised", {}, "measured: with mean [0.485, 0.456, 0.406] and std [0.229, 0.224, 0.225] (ImageNet) the"),
        (
            "right",
            {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]},
            "measured: with `mean` and `std` left out the accuracy is 100.0 %",
        ),
        ("permuted", {}, "measured: with labels in another order (chosen on the other half) the accuracy is 100.0 %"),
        ("two exchanged", {}, "with labels in another order (chosen on the other half) the accuracy is 100.0 %"),
        ("one higher", {}, "measured: with labels one higher the accuracy is 100.0 %"),
        ("constant", {}, "likely causes: normalisation (`mean`, `std`), order of channels, scale of inputs"),
    ],
)
def test_what_is_wired_up_wrongly_is_refused_with_what_would_mend_it(
    tmp_path: Path, signs: Path, way: str, settings: dict[str, Any], explanation: str
) -> None:
    message = refusal(study(signs, **settings), tmp_path / "run", Nearest(way))
    assert message.startswith("<study>: models.net: ")
    assert "of 120 clean samples are classified correctly (" in message
    assert explanation in message
    assert message.endswith("write `expect_accuracy: 0` beside its source")


def test_a_right_one_runs_and_a_wrong_one_does_where_the_study_says_so(tmp_path: Path, signs: Path) -> None:
    done = run_study(study(signs, 24), tmp_path / "right", modules={"net": Nearest()})
    assert (done.n_done, done.doubts) == (2, ())
    for share in (0, 0.1, "10 %"):
        asked = study(signs, 24, expect_accuracy=share)
        assert run_study(asked, tmp_path / f"wrong-{share}", modules={"net": Nearest("permuted")}).n_done == 2


def test_few_samples_of_a_guessing_model_do_not_say_enough(tmp_path: Path, signs: Path) -> None:
    assert run_study(study(signs, 6), tmp_path / "run", modules={"net": Nearest("constant")}).n_done == 2


class Careless(Nearest):
    """Right on most samples: it answers class 0 where the first feature is below a limit."""

    def __init__(self, limit: float) -> None:
        super().__init__()
        self.limit = limit

    def forward(self, x: Tensor) -> Tensor:
        careless = (x.flatten(1)[:, 7] * 1e4 % 1 < self.limit)[:, None]
        return torch.where(careless, super().forward(x) * 0 + torch.eye(N_CLASSES)[0], super().forward(x))


def test_less_than_expected_stops_and_slightly_less_is_doubted(tmp_path: Path, signs: Path) -> None:
    asked = study(signs, 180, expect_accuracy="99 %")
    message = refusal(asked, tmp_path / "far", Careless(0.2))
    assert "`expect_accuracy` is 99.0 %, under which so few would be seen with probability" in message
    assert "tried, none significantly better: labels one" in message
    done = run_study(asked, tmp_path / "slightly", modules={"net": Careless(0.05)})
    (doubt,) = done.doubts
    assert "models.net: 17" in doubt
    assert "of 180 clean samples" in doubt
    assert dry_run(asked, tmp_path / "dry", modules={"net": Careless(0.05)}).doubts == (doubt,)


def test_training_notes_are_what_is_expected_of_weights(tmp_path: Path, signs: Path) -> None:
    from safetensors.torch import save_file

    torch.manual_seed(0)
    shape = {"channels": 3, "size": 6, "classes": N_CLASSES}
    from advrisk.parts.models.small import SmallCnn

    save_file(SmallCnn(**shape).state_dict(), tmp_path / "net.safetensors", {"test_accuracy": "0.9500"})
    wanted = {"source": "torch", "factory": "advrisk.parts.models.small:SmallCnn", "args": shape}
    message = refusal(study(signs, 20, **wanted, weights=str(tmp_path / "net.safetensors")), tmp_path / "run", None)
    assert "its training noted 95.0 % on test samples" in message


@pytest.fixture
def label_source() -> Any:
    @models.register("labels-for-test", traits=SourceTraits("tests"))
    def labels(*, way: str) -> Loaded:
        net = Nearest(way)
        return Loaded(lambda x: net(x).argmax(1), way, capability="labels", n_classes=N_CLASSES)

    yield
    del models._parts["labels-for-test"]


def test_models_that_say_classes_only_are_examined_too(tmp_path: Path, signs: Path, label_source: Any) -> None:
    asked = study(signs, source="labels-for-test", way="permuted")
    asked = asked.model_copy(update={"arms": study_from(CORRUPTED | {"models": asked.models}).arms})
    assert "with labels in another order" in refusal(asked, tmp_path / "run", None)


CORRUPTED: dict[str, Any] = {
    "name": "corrupted",
    "data": {"source": "digits", "evaluate": 8},
    "arms": [{"corruption": "blur", "level": 1}],
}


class Noisy(Nearest):
    """Answers at random, from torch's generator."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + 5 * torch.randn(len(x), N_CLASSES)


def test_models_that_answer_at_random_are_examined_and_draw_as_they_would_have(tmp_path: Path, signs: Path) -> None:
    assert "labels in another order" in refusal(study(signs), tmp_path / "wrong", Noisy("permuted"))
    rows = []
    for share in (0, 0.5):
        folder = tmp_path / f"run-{share}"
        run = Study(study(signs, 24, expect_accuracy=share)).run(folder, modules={"net": Noisy()})
        rows.append(run.ledger.query("SELECT sample, arm, prediction, confidence FROM outcomes ORDER BY ALL"))
    assert rows[0].equals(rows[1])


def test_a_model_that_fails_on_samples_leaves_that_to_the_run(tmp_path: Path, signs: Path) -> None:
    class Failing(Nearest):
        def forward(self, x: Tensor) -> Tensor:
            if len(x) > 16:
                raise RuntimeError("too many")
            return super().forward(x)

    assert run_study(study(signs, 24), tmp_path / "run", modules={"net": Failing("permuted")}).n_errors > 0


def test_an_eps_beyond_the_data_is_refused_before_the_model_is_examined(tmp_path: Path, signs: Path) -> None:
    asked = study_from(
        study(signs).model_dump(exclude_unset=True) | {"arms": [{"attack": "fgsm", "norm": "linf", "eps": 8}]}
    )
    with pytest.raises(StudyError, match=r"arms\[0\].eps: found 8 on data in \[0, 1\].*did you mean 8/255"):
        run_study(asked, tmp_path / "run", modules={"net": Nearest("permuted")})
