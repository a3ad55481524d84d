"""What to ask people next, how far they agree, and damage as they saw it (Algorithm 1 with human detectors)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.risk.evasion import BayesianEvasion, Floats
from advrisk.risk.monte_carlo import monte_carlo_from_answers

_NEARLY_BEST = 0.9  # sizes that promise so much of the best one's information are as good


def next_size(curve: BayesianEvasion, sizes: ArrayLike, rng: np.random.Generator) -> float:
    """A size of nearly the greatest expected information: not always the same one, as several may be asked at once."""
    array = np.asarray(sizes, dtype=np.float64)
    if array.size == 0:
        raise RiskError("there is no size to choose from")
    information = curve.expected_information(array)
    return float(rng.choice(array[information >= _NEARLY_BEST * information.max()]))


@dataclass(frozen=True)
class Agreement:
    """How far labellers say the same of the same."""

    alpha: float | None  # None where it is not defined
    n_units: int  # pictures (one original at about one size) that two or more labellers answered
    n_labellers: int  # who answered such


def krippendorff_alpha(values: ArrayLike) -> float | None:
    """Krippendorff's alpha for nominal values (labellers, units); nan where a labeller did not answer.

    alpha = 1 - D_o / D_e (Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability"): D_o is the share of
    unlike pairs within units, D_e that among all values that can be paired. None if nothing can be paired, or if
    all such values are the same: then nothing says whether labellers could have differed.
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2:
        raise RiskError(f"values of (labellers, units) are needed, found an array of shape {table.shape}")
    categories = np.unique(table[~np.isnan(table)])
    counts = (table == categories[:, None, None]).sum(axis=1)  # (categories, units)
    total = counts.sum(axis=0)
    counts, total = counts[:, total >= 2], total[total >= 2]
    of_category, n = counts.sum(axis=1), counts.sum()
    expected = n**2 - (of_category**2).sum()
    if expected == 0:
        return None
    unlike = ((total**2 - (counts**2).sum(axis=0)) / (total - 1)).sum()
    return float(1 - (n - 1) * unlike / expected)


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
