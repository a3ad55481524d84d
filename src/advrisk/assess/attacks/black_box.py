"""Where an attack without gradients does better than those with gradients: a sign that a model hides its slopes.

Carlini et al. 2019 (arXiv:1902.06705, section 5.3): attacks that see less of a model must not do better. What an
attack saw is read off the ledger: an arm that took no backward pass in any row is a black box, whoever wrote it; and
so is a transfer, but on the model that its points were crafted on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from advrisk.assess.damage.distances import ArmDistances, surrogates
from advrisk.core.traits import TRANSFER
from advrisk.ledger import Ledger
from advrisk.risk.black_box import missed_by_gradients

LEAST_SHARE = 0.05  # of a model's samples, before anything is said
_SEEN = """
    SELECT arm, any_value(kind) AS kind, any_value(family) AS family, any_value(norm) AS norm, any_value(eps) AS eps,
           sum(n_forward) AS n_forward, sum(n_backward) AS n_backward
    FROM outcomes WHERE sample IN (SELECT sample FROM samples WHERE split = 'evaluate') GROUP BY arm
"""


@dataclass(frozen=True)
class Lead:
    """A black-box arm that broke samples of a model where attacks with gradients found nothing."""

    model: str
    arm: str
    share: float  # of the model's samples


def has_black_box(ledger: Ledger) -> bool:
    """Whether any attack of the run took no gradients: cheaper than to compare all arms."""
    return any(_is_black_box(facts) for facts in _seen(ledger).values())


def black_box_leads(ledger: Ledger, found: ArmDistances) -> tuple[Lead, ...]:
    """The black-box arms of those models of which they broke at least one sample in twenty that others missed."""
    arms, seen, surrogate = found.envelope.arms, _seen(ledger), surrogates(ledger)
    white = [seen[arm] for arm in arms if seen[arm]["n_backward"] and seen[arm]["norm"] == found.envelope.norm]
    rooms = [facts["eps"] for facts in white if facts["eps"] is not None]
    minimal = any(facts["eps"] is None for facts in white)
    leads = []
    for model, distances in zip(found.envelope.by_model, found.distance, strict=True):
        black = np.array([_is_black_box(seen[arm]) and surrogate.get(arm) != model for arm in arms])
        missed = missed_by_gradients(distances[black], distances[~black], rooms, minimal=minimal)
        if missed.any(0).mean() >= LEAST_SHARE:
            shares = zip(np.array(arms)[black], missed.mean(1), strict=True)
            leads += [Lead(model, str(arm), float(share)) for arm, share in shares if share > 0]
    return tuple(leads)


def _seen(ledger: Ledger) -> dict[str, dict[str, Any]]:
    return {row["arm"]: row for row in ledger.query(_SEEN).to_pylist()}


def _is_black_box(facts: Mapping[str, Any]) -> bool:
    """Rows from elsewhere may not say how often the model was asked: then nothing is known."""
    asked = bool(facts["n_forward"]) or facts["family"] == TRANSFER
    return bool(facts["kind"] == "attack" and asked and facts["n_backward"] == 0)
