"""The study that faults are injected into: 52 short cells of two linear nets, one of which can be told to misbehave.

A module of nets lies beside it, as a user's would. Its net looks for a file, `misbehave.json`, that says what to do at
which pass; whoever takes the file away first, does it. So a fault strikes once, and the code, which names the model,
stays as it is.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from safetensors.torch import save_file

SIZE, N_CLASSES, N_SAMPLES = 6, 4, 48
ORDERS = "misbehave.json"
MODULE = "nets_to_be_struck"  # no other test has one of that name, which Python would find before
MAX_CELL_S = 3.0  # many times as long as a cell takes, also where other work goes on

NETS = '''
"""A linear net that can be told to misbehave, once."""
import json, os, time
from pathlib import Path
import torch

HERE = Path(__file__).parent

class Net(torch.nn.Linear):
    def __init__(self):
        super().__init__(36, 4)
        self.n_passes = 0

    def forward(self, x):
        answer = super().forward(x.flatten(1))
        self.n_passes += 1
        if (HERE / "misbehave.json").exists():
            return misbehaved(self.n_passes, answer)
        return answer

def misbehaved(n_passes, answer):
    try:
        orders = json.loads((HERE / "misbehave.json").read_text())
        in_worker = os.environ.get("ADVRISK_FAULTS_DRIVER") != str(os.getpid())
        if n_passes < orders["pass"] or (orders["how"] == "hang" and not in_worker):
            return answer
        os.rename(HERE / "misbehave.json", HERE / "misbehaved.json")
    except (OSError, ValueError):  # another process was quicker
        return answer
    how = orders["how"]
    if how == "hang":
        time.sleep(600)
    if how == "raise":
        raise RuntimeError("told to")
    if how == "nan":
        return answer * float("nan")
    if how == "one nan":
        return torch.where(torch.arange(len(answer))[:, None] == 0, torch.full_like(answer, float("nan")), answer)
    if how == "infinite":
        return answer / 0.0
    if how == "fewer rows":
        return answer[:-1]
    if how == "more classes":
        return torch.cat([answer, answer], 1)
    if how == "one number":
        return answer.sum()
    if how == "no tensor":
        return None
    if how == "out of memory":
        raise MemoryError("told to")
    if how == "exit":
        os._exit(9)
    raise AssertionError(how)
'''


@dataclass(frozen=True)
class Studied:
    """A folder with a study, its data, its nets and their weights."""

    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "study.yaml"

    def tell(self, how: str, at_pass: int) -> None:
        """Have the net misbehave once, from the given pass of a process on."""
        (self.folder / ORDERS).write_text(json.dumps({"how": how, "pass": at_pass}), encoding="utf-8")

    def mend(self) -> bool:
        """Let the net behave; whether it did misbehave."""
        (self.folder / ORDERS).unlink(missing_ok=True)
        return (self.folder / "misbehaved.json").exists()


def written(folder: Path, *, max_cell_s: float | None = None) -> Studied:
    """Write the study and all that it names."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    x = rng.random((N_SAMPLES, 1, SIZE, SIZE), dtype=np.float32)
    np.savez(folder / "data.npz", x=x, y=np.arange(N_SAMPLES) % N_CLASSES)
    (folder / f"{MODULE}.py").write_text(NETS, encoding="utf-8")
    for name in ("one", "two"):
        weights = {"weight": rng.normal(size=(N_CLASSES, SIZE * SIZE)) / SIZE, "bias": np.zeros(N_CLASSES)}
        save_file(
            {key: torch.tensor(value, dtype=torch.float32) for key, value in weights.items()},
            folder / f"{name}.safetensors",
        )
    content = _content() | ({} if max_cell_s is None else {"max_cell_s": max_cell_s})
    (folder / "study.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return Studied(folder)


def _content() -> dict[str, Any]:
    pgd = {"attack": "pgd", "norm": "linf", "eps": 0.1, "steps": 10}
    return {
        "name": "faults",
        "seed": 3,
        "data": {"source": "npz", "path": "data.npz", "bounds": [0, 1], "evaluate": N_SAMPLES},
        "models": {
            name: {
                "source": "torch",
                "factory": f"{MODULE}:Net",
                "weights": f"{name}.safetensors",
                "expect_accuracy": 0,
            }
            for name in ("one", "two")
        },
        "success": "prediction",
        "arms": [
            {"attack": "fgsm", "norm": "linf", "eps": 0.1},
            pgd,
            {"attack": "transfer", "from": "one", "arm": pgd | {"keep": "strongest"}},
            {"corruption": "gaussian-noise", "sigma": 0.3, "repeats": 2},
        ],
        "detectors": ["feature-squeezing"],
        "shard": 12,
        "max_load_s": 20,
        "keep_inputs": "all",
        "assess": {"damage": {"norm": "linf", "resamples": 100}},
    }
