"""Markov chains for labellers who share images: whether they settle, and on what."""

import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import halfnorm, norm

from advrisk.risk.evasion import BayesianEvasion, crossed, effects, fit_bayesian
from advrisk.risk.evasion.answers import Answers
from advrisk.risk.evasion.crossed import Chains, State, chains_for, crossed_draws, r_hat, start
from advrisk.risk.evasion.priors import AnswerModel


def simulated(seed: int, labellers: int, each: int, images: int, spreads: tuple[float, float], width: float) -> dict:
    rng = np.random.default_rng(seed)
    of_labeller = np.repeat(np.arange(labellers), each)
    of_image = rng.integers(0, images, of_labeller.size)
    by_labeller, by_image = spreads[0] * rng.standard_normal(labellers), spreads[1] * rng.standard_normal(images)
    sizes = np.exp(rng.uniform(-2, 2, of_labeller.size))
    p = 1 / (1 + np.exp((np.log(sizes) - by_labeller[of_labeller] - by_image[of_image]) / width))
    undetected = rng.random(of_labeller.size) < p
    return {"sizes": sizes, "undetected": undetected, "labellers": of_labeller, "images": of_image}


CASES = {
    "300 answers": simulated(5, 5, 60, 40, (0.5, 0.5), 0.2),
    "300 answers, 100 images": simulated(0, 5, 60, 100, (0.5, 0.5), 0.3),
    "500 answers": simulated(6, 5, 100, 50, (0.5, 0.5), 0.15),
    "600 answers": simulated(7, 4, 150, 40, (0.6, 0.6), 0.1),
    "600 answers, 10 labellers": simulated(8, 10, 60, 100, (0.5, 0.5), 0.15),
    "1,000 answers": simulated(9, 5, 200, 60, (0.5, 0.5), 0.1),
    "1,200 answers": simulated(1, 8, 150, 100, (0.8, 0.6), 0.1),
    "2,000 answers": simulated(2, 10, 200, 60, (1.5, 0.3), 0.05),
    "80 answers": simulated(3, 2, 40, 20, (0.1, 1.2), 0.1),
    "nobody differs": simulated(4, 5, 60, 40, (0.0, 0.0), 0.3),
}
QUICK = ("300 answers", "1,000 answers")
BY_NAME = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES]


def fitted(name: str) -> BayesianEvasion:
    return fit_bayesian(**CASES[name], guess=None, lapse=None)


def quantities(fit: BayesianEvasion) -> np.ndarray:
    """Draws of the curve's parameters and of the two spreads, (draws, 6)."""
    found = fit._effects
    assert found is not None
    assert found.of_labellers is not None
    assert found.of_images is not None
    return np.column_stack([found.parameters, found.of_labellers, found.of_images])


# Whether they settle


@pytest.mark.parametrize("name", BY_NAME)
def test_chains_agree_with_each_other(name: str) -> None:
    fit = fitted(name)
    assert fit._effects is not None
    assert fit._effects.converged
    chains = chains_for(CASES[name]["sizes"].size)
    by_chain = quantities(fit).reshape(-1, chains, 6)
    looks = len(by_chain)
    within, between = by_chain.var(axis=0, ddof=1).mean(axis=0), by_chain.mean(axis=0).var(axis=0, ddof=1)
    ratio = np.sqrt((looks - 1) / looks + between / np.maximum(within, 1e-300))
    assert ratio.max() < 1.08, ratio


LOOSE = "the lower limit of the width is off by two thirds of its standard deviation: these chains are too short for it"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xfail(reason=LOOSE, strict=True)) if name == "300 answers" else name
        for name in CASES
    ],
)
def test_the_posterior_is_that_of_chains_that_run_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = quantities(fitted(name))
    monkeypatch.setattr(crossed, "_BURN_IN", 600)
    monkeypatch.setattr(crossed, "_STATES", (1500,))
    expected = quantities(fitted(name))
    deviation = expected.std(axis=0)
    assert (np.abs(found.mean(axis=0) - expected.mean(axis=0)) < 0.25 * deviation + 1e-3).all()
    ends = [np.quantile(draws[:, [0, 1, 4, 5]], [0.025, 0.975], axis=0) for draws in (found, expected)]
    assert (np.abs(ends[0] - ends[1]) < 0.5 * deviation[[0, 1, 4, 5]]).all(), (ends, deviation)


