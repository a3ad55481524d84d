"""A proportion with its exact interval."""

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate


def proportion(hits: int, n: int, *, level: float = 0.95) -> Estimate:
    """Clopper & Pearson (1934): hits/n with the interval that covers at least `level`, whatever the truth."""
    from scipy.special import betaincinv

    if not 0 <= hits <= n or n == 0:
        raise RiskError(f"a proportion needs 0 <= hits <= n and n > 0, found {hits} of {n}")
    tail = (1 - level) / 2
    low = float(betaincinv(hits, n - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, n - hits, 1 - tail)) if hits < n else 1.0
    return Estimate(hits / n, low, high, level, n, "Clopper-Pearson")
