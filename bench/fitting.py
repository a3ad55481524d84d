"""Fitting: how long detectors take to learn from 5,000 MNIST images, and to score, beside a pass of the model.

Run: python -m bench fitting. It needs MNIST in $ADVRISK_DATA; a tiny run takes digits that come with scikit-learn. The
model is the convolutional
network of the detection study, trained for one epoch; the attack is PGD in linf at eps 0.1.
"""

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from advrisk.engine.threads import one_thread
from advrisk.ledger.inputs import detector_state
from advrisk.parts import REGISTRIES
from advrisk.run.detectors.fitting import examples, fit_detectors
from advrisk.run.detectors.ready import read_state
from advrisk.run.loading import load_data
from advrisk.run.preparation import add_detectors
from advrisk.run.progress import Progress
from advrisk.run.workbench import Workbench
from advrisk.study import study_from
from studies.nets import ConvNet

LEARN = ("feature-squeezing", "magnet", "nss", "lid", "kd-bu")
FROM_ATTACKS = ("nss", "lid", "kd-bu")


def main(*, tiny: bool = False) -> None:
    """Print seconds, and how many passes of the model over as many inputs would take as long."""
    n_examples, n_scored, batch = (400, 4, 16) if tiny else (5000, 256, 128)
    source: dict[str, Any] = {"source": "mnist", "half": "both", "order": "file"}
    if tiny:
        source = {"source": "digits"}
    elif "ADVRISK_DATA" not in os.environ:
        print("not measured: $ADVRISK_DATA does not name the folder with MNIST")
        return
    learn = [name for name in LEARN if not (tiny and name == "magnet")]  # it refuses so few images
    study = study_from(_study(source | {"evaluate": 10, "train": n_examples}, learn, eps=0.3 if tiny else 0.1))
    data = load_data(study.data, REGISTRIES, study.where)
    train = data.split == "train"
    module = _trained(torch.from_numpy(data.x[train]), torch.from_numpy(data.y[train]), batch)
    with tempfile.TemporaryDirectory() as folder:
        bench = Workbench.set_up(
            study, REGISTRIES, folder=Path(folder), run="bench", device="cpu", data=data, modules={"net": module}
        )
        known = add_detectors(bench, {})
        model = bench.material.models["net"].original
        x = torch.from_numpy(data.x[:n_scored])
        pass_s = _timed(lambda: model.ask(x)) / n_scored
        began = time.perf_counter()
        found = examples(bench, "net", known[-1].arms)
        craft_s = time.perf_counter() - began
        print(f"crafting {len(found.adversarial)} successes from {n_examples} images: {craft_s:.1f} s")
        fit_detectors(bench, known, Progress(0, 0), on_progress=lambda *_: None)
        print(f"{'detector':20} {'fit s':>7} {'passes':>8} {'score ms':>9} {'passes':>8}")
        for one in known:
            path = detector_state(bench.folder, one.id, "net")
            fit_s = float(read_state(path)[1]["fit_s"]) if path.is_file() else 0.0
            score_s = _timed(lambda: bench.detectors[one.id].score(x, model)) / n_scored  # noqa: B023
            fit_passes, score_passes = fit_s / pass_s / n_examples, score_s / pass_s
            print(f"{one.name:20} {fit_s:7.1f} {fit_passes:8.0f} {score_s * 1e3:9.2f} {score_passes:8.0f}")


def _study(data: dict[str, Any], learn: Sequence[str], *, eps: float) -> dict[str, Any]:
    arm = {"attack": "pgd", "norm": "linf", "eps": eps, "keep": "last"}
    return {
        "name": "fitting",
        "device": "cpu",
        "data": data,
        "models": {"net": {"source": "object", "expect_accuracy": 0}},
        "arms": [arm],
        "detectors": [{"name": name, "arms": [arm]} if name in FROM_ATTACKS else name for name in learn],
        "keep_inputs": "none",
        "shard": 250,
    }


def _trained(x: Tensor, y: Tensor, batch: int) -> nn.Module:
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        module = ConvNet(channels=1, size=x.shape[-1], width=16)
        optimiser = torch.optim.Adam(module.parameters(), lr=0.003)
        for rows in torch.randperm(len(x)).split(batch):
            loss = F.cross_entropy(module(x[rows]), y[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return module.eval()


def _timed(work: Any) -> float:
    """The shortest of three times, without slopes, on one thread."""
    times = []
    with one_thread(), torch.no_grad():
        for _ in range(3):
            began = time.perf_counter()
            work()
            times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    main()
