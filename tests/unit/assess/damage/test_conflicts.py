"""Numbers that contradict relative damage: of models that answer at random they are shares of queries."""

from dataclasses import dataclass

import numpy as np
import pytest

from advrisk.assess.damage.conflicts import conflict_text
from advrisk.risk.conflicts import Floats, Order, Queries, Stated, TieValues

N, EPS = 100, 0.1


@dataclass(frozen=True)
class Drawn:
    """Every query errs with this probability under attack."""

    share: float

    def measured(self, eps: float) -> bool:
        return eps == EPS

    def broken(self, eps: float) -> Floats:
        assert self.measured(eps)
        return np.full(N, self.share)

    def correct(self, eps: float) -> Floats:
        return 1 - self.broken(eps)


def order(queries: dict[str, Queries], *, targeted: bool = False) -> Order:
    """Most draws call every attacked point of `noisy` a success; those of `plain` are in 70 % of samples."""
    distances = {"noisy": np.full(N, 0.09), "plain": np.where(np.arange(N) < 70, 0.08, np.inf)}
    tied = {"noisy": TieValues(0.4, 0.4, 0.4), "plain": TieValues(0.6, 0.6, 0.6)}
    stated = Stated(sizes=(EPS,), fixed_eps=True, queries=queries, targeted=targeted)
    return Order("noisy", "plain", tied, distances, stated, 0.95)


@pytest.mark.parametrize("targeted", [False, True])
def test_the_share_of_queries_decides_and_no_majority(*, targeted: bool) -> None:
    (opposed,) = order({}, targeted=targeted).conflicts()
    said = f"at 0.1 favours plain ({'70.0 % against 100.0 %' if targeted else '30.0 % against 0.0 %'})"
    assert said in conflict_text(opposed)
    assert order({"noisy": Drawn(0.5)}, targeted=targeted).conflicts() == ()
    (opposed,) = order({"noisy": Drawn(0.9)}, targeted=targeted).conflicts()
    assert f"({'70.0 % against 90.0 %' if targeted else '30.0 % against 10.0 %'})" in conflict_text(opposed)
