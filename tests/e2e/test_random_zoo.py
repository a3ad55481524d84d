"""Random defences on classifiers that others trained: the risk of a query against an independent Monte Carlo.

`gauss-out` answers argmax(p + sigma n). The reference draws that in torch, 1,000 times for each image, without advrisk;
of attacked images it takes the inputs that the run kept.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from advrisk import Run, Study
from advrisk.ledger.inputs import cell_inputs, read_inputs
from studies import zoo

N, EPS = 120, 0.05
SIGMAS = (0.5, 1.0)
NET, FILE = "mnist_advertorch_lenet5_std", "mnist_test.npz"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (os.environ.get("ADVRISK_ZOO") and os.environ.get("ADVRISK_DATA")),
        reason="needs classifiers in $ADVRISK_ZOO and images in $ADVRISK_DATA",
    ),
]


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with np.load(Path(os.environ["ADVRISK_DATA"]) / FILE, allow_pickle=False) as file:
        x, y = file["x"][:N].astype(np.float32) / 255, file["y"][:N].astype(np.int64)
    path = tmp_path_factory.mktemp("images") / "images.npz"
    np.savez(path, x=x[:, None], y=y)
    return path


@pytest.fixture(scope="module")
def run(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    study = {
        "name": "random",
        "seed": 3,
        "data": {"source": "npz", "path": str(images), "classes": 10, "evaluate": N, "order": "file", "bounds": [0, 1]},
        "models": {"plain": {"source": "object"}},
        "defences": {f"noisy-{sigma:g}": {"of": "plain", "name": "gauss-out", "sigma": sigma} for sigma in SIGMAS},
        "arms": [{"attack": "pgd", "norm": "linf", "eps": EPS, "steps": 10, "keep": "strongest"}],
        "scenarios": {"quiet": {"clean": 1.0}, "attacked": {"pgd": 1.0}},
        "keep_inputs": "all",
    }
    return Study.from_dict(study).run(tmp_path_factory.mktemp("run") / "run", modules={"plain": zoo.net(NET)})


def error_of_a_query(x: Tensor, y: Tensor, sigma: float, draws: int = 1000) -> Any:
    """The share of draws in which argmax(p + sigma n) is not the label, for each image."""
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        p = zoo.net(NET).eval()(x).double().softmax(1)
    wrong = torch.zeros(len(x), dtype=torch.float64)
    for _ in range(draws):
        noise = torch.randn(p.shape, generator=generator, dtype=torch.float64)
        wrong += (p + sigma * noise).argmax(1) != y
    return (wrong / draws).numpy()


def attacked_images(run: Run, model: str, x: Tensor) -> Tensor:
    """What the attack kept; the clean image where it did not attack, as most draws are wrong there already."""
    rows = run.query(
        f"SELECT DISTINCT cell FROM outcomes WHERE model = '{model}' AND kind = 'attack' AND outcome <> 'already_wrong'"
    )["cell"].to_pylist()
    kept = {name: image for cell in rows for name, image in read_inputs(cell_inputs(run.folder, cell)).items()}
    places = {name: int(name.rpartition("/")[2]) for name in kept}
    found = x.clone()
    for name, image in kept.items():
        found[places[name]] = torch.from_numpy(np.asarray(image))
    return found


def majority_error(run: Run, model: str) -> float:
    """The share of clean samples that most of the judge's draws get wrong."""
    sql = f"SELECT avg((outcome = 'success')::DOUBLE) AS v FROM outcomes WHERE model = '{model}' AND kind = 'clean'"
    return float(run.query(sql)["v"][0].as_py())


@pytest.mark.parametrize("sigma", SIGMAS)
def test_the_risk_of_a_query_is_that_of_an_independent_monte_carlo(run: Run, images: Path, sigma: float) -> None:
    model = f"noisy-{sigma:g}"
    with np.load(images) as file:
        x, y = torch.from_numpy(file["x"]), torch.from_numpy(file["y"])
    clean, attacked = (error_of_a_query(shown, y, sigma).mean() for shown in (x, attacked_images(run, model, x)))
    found = run.indicators()
    accuracy = {row.model: row.clean_accuracy for row in run.damage().models}[model]
    robust = {row.model: row.robust_accuracy[EPS] for row in run.damage().models}[model]
    attacked_risk = found.of("attacked").of(model).risk
    for estimate, truth in ((found.of("quiet").of(model).risk, clean), (attacked_risk, attacked)):
        assert estimate.low < truth < estimate.high, f"{estimate}, Monte Carlo {truth:.3f}"
    for estimate, truth in ((accuracy, 1 - clean), (robust, 1 - attacked)):
        assert estimate.low < truth < estimate.high, f"{estimate}, Monte Carlo {truth:.3f}"
    majority = majority_error(run, model)
    assert not accuracy.low < 1 - majority < accuracy.high, f"{accuracy}, by most draws {1 - majority:.3f}"
