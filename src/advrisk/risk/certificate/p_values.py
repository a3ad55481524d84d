"""p-values of "the risk is above alpha" from a count of failures, and the smallest alpha that a count certifies.

Angelopoulos et al., "Learn then Test" (2021), as in PROSAC, on integers: k of n samples failed.

    exact               P(Bin(n, alpha) <= k)
    hoeffding-bentkus   min(exp(-n h(min(k/n, alpha), alpha)), e P(Bin(n, alpha) <= k)),
                        h(r, a) = r ln(r/a) + (1 - r) ln((1 - r)/(1 - a))

Both are valid: at a risk of alpha or more, p <= zeta has probability at most zeta. The first is exact for losses of 0
and 1 and never larger than the second, whose two parts bound it from above.
"""

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from advrisk.core.errors import RiskError
from advrisk.core.names import did_you_mean
from advrisk.risk.certificate.counts import Floats, Ints, check_rate, check_shapes, checked_counts

Method = Literal["exact", "hoeffding-bentkus"]
METHODS: tuple[Method, ...] = get_args(Method)

_SMALL = 1e-290  # smaller tails are summed in logarithms


def p_value(failures: ArrayLike, n: ArrayLike, alpha: ArrayLike, *, method: Method = "exact") -> Any:
    """p-value of "the risk is above alpha": a float, or an array if an argument is one."""
    return scalar_or_array(np.minimum(np.exp(_log_p(failures, n, alpha, method)), 1.0))


def log_p_value(failures: ArrayLike, n: ArrayLike, alpha: ArrayLike, *, method: Method = "exact") -> Any:
    """Natural logarithm of `p_value`, finite even if that underflows."""
    return scalar_or_array(_log_p(failures, n, alpha, method))


def certified_risk(failures: ArrayLike, n: ArrayLike, zeta: ArrayLike, *, method: Method = "exact") -> Any:
    """The smallest alpha at which p <= zeta: an upper bound of the risk that holds with probability 1 - zeta.

    p decreases in alpha, so the number is unique. `exact` gives Clopper and Pearson's (1934) upper bound. It is 1 if
    all samples failed.
    """
    counts, sizes = checked_counts(failures, n)
    check_rate("zeta", zeta, several=True)
    check_shapes("zeta", zeta, counts, sizes)
    level = np.asarray(zeta, dtype=np.float64)
    if checked_method(method) == "exact":
        return scalar_or_array(_binomial_bound(counts, sizes, level))
    bentkus = _binomial_bound(counts, sizes, level / np.e)
    return scalar_or_array(np.minimum(bentkus, _hoeffding_bound(counts, sizes, level)))


