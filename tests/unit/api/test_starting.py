"""A study of one's own model: what files show is written down, what they do not show is marked."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from advrisk.api.starting import starter_study
from advrisk.core.errors import DataError, ModelError

NETS = """
from torch import nn

class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(4, 2, bias=False))

class Wide(nn.Linear):
    pass
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of its own name, as modules stay imported, and a file of samples that Net reads."""
    (tmp_path / f"nets_{tmp_path.name}.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    torch.save({"1.weight": torch.tensor([[-1.0, 0, 0, 0], [1.0, 0, 0, 0]])}, "net.pt")
    write_samples()
    return tmp_path


def net(folder: Path, name: str = "Net") -> str:
    return f"nets_{folder.name}:{name}"


def write_samples(name: str = "mine.npz", *, dtype: Any = np.float32, **more: Any) -> Path:
    x = np.random.default_rng(0).uniform(-1, 1, size=(60, 4)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    x = (127.5 * (x + 1)).astype(np.uint8).reshape(60, 2, 2) if dtype == np.uint8 else x
    np.savez(name, **{"x": x, "y": y} | more)
    return Path(name)


def study_of(folder: Path, data: str = "mine.npz", *, model: str = "Net", weights: str | None = "net.pt") -> Any:
    path = None if weights is None else Path(weights)
    return starter_study(folder / "study.yaml", model=net(folder, model), data=Path(data), weights=path)


def test_what_the_files_show_is_written(folder: Path) -> None:
    starter = study_of(folder)
    content = yaml.safe_load(starter.text)
    assert content["data"] == {"source": "npz", "path": "mine.npz", "bounds": [-1, 1], "evaluate": 60}
    model = {"source": "torch", "factory": net(folder), "weights": "net.pt", "expect_accuracy": "100.0 %"}
    assert content["models"] == {"net": model}
    assert starter.summary == f"mine.npz: 60 rows of 4, 2 classes; {net(folder)}: 2 classes, 100.0 % correct"
    assert starter.doubt == ""


def test_what_they_do_not_show_is_marked(folder: Path) -> None:
    write_samples(site=np.array(["a", "b"] * 30))
    starter = study_of(folder)
    for question in ("bounds: x lies in [-0.9", "strata: [site]", "immutable", "mean: [0.5]", "thresholds", "measured"):
        assert any("# ?" in line and question in line for line in starter.text.splitlines()), question
    assert starter.n_unsure == 6


def test_pixels_need_no_bounds_and_sizes_are_those_of_images(folder: Path) -> None:
    write_samples(dtype=np.uint8)
    content = yaml.safe_load(study_of(folder).text)
    assert "bounds" not in content["data"]
    assert content["assess"]["damage"]["thresholds"] == ["2/255", "8/255"]


@pytest.mark.parametrize(
    ("low", "high", "bounds"),
    [(0, 1, [0, 1]), (-0.5, 0.5, [-1, 1]), (3, 200, [0, 255]), (-7, 300, [-7, 300]), (900, 900, [900, 901])],
)
def test_bounds_are_the_usual_ones_that_hold_the_values(
    folder: Path, low: float, high: float, bounds: list[float]
) -> None:
    write_samples(x=np.linspace(low, high, 240, dtype=np.float32).reshape(60, 4))
    assert yaml.safe_load(study_of(folder).text)["data"]["bounds"] == bounds


def test_bounds_of_each_feature_are_taken_from_the_file(folder: Path) -> None:
    write_samples(low=np.full(4, -1.0), high=np.ones(4))
    assert "bounds" not in yaml.safe_load(study_of(folder).text)["data"]


def test_a_layout_that_the_shape_leaves_open_is_guessed_and_marked(folder: Path) -> None:
    write_samples(x=np.zeros((60, 1, 4, 1), dtype=np.uint8))
    starter = study_of(folder)
    assert yaml.safe_load(starter.text)["data"]["layout"] == "nchw"
    assert "# ? layout: guessed from the shape (60, 1, 4, 1)" in starter.text


def test_a_model_that_is_no_better_than_chance_is_doubted_and_states_no_accuracy(folder: Path) -> None:
    write_samples(y=np.arange(60) % 2)
    starter = study_of(folder, weights=None)
    assert "no better than chance" in starter.doubt
    assert "expect_accuracy" not in yaml.safe_load(starter.text)["models"]["net"]
    assert "# ? expect_accuracy" in starter.text
    assert "# ? weights" in starter.text


def test_files_outside_the_folder_of_the_study_are_named_in_full(folder: Path) -> None:
    (folder / "studies").mkdir()
    (folder / "studies" / f"nets_{folder.name}.py").write_text(NETS)
    starter = starter_study(folder / "studies" / "study.yaml", model=net(folder), data=Path("mine.npz"))
    assert yaml.safe_load(starter.text)["data"]["path"] == str(folder.resolve() / "mine.npz")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"model": "Nat"}, "has no 'Nat'; did you mean 'Net'"),
        ({"model": "Wide"}, "missing a required argument: 'in_features'"),
        ({"weights": "no.pt"}, r"no\.pt: there is no such file"),
        ({"weights": "mine.npz"}, "cannot be read as weights"),
    ],
)
def test_a_model_that_cannot_be_loaded_is_refused(folder: Path, more: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message) as raised:
        study_of(folder, **more)
    assert "study.yaml" not in str(raised.value), "there is no such file yet"


def test_a_module_that_is_not_there_is_refused(folder: Path) -> None:
    with pytest.raises(ModelError, match="No module named 'nonets'; the folder of the study"):
        starter_study(folder / "study.yaml", model="nonets:Net", data=Path("mine.npz"))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"images": np.zeros((4, 2, 2)), "y": np.zeros(4, int)}, "has no array 'x'; known: images, y"),
        ({"x": np.zeros((4, 4)), "y": np.zeros(4)}, "y must be one class number per sample"),
        ({"x": np.full((4, 4), np.nan), "y": np.zeros(4, int)}, "is not finite"),
        ({"x": np.array(["a", "b"]), "y": np.zeros(2, int)}, "x must hold real numbers|without bounds; write them"),
        ({"x": np.zeros((4, 4)), "y": np.zeros(3, int)}, "4 inputs but 3 entries"),
    ],
)
def test_samples_that_cannot_be_read_are_refused(folder: Path, arrays: dict[str, Any], message: str) -> None:
    np.savez("odd.npz", **arrays)
    with pytest.raises(DataError, match=message):
        study_of(folder, "odd.npz")


def test_a_file_that_is_no_archive_is_refused(folder: Path) -> None:
    Path("text.npz").write_text("x, y")
    with pytest.raises(DataError, match=r"text\.npz"):
        study_of(folder, "text.npz")
