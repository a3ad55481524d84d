"""Damage as people saw it: Algorithm 1 with human detectors.

Samples are walked through in a random order. Those that the model resisted do no damage and need no answer; of the
others, people were shown the nearest success, or the clean input if the model has that wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.risk.evasion import Floats
from advrisk.risk.monte_carlo import monte_carlo_from_answers


@dataclass(frozen=True, eq=False)
class SeenByPeople:
    """Samples in a random order, up to the first that nobody has answered yet.

    The value of a sample is 0 if the model resisted, else the share of labellers who noticed nothing.
    """

    model: str
    samples: tuple[str, ...]
    values: Floats
    of_labellers: Mapping[str, float]  # the same share of each, over the samples that they have come to

    def estimate(self, *, level: float = 0.95) -> Estimate:
        """The share of samples that were broken and not noticed.

        Of one labeller the interval is Clopper and Pearson's, and says nothing about others. With several, those
        who were asked stand for all who could have been: a t interval with the variance between them and that
        between samples, or Gaffke's where that is wider.
        """
        if not self.samples:
            raise RiskError(f"{self.model}: no sample was walked yet; answer at least one")
        found = monte_carlo_from_answers(self.values, level=level, rng=np.random.default_rng(0))
        shares = np.array(list(self.of_labellers.values()))
        if shares.size < 2:
            return Estimate(found.value, found.low, found.high, level, found.n, f"{found.method}, one labeller")
        half = self._half_width(shares, level)
        low, high = max(min(found.low, found.value - half), 0.0), min(max(found.high, found.value + half), 1.0)
        return Estimate(found.value, low, high, level, found.n, f"{found.method}, {shares.size} labellers")

    def _half_width(self, shares: Floats, level: float) -> float:
        from scipy.special import stdtrit

        n = self.values.size
        between = float(shares.var(ddof=1)) / shares.size
        within = float(self.values.var(ddof=1)) / n if n > 1 else 0.25
        return float(stdtrit(shares.size - 1, (1 + level) / 2)) * float(np.sqrt(between + within))
