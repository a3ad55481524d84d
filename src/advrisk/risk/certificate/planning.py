"""How many calibration samples it takes to certify, and how likely it is with a given number of them."""

from typing import Any

from numpy.typing import ArrayLike

from advrisk.risk.certificate.p_values import Method


def power(n: ArrayLike, true_risk: ArrayLike, alpha: float, zeta: float, *, method: Method = "exact") -> Any:
    """The probability that n samples certify a risk of alpha at zeta, where it is `true_risk`."""
    raise NotImplementedError


def samples_to_certify(
    true_risk: float, alpha: float, zeta: float, *, power: float = 0.9, method: Method = "exact"
) -> int:
    """The smallest n from which on every number of samples certifies with at least that power."""
    raise NotImplementedError


def smallest_n(alpha: float, zeta: float, *, method: str = "exact") -> int:
    """The fewest samples that can certify at all: without a single failure."""
    raise NotImplementedError
