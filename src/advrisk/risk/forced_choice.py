"""An evasion curve from choices between two pictures, of which one is changed.

Who does not see the change chooses the wrong picture half of the time: P(wrong at size s) = Psi(s) / 2.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from advrisk.risk.evasion import BayesianEvasion, Evasion, Floats, fit_bayesian
from advrisk.risk.evasion.curve import Curves, Flags

_HALF = 0.5 - 1e-12  # P(wrong) at size 0


@dataclass(frozen=True, eq=False)
class ForcedChoiceEvasion:
    """Psi = 2 P(wrong), from the posterior of P(wrong)."""

    wrong: BayesianEvasion

    def __call__(self, sizes: ArrayLike, /) -> Floats:
        return _doubled(self.wrong(sizes))

    def draws(self, n: int, rng: np.random.Generator) -> Sequence[Evasion]:
        drawn = self.wrong.draws(n, rng)
        assert isinstance(drawn, Curves)
        return Curves(drawn.parameters, partial(_one, drawn.one), partial(_many, drawn.many))

    def extrapolated(self, sizes: ArrayLike) -> Flags:
        return self.wrong.extrapolated(sizes)


@dataclass(frozen=True)
class _Doubled:
    wrong: Evasion

    def __call__(self, sizes: ArrayLike, /) -> Floats:
        return _doubled(self.wrong(sizes))


def fit_forced_choice(
    sizes: ArrayLike, wrong: ArrayLike, *, plausible: tuple[float, float] | None, few: bool
) -> ForcedChoiceEvasion:
    """Psi from choices: how large the change was, and whether the wrong picture was chosen."""
    return ForcedChoiceEvasion(fit_bayesian(sizes, wrong, guess=_HALF, lapse=None, plausible=plausible, few=few))


def _doubled(wrong: Floats) -> Floats:
    return np.asarray(np.minimum(2 * wrong, 1.0))


def _one(one: Callable[[Floats], Evasion], parameters: Floats) -> _Doubled:
    return _Doubled(one(parameters))


def _many(many: Callable[[Floats, Floats], Floats], parameters: Floats, sizes: Floats) -> Floats:
    return _doubled(many(parameters, sizes))
