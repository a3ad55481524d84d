"""Two failures of one branch, and inputs that were kept."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advrisk.assess.failures.modes import Failure, FailureMode, FailureModes
from advrisk.core.estimate import Estimate
from advrisk.ledger.inputs import cell_inputs, shard_inputs, write_inputs

SEVEN = Failure(
    sample="s/7", label=7, arm="rain,level=3", repeat=0, loss=1.0, branch_loss=0.75, clean_loss=0.0, prediction=1,
    confidence=0.981, clean_prediction=7, outcome="success", cell="abcd", shard="ef",
)  # fmt: skip
CLEAN = replace(SEVEN, sample="s/3", label=3, arm="clean", clean_loss=1.0, branch_loss=1.0, cell="0123")
RISK = Estimate(0.25, 0.2, 0.3, 0.95, 40, "")


def modes(*failures: Failure, path: str = "wet.rain", share: float | None = 0.4) -> FailureModes:
    mode = FailureMode("net", path, 0.3, RISK, RISK, share, "mean", 40, 12, 9, failures)
    return FailureModes("town", "misclassified", (0.0, 1.0), ("net",), (mode,))


def keep(folder: Path, clean: NDArray[Any], perturbed: NDArray[Any]) -> None:
    write_inputs(shard_inputs(folder, "ef"), ["s/7", "s/3"], np.stack([clean, clean]))
    write_inputs(cell_inputs(folder, "abcd"), ["s/7"], perturbed[None])


def image(level: float, *, channels: int = 1) -> NDArray[Any]:
    return np.full((channels, 8, 6), level, dtype=np.float32)