def test_chains_leave_spreads_near_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of them begins there; without long steps of a spread with its effects they would stay."""
    answers = simulated(9, 5, 100, 60, (0.5, 0.5), 0.1)
    expected = quantities(fit_bayesian(**answers))

    def near_0(*arguments: Any) -> State:
        state = start(*arguments)
        share = np.where(np.arange(state.width.size) < 4, 1e-3, 1.0)
        return replace(state, of_images=state.of_images * share, images=state.images * share[:, None])

    monkeypatch.setattr(effects, "start", near_0)
    fit = fit_bayesian(**answers)
    found = quantities(fit)
    assert fit._effects is not None
    assert fit._effects.converged
    assert expected[:, 5].min() > 0.2
    assert found[:, 5].min() > 0.2
    assert found[:, 4:].mean(axis=0) == pytest.approx(expected[:, 4:].mean(axis=0), abs=0.06)


def test_chains_that_do_not_settle_in_time_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = simulated(0, 3, 20, 10, (0.5, 0.5), 0.3)
    monkeypatch.setattr(crossed, "_BURN_IN", 2)
    monkeypatch.setattr(crossed, "_STATES", (8, 16))
    fit = fit_bayesian(**answers)
    assert fit._effects is not None
    assert not fit._effects.converged
    assert len(fit._effects.parameters) == 12 * 16  # of 16 looks, without the first quarter


def test_chains_go_on_only_until_they_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = simulated(0, 3, 20, 10, (0.5, 0.5), 0.3)
    monkeypatch.setattr(crossed, "_CONVERGED", np.inf)
    monkeypatch.setattr(crossed, "_STATES", (8, 16))
    fit = fit_bayesian(**answers)
    assert fit._effects is not None
    assert len(fit._effects.parameters) == 6 * 16


def test_r_hat_is_the_ratio_of_gelman_and_rubin_of_half_chains() -> None:
    values = np.random.default_rng(0).standard_normal((20, 3)).cumsum(axis=0)
    halves = [chain[part] for chain in values.T for part in (slice(0, 10), slice(10, 20))]
    within = np.mean([np.var(half, ddof=1) for half in halves])
    between = 10 * np.var([np.mean(half) for half in halves], ddof=1)
    assert r_hat(values) == pytest.approx(np.sqrt((0.9 * within + between / 10) / within))
    assert r_hat(np.stack([values, 0 * values], axis=2)) == r_hat(values)


def test_r_hat_sees_a_chain_that_is_stuck_and_chains_that_drift() -> None:
    values = np.random.default_rng(0).standard_normal((100, 16))
    assert r_hat(values) < 1.01
    assert r_hat(np.where(np.arange(16) == 3, -4.0, values)) > 1.1
    assert r_hat(values + np.linspace(0, 3, 100)[:, None]) > 1.1
    assert r_hat(np.full((100, 16), 0.02)) == pytest.approx(1)
    assert r_hat(np.broadcast_to(np.arange(16.0), (100, 16))) == np.inf


# On what they settle


def test_unperturbed_images_leave_all_but_the_guess_rate_as_it_was() -> None:
    """Answers about size 0 depend on the guess rate alone, so that all else must follow its prior."""
    rng, n = np.random.default_rng(0), 400
    answers = Answers(np.zeros(12), np.arange(12) > 0)
    state = start(np.column_stack([np.zeros((n, 2)), np.full((n, 2), 0.1)]), 3, 4, rng)
    model = AnswerModel("log", (0.3, 0.8))
    found = crossed_draws(Chains(answers, np.arange(12) % 3, np.arange(12) % 4, model, state, (True, True), rng))
    at = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    assert np.quantile(found.threshold, at) == pytest.approx(norm(0.3, 0.8).ppf(at), abs=0.12)
    assert np.quantile(found.width, at) == pytest.approx(norm(np.log(0.3), 1.25).ppf(at), abs=0.18)
    for spread in (found.of_labellers, found.of_images):
        assert np.quantile(spread, at) == pytest.approx(halfnorm(scale=0.5).ppf(at), abs=0.06)
    off = (found.labellers - found.threshold[:, None]) / found.of_labellers[:, None]
    assert off.mean() == pytest.approx(0, abs=0.06)
    assert off.std() == pytest.approx(1, abs=0.05)
    assert (found.lapse == 0).mean() == pytest.approx(0.5, abs=0.05)
    assert found.lapse[found.lapse > 0].mean() == pytest.approx(0.1, abs=0.01)
    assert (found.guess > 0).all()  # there was a false alarm
    grid = (np.arange(100_000) + 0.5) / 200_000
    weight = grid * (1 - grid) ** (11 + 8)
    assert found.guess.mean() == pytest.approx(grid @ weight / weight.sum(), abs=0.006)


def test_what_is_kept_of_answers_does_not_grow_with_answers_times_images() -> None:
    n, images = 3000, 2500
    rng = np.random.default_rng(0)
    of_image = rng.integers(0, images, n)
    answers = Answers(np.exp(rng.uniform(-1, 1, n)), rng.random(n) < 0.5)
    state: State = start(np.column_stack([np.zeros((2, 2)), np.zeros((2, 2))]), 3, images, rng)
    tracemalloc.start()
    try:
        Chains(answers, np.arange(n) % 3, of_image, AnswerModel("log", (0.0, 1.0)), state, (False, False), rng).sweep(
            adapt=True
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * n * images / 10


def test_sums_are_those_of_each_group() -> None:
    values, of_answer = np.random.default_rng(0).standard_normal((2, 9)), np.array([3, 0, 0, 1, 3, 3, 1, 0, 3])
    expected = [[row[of_answer == group].sum() for group in range(5)] for row in values]
    assert crossed._sums(values, of_answer, 5) == pytest.approx(np.array(expected))
