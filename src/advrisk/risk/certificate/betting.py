"""A p-value that may be looked at after every sample: a bet that the risk is at most alpha.

Waudby-Smith & Ramdas, "Estimating means of bounded random variables by betting" (2024). Whoever bets a share of her
wealth on "the next loss is below alpha" owns, after t samples,

    K_t = prod_s (1 + nu_s (alpha - L_s)),    nu_s chosen before L_s is seen, 0 <= nu_s < 1 / (1 - alpha).

Were the risk alpha or more, no way to bet makes her richer on average, and she ever owns 1/zeta with a probability of
at most zeta (Ville). So p_t = min(1, 1 / max_{s <= t} K_s) is valid at every t at once, whenever one stops.

How to bet: a gambler for each share c of a grid bets nu = c / (1 - alpha) all along, and starts with her part of the
wealth. Together they are one gambler whose nu_s is the mean of theirs, weighted by what each owns: known before L_s.
The gambler c is right where the risk is (1 - c) alpha; parts fall like c (1 - c) towards both ends. As c does not
depend on alpha, K_t grows with alpha, and the alphas that are not rejected are an interval.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advrisk.core.errors import RiskError
from advrisk.core.seeds import look_key
from advrisk.risk.certificate.counts import Floats, Ints, check_rate
from advrisk.risk.certificate.p_values import smallest_above

SHARES = np.arange(1, 40) / 40
PARTS = SHARES * (1 - SHARES) / np.sum(SHARES * (1 - SHARES))


def betting_p_values(losses_in_order: ArrayLike, alpha: float) -> Floats:
    """p after each sample, never rising; the order must be settled before any loss is known (see `look_order`)."""
    losses = checked_losses(losses_in_order)
    check_rate("alpha", alpha)
    most = np.maximum.accumulate(log_wealth(losses, alpha))
    return np.asarray(np.exp(-np.maximum(most, 0.0)))


def betting_certified_risk(losses_in_order: ArrayLike, zeta: float, *, looks: Sequence[int] | None = None) -> Floats:
    """The smallest alpha certified at zeta so far, after each sample or at those numbers of samples: never rising.

    An upper bound of the risk that holds at all looks at once with probability 1 - zeta. Losses other than 0 and 1 are
    gone through anew at each look: name some looks where there are more than a thousand of them.
    """
    losses = checked_losses(losses_in_order)
    check_rate("zeta", zeta)
    when = _checked_looks(looks, losses.size)
    if np.isin(losses, (0.0, 1.0)).all():
        bounds = _bounds_of_counts(np.cumsum(losses)[when - 1], when, zeta)
    else:
        bounds = np.array([_bound(losses[:t], zeta) for t in when])
    return np.asarray(np.minimum.accumulate(bounds))


def last_before_failures(failed: NDArray[np.bool_]) -> Sequence[int]:
    """The looks that decide a running bound of losses 0 and 1: before each failure, and the last.

    Wealth grows with every sample that holds, whatever alpha is: a look between two of these is bettered by the later.
    """
    before = np.flatnonzero(failed)
    return [*(int(place) for place in before[before > 0]), int(failed.size)]


def log_wealth(losses: Floats, alpha: float) -> Floats:
    """ln K_t after each sample, along the last axis."""
    total = np.full(losses.shape, -np.inf)
    for share, part in zip(SHARES, PARTS, strict=True):
        gains = np.log1p(share / (1 - alpha) * (alpha - losses))
        total = np.logaddexp(total, np.log(part) + np.cumsum(gains, axis=-1))
    return total


def look_order(contents: Mapping[str, str]) -> tuple[str, ...]:
    """Samples (id -> digest of the content) in the order in which they are looked at.

    The contents alone decide it: nobody can choose a seed, a name or an order of the file for the bets it wins. A
    sample's place depends on no loss, and on the others only in that they stand before or behind it.
    """
    return tuple(sorted(contents, key=lambda sample: look_key(contents[sample], sample)))


def checked_losses(losses_in_order: ArrayLike) -> Floats:
    """A list of numbers from 0 to 1."""
    try:
        losses = np.asarray(losses_in_order, dtype=np.float64)
    except (TypeError, ValueError):
        raise RiskError("losses must be numbers from 0 to 1, one for each sample in the order of looking") from None
    if losses.ndim != 1 or losses.size == 0:
        raise RiskError(f"losses must be one number for each sample, found an array of shape {losses.shape}")
    outside = ~((losses >= 0) & (losses <= 1))
    if outside.any():
        raise RiskError(f"losses lie between 0 and 1; that of sample {outside.argmax() + 1} is {losses[outside][0]}")
    return losses


def _bounds_of_counts(failures: Floats, looks: Ints, zeta: float) -> Floats:
    share, part = SHARES[:, None], np.log(PARTS)[:, None]
    lost = part + failures * np.log1p(-share)

    def rejected(alpha: Floats) -> Floats:
        gains = lost + (looks - failures) * np.log1p(share * alpha / (1 - alpha))
        return np.asarray(np.logaddexp.reduce(gains, axis=0) >= -np.log(zeta))

    return smallest_above(rejected, np.zeros(looks.shape), halvings=40)


def _bound(losses: Floats, zeta: float) -> float:
    def rejected(alpha: Floats) -> bool:
        gains = np.log1p(SHARES[:, None] / (1 - alpha) * (alpha - losses)).sum(axis=1)
        return bool(np.logaddexp.reduce(np.log(PARTS) + gains) >= -np.log(zeta))

    return float(smallest_above(rejected, np.array(0.0), halvings=40))


def _checked_looks(looks: Sequence[int] | None, n: int) -> Ints:
    try:
        when = np.arange(1, n + 1) if looks is None else np.asarray(looks)
    except ValueError:
        raise RiskError(f"looks must be numbers of samples, found {looks!r}") from None
    if when.ndim != 1 or when.size == 0 or not np.issubdtype(when.dtype, np.integer):
        raise RiskError(f"looks must be numbers of samples, found {looks!r}")
    if when[0] < 1 or when[-1] > n or (np.diff(when) <= 0).any():
        raise RiskError(f"looks must ascend from at least 1 to at most {n}, the number of losses; found {looks!r}")
    return when.astype(np.int64)
