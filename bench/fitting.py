"""Fitting: how long detectors take to learn from 5,000 MNIST images, and to score, beside a pass of the model.

Run: python -m bench fitting. It needs MNIST in $ADVRISK_DATA, and takes some minutes. The model is the convolutional
network of the detection study, trained for one epoch; the attack is PGD in linf at eps 0.1.
"""

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from advrisk.engine.threads import one_thread
from advrisk.ledger.inputs import detector_state
from advrisk.parts import REGISTRIES
from advrisk.run.bench import Workbench
from advrisk.run.campaign import know_detectors
from advrisk.run.detectors import read_state
from advrisk.run.fitting import examples, fit_detectors
from advrisk.run.loading import load_data
from advrisk.study import study_from
from studies.nets import ConvNet

N_EXAMPLES = 5000
N_SCORED = 256
_ARM = {"attack": "pgd", "norm": "linf", "eps": 0.1, "keep": "last"}
_STUDY: dict[str, Any] = {
    "name": "fitting",
    "device": "cpu",
    "data": {"source": "mnist", "half": "both", "evaluate": 10, "train": N_EXAMPLES, "order": "file"},
    "models": {"net": {"source": "object", "expect_accuracy": 0}},
    "arms": [_ARM],
    "detectors": [
        "feature-squeezing",
        "magnet",
        {"name": "nss", "arms": [_ARM]},
        {"name": "lid", "arms": [_ARM]},
        {"name": "kd-bu", "arms": [_ARM]},
    ],
    "keep_inputs": "none",
    "shard": 250,
}


def main() -> None:
    """Print seconds, and how many passes of the model over as many inputs would take as long."""
    if "ADVRISK_DATA" not in os.environ:
        print("not measured: $ADVRISK_DATA does not name the folder with MNIST")
        return
    study = study_from(_STUDY)
    data = load_data(study.data, REGISTRIES, study.where)
    train = data.split == "train"
    module = _trained(torch.from_numpy(data.x[train]), torch.from_numpy(data.y[train]))
    with tempfile.TemporaryDirectory() as folder:
        bench = Workbench.set_up(
            study, REGISTRIES, folder=Path(folder), run="bench", device="cpu", data=data, modules={"net": module}
        )
        known = know_detectors(bench, {})
        model = bench.material.models["net"].original
        x = torch.from_numpy(data.x[:N_SCORED])
        pass_s = _timed(lambda: model.ask(x)) / N_SCORED
        began = time.perf_counter()
        found = examples(bench, "net", known[-1].arms)
        craft_s = time.perf_counter() - began
        print(f"crafting {len(found.adversarial)} successes from {N_EXAMPLES} images: {craft_s:.1f} s")
        fit_detectors(bench, known, on_progress=lambda *_: None)
        print(f"{'detector':20} {'fit s':>7} {'passes':>8} {'score ms':>9} {'passes':>8}")
        for one in known:
            path = detector_state(bench.folder, one.id, "net")
            fit_s = float(read_state(path)[1]["fit_s"]) if path.is_file() else 0.0
            score_s = _timed(lambda: bench.detectors[one.id].score(x, model)) / N_SCORED  # noqa: B023
            fit_passes, score_passes = fit_s / pass_s / N_EXAMPLES, score_s / pass_s
            print(f"{one.name:20} {fit_s:7.1f} {fit_passes:8.0f} {score_s * 1e3:9.2f} {score_passes:8.0f}")


def _trained(x: Tensor, y: Tensor) -> nn.Module:
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        module = ConvNet(channels=1, size=28, width=16)
        optimiser = torch.optim.Adam(module.parameters(), lr=0.003)
        for rows in torch.randperm(len(x)).split(128):
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
