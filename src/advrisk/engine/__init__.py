"""Probe, Space, objectives and norms: how attacks propose points and the probe queries and remembers them.

Only this package, `parts` and `run` import torch.
"""

from advrisk.engine.goal import Goal
from advrisk.engine.model import Model, Reply, padded, predicted
from advrisk.engine.noise import Draw, Noise
from advrisk.engine.probe import OutOfTimeError, Pass, Probe
from advrisk.engine.space import Space, within_rounding
from advrisk.engine.suspicion import Suspicion
from advrisk.engine.task import Task
from advrisk.engine.trust import Trust

__all__ = [
    "Draw",
    "Goal",
    "Model",
    "Noise",
    "OutOfTimeError",
    "Pass",
    "Probe",
    "Reply",
    "Space",
    "Suspicion",
    "Task",
    "Trust",
    "padded",
    "predicted",
    "within_rounding",
]
