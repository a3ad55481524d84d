"""Numbers from people's answers, against closed forms and simulated labellers."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from advrisk.answers.records import Answer, Design
from advrisk.assess.damage.answers import (
    FORCED_CHOICE_UNTESTED,
    agreement,
    fit_answers,
    group_warnings,
    monotone_answers,
    monotone_notes,
    shape_doubts,
)
from advrisk.core.errors import RiskError
from advrisk.risk.damage import damage_probability
from advrisk.risk.evasion import half_detected
from advrisk.risk.labelling import krippendorff_alpha, next_size

SIZES = np.geomspace(1 / 255, 1, 48)
PLAUSIBLE = (1 / 255, 1.0)


def said(size: float, undetected: bool, **given: Any) -> Answer:
    usual = {"labeller": "Ann", "model": "plain", "arm": "pgd", "sample": "s", "design": "yes-no", "trials": "adaptive"}
    usual |= {"scaled": False, "catch": size == 0, "seconds": 1.0, "time": datetime(2026, 1, 1, tzinfo=UTC)}
    return Answer(**(usual | {"size": size, "undetected": undetected} | given))


def psi(sizes: Any, threshold: float = 0.1, steep: float = 3.0) -> Any:
    return 1 / (1 + (np.asarray(sizes) / threshold) ** steep)


def asked(n: int, rng: np.random.Generator, design: Design = "yes-no", *, adaptive: bool = True) -> list[Answer]:
    """Answers of somebody whose curve is `psi`, to sizes that tell most (or any sizes), one in six a catch trial."""
    answers: list[Answer] = []
    for place in range(n):
        curve = fit_answers(answers, design=design, plausible=PLAUSIBLE, few=True) if adaptive else None
        if place % 6 == 5:
            size = 1.0 if design == "forced-choice" else 0.0
        else:
            size = next_size(curve, SIZES, rng) if curve else float(rng.choice(SIZES))
        wrong = rng.random() < (psi(size) / 2 if design == "forced-choice" else psi(size))
        answers.append(said(size, bool(wrong), design=design, sample=f"picture {place}"))
    return answers


# Whether the curve's shape is theirs


def test_the_shape_of_peoples_answers_is_doubted_with_a_remedy() -> None:
    """One labeller who notices nothing below 0.03, two of five changes up to 0.3, and nearly all beyond."""
    answers = []
    for place, size in enumerate(np.repeat(SIZES, 6).tolist()):
        level = 5 if size < 0.03 else 3 if size < 0.3 else 0
        answers.append(said(size, place * 7 % 5 < level, sample=f"picture {place}"))
    found, (warning,) = shape_doubts(fit_answers(answers, plausible=PLAUSIBLE))
    assert found is not None
    assert found.p_value <= 0.01
    assert "`--fit FILE --curve monotone`" in warning
    free = monotone_answers(answers)
    assert free([0.01, 0.1, 0.9]) == pytest.approx([1, 0.6, 0], abs=0.1)
    assert monotone_notes(answers) == []
    other = said(0.1, undetected=True, labeller="Bob")
    assert "treats all labellers as one" in monotone_notes([*answers, other])[0]


def test_the_right_shape_is_not_doubted() -> None:
    found, warnings = shape_doubts(fit_answers(asked(60, np.random.default_rng(1)), plausible=PLAUSIBLE))
    assert found is not None
    assert found.p_value > 0.01
    assert warnings == []


# Agreement


def test_agreement_counts_the_same_original_at_about_the_same_size() -> None:
    answers = [
        said(0.100, True, sample="a"),
        said(0.101, True, sample="a", labeller="Bob"),  # about the same size: one unit
        said(0.300, False, sample="a"),  # another size
        said(0.100, True, sample="b"),
        said(0.100, False, sample="b", labeller="Bob"),
        said(0.0, True, sample="c"),
        said(0.0, False, sample="c"),  # the last answer of a labeller counts
        said(0.0, False, sample="c", labeller="Bob"),
    ]
    found = agreement(answers)
    assert (found.n_units, found.n_labellers) == (3, 2)
    assert found.alpha == krippendorff_alpha([[1, 1, 0], [1, 0, 0]])
    assert agreement(answers[:1]).alpha is None


# The curve and what to ask next


@pytest.mark.parametrize("design", ["yes-no", "forced-choice"])
def test_thirty_answers_give_a_useful_curve(design: Design) -> None:
    """Six labellers whose curve is known: what is found holds it, and is surer than from sizes chosen at random."""
    distances = np.random.default_rng(0).exponential(0.12, 300)
    widths: dict[bool, list[float]] = {True: [], False: []}
    held = 0
    for seed in range(6):
        for adaptive in (True, False):
            answers = asked(30, np.random.default_rng(seed), design, adaptive=adaptive)
            curve = fit_answers(answers, plausible=PLAUSIBLE, few=True)
            damage = damage_probability(distances, curve, rng=np.random.default_rng(0))
            widths[adaptive].append(damage.high - damage.low)
            half = half_detected(curve)
            assert half is not None
            held += half.low <= 0.1 <= half.high and damage.low <= psi(distances).mean() <= damage.high
    assert held >= 11
    assert np.median(widths[True]) < (0.3 if design == "yes-no" else 0.45)
    assert np.median(widths[True]) < 0.9 * np.median(widths[False])


@pytest.mark.parametrize("design", ["yes-no", "forced-choice"])
def test_expected_information_is_the_mean_loss_of_uncertainty(design: Design) -> None:
    """By brute force: mutual information of the answer and which of the drawn curves is true."""
    from advrisk.risk.evasion import values_of

    curve = fit_answers([], design=design, plausible=PLAUSIBLE, few=True)
    sizes = np.array([0.01, 0.1, 0.5])
    p = values_of(curve.draws(1000, np.random.default_rng(0)), sizes)
    if design == "forced-choice":  # the lapse rate held at its mean
        lapse = values_of(curve.draws(1000, np.random.default_rng(0)), np.array([1e12]))
        p = ((p - lapse) / (1 - lapse) * (1 - lapse.mean()) + lapse.mean()) / 2
    brute = []
    for column in p.T:
        joint = np.stack([column, 1 - column]) / len(column)
        outer = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
        inside = joint > 0
        brute.append((joint[inside] * np.log(joint[inside] / outer[inside])).sum())
    assert curve.expected_information(sizes) == pytest.approx(brute)


def test_the_next_size_is_near_the_threshold_once_that_is_known() -> None:
    rng = np.random.default_rng(0)
    sizes = np.concatenate([np.geomspace(0.02, 0.5, 200), np.zeros(100), np.ones(100)])  # the rates are known, too
    answers = [said(float(size), bool(rng.random() < psi(size))) for size in sizes]
    curve = fit_answers(answers)
    chosen = [next_size(curve, SIZES, rng) for _ in range(30)]
    assert 0.02 < min(chosen) <= max(chosen) < 0.5
    with pytest.raises(RiskError, match="no size"):
        next_size(curve, [], rng)


def test_a_curve_of_forced_choices_finds_what_goes_unnoticed() -> None:
    """Many choices: the curve is close to the true Psi, which is twice the share of wrong ones."""
    rng = np.random.default_rng(1)
    sizes = rng.choice(np.geomspace(0.01, 1, 25), 4000)
    answers = [
        said(float(s), bool(w), design="forced-choice")
        for s, w in zip(sizes, rng.random(4000) < psi(sizes) / 2, strict=True)
    ]
    curve = fit_answers(answers)
    at = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.5, np.inf])
    assert curve(at) == pytest.approx(np.append(psi(at[:-1]), 0.0), abs=0.06)
    drawn = curve.draws(50, np.random.default_rng(0))
    assert drawn[3](at) == pytest.approx(drawn[3:4][0](at))
    assert np.diff(drawn[3](at)).max() <= 0
    assert not curve.extrapolated(0.1)
    distances = rng.exponential(0.1, 400)
    found = damage_probability(distances, curve, rng=rng)
    assert found.low <= psi(distances).mean() <= found.high


def test_half_size_is_where_the_curve_crosses_one_half() -> None:
    rng = np.random.default_rng(2)
    sizes = rng.choice(np.geomspace(0.01, 1, 30), 5000)
    answers = [said(float(s), bool(u)) for s, u in zip(sizes, rng.random(5000) < psi(sizes), strict=True)]
    half = half_detected(fit_answers(answers))
    assert half is not None
    assert half.low <= half.value <= half.high
    assert half.value == pytest.approx(0.1, rel=0.1)
    assert half.high / half.low < 1.2


def test_answers_that_say_nothing_are_refused_unless_few_will_do() -> None:
    with pytest.raises(RiskError, match="found 1 answer"):
        fit_answers([said(0.1, True)])
    with pytest.raises(RiskError, match=r"all 3 perturbations up to size 0\.1 went undetected"):
        fit_answers([said(0.1, True)] * 3)
    assert fit_answers([said(0.1, True)], plausible=PLAUSIBLE, few=True)([0.1]) > 0.5
    with pytest.raises(RiskError, match="forced-choice and yes-no"):
        fit_answers([said(0.1, True), said(0.1, False, design="forced-choice")])


def test_models_whose_answers_differ_are_named_and_labellers_are_not() -> None:
    rng = np.random.default_rng(0)
    sizes = np.tile(np.geomspace(0.02, 0.5, 20), 6)
    people = np.repeat(["Ann", "Bob", "Cyn"], 40)

    def answers(of_hard: float, *, of_bob: float = 0.1, design: Design = "yes-no") -> list[Answer]:
        models = ["plain" if place % 2 else "hard" for place in range(len(sizes))]
        found = []
        for size, who, model in zip(sizes, people, models, strict=True):
            middle = of_bob if who == "Bob" else of_hard if model == "hard" else 0.1
            unseen = bool(rng.random() < psi(size, middle))
            found.append(said(float(size), unseen, labeller=str(who), model=model, design=design))
        return found

    assert group_warnings(answers(0.1)) == []
    assert group_warnings(answers(0.1, of_bob=0.4)) == []
    (warning,) = group_warnings(answers(0.4))
    assert "hard, plain" in warning
    assert group_warnings(answers(0.4, design="forced-choice")) == [FORCED_CHOICE_UNTESTED]
    assert group_warnings([]) == []
