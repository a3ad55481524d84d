"""Strength of an attack or a defence from 0 to 1 within its kind: the min-max scaling of Meyers et al., 5.5.

Sizes of different attacks (a distance in linf, a number of pixels, of classes) are no one number. So the setting that
varies within one kind is scaled from its least value, 0, to its greatest, 1. A larger number is not always stronger: of
feature squeezing it means more bits.
"""

import json
from collections.abc import Mapping
from typing import Any

from advrisk.core.errors import RiskError
from advrisk.risk.survival.durations import Durations

ATTACK_STRENGTH, DEFENCE_STRENGTH = "attack_strength", "defence_strength"
DEFENCE, UNDEFENDED = "defence", "none"  # the tag of a defended model, and its value for an undefended one

ArmSettings = Mapping[str, Mapping[str, float]]  # arm or model -> its settings


def attack_strengths(durations: Durations) -> dict[str, float]:
    """Arm -> its strength among the arms of its attack and norm; an attack with one setting has 0."""
    kinds: dict[str, dict[str, dict[str, float]]] = {}
    for arm, row in durations.arms.items():
        numbers = _numbers(json.loads(row.get("params") or "{}"))
        limits = {name: float(row[name]) for name in ("eps", "max_queries") if row.get(name) is not None}
        own = limits | numbers
        kinds.setdefault(f"{row['family']} in {row['norm']}" if row["norm"] else str(row["family"]), {})[arm] = own
    return {arm: share for kind, own in kinds.items() for arm, share in scaled(own, kind, ATTACK_STRENGTH).items()}


def defence_strengths(durations: Durations) -> dict[str, float]:
    """Model -> its strength among the models behind its defence; a model without one, or with one setting, has 0."""
    kinds: dict[str, dict[str, dict[str, float]]] = {}
    common = _of_undefended(durations)
    for model, facts in durations.facts.items():
        if DEFENCE in facts.tags:
            own = {name: value for name, value in _numbers(facts.tags).items() if name not in common}
            kinds.setdefault(str(facts.tags[DEFENCE]), {})[model] = own
    found = dict.fromkeys(durations.facts, 0.0)
    for kind, settings in kinds.items():
        found |= scaled(settings, kind, DEFENCE_STRENGTH)
    return found


def _of_undefended(durations: Durations) -> set[str]:
    """Tags of models without a defence, which are not settings of one."""
    return {tag for facts in durations.facts.values() if DEFENCE not in facts.tags for tag in facts.tags}


def varying(settings: ArmSettings) -> list[str]:
    """Settings that all of them have and that differ, eps first."""
    shared = set.intersection(*(set(one) for one in settings.values()))
    differing = sorted(name for name in shared if len({one[name] for one in settings.values()}) > 1)
    return ["eps"] if "eps" in differing else differing


def scaled(settings: ArmSettings, kind: str, what: str) -> dict[str, float]:
    """Setting of each from 0 to 1; 0 if nothing varies, an error if several settings do."""
    names = varying(settings)
    if len(names) > 1:
        raise RiskError(
            f"{what}: {kind} varies in {' and '.join(names)}, which is no one strength; name one of these as a "
            "covariate, or assess fewer (`arms`, `models`)"
        )
    if not names:
        return dict.fromkeys(settings, 0.0)
    values = [one[names[0]] for one in settings.values()]
    low, high = min(values), max(values)
    return {key: (one[names[0]] - low) / (high - low) for key, one in settings.items()}


def _numbers(params: Mapping[str, Any]) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in params.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
