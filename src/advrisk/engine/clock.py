"""Wall-clock time after a device has finished its queued work."""

import time

import torch
from torch import Tensor


def now(of: Tensor) -> float:
    """Seconds on a monotonic clock, read once the tensor's device is idle."""
    if of.device.type != "cpu":
        torch.accelerator.synchronize(of.device)
    return time.perf_counter()
