"""Strength from 0 to 1 within each attack and each defence, against numbers worked out by hand."""

import json
from typing import Any

import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.survival.durations import Durations, Facts
from advrisk.risk.survival.strength import attack_strengths, defence_strengths


def arm(family: str, norm: str | None, eps: float | None = None, **params: Any) -> dict[str, Any]:
    return {"family": family, "norm": norm, "eps": eps, "max_queries": None, "params": json.dumps(params)}


def durations(arms: dict[str, Any] | None = None, tags: dict[str, dict[str, Any]] | None = None) -> Durations:
    facts = {model: Facts(own, None, None, None, None) for model, own in (tags or {}).items()}
    no_rows: dict[str, Any] = {"columns": {}, "zero": {}, "seconds": [], "left_out": {}, "by_arm": {}, "samples": {}}
    return Durations(measure="forward", arms=arms or {}, facts=facts, **no_rows)


def test_each_attack_and_norm_has_its_own_range() -> None:
    found = attack_strengths(
        durations(
            {
                "a": arm("pgd", "linf", 0.1, steps=10),
                "b": arm("pgd", "linf", 0.3, steps=10),
                "c": arm("pgd", "linf", 0.2, steps=10),
                "d": arm("pgd", "l2", 0.1, steps=10),
                "e": arm("pgd", "l2", 2.1, steps=10),
                "f": arm("deepfool", "l2", candidates=1),
                "g": arm("deepfool", "l2", candidates=10),
                "h": arm("pixel", "l0", pixels=4),
                "i": arm("pixel", "l0", pixels=64),
                "j": arm("pixel", "l0", pixels=256),
                "k": arm("hopskipjump", "l2"),
            }
        )
    )
    by_hand = {"a": 0, "b": 1, "c": 0.5, "d": 0, "e": 1, "f": 0, "g": 1, "h": 0, "i": 60 / 252, "j": 1, "k": 0}
    assert found == pytest.approx(by_hand)


def test_two_settings_are_no_one_strength() -> None:
    arms = {"a": arm("nes", "l2", sigma=0.1, steps=5), "b": arm("nes", "l2", sigma=0.2, steps=10)}
    with pytest.raises(
        RiskError, match="attack_strength: nes in l2 varies in sigma and steps, which is no one strength"
    ):
        attack_strengths(durations(arms))


def test_defences_are_scaled_by_what_varies_within_each() -> None:
    """Tags that undefended models have, such as a depth, are no settings of a defence."""
    tags: dict[str, dict[str, Any]] = {
        "plain": {"depth": 18},
        "deep": {"depth": 34},
        "out-1": {"depth": 18, "defence": "gauss-out", "sigma": 0.1},
        "out-5": {"depth": 34, "defence": "gauss-out", "sigma": 0.5},
        "out-3": {"depth": 18, "defence": "gauss-out", "sigma": 0.3},
        "fsq": {"depth": 18, "defence": "feature-squeezing", "bits": 4},
    }
    by_hand = {"plain": 0, "deep": 0, "out-1": 0, "out-3": 0.5, "out-5": 1, "fsq": 0}
    assert defence_strengths(durations(tags=tags)) == pytest.approx(by_hand)
