"""The step of `slide`, against a linear program that knows nothing of it."""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from advrisk.engine import Space
from advrisk.parts.attacks.slide import nearest_in_reach

REACH = 0.2


def least_distance(x, x0, slope, gap, scale):
    """min Σ (p + q) / scale with x' = x0 + p − q, slope·(x' − x) ≥ gap, x' in the box around x and in [0, 1]."""
    low, high = np.maximum(x - REACH, 0), np.minimum(x + REACH, 1)
    both = np.block([[np.eye(len(x)), -np.eye(len(x))], [-np.eye(len(x)), np.eye(len(x))]])
    above = np.concatenate([-slope, slope])[None]
    solved = linprog(
        np.concatenate([1 / scale, 1 / scale]),
        A_ub=np.vstack([both, above]),
        b_ub=np.concatenate([high - x0, x0 - low, [slope @ (x0 - x) - gap]]),
    )
    return solved.fun if solved.status == 0 else None


@pytest.mark.parametrize("scaled", [False, True])
def test_the_step_solves_the_linear_program(scaled):
    numbers = np.random.default_rng(0)
    n_reached = 0
    for _ in range(60):
        x, x0, slope = numbers.random(8), numbers.random(8), numbers.normal(size=8)
        scale = numbers.uniform(0.5, 2, 8) if scaled else np.ones(8)
        gap = numbers.uniform(-0.5, 1)
        space = Space(torch.zeros(8).double(), torch.ones(8).double(), torch.from_numpy(scale))
        rows = (torch.from_numpy(part)[None] for part in (x, x0, slope))
        found = nearest_in_reach(space, *rows, torch.tensor([gap], dtype=torch.float64), REACH)[0].numpy()
        assert (np.abs(found - x) <= REACH + 1e-12).all()
        assert found.min() >= -1e-12
        assert found.max() <= 1 + 1e-12
        least = least_distance(x, x0, slope, gap, scale)
        if least is None:  # as far up the slope as the box allows
            assert slope @ found == pytest.approx(
                np.where(slope > 0, np.minimum(x + REACH, 1), np.maximum(x - REACH, 0)) @ slope
            )
        else:
            n_reached += 1
            assert slope @ (found - x) >= gap - 1e-9
            assert (np.abs(found - x0) / scale).sum() == pytest.approx(least)
    assert 20 < n_reached < 60
