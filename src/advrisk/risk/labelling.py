"""Human detectors: which size to ask about next, agreement of labellers, and damage by Algorithm 1."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.risk.evasion import BayesianEvasion, Floats
from advrisk.risk.monte_carlo import monte_carlo_from_answers

_NEARLY_BEST = 0.9  # sizes with this share of the best size's information are equally good


def next_size(curve: BayesianEvasion, sizes: ArrayLike, rng: np.random.Generator) -> float:
    """A random one of the `informative_sizes`, as several labellers may answer at once."""
    return float(rng.choice(informative_sizes(curve, sizes)))


def informative_sizes(curve: BayesianEvasion, sizes: ArrayLike) -> Floats:
    """The sizes of nearly the greatest expected information."""
    array = np.asarray(sizes, dtype=np.float64)
    if array.size == 0:
        raise RiskError("there is no size to choose from")
    information = curve.expected_information(array)
    return np.asarray(array[information >= _NEARLY_BEST * information.max()])


@dataclass(frozen=True)
class Agreement:
    """Agreement of labellers about the same pictures."""

    alpha: float | None  # Krippendorff's; None if undefined
    n_units: int  # pictures (one original at about one size) with answers of two or more labellers
    n_labellers: int  # labellers with such answers


def krippendorff_alpha(values: ArrayLike) -> float | None:
    """Krippendorff's alpha for nominal values (labellers, units); nan marks a missing answer.

    alpha = 1 - D_o / D_e (Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability"): D_o is the share of
    unequal pairs within units, D_e that among all values that can be paired. None if nothing can be paired, or if all
    such values are equal: the labellers then had no opportunity to differ.
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2:
        raise RiskError(f"found an array of shape {table.shape}; give values of shape (labellers, units)")
    categories = np.unique(table[~np.isnan(table)])
    counts = (table == categories[:, None, None]).sum(axis=1)  # (categories, units)
    total = counts.sum(axis=0)
    counts, total = counts[:, total >= 2], total[total >= 2]
    of_category, n = counts.sum(axis=1), counts.sum()
    expected = n**2 - (of_category**2).sum()
    if expected == 0:
        return None
    unequal = ((total**2 - (counts**2).sum(axis=0)) / (total - 1)).sum()
    return float(1 - (n - 1) * unequal / expected)


@dataclass(frozen=True, eq=False)
class LabelledDamage:
    """Answers of labellers to samples in a random order, up to the first sample without an answer.

    The value of a sample is 0 if the model resisted, else the share of labellers who noticed nothing.
    """

    model: str
    samples: tuple[str, ...]
    values: Floats
    by_labeller: Mapping[str, float]  # each labeller's share, over the samples that they have reached

    def estimate(self, *, level: float = 0.95) -> Estimate:
        """Share of samples that were broken and went unnoticed.

        With one labeller, the interval is Clopper and Pearson's and does not generalise to others. Several labellers
        are a sample of all possible ones. The interval is then the wider of Gaffke's and a t interval with the
        variances between labellers and between samples.
        """
        if not self.samples:
            raise RiskError(f"{self.model}: found no sample with an answer; answer at least one")
        pooled = monte_carlo_from_answers(self.values, level=level, rng=np.random.default_rng(0))
        shares = np.array(list(self.by_labeller.values()))
        if shares.size < 2:
            return Estimate(pooled.value, pooled.low, pooled.high, level, pooled.n, f"{pooled.method}, one labeller")
        half = self._half_width(shares, level)
        low, high = max(min(pooled.low, pooled.value - half), 0.0), min(max(pooled.high, pooled.value + half), 1.0)
        return Estimate(pooled.value, low, high, level, pooled.n, f"{pooled.method}, {shares.size} labellers")

    def _half_width(self, shares: Floats, level: float) -> float:
        from scipy.special import stdtrit

        n = self.values.size
        between = float(shares.var(ddof=1)) / shares.size
        within = float(self.values.var(ddof=1)) / n if n > 1 else 0.25
        return float(stdtrit(shares.size - 1, (1 + level) / 2)) * float(np.sqrt(between + within))
