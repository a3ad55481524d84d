"""Differences between labellers and images against slice sampling, which shares nothing with the code under test."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, ndtr
from scipy.stats import norm

from advrisk.core.errors import RiskError
from advrisk.risk.evasion import BayesianEvasion, fit_bayesian, values_of
from advrisk.risk.evasion.bayesian import PsychometricCurve

AT = np.array([0.2, 0.5, 1.0, 2.0, 5.0])


def simulated(n: int, labellers: int, images: int, *, spreads: tuple[float, float], width: float, seed: int) -> dict:
    """Answers of labellers about images; with 0 images, about another one each time."""
    rng = np.random.default_rng(seed)
    of_labeller = np.arange(n) % labellers
    of_image = rng.integers(0, images, n) if images else np.arange(n)
    logs = spreads[0] * rng.standard_normal(labellers)[of_labeller] + spreads[1] * rng.standard_normal(n)[of_image]
    sizes = np.exp(rng.uniform(-1.6, 1.6, n))
    undetected = rng.random(n) < expit((logs - np.log(sizes)) / width)
    return {"sizes": sizes, "undetected": undetected, "labellers": of_labeller, "images": of_image}


# Against slice sampling


def slices(log_likelihood, dimension: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Elliptical slice sampling (Murray, Adams, MacKay 2010) of a posterior whose prior is standard normal."""
    x, kept = np.zeros(dimension), []
    log = log_likelihood(x)
    for _ in range(n):
        other, least = rng.standard_normal(dimension), log + np.log(rng.random())
        angle = rng.uniform(0, 2 * np.pi)
        low, high = angle - 2 * np.pi, angle
        while (new := log_likelihood(tried := x * np.cos(angle) + other * np.sin(angle))) <= least:
            low, high = (angle, high) if angle < 0 else (low, angle)
            angle = rng.uniform(low, high)
        x, log = tried, new
        kept.append(x)
    return np.array(kept[n // 10 :])


def rate(x: float) -> float:
    """0 with probability 1/2, else of density 9 (1 - rate)^8."""
    return 1 - (2 - 2 * max(ndtr(x), 0.5)) ** (1 / 9)


def by_slices(answers: dict, scale: str, lapse: bool, forced: bool, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws of log m, log w, the spread and lapse, and the labellers' thresholds."""
    sizes, undetected, of_labeller, of_image = answers.values()
    n_labellers, n_images = of_labeller.max() + 1, of_image.max() + 1
    repeated = n_images < sizes.size
    centre, deviation = np.log(sizes.min() * sizes.max()) / 2, np.log(100 * sizes.max() / sizes.min()) / 3.919928

    def unpacked(x: np.ndarray) -> tuple[float, ...]:
        of_labellers, of_images = 0.5 * abs(x[2]) * (n_labellers > 1), 0.5 * abs(x[3]) * repeated
        return centre + deviation * x[0], np.log(0.3) + 1.25 * x[1], of_labellers, of_images, rate(x[4]) * lapse

    def log_likelihood(x: np.ndarray) -> float:
        threshold, width, of_labellers, of_images, missed = unpacked(x)
        logs = threshold + of_labellers * x[5 + of_labeller] + of_images * x[5 + n_labellers + of_image]
        steep = np.exp(-width)
        fallen = (
            expit((logs - np.log(sizes)) * steep)
            if scale == "log"
            else expit((1 - sizes * np.exp(-logs)) * steep) / expit(steep)
        )
        p = (missed + (1 - missed) * fallen) / (2 if forced else 1)
        return float(np.log(np.maximum(np.where(undetected, p, 1 - p), 1e-300)).sum())

    drawn = slices(log_likelihood, 5 + n_labellers + n_images, n, np.random.default_rng(seed))
    parameters = np.array([unpacked(x) for x in drawn])
    thresholds = np.exp(parameters[:, :1] + parameters[:, 2:3] * drawn[:, 5 : 5 + n_labellers])
    spread = np.hypot(parameters[:, 2], parameters[:, 3])
    return np.column_stack([parameters[:, :2], spread, parameters[:, 4]]), thresholds


def population(parameters: np.ndarray, scale: str) -> np.ndarray:
    """Each draw's curve at AT, averaged over 200 quantiles of its thresholds."""
    logs, width, spread, lapse = parameters.T[:, :, None]
    total = 0.0
    for z in norm.ppf((np.arange(200) + 0.5) / 200):
        x, steep = logs + spread * z, np.exp(-width)
        total += (
            expit((x - np.log(AT)) * steep) if scale == "log" else expit((1 - AT * np.exp(-x)) * steep) / expit(steep)
        )
    return lapse + (1 - lapse) * total / 200


CASES = {
    "few answers": (simulated(12, 3, 0, spreads=(0.5, 0), width=0.3, seed=3), {}),
    "three labellers": (simulated(60, 3, 0, spreads=(0.5, 0), width=0.3, seed=1), {}),
    "nearly separated": (simulated(48, 4, 0, spreads=(0.5, 0), width=0.02, seed=2), {}),
    "linear, lapses": (simulated(60, 3, 0, spreads=(0.5, 0), width=0.2, seed=4), {"scale": "linear", "lapse": None}),
    "one labeller, images": (simulated(60, 1, 15, spreads=(0, 0.5), width=0.2, seed=5), {}),
    "labellers and images": (simulated(90, 3, 15, spreads=(0.5, 0.5), width=0.2, seed=6), {}),
    "labellers and images, nearly separated": (simulated(60, 4, 12, spreads=(0.3, 0.6), width=0.02, seed=7), {}),
    "labellers and images, forced": (
        simulated(90, 3, 15, spreads=(0.5, 0.5), width=0.2, seed=8),
        {"forced_choice": True, "lapse": None},
    ),
}


QUICK = ("few answers", "nearly separated", "labellers and images")


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CASES])
def test_the_posterior_is_that_of_slice_sampling(name: str) -> None:
    answers, options = CASES[name]
    fit = fit_bayesian(**answers, **options)
    scale, lapse, forced = options.get("scale", "log"), "lapse" in options, options.get("forced_choice", False)
    parameters, thresholds = by_slices(answers, scale, lapse, forced, 15_000, seed=0)
    values = population(parameters[::10], scale)
    drawn = values_of(fit.draws(4096, np.random.default_rng(0)), AT)  # all that there are
    assert fit(AT) == pytest.approx(values.mean(axis=0), abs=0.025)
    assert drawn.mean(axis=0) == pytest.approx(values.mean(axis=0), abs=0.025)
    assert drawn.std(axis=0) == pytest.approx(values.std(axis=0), abs=0.025)
    found = np.log([[e.low, e.value, e.high] for e in fit.labellers.values()])
    expected = np.log(np.quantile(thresholds, [0.025, 0.5, 0.975], axis=0).T)
    width = expected[:, 2:] - expected[:, :1]
    assert (np.abs(found - expected) < 0.15 * width).all()


@pytest.mark.parametrize("scale", ["log", "linear"])
@pytest.mark.parametrize("spread", [0.1, 0.8])
def test_the_curve_of_a_population_is_the_mean_of_its_curves(scale: str, spread: float) -> None:
    curve = PsychometricCurve(0.7, 0.2, guess=0.1, lapse=0.05, scale=scale, spread=spread)
    for size in (0.0, 0.3, 0.8, 3.0):
        mean, _ = quad(
            lambda z, size=size: norm.pdf(z)
            * PsychometricCurve(0.7 * np.exp(spread * z), 0.2, guess=0.1, lapse=0.05, scale=scale)(size),
            -8, 8, limit=200,
        )  # fmt: skip
        assert curve(size) == pytest.approx(mean, abs=1e-5)
    assert curve(np.inf) == 0


# What is said of labellers and images


def width_at(fit: BayesianEvasion, size: float) -> float:
    low, high = np.quantile(values_of(fit.draws(2000, np.random.default_rng(0)), np.array([size])), [0.025, 0.975])
    return float(high - low)


def test_one_labeller_and_no_image_twice_is_the_curve_without_them() -> None:
    answers = simulated(30, 1, 0, spreads=(0, 0), width=0.3, seed=0)
    fit, plain = fit_bayesian(**answers), fit_bayesian(answers["sizes"], answers["undetected"])
    np.testing.assert_array_equal(fit(AT), plain(AT))
    np.testing.assert_array_equal(
        values_of(fit.draws(9, np.random.default_rng(0)), AT), values_of(plain.draws(9, np.random.default_rng(0)), AT)
    )
    assert fit.spread_of_labellers is None
    assert fit.spread_of_images is None
    thresholds = [curve.threshold for curve in plain.draws(4000, np.random.default_rng(1))]
    assert fit.labellers["0"].value == pytest.approx(np.median(thresholds), rel=0.03)
    assert plain.labellers == {}


def test_unchanged_images_shown_twice_say_nothing_about_images() -> None:
    sizes, undetected = [0.0, 0.0, 0.5, 1.0, 1.5, 2.0], [1, 1, 1, 1, 0, 0]
    assert fit_bayesian(sizes, undetected, images=list("aabcde")).spread_of_images is None
    assert fit_bayesian(sizes, undetected, images=list("aabbcd")).spread_of_images is not None


def test_a_careless_labeller_is_seen() -> None:
    rng = np.random.default_rng(0)
    names = np.repeat(["ann", "bob", "cleo", "dan"], 40)
    sizes = np.exp(rng.uniform(-1.6, 2.5, 160))
    undetected = rng.random(160) < expit((np.where(names == "dan", 1.5, 0.0) - np.log(sizes)) / 0.3)
    fit = fit_bayesian(sizes, undetected, labellers=names)
    others = [fit.labellers[name] for name in ("ann", "bob", "cleo")]
    assert fit.labellers["dan"].low > 1.5 * max(other.high for other in others)
    assert all(other.low < 1 < other.high and other.n == 40 for other in others)
    assert fit.labellers["dan"].low < np.exp(1.5) < fit.labellers["dan"].high
    assert fit.spread_of_labellers is not None
    assert fit.spread_of_labellers.low > 0.2


def test_equal_labellers_widen_the_curve_by_little_and_different_ones_by_much() -> None:
    equal, different = (simulated(240, 8, 0, spreads=(spread, 0), width=0.3, seed=1) for spread in (0.0, 0.7))
    pooled = [fit_bayesian(a["sizes"], a["undetected"]) for a in (equal, different)]
    apart = [fit_bayesian(**a) for a in (equal, different)]
    assert width_at(apart[0], 1.0) < 1.5 * width_at(pooled[0], 1.0)
    assert width_at(apart[1], 1.0) > 2 * width_at(pooled[1], 1.0)


def test_spreads_are_found_from_many_answers() -> None:
    rng = np.random.default_rng(0)
    of_labeller, of_image = np.divmod(np.arange(1200), 40)
    logs = 0.6 * rng.standard_normal(30)[of_labeller] + 0.3 * rng.standard_normal(40)[of_image]
    sizes = np.exp(logs.mean() + rng.uniform(-1.5, 1.5, 1200))
    undetected = rng.random(1200) < expit((logs - np.log(sizes)) / 0.15)
    fit = fit_bayesian(sizes, undetected, labellers=of_labeller, images=of_image)
    assert fit.spread_of_labellers is not None
    assert fit.spread_of_images is not None
    assert fit.spread_of_labellers.low < 0.6 < fit.spread_of_labellers.high
    assert fit.spread_of_images.low < 0.3 < fit.spread_of_images.high
    assert fit.spread_of_images.value < 0.45 < fit.spread_of_labellers.value


def test_the_same_answers_give_the_same_numbers_whatever_the_names() -> None:
    answers = simulated(40, 3, 10, spreads=(0.5, 0.5), width=0.2, seed=0)
    np.random.seed(1)
    before = np.random.get_state()[1].copy()  # type: ignore[index]
    first = fit_bayesian(**answers)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # type: ignore[index]
    renamed = {**answers, "labellers": [f"person {name}" for name in answers["labellers"]]}
    second = fit_bayesian(**renamed)
    np.testing.assert_array_equal(first(AT), second(AT))
    assert list(second.labellers.values()) == list(first.labellers.values())
    assert list(second.labellers) == ["person 0", "person 1", "person 2"]


@pytest.mark.parametrize("images", [None, ["a", "a"]])
def test_two_answers_are_enough_if_that_is_asked_for(images: list[str] | None) -> None:
    fit = fit_bayesian([1.0, 1.0], [1, 1], few=True, plausible=(0.1, 10.0), labellers=["a", "b"], images=images)
    assert fit(1.0) > 0.5
    assert (np.diff(fit(AT)) < 0).all()
    assert (fit.expected_information(AT) > 0).all()
    none = fit_bayesian([], [], few=True, plausible=(0.1, 10.0), labellers=[], images=[])
    assert none(1.0) == pytest.approx(0.5, abs=1e-6)
    assert none.labellers == {}


@pytest.mark.parametrize("undetected", [0, 1])
def test_answers_that_are_all_alike_leave_a_wide_curve(undetected: int) -> None:
    """On the linear scale, and with images without answers that would hold them, steps of the chains get long."""
    sizes = np.geomspace(0.5, 2, 12)
    names = {"labellers": np.arange(12) % 2, "images": np.arange(12) % 5}
    fit = fit_bayesian(sizes, np.full(12, undetected), few=True, plausible=(0.1, 10.0), scale="linear", **names)
    assert (fit(1.0) > 0.6) == bool(undetected)
    assert width_at(fit, 1.0) > 0.2


def test_an_answer_tells_most_near_the_threshold_of_the_population() -> None:
    answers = simulated(150, 5, 0, spreads=(0.3, 0), width=0.2, seed=0)
    information = fit_bayesian(**answers).expected_information([0.01, 1.0, 100.0])
    assert information[1] > 5 * max(information[0], information[2])


def test_draws_are_as_many_as_are_asked_for() -> None:
    fit = fit_bayesian(**simulated(30, 2, 0, spreads=(0.3, 0), width=0.2, seed=0))
    assert len(fit.draws(7, np.random.default_rng(0))) == 7
    assert len(fit.draws(4500, np.random.default_rng(0))) == 4500


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labellers": ["a"]}, "there are 3 answers and 1 labellers; each answer needs its labeller"),
        ({"images": ["a"] * 4}, "there are 3 answers and 4 images"),
        ({"labellers": "abc"}, "labellers: one for each answer is needed, found 'abc'"),
        ({"images": 3}, "images: one for each answer is needed, found 3"),
    ],
)
def test_names_that_do_not_fit_are_refused(options: dict, message: str) -> None:
    with pytest.raises(RiskError, match=message):
        fit_bayesian([1.0, 2.0, 3.0], [1, 1, 0], **options)


