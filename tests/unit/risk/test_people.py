"""Damage as people saw it, against simulated labellers."""

import numpy as np
import pytest

from advrisk.risk.labelling import LabelledDamage


@pytest.mark.parametrize(("labellers", "spread"), [(2, 0.5), (4, 0.5), (3, 0.0)])
def test_the_interval_holds_the_share_of_all_who_could_have_been_asked(labellers: int, spread: float) -> None:
    """People whose log thresholds differ by `spread` look at 100 samples; the truth is that of everybody."""
    rng, missed = np.random.default_rng(0), 0
    sizes, people = np.exp(0.8 * rng.standard_normal(200_000)), np.exp(spread * rng.standard_normal(200_000))
    truth = float(np.mean(1 / (1 + (sizes / people) ** 3)))
    for _ in range(300):
        found = simulated(labellers, spread, rng).estimate()
        missed += not found.low <= truth <= found.high
    assert missed <= 27, "more than 5 % of 300 by chance once in a thousand times"


def simulated(labellers: int, spread: float, rng: np.random.Generator) -> LabelledDamage:
    sizes = np.exp(0.8 * rng.standard_normal(100))
    middles = np.exp(spread * rng.standard_normal(labellers))
    unseen = rng.random((labellers, 100)) < 1 / (1 + (sizes / middles[:, None]) ** 3)
    shares = {str(place): float(of_one.mean()) for place, of_one in enumerate(unseen)}
    return LabelledDamage("m", tuple(map(str, range(100))), unseen.mean(axis=0), shares)