def most_failures(n: ArrayLike, alpha: ArrayLike, zeta: float, *, method: Method = "exact") -> Any:
    """The most failures with which n samples certify a risk of alpha at zeta; -1 if even 0 are too many."""
    _, sizes = checked_counts(0, n)
    check_rate("zeta", zeta)
    check_rate("alpha", alpha, several=True)
    check_shapes("alpha", alpha, sizes)
    rates = np.asarray(alpha, dtype=np.float64)
    shape = np.broadcast_shapes(sizes.shape, rates.shape)
    low, high = np.full(shape, -1, dtype=np.int64), np.broadcast_to(sizes, shape).copy()  # low certifies, high does not
    while (high - low > 1).any():
        middle = np.maximum((low + high) // 2, 0)
        certifies = (high - low > 1) & (_log_p(middle, sizes, rates, method) <= np.log(zeta))
        low, high = np.where(certifies, middle, low), np.where(certifies | (high - low <= 1), high, middle)
    return int(low) if low.ndim == 0 else low


def checked_method(method: str) -> str:
    """The method, or a RiskError that suggests the nearest name."""
    if method not in METHODS:
        raise RiskError(f"unknown method {method!r} of a p-value; {did_you_mean(method, METHODS)}")
    return method


def _log_p(failures: ArrayLike, n: ArrayLike, alpha: ArrayLike, method: str) -> Floats:
    counts, sizes = checked_counts(failures, n)
    check_rate("alpha", alpha, several=True)
    check_shapes("alpha", alpha, counts, sizes)
    rates = np.asarray(alpha, dtype=np.float64)
    checked_method(method)
    if counts.ndim and sizes.ndim == rates.ndim == 0 and (least := counts.min()) + counts.size > counts.max():
        table = log_p(np.arange(least, counts.max() + 1), sizes, rates, method)  # many counts are equal
        return np.asarray(table[counts - least])
    return log_p(counts, sizes, rates, method)


def log_p(k: Ints, n: Ints, alpha: Floats, method: str) -> Floats:
    """ln p of checked counts."""
    tail = log_binomial_tail(k, n, alpha)
    if method == "exact":
        return tail
    return np.asarray(np.minimum(np.minimum(log_hoeffding(k, n, alpha), 1 + tail), 0.0))


def log_binomial_tail(k: Ints, n: Ints, alpha: Floats) -> Floats:
    """ln P(Bin(n, alpha) <= k)."""
    from scipy.special import betainc  # betaincc takes ten times as long

    k, n, alpha = np.broadcast_arrays(k, n, alpha)
    logs = np.zeros(k.shape)
    below = k < np.minimum(n, n * alpha + 5 * np.sqrt(n))  # above that it is 1 up to e^-50 (Hoeffding)
    k, n, alpha = k[below], n[below], alpha[below]
    tail = betainc(n - k, k + 1, 1 - alpha)
    small = tail < _SMALL
    tail[small] = 1.0
    log_tail = np.log(tail)
    log_tail[small] = _log_far_tail(k[small], n[small], alpha[small])
    logs[below] = log_tail
    return logs


def _log_far_tail(k: Ints, n: Ints, alpha: Floats) -> Floats:
    """ln of P(X = k) (1 + t_1 + t_1 t_2 + ...), t_i = (k - i + 1) / (n - k + i) (1 - alpha) / alpha."""
    from scipy.special import betaln, xlog1py, xlogy

    mass = -np.log1p(n) - betaln(k + 1.0, n - k + 1.0) + xlogy(k, alpha) + xlog1py(n - k, -alpha)
    odds, term, total, i = (1 - alpha) / alpha, np.ones(k.shape), np.ones(k.shape), 0
    while (term > 1e-17 * total).any():
        i += 1
        term = term * np.maximum(k - i + 1, 0) / (n - k + i) * odds
        total += term
    return np.asarray(mass + np.log(total))


def log_hoeffding(k: Ints, n: Ints, alpha: Floats) -> Floats:
    """-n h(min(k/n, alpha), alpha)."""
    from scipy.special import xlogy

    spread = xlogy(k, k / (n * alpha)) + xlogy(n - k, (n - k) / (n * (1 - alpha)))
    return np.asarray(np.where(k < n * alpha, -np.maximum(spread, 0.0), 0.0))


def _binomial_bound(k: Ints, n: Ints, zeta: Floats) -> Floats:
    from scipy.special import betainccinv

    k, n, zeta = np.broadcast_arrays(k, n, zeta)
    inside = k < n
    return np.asarray(np.where(inside, betainccinv(k + 1.0, np.where(inside, n - k, 1), zeta), 1.0))


def _hoeffding_bound(k: Ints, n: Ints, zeta: Floats) -> Floats:
    k, n, zeta = np.broadcast_arrays(k, n, zeta)
    return smallest_above(lambda alpha: log_hoeffding(k, n, alpha) <= np.log(zeta), k / n)


def smallest_above(condition: Callable[[Floats], Any], start: Floats, *, halvings: int = 60) -> Floats:
    """By bisection, the smallest number between start and 1 from which on a condition is true; 1 if there is none."""
    low, high = np.array(start, dtype=np.float64), np.ones(np.shape(start))
    for _ in range(halvings):
        middle = (low + high) / 2
        inside = (middle > 0) & (middle < 1)
        true = inside & condition(np.where(inside, middle, 0.5))
        low, high = np.where(true, low, middle), np.where(true, middle, high)
    return np.asarray(high)


def scalar_or_array(values: Floats) -> Any:
    """A float for a single number, else the array."""
    return float(values) if np.ndim(values) == 0 else values
