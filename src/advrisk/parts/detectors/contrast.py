"""Adversarial inputs against clean and noisy ones: functions for detectors that learn from successful attacks.

As in Feinman et al. (2017) and Ma et al. (2018), noisy inputs count as clean, so that a detector learns the marks of
attacks and not those of any change.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from advrisk.core.errors import DataError, ModelError
from advrisk.core.names import counted
from advrisk.core.seeds import generator
from advrisk.engine import Model
from advrisk.parts.detectors.registry import Examples, State

FEWEST = 5  # successes that a detector needs to learn
_ROWS = 256  # per query


@dataclass(frozen=True)
class Contrast:
    """Inputs, the row of `Examples.clean` that each was made from, and whether an attack made it."""

    x: Tensor
    origin: Tensor
    attacked: Tensor


def contrast(
    examples: Examples, model: Model, detector: str, *, without: Tensor | None = None, most: int | None = None
) -> Contrast:
    """Clean inputs, noisy ones and successes of attacks: `most` of each, none made from the rows `without`."""
    rows = torch.arange(len(examples.clean))
    left = rows if without is None else rows[~torch.isin(rows, without)]
    success = torch.isin(examples.origin.cpu(), left).nonzero().squeeze(1)
    kept, success = _drawn(left, most, examples.seed), _drawn(success, most, examples.seed)
    n = len(success)
    if n < FEWEST:
        raise DataError(
            f"{detector} learns from successful attacks on {model.name}: found {n}, but it needs at least {FEWEST}; "
            "attack more samples or with a larger eps"
        )
    adversarial, origin = examples.adversarial[success], examples.origin.cpu()[success]
    noisy = _noisy(adversarial, examples.clean[origin], model.bounds, examples.seed)
    return Contrast(
        torch.cat([examples.clean[kept], noisy, adversarial]),
        torch.cat([kept, origin, origin]),
        torch.arange(len(kept) + 2 * n) >= len(kept) + n,
    )


def _drawn(rows: Tensor, most: int | None, seed: int) -> Tensor:
    """At most `most` random rows, in their order."""
    if most is None or len(rows) <= most:
        return rows
    return rows[torch.from_numpy(np.sort(generator("drawn", seed).permutation(len(rows))[:most]))]


def _noisy(adversarial: Tensor, clean: Tensor, bounds: tuple[float, float], seed: int) -> Tensor:
    """Clean inputs with normal noise, for each as long (l2) as the attack's change, then cut off at the bounds."""
    drawn = generator("noisy", seed).standard_normal(tuple(clean.shape)).astype(np.float32)
    noise = torch.from_numpy(drawn).to(clean)
    length = (adversarial - clean).flatten(1).norm(dim=1) / noise.flatten(1).norm(dim=1)
    noisy: Tensor = clean + length.view(-1, *[1] * (clean.dim() - 1)) * noise
    return noisy.clamp(*bounds)


def in_batches(
    rows: Tensor, compute: Callable[[Tensor], Tensor], on_progress: Callable[[float], None] = lambda _: None
) -> Tensor:
    """`compute` applied to all rows, in batches and without gradients."""
    parts = []
    with torch.no_grad():
        for batch, share in _batches(rows):
            parts.append(compute(batch))
            on_progress(share)
    return torch.cat(parts)


def _batches(rows: Tensor) -> Iterator[tuple[Tensor, float]]:
    for start in range(0, len(rows), _ROWS):
        yield rows[start : start + _ROWS], min(1.0, (start + _ROWS) / len(rows))


def fit_logistic(features: Tensor, attacked: Tensor, model: Model) -> dict[str, Tensor]:
    """The state for `log_odds`: a logistic regression on z-scores, with equal total weight of both kinds."""
    from sklearn.linear_model import LogisticRegression

    if not bool(torch.isfinite(features).all()):
        n = int((~torch.isfinite(features)).any(1).sum())
        raise ModelError(
            f"{model.name}: the outputs of its layers are not finite for {counted(n, 'example')} of {len(features)}"
        )
    mean, spread = features.mean(0), features.std(0, correction=0)
    scale = torch.where(spread > 0, spread, 1.0)
    z = ((features - mean) / scale).cpu().numpy()
    fitted = LogisticRegression(class_weight="balanced", max_iter=1000).fit(z, attacked.cpu().numpy())
    return {
        "mean": mean,
        "scale": scale,
        "coefficients": torch.from_numpy(fitted.coef_[0].copy()).to(features),
        "intercept": torch.from_numpy(fitted.intercept_.copy()).to(features),
    }


def log_odds(features: Tensor, state: State) -> Tensor:
    """The log-odds that an attack made the input: they order inputs as the probability does.

    Unlike the probability they keep their digits, and their slope, where it is near 0 or 1.
    """
    z = (features - state["mean"].to(features.device)) / state["scale"].to(features.device)
    return (z * state["coefficients"].to(features.device)).sum(1) + state["intercept"].to(features.device)
