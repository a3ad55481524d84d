"""A p-value that may be looked at after every sample: a bet that the risk is at most alpha.

Waudby-Smith & Ramdas, "Estimating means of bounded random variables by betting" (2024). Whoever bets a share of her
wealth on "the next loss is below alpha" owns, after t samples,

    K_t = prod_s (1 + nu_s (alpha - L_s)),    nu_s chosen before L_s is seen, 0 <= nu_s < 1 / (1 - alpha).

Were the risk alpha or more, no way to bet makes her richer on average, and she ever owns 1/zeta with a probability of at
most zeta (Ville). So p_t = min(1, 1 / max_{s <= t} K_s) is valid at every t at once, whenever one stops.

How to bet: a gambler for each share c of a grid bets nu = c / (1 - alpha) all along, and starts with her weight of the
wealth. Together they are one gambler whose nu_s is the mean of theirs, weighted by what each owns: known before L_s. A
gambler is right where the risk is (1 - c) alpha. As c does not depend on alpha, K_t grows with alpha, and the alphas that
are not rejected are an interval.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from advrisk.risk.certificate.counts import Floats, check_rate

SHARES = np.arange(1, 40) / 40
WEIGHTS = np.full(SHARES.size, 1 / SHARES.size)


def betting_p_values(losses_in_order: ArrayLike, alpha: float) -> Floats:
    """p after each sample, never rising; the order must be settled before any loss is known (see `look_order`)."""
    losses = checked_losses(losses_in_order)
    check_rate("alpha", alpha)
    wealth = np.maximum.accumulate(log_wealth(losses, alpha))
    return np.asarray(np.exp(-np.maximum(wealth, 0.0)))


def betting_certified_risk(losses_in_order: ArrayLike, zeta: float, *, looks: Sequence[int] | None = None) -> Floats:
    """The smallest alpha certified at zeta so far, after each sample or at those numbers of samples: never rising.

    An upper bound of the risk that holds at all looks at once with probability 1 - zeta.
    """
    losses = checked_losses(losses_in_order)
    check_rate("zeta", zeta)
    raise NotImplementedError


def log_wealth(losses: Floats, alpha: float) -> Floats:
    """ln K_t after each sample."""
    raise NotImplementedError


def look_order(samples: Sequence[str], seed: int) -> tuple[str, ...]:
    """Samples in the order in which they are looked at: drawn from the seed, whatever order they come in."""
    raise NotImplementedError
