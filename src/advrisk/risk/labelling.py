"""What to ask people next, and how far they agree."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from advrisk.core.errors import RiskError
from advrisk.risk.evasion import BayesianEvasion

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
