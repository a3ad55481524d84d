"""The time at which a device has done what it was asked to do."""

import time

import torch
from torch import Tensor


def now(of: Tensor) -> float:
    """Seconds of a clock that only goes forward, once the tensor's device is done."""
    if of.device.type != "cpu":
        torch.accelerator.synchronize(of.device)
    return time.perf_counter()