# Forced choice


def test_forced_choice_is_the_prior_weighted_by_the_likelihood() -> None:
    rng, n = np.random.default_rng(0), 400_000
    sizes = np.array([0.2, 0.4, 0.5, 0.7, 0.8, 1.0, 1.1, 1.3, 1.6, 2.0, 3.0, 4.0])
    wrong = np.array([1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 0], dtype=bool)
    m = np.exp(np.log(0.02 * 40) / 2 + np.log(40 / 0.02) / (2 * 1.959964) * rng.standard_normal(n))
    r = np.exp(np.log(0.3) + 1.25 * rng.standard_normal(n))
    psi = 0.04 + 0.96 * expit(np.log(m / np.append(sizes, AT)[:, None]) / r)
    likelihood = np.prod(np.where(wrong[:, None], psi[:12] / 2, 1 - psi[:12] / 2), axis=0)
    likelihood /= likelihood.sum()
    mean = psi[12:] @ likelihood
    fit = fit_bayesian(sizes, wrong, forced_choice=True, lapse=0.04)
    assert fit(AT) == pytest.approx(mean, abs=0.006)
    # what an answer tells: the entropy of a wrong choice, less its mean
    entropy = lambda p: -(p * np.log(p) + (1 - p) * np.log1p(-p))  # noqa: E731
    expected = entropy(mean / 2) - entropy(np.clip(psi[12:] / 2, 1e-12, None)) @ likelihood
    assert fit.expected_information(AT) == pytest.approx(expected, abs=0.006)


def test_forced_choice_finds_the_curve_from_many_answers() -> None:
    rng = np.random.default_rng(0)
    sizes = np.exp(rng.uniform(-2, 2, 4000))
    psi = expit(-np.log(sizes) / 0.4)
    fit = fit_bayesian(sizes, rng.random(4000) < psi / 2, forced_choice=True)
    assert fit(AT) == pytest.approx(expit(-np.log(AT) / 0.4), abs=0.05)


@pytest.mark.parametrize(
    ("sizes", "options", "message"),
    [
        ([1.0, 2.0], {"guess": 0.1}, "guess must be 0, found 0.1"),
        ([1.0, 2.0], {"guess": None}, "guess must be 0, found None"),
        ([0.0, 2.0], {}, "1 answers are about size 0, where neither picture of a forced choice is perturbed"),
    ],
)
def test_what_forced_choice_cannot_ask_is_refused(sizes: list[float], options: dict, message: str) -> None:
    with pytest.raises(RiskError, match=message):
        fit_bayesian(sizes, [1, 0], forced_choice=True, **options)
