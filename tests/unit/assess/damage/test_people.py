"""Damage as people saw it, against closed forms and simulated labellers."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from advrisk.answers.records import Answer
from advrisk.assess.damage.people import damage_by_people, walk_order
from advrisk.core.errors import RiskError


def said(size: float, undetected: bool, **given: Any) -> Answer:
    usual = {"labeller": "Ann", "model": "plain", "arm": "pgd", "sample": "s", "design": "yes-no", "trials": "random"}
    usual |= {"scaled": False, "catch": size == 0, "seconds": 1.0, "time": datetime(2026, 1, 1, tzinfo=UTC)}
    return Answer(**(usual | {"size": size, "undetected": undetected} | given))


def walk(samples: Sequence[str], distances: Sequence[float], unseen: Callable[[str], bool | None]) -> Any:
    answers = [
        said(0.1, bool(unseen(sample)), sample=sample, trials="random")
        for sample in samples
        if unseen(sample) is not None
    ]
    return damage_by_people(answers, samples, {"plain": distances}, seed=0).get("plain")


def test_a_walk_counts_resisted_samples_as_no_damage_and_means_as_means() -> None:
    samples = [f"s{n}" for n in range(6)]
    order = walk_order(samples, seed=0)
    assert sorted(order) == samples
    assert order != samples
    distances = dict.fromkeys(samples, 0.1) | {order[1]: np.inf, order[2]: 0.0}
    answers = [
        said(0.1, True, sample=order[0], trials="random"),
        said(0.1, False, sample=order[0], trials="random", labeller="Bob"),
        said(0.0, True, sample=order[2], trials="random", catch=False),
        said(0.1, True, sample=order[4], trials="random"),  # beyond a gap: not counted
        said(0.1, True, sample=order[3], trials="adaptive"),  # not of the walk
        said(0.0, True, sample=order[3], trials="random", catch=True, model=None),
    ]
    found = damage_by_people(answers, samples, {"plain": [distances[s] for s in samples], "other": [0.1] * 6}, seed=0)
    assert list(found) == ["plain"]
    assert found["plain"].samples == tuple(order[:3])
    assert found["plain"].values.tolist() == [0.5, 0.0, 1.0]
    assert found["plain"].estimate().value == 0.5


def test_the_share_of_a_walk_is_unbiased_wherever_it_ends() -> None:
    """Half of the samples resist and every change goes unnoticed: 0.5, though each walk ends after 3 answers."""
    rng = np.random.default_rng(0)
    samples = [f"s{n}" for n in range(40)]
    order = walk_order(samples, seed=0)
    shares = []
    for _ in range(3000):
        resisted = dict(zip(samples, rng.random(40) < 0.5, strict=True))
        first = set([sample for sample in order if not resisted[sample]][:3])
        found = walk(
            samples,
            [np.inf if resisted[s] else 0.1 for s in samples],
            lambda s, first=first: True if s in first else None,
        )
        shares.append(found.values.mean())
    assert np.mean(shares) == pytest.approx(0.5, abs=4 * np.std(shares) / np.sqrt(3000))


def test_a_finished_walk_has_clopper_and_pearsons_interval() -> None:
    from scipy.stats import binomtest

    samples = [f"s{n}" for n in range(50)]
    found = walk(samples, [0.1] * 50, lambda sample: int(sample[1:]) < 7).estimate()
    exact = binomtest(7, 50).proportion_ci(method="exact")
    assert (found.value, found.n) == (0.14, 50)
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))


def test_a_walk_of_nothing_is_refused() -> None:
    samples = ["s0", "s1"]
    order = walk_order(samples, seed=0)
    found = walk(samples, [0.1, 0.1], lambda sample: True if sample == order[1] else None)
    with pytest.raises(RiskError, match="found no sample with an answer"):
        found.estimate()


def test_answers_about_what_another_arm_made_do_not_count() -> None:
    samples = [f"s{n}" for n in range(4)]
    answers = [said(0.1, True, sample=sample, arm="near") for sample in samples]
    near, far = {"plain": ["near"] * 4}, {"plain": ["near"] * 3 + ["far"]}
    distances = {"plain": [0.1] * 4}
    assert len(damage_by_people(answers, samples, distances, seed=0, nearest_arms=near)["plain"].samples) == 4
    found = damage_by_people(answers, samples, distances, seed=0, nearest_arms=far)["plain"]
    assert len(found.samples) == walk_order(samples, seed=0).index("s3")


def test_answers_about_a_model_that_is_compared_no_more_do_not_count() -> None:
    answers, arms = [said(0.1, True, sample="s0", model="gone")], {"plain": ["pgd"]}
    assert damage_by_people(answers, ["s0"], {"plain": [0.1]}, seed=0, nearest_arms=arms) == {}


def test_samples_of_another_run_do_not_count() -> None:
    assert damage_by_people([said(0.1, True, sample="theirs")], ["s0"], {"plain": [0.1]}, seed=0) == {}
