"""Tables of survival times whose law is known."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from advrisk.risk.survival import FAMILIES

Table = dict[str, NDArray[Any]]


def noise(family: str, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    if family == "weibull":
        return np.log(rng.exponential(size=n))
    return rng.normal(size=n) if family == "lognormal" else rng.logistic(size=n)


def drawn(family: str, n: int = 400, seed: int = 0, sigma: float = 0.6) -> Table:
    """log T = 2 - eps/2 + [defence]/3 + sigma W; about a fifth is censored."""
    rng = np.random.default_rng(seed)
    eps = rng.uniform(0, 4, n)
    defence = rng.choice(["none", "noise", "squeeze"], n)
    log_t = 2 - eps / 2 + (defence == "noise") / 3 + sigma * noise(family, n, rng)
    stopped = rng.exponential(12.0, n) + 0.5
    return {
        "eps": eps,
        "defence": defence,
        "sample": rng.integers(0, 60, n),
        "t": np.minimum(np.exp(log_t), stopped),
        "e": (np.exp(log_t) <= stopped).astype(np.float64),
    }


@pytest.fixture(scope="package")
def tables() -> dict[str, Table]:
    return {family: drawn(family) for family in FAMILIES}


@pytest.fixture(scope="package")
def draw() -> Callable[..., Table]:
    return drawn
