"""Damage in words: what is decided, what is not, and what was left out."""

import numpy as np

from advrisk.assess.damage.assessment import DamageAssessment, assess_distances
from advrisk.assess.damage.detector import DetectedDamage
from advrisk.assess.damage.distances import Distances
from advrisk.assess.damage.headline import headline
from advrisk.assess.damage.words import findings
from advrisk.risk.absolute import compare_damage
from advrisk.risk.evasion import threshold
from advrisk.risk.monte_carlo import Walk, walked_damage
from advrisk.study import DamageSpec


def assessment(by_model: dict[str, list[float]], **changes: int) -> DamageAssessment:
    found = {model: np.array(distances) for model, distances in by_model.items()}
    n = len(next(iter(found.values())))
    distances = Distances(
        norm="linf",
        arms=("pgd",),
        samples=tuple(map(str, range(n))),
        n_samples=n + changes.get("unfinished", 0) + changes.get("failed", 0),
        by_model=found,
        n_unfinished=changes.get("unfinished", 0),
        n_without_verdict=changes.get("failed", 0),
    )
    return assess_distances(distances, DamageSpec(), rng=np.random.default_rng(0))


def test_a_clear_winner_is_named() -> None:
    clear = assessment({"strong": [0.5 + i / 1000 for i in range(60)], "weak": [0.1 + i / 1000 for i in range(60)]})
    assert clear.decided
    assert headline(clear) == "strong is the least bad of 2 models: mean adversarial distance 0.529 (linf)."
    assert [row.verdict for row in clear.models] == ["least damage", "more damage than strong"]


def test_equal_models_are_undecided() -> None:
    draws = np.random.default_rng(3).random((2, 60))
    equal = assessment({"a": draws[0].tolist(), "b": draws[1].tolist()})
    assert not equal.decided
    assert headline(equal).startswith(("Undecided between a and b: ", "Undecided between b and a: "))


def test_one_model_is_not_compared() -> None:
    alone = assessment({"only": [0.1, 0.2]})
    assert headline(alone) == "Only only was assessed: mean adversarial distance 0.15 (linf)."
    assert not alone.decided


def behind_a_detector(nearest: list[float], least: list[float]) -> DamageAssessment:
    """One model, broken everywhere at sizes from 0.01: the scores of its nearest and of its most innocent successes."""
    n, rng = len(nearest), np.random.default_rng(0)
    size, clean = np.linspace(0.01, 0.1, n), np.zeros(n)
    walked = {"m": Walk(size, np.array(nearest), np.array(least), ("pgd",) * n, clean, np.ones(n, np.bool_))}
    asked = walked_damage(walked, {"m": 0.5}, detector="eye@00000001", rng=rng)
    curve = compare_damage({"m": size}, threshold(0.055), rng=rng)
    distances = Distances("linf", ("pgd",), tuple(map(str, range(n))), n, {"m": size}, 0, 0)
    return assess_distances(distances, DamageSpec(), detection=DetectedDamage(asked, curve), rng=rng)


def test_damage_behind_a_detector_names_it_and_is_that_of_the_best_arm() -> None:
    found = behind_a_detector([1.0] * 20 + [0.0] * 20, [1.0] * 10 + [0.0] * 30)
    assert headline(found).startswith("Only m was assessed: damage probability 75.0 % behind the detector eye, ")
    row = found.models[0]
    assert row.by_detector is not None
    assert (row.by_detector.any_arm.value, row.by_detector.monte_carlo.value) == (0.75, 0.5)
    told = " ".join(findings(found))
    assert "reproduces the damage of the nearest success" in told
    assert "Warning" not in told


def test_a_fitted_curve_that_misses_the_damage_of_the_nearest_success_is_warned_about() -> None:
    told = " ".join(findings(behind_a_detector([1.0] * 36 + [0.0] * 4, [0.0] * 40)))
    assert (
        "Warning: the curve that was fitted to its answers does not reproduce the damage of the nearest success: "
        in told
    )
    assert "m (50.0 % against 10.0 % [" in told
    assert "about the damage" not in told


def test_what_was_left_out_is_said() -> None:
    left_out = findings(assessment({"a": [0.1, 0.2], "b": [0.2, 0.3]}, unfinished=3, failed=4))
    assert "Not finished, and left out: 3 samples." in left_out
    assert any("no verdict: 4 samples" in sentence and "never counted as robust" in sentence for sentence in left_out)


def test_too_many_missing_samples_forbid_a_decision() -> None:
    strong, weak = [0.5 + i / 1000 for i in range(60)], [0.1 + i / 1000 for i in range(60)]
    partial = assessment({"strong": strong, "weak": weak}, failed=4)
    assert not partial.decided
    assert partial.models[0].verdict == "undecided: 4 of 64 samples have no verdict"
