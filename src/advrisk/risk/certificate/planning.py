"""Sample size of a certificate: the power of n calibration samples, and the n for a required power.

n samples certify if at most m(n) fail (`most_failures`), so the power at a risk r is P(Bin(n, r) <= m(n)). It rises
where m(n) steps up and falls in between, like a sawtooth. So `samples_to_certify` is the smallest n from which on the
power never falls below the required one.
"""

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from advrisk.core.errors import RiskError
from advrisk.risk.certificate.betting import PARTS, SHARES
from advrisk.risk.certificate.counts import MOST, Floats, Ints, check_rate, check_shapes, checked_counts
from advrisk.risk.certificate.p_values import (
    Method,
    checked_method,
    log_binomial_tail,
    log_p,
    most_failures,
    scalar_or_array,
)

_FAR = 1e300  # samples; more would overflow


def power(n: ArrayLike, true_risk: ArrayLike, alpha: float, zeta: float, *, method: Method = "exact") -> Any:
    """Probability that n samples certify a risk of alpha at zeta if the risk is `true_risk`."""
    _, sizes = checked_counts(0, n)
    check_rate("alpha", alpha)
    check_shapes("true_risk", _checked_risk(true_risk), sizes)
    return scalar_or_array(_tail(np.asarray(most_failures(sizes, alpha, zeta, method=method)), sizes, true_risk))


def samples_to_certify(
    true_risk: float, alpha: float, zeta: float, *, power: float = 0.9, method: Method = "exact"
) -> int:
    """The smallest n from which on every number of samples certifies with at least that power.

    With m failures allowed, the power has its minimum just before m + 1 are. So the answer is the first n of the first
    m after which no such minimum is below the power. Minima increase with m up to small steps, so a search around the
    first sufficient one is enough.
    """
    check_rate("power", power)
    check_rate("alpha", alpha)
    check_rate("zeta", zeta)
    checked_method(method)
    if _checked_risk(true_risk).ndim:
        raise RiskError(f"true_risk must be one number, found {true_risk!r}")
    if true_risk >= alpha:
        raise RiskError(f"a true risk of {true_risk:g} is not below alpha = {alpha:g}; no number of samples helps")
    good = _first_good(lambda m: float(_lows(np.array([m]), true_risk, alpha, zeta, method)[0]) >= power)
    reach = 50 + 4 * math.isqrt(good)
    around = np.arange(max(good - reach, 0), good + reach)
    short = np.flatnonzero(_lows(around, true_risk, alpha, zeta, method) < power)
    m = int(around[short[-1]]) + 1 if short.size else int(around[0])
    return int(_first_n(np.array([m]), alpha, zeta, method)[0])


def smallest_n(alpha: float, zeta: float, *, method: Literal["exact", "hoeffding-bentkus", "betting"] = "exact") -> int:
    """The fewest samples that can certify, when none fails: (1 - alpha)^n <= zeta, or more for betting.

    The number may exceed `MOST`.
    """
    check_rate("alpha", alpha)
    check_rate("zeta", zeta)
    about = math.log(zeta) / math.log1p(-alpha)
    if about > _FAR:
        raise RiskError(f"alpha = {alpha:g} is too small for any number of samples; choose a larger one")
    if method == "betting":
        return _first_good(lambda n: _unbroken_wealth(n, alpha) >= -math.log(zeta))
    checked_method(method)
    return math.ceil(about) if about > MOST / 2 else int(_first_n(np.array([0]), alpha, zeta, method)[0])


def _unbroken_wealth(n: int, alpha: float) -> float:
    return float(np.logaddexp.reduce(np.log(PARTS) + float(n) * np.log1p(SHARES * alpha / (1 - alpha))))


def _first_good(good: Any) -> int:
    """The smallest number that meets a (nearly) monotone condition."""
    high = 1
    while not good(high):
        high *= 2
    low = -1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


def _lows(m: Ints, true_risk: float, alpha: float, zeta: float, method: str) -> Floats:
    """Power at the last n with m failures allowed, a local minimum."""
    return _tail(m, _first_n(m + 1, alpha, zeta, method) - 1, true_risk)


def _first_n(m: Ints, alpha: float, zeta: float, method: str) -> Ints:
    """The smallest n at which m failures certify; p decreases in n."""
    low, high = m.copy(), np.full(m.shape, MOST + 1)
    while (high - low > 1).any():
        middle = (low + high) // 2
        enough = log_p(m, middle, np.asarray(alpha), method) <= math.log(zeta)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    if (high > MOST).any():
        raise RiskError(
            f"it takes more than {MOST:,} samples; choose an alpha further above the risk, or a larger zeta"
        )
    return np.asarray(high)


def _tail(m: Ints, n: Ints, risk: ArrayLike) -> Floats:
    """P(Bin(n, risk) <= m); 0 if m is -1, where nothing is certified."""
    risks = _checked_risk(risk)
    inner = np.clip(risks, 1e-300, 1 - 1e-16)
    tail = np.exp(log_binomial_tail(np.maximum(m, 0), n, inner))
    return np.asarray(np.where(m < 0, 0.0, np.where(risks == 1, np.where(m >= n, 1.0, 0.0), tail)))


def _checked_risk(risk: ArrayLike) -> Floats:
    try:
        risks = np.asarray(risk, dtype=np.float64)
    except (TypeError, ValueError):
        raise RiskError(f"a true risk is a number from 0 to 1, found {risk!r}") from None
    if risks.size == 0 or not ((risks >= 0) & (risks <= 1)).all():
        raise RiskError(f"a true risk lies between 0 and 1, found {risk!r}")
    return risks
