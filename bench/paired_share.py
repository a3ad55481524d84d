"""How often a new model that is worse by exactly the margin is called not worse, over all tables of pairs.

Run: python -m bench paired_share. Every table of n pairs is looked at, so nothing is drawn; the share of pairs that
differ is varied over a grid, and the worst is told. Tango's score test (1998) stands beside what is used.
"""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from advrisk.risk.paired_share import at_least

TAIL = 0.025
SIZES = (5, 10, 20, 40, 80)
MARGINS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)

Test = Callable[[int, int, int, float], float]  # up, down, n, margin -> p
Floats = NDArray[np.float64]


def main(*, tiny: bool = False) -> None:
    """Print the worst share of wrong passes for each number of pairs and margin."""
    print(f"Called not worse at a difference of exactly the margin; at most {TAIL} is allowed\n")
    for name, test in (("Gaffke (used)", at_least), ("Tango's score", tango)):
        print(f"{name:16}" + "".join(f"  margin {margin:4g}" for margin in MARGINS))
        for n in SIZES[:1] if tiny else SIZES:
            worst = [wrong_passes(test, n, margin)[0] for margin in MARGINS]
            print(f"  n = {n:10}" + "".join(f"{share:13.4f}" for share in worst), flush=True)


def wrong_passes(test: Test, n: int, margin: float, *, tail: float = TAIL) -> tuple[float, float]:
    """The worst share of wrong passes at P(up) - P(down) = margin, and the P(down) at which it is."""
    up, down = _tables(n)
    passes = np.array([test(int(u), int(d), n, margin) <= tail for u, d in zip(up, down, strict=True)])
    shares = [(float(_probability(n, q + margin, q)[passes].sum()), q) for q in _grid(margin)]
    return max(shares)


def missed(limits: Callable[[int, int, int], tuple[float, float]], n: int, p_up: float, p_down: float) -> float:
    """The share of tables whose interval misses the true difference."""
    up, down = _tables(n)
    found = np.array([limits(int(u), int(d), n) for u, d in zip(up, down, strict=True)])
    truth = p_up - p_down
    outside = (found[:, 0] > truth + 1e-9) | (found[:, 1] < truth - 1e-9)
    return float(_probability(n, p_up, p_down)[outside].sum())


def tango(up: int, down: int, n: int, margin: float) -> float:
    """The one-sided p-value of D >= margin by the score test, P(down) being estimated under that constraint."""
    if n * margin == up - down:
        return 0.5
    q = tango_estimate(up, down, n, margin)
    variance = n * (2 * q + margin * (1 - margin))
    gap = up - down - n * margin
    if variance <= 0:
        return float(gap > 0)
    return 0.5 * math.erfc(-gap / math.sqrt(2 * variance))


def tango_estimate(up: int, down: int, n: int, margin: float) -> float:
    """The most likely P(down) if P(up) = P(down) + margin: the root of a quadratic equation."""
    a, b, c = 2 * n, -up - down + (2 * n - up + down) * margin, -down * margin * (1 - margin)
    return (math.sqrt(max(b * b - 4 * a * c, 0.0)) - b) / (2 * a)


def _grid(margin: float) -> Floats:
    """Values of P(down), close to each other near 0."""
    most = (1 - margin) / 2
    return np.unique(np.concatenate([np.linspace(0, most, 120), np.geomspace(1e-4, most, 60)]))


@cache
def _tables(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    up, down = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    possible = up + down <= n
    return up[possible], down[possible]


def _probability(n: int, p_up: float, p_down: float) -> Floats:
    """Of each table."""
    from scipy.special import gammaln, xlogy

    up, down = _tables(n)
    same = n - up - down
    ways = gammaln(n + 1) - gammaln(up + 1) - gammaln(down + 1) - gammaln(same + 1)
    logs = ways + xlogy(up, p_up) + xlogy(down, p_down) + xlogy(same, max(1 - p_up - p_down, 0.0))
    return np.asarray(np.exp(logs))


if __name__ == "__main__":
    main()
