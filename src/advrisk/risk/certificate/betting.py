"""Anytime-valid p-values: a bet that the risk is at most alpha, tested after every sample.

Waudby-Smith & Ramdas, "Estimating means of bounded random variables by betting" (2024). A gambler who bets a share of
her wealth on "the next loss is below alpha" has, after t samples, the wealth

    K_t = prod_s (1 + nu_s (alpha - L_s)),    nu_s chosen before L_s is observed, 0 <= nu_s < 1 / (1 - alpha).

If the risk is alpha or more, no betting strategy gains on average, and her wealth ever reaches 1/zeta with probability
at most zeta (Ville). So p_t = min(1, 1 / max_{s <= t} K_s) is valid at all t simultaneously, with any stopping rule.

The strategy is a mixture. For each c of a grid, a gambler bets nu = c / (1 - alpha) throughout, with a part of the
initial wealth. Together they are one gambler whose nu_s is the mean of theirs, weighted by wealth before L_s. Gambler c
is optimal for a risk of (1 - c) alpha; the parts are proportional to c (1 - c). As c does not depend on alpha, K_t
grows with alpha, and the alphas that are not rejected form an interval.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advrisk.core.errors import RiskError
from advrisk.core.seeds import calibration_key
from advrisk.risk.certificate.counts import Floats, Ints, check_rate
from advrisk.risk.certificate.p_values import smallest_above

SHARES = np.arange(1, 40) / 40
PARTS = SHARES * (1 - SHARES) / np.sum(SHARES * (1 - SHARES))


def betting_p_values(losses_in_order: ArrayLike, alpha: float) -> Floats:
    """Non-increasing p-values after each sample; fix the order before observing any loss (see `calibration_order`)."""
    losses = checked_losses(losses_in_order)
    check_rate("alpha", alpha)
    most = np.maximum.accumulate(log_wealth(losses, alpha))
    return np.asarray(np.exp(-np.maximum(most, 0.0)))


def betting_certified_risk(losses_in_order: ArrayLike, zeta: float, *, at_n: Sequence[int] | None = None) -> Floats:
    """The smallest alpha certified at zeta so far, after each sample or at the numbers of samples `at_n`.

    This non-increasing upper bound of the risk holds at all times simultaneously with probability 1 - zeta. Losses
    other than 0 and 1 take time proportional to the square of their number: give `at_n` for more than a thousand.
    """
    losses = checked_losses(losses_in_order)
    check_rate("zeta", zeta)
    times = _checked_times(at_n, losses.size)
    if np.isin(losses, (0.0, 1.0)).all():
        bounds = _bounds_of_counts(np.cumsum(losses)[times - 1], times, zeta)
    else:
        bounds = np.array([_bound(losses[:t], zeta) for t in times])
    return np.asarray(np.minimum.accumulate(bounds))


def last_before_failures(failed: NDArray[np.bool_]) -> Sequence[int]:
    """The numbers of samples that determine a running bound of losses 0 and 1: before each failure, and the last.

    Wealth grows with every sample that does not fail, for any alpha, so the bound is tightest just before a failure.
    """
    before = np.flatnonzero(failed)
    return [*(int(n) for n in before[before > 0]), int(failed.size)]


def log_wealth(losses: Floats, alpha: float) -> Floats:
    """ln K_t after each sample, along the last axis."""
    total = np.full(losses.shape, -np.inf)
    for share, part in zip(SHARES, PARTS, strict=True):
        gains = np.log1p(share / (1 - alpha) * (alpha - losses))
        total = np.logaddexp(total, np.log(part) + np.cumsum(gains, axis=-1))
    return total


def calibration_order(contents: Mapping[str, str]) -> tuple[str, ...]:
    """Samples (id -> digest of the content) in the order in which they are tested.

    The contents alone determine the order, so it cannot be tuned by a seed, names or the order of a file. It does not
    depend on losses, and removing samples does not reorder the others.
    """
    return tuple(sorted(contents, key=lambda sample: calibration_key(contents[sample], sample)))


def checked_losses(losses_in_order: ArrayLike) -> Floats:
    """Losses as an array, each between 0 and 1."""
    try:
        losses = np.asarray(losses_in_order, dtype=np.float64)
    except (TypeError, ValueError):
        raise RiskError("losses must be numbers from 0 to 1, one for each sample in calibration order") from None
    if losses.ndim != 1 or losses.size == 0:
        raise RiskError(f"losses must be one number for each sample, found an array of shape {losses.shape}")
    outside = ~((losses >= 0) & (losses <= 1))
    if outside.any():
        raise RiskError(f"losses lie between 0 and 1; that of sample {outside.argmax() + 1} is {losses[outside][0]}")
    return losses


def _bounds_of_counts(failures: Floats, n: Ints, zeta: float) -> Floats:
    share, part = SHARES[:, None], np.log(PARTS)[:, None]
    lost = part + failures * np.log1p(-share)

    def rejected(alpha: Floats) -> Floats:
        gains = lost + (n - failures) * np.log1p(share * alpha / (1 - alpha))
        return np.asarray(np.logaddexp.reduce(gains, axis=0) >= -np.log(zeta))

    return smallest_above(rejected, np.zeros(n.shape), halvings=40)


def _bound(losses: Floats, zeta: float) -> float:
    def rejected(alpha: Floats) -> bool:
        gains = np.log1p(SHARES[:, None] / (1 - alpha) * (alpha - losses)).sum(axis=1)
        return bool(np.logaddexp.reduce(np.log(PARTS) + gains) >= -np.log(zeta))

    return float(smallest_above(rejected, np.array(0.0), halvings=40))


def _checked_times(at_n: Sequence[int] | None, n: int) -> Ints:
    try:
        times = np.arange(1, n + 1) if at_n is None else np.asarray(at_n)
    except ValueError:
        raise RiskError(f"at_n must be numbers of samples, found {at_n!r}") from None
    if times.ndim != 1 or times.size == 0 or not np.issubdtype(times.dtype, np.integer):
        raise RiskError(f"at_n must be numbers of samples, found {at_n!r}")
    if times[0] < 1 or times[-1] > n or (np.diff(times) <= 0).any():
        raise RiskError(f"at_n must ascend from at least 1 to at most {n}, the number of losses; found {at_n!r}")
    return times.astype(np.int64)
