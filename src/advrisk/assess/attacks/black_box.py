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
    """A black-box arm that broke samples of a model on which attacks with gradients failed."""

    model: str
    arm: str
    share: float  # of the model's samples


def has_black_box(ledger: Ledger) -> bool:
    """Whether any attack of the run took no gradients; cheaper than a comparison of all arms."""
    return any(_is_black_box(facts) for facts in _seen(ledger).values())


def black_box_leads(ledger: Ledger, measured: ArmDistances) -> tuple[Lead, ...]:
    """The black-box arms of models with at least `LEAST_SHARE` of samples that only black-box arms broke."""
    arms, by_arm, surrogate = measured.envelope.arms, _seen(ledger), surrogates(ledger)
    white = [by_arm[arm] for arm in arms if by_arm[arm]["n_backward"] and by_arm[arm]["norm"] == measured.envelope.norm]
    sizes = [facts["eps"] for facts in white if facts["eps"] is not None]
    minimal = any(facts["eps"] is None for facts in white)
    leads = []
    for model, distances in zip(measured.envelope.by_model, measured.distance, strict=True):
        black = np.array([_is_black_box(by_arm[arm]) and surrogate.get(arm) != model for arm in arms])
        missed = missed_by_gradients(distances[black], distances[~black], sizes, minimal=minimal)
        if missed.any(0).mean() >= LEAST_SHARE:
            shares = zip(np.array(arms)[black], missed.mean(1), strict=True)
            leads += [Lead(model, str(arm), float(share)) for arm, share in shares if share > 0]
    return tuple(leads)


def _seen(ledger: Ledger) -> dict[str, dict[str, Any]]:
    return {row["arm"]: row for row in ledger.query(_SEEN).to_pylist()}


def _is_black_box(facts: Mapping[str, Any]) -> bool:
    """Whether an arm queried the model without gradients; imported rows may lack the counts, and do not qualify."""
    queried = bool(facts["n_forward"]) or facts["family"] == TRANSFER
    return bool(facts["kind"] == "attack" and queried and facts["n_backward"] == 0)
