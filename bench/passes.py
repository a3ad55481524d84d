"""What the runner costs beside the raw passes, and how fast PGD is beside Foolbox's."""

import copy
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from advrisk import Study
from advrisk.engine import Model
from advrisk.ledger import Ledger
from advrisk.run.bench import Workbench
from advrisk.run.campaign import DEFAULTS, set_up
from advrisk.run.executors import InProcess
from advrisk.run.question import plan_study
from bench.timing import best_of

STEPS, EPS, SAMPLES, SHARD = 40, 0.2, 512, 128
REPEATS = 5


def main() -> None:
    """Print the overhead of PGD-40 cells and the throughput against Foolbox, one thread each, interleaved."""
    torch.set_num_threads(1)
    for keep in ("last", "first"):
        study = Study.from_dict(_study(keep))
        with tempfile.TemporaryDirectory(prefix="advrisk-bench-") as folder:
            bench = set_up(study.spec, Path(folder), DEFAULTS)
            model = bench.material.models["hardened"]
            overhead, peer = [], []
            for _ in range(REPEATS):
                forward_s, backward_s = _raw_pass(model, bench)
                wall, n_forward, n_backward, n_judge = _cells(study, bench, Path(folder))
                overhead.append(wall / ((n_forward + n_judge) * forward_s + n_backward * backward_s))
                if keep == "last":
                    peer.append(_foolbox(bench, model) / wall)
            print(f"PGD-40 linf, keep {keep:5}: wall / (counted passes x raw pass) = {statistics.median(overhead):.2f}")
            if peer:
                print(f"PGD-40 linf, all samples to the end: Foolbox / ours = {statistics.median(peer):.2f}", end=" ")
                print("(ours also judges, measures four norms and makes ledger rows)")


def _study(keep: str) -> dict[str, object]:
    return {
        "name": "bench",
        "data": {"source": "mnist-5k", "evaluate": SAMPLES},
        "models": {"hardened": {"source": "demo", "name": "pgd-trained"}},
        "arms": [{"attack": "pgd", "norm": "linf", "eps": EPS, "steps": STEPS, "keep": keep}],
        "keep_inputs": "none",
        "shard": SHARD,
    }


def _raw_pass(model: Model, bench: Workbench) -> tuple[float, float]:
    """Seconds per sample of a bare forward, and of a bare input gradient through it."""
    x = torch.from_numpy(bench.material.data.x[:SHARD])

    def forward() -> Tensor:
        with torch.no_grad():
            return model.answer(x)

    def both() -> None:
        inputs = x.clone().requires_grad_(True)
        torch.autograd.grad(model.answer(inputs).sum(), inputs)

    forward_s, both_s = _mean_of(20, forward) / SHARD, _mean_of(60, both) / SHARD
    return forward_s, both_s - forward_s


def _mean_of(times: int, work: Callable[[], object]) -> float:
    """Mean seconds of a call, under the same load as what it is compared with."""
    began = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - began) / times


def _cells(study: Study, bench: Workbench, folder: Path) -> tuple[float, int, int, int]:
    plan = plan_study(study.spec, Ledger(folder / "ledger"), bench)
    cells = [cell for cell in plan.cells() if cell.arm.kind == "attack"]
    began = time.perf_counter()
    results = [result for result in InProcess(bench).run(cells) if result]
    wall = time.perf_counter() - began
    counts = [
        sum(int(np.sum(result.tables["outcomes"][name].to_numpy())) for result in results)
        for name in ("n_forward", "n_backward", "n_judge")
    ]
    return wall, counts[0], counts[1], counts[2]


def _foolbox(bench: Workbench, model: Model) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import foolbox

        module = copy.deepcopy(model.answer).requires_grad_(True)  # as users hand it over: parameters not frozen
        wrapped = foolbox.PyTorchModel(module, bounds=(0, 1), device="cpu")
        attack = foolbox.attacks.LinfPGD(steps=STEPS, rel_stepsize=2.5 / STEPS)
        data = bench.material.data
        chosen = np.flatnonzero(data.split == "test")[:SAMPLES]
        x, y = torch.from_numpy(data.x[chosen]), torch.from_numpy(data.y[chosen])

        def run() -> None:
            for start in range(0, SAMPLES, SHARD):
                attack(wrapped, x[start : start + SHARD], y[start : start + SHARD], epsilons=EPS)

        return best_of(1, run)


if __name__ == "__main__":
    main()
