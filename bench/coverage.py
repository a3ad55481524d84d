"""Coverage: how often 95 % intervals of damage under an evasion curve hold the true damage.

Run: python -m bench coverage. 100 runs for each line; `main` takes more runs, some lines, and other numbers of samples:
python -c "from bench.coverage import *; main(300, LABELLERS | CROSSED | POOLED, [200])".

Samples and answers are drawn from a detector and from distances that are known, so the true damage is
a mean over quantiles. A distance is 0, lognormal (on a grid, if there are to be ties), or inf.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advrisk.risk.damage import EvasionComparison, compare_damage
from advrisk.risk.evasion import Evasion, fit_bayesian, fit_logistic, fit_monotone, threshold

LEVEL = 0.95
N_ANSWERS = 60
PER_LABELLER = 30
SPREAD = 0.5  # of log thresholds between labellers

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Margin:
    """The distances of one model."""

    zero: float
    success: float
    centre: float = 0.0  # of the log distance
    grid: float = 0.0

    def distances(self, quantiles: Floats) -> Floats:
        from scipy.special import ndtri

        within = np.clip((quantiles - self.zero) / max(self.success, 1e-300), 1e-12, 1 - 1e-12)
        finite = np.exp(self.centre + 0.8 * ndtri(within))
        finite = np.ceil(finite / self.grid) * self.grid if self.grid else finite
        return np.where(quantiles < self.zero, 0.0, np.where(quantiles < self.zero + self.success, finite, np.inf))


Detector = Callable[[Floats], Floats]
Answers = tuple[Any, ...]  # sizes and flags, and who gave each answer and what it is about, if that is told


@dataclass(frozen=True)
class Setting:
    """A detector, how it is asked, and how its curve is found from the answers; without these two it is known."""

    detector: Detector
    fit: Callable[..., Evasion] | None = None
    ask: Callable[[Detector, np.random.Generator], Answers] | None = None


def log_logistic(sizes: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return 1 / (1 + np.asarray(sizes) ** (1 / 0.3))


def logistic(sizes: Floats) -> Floats:
    """With 2 % false alarms."""
    return 1 / (1 + np.exp(-(4 - 4 * np.asarray(sizes))))


def careless(sizes: Floats) -> Floats:
    """With 10 % false alarms and 5 % lapses."""
    return 0.05 + 0.85 * log_logistic(sizes)


def spread(detector: Detector, rng: np.random.Generator) -> Answers:
    """Sizes chosen before any answer is known, from a fifth to five times the threshold."""
    return _asked(detector, np.exp(rng.uniform(-np.log(5), np.log(5), N_ANSWERS)), rng)


def with_catches(detector: Detector, rng: np.random.Generator) -> Answers:
    """As many answers more are about inputs that were not changed."""
    sizes = np.exp(rng.uniform(-np.log(5), np.log(5), N_ANSWERS))
    return _asked(detector, np.concatenate([sizes, np.zeros(N_ANSWERS)]), rng)


def few_sizes(detector: Detector, rng: np.random.Generator) -> Answers:
    return _asked(detector, np.repeat([0.2, 0.5, 0.8, 1.1, 1.6, 2.5], N_ANSWERS // 6), rng)


def staircase(detector: Detector, rng: np.random.Generator) -> Answers:
    """One step up after an undetected perturbation, one step down after a detected one."""
    sizes, undetected, size = [], [], 3.0
    for _ in range(N_ANSWERS):
        sizes.append(size)
        undetected.append(bool(rng.random() < detector(np.array(size))))
        size *= 1.25 if undetected[-1] else 0.8
    return np.array(sizes), np.array(undetected)


def _asked(detector: Detector, sizes: Floats, rng: np.random.Generator) -> Answers:
    return sizes, rng.random(sizes.size) < detector(sizes)


def different(sizes: Floats) -> Floats:
    """The mean of `log_logistic` over labellers whose log thresholds have the standard deviation SPREAD."""
    grid, values = _different_table()
    with np.errstate(divide="ignore"):
        return np.interp(np.log(sizes), grid, values)


@cache
def _different_table() -> tuple[Floats, Floats]:
    from scipy.special import ndtri

    grid = np.linspace(-8, 8, 4001)
    shifts = SPREAD * ndtri((np.arange(1000) + 0.5) / 1000)
    return grid, np.array([np.mean(log_logistic(np.exp(x - shifts))) for x in grid])


def labellers(count: int, spread_of_labellers: float, *, told: bool = True) -> Callable[..., Answers]:
    """Each gives 30 answers, with a threshold of their own; who gave which is told or not."""

    def ask(_: Detector, rng: np.random.Generator) -> Answers:
        of_answer = np.repeat(np.arange(count), PER_LABELLER)
        thresholds = np.exp(spread_of_labellers * rng.standard_normal(count))
        sizes = np.exp(rng.uniform(-np.log(5), np.log(5), of_answer.size))
        undetected = rng.random(sizes.size) < log_logistic(sizes / thresholds[of_answer])
        return (sizes, undetected, of_answer) if told else (sizes, undetected)

    return ask


def labellers_and_images(_: Detector, rng: np.random.Generator) -> Answers:
    """Five labellers and 40 images, which share the variance equally; each labeller sees 30 of the images."""
    of_labeller = np.repeat(np.arange(5), PER_LABELLER)
    of_image = np.concatenate([rng.permutation(40)[:PER_LABELLER] for _ in range(5)])
    each = SPREAD / np.sqrt(2)
    logs = each * (rng.standard_normal(5)[of_labeller] + rng.standard_normal(40)[of_image])
    sizes = np.exp(rng.uniform(-np.log(5), np.log(5), logs.size))
    return sizes, rng.random(sizes.size) < log_logistic(sizes / np.exp(logs)), of_labeller, of_image


def with_effects(
    sizes: Floats, undetected: NDArray[np.bool_], of_labeller: Floats, of_image: Floats | None = None
) -> Evasion:
    images = None if of_image is None else of_image.tolist()
    return fit_bayesian(sizes, undetected, labellers=of_labeller.tolist(), images=images)


def forced(detector: Detector, rng: np.random.Generator) -> Answers:
    """Which of two pictures is perturbed; twice as many answers, since half of the wrong ones are hidden by luck."""
    sizes = np.exp(rng.uniform(-np.log(5), np.log(5), 2 * N_ANSWERS))
    return sizes, rng.random(sizes.size) < detector(sizes) / 2


SETTINGS: dict[str, Setting] = {
    "threshold": Setting(threshold(1.0)),
    "known curve": Setting(log_logistic),
    "logistic": Setting(logistic, fit_logistic, spread),
    "bayesian": Setting(log_logistic, fit_bayesian, spread),
    "bayesian, sizes chosen by answers": Setting(log_logistic, fit_bayesian, staircase),
    "bayesian, linear scale": Setting(
        logistic, lambda sizes, answers: fit_bayesian(sizes, answers, scale="linear", guess=0.02), spread
    ),
    "bayesian, learned rates": Setting(
        careless, lambda sizes, answers: fit_bayesian(sizes, answers, guess=None, lapse=None), with_catches
    ),
    "monotone": Setting(log_logistic, fit_monotone, spread),
    "monotone, six sizes": Setting(log_logistic, fit_monotone, few_sizes),
}

LABELLERS: dict[str, Setting] = {
    "forced choice": Setting(
        log_logistic, lambda sizes, answers: fit_bayesian(sizes, answers, forced_choice=True), forced
    ),
    "3 labellers": Setting(different, with_effects, labellers(3, SPREAD)),
    "8 labellers": Setting(different, with_effects, labellers(8, SPREAD)),
    "3 equal labellers": Setting(log_logistic, with_effects, labellers(3, 0.0)),
    "8 equal labellers": Setting(log_logistic, with_effects, labellers(8, 0.0)),
}

CROSSED: dict[str, Setting] = {"labellers and images": Setting(different, with_effects, labellers_and_images)}

POOLED: dict[str, Setting] = {
    "3 labellers, not told apart": Setting(different, fit_bayesian, labellers(3, SPREAD, told=False)),
    "8 labellers, not told apart": Setting(different, fit_bayesian, labellers(8, SPREAD, told=False)),
}

POPULATIONS: dict[str, Margin] = {
    "damage 2 %": Margin(0, 0.04),
    "10 %": Margin(0, 0.2),
    "50 %": Margin(0, 1.0),
    "far": Margin(0, 0.5, centre=1.5),
    "zeros": Margin(0.1, 0.3),
    "rare zeros": Margin(0.02, 0.0),
    "ties": Margin(0.02, 0.6, grid=0.5),
}


def true_damage(setting: Setting) -> Floats:
    """The mean of the true curve over the distances of each population."""
    quantiles = (np.arange(400_000) + 0.5) / 400_000
    return np.array([_mean(setting.detector, margin.distances(quantiles)) for margin in POPULATIONS.values()])


def _mean(detector: Detector, distances: Floats) -> float:
    finite = distances[np.isfinite(distances)]
    return float(np.sum(detector(finite)) / distances.size)


def comparisons(setting: Setting, n: int, runs: int, *, seed: int = 0) -> Iterator[EvasionComparison]:
    """Studies of all populations on n samples, each with answers of its own."""
    rng = np.random.default_rng([n, seed])
    for _ in range(runs):
        quantiles = rng.random((len(POPULATIONS), n))
        by_model = {
            name: margin.distances(row) for (name, margin), row in zip(POPULATIONS.items(), quantiles, strict=True)
        }
        yield compare_damage(by_model, _curve(setting, rng), level=LEVEL, rng=rng)


def misses(setting: Setting, n: int, runs: int) -> tuple[NDArray[np.int64], Floats]:
    """How often the interval of each population's damage does not hold the truth, and its mean width."""
    truth = true_damage(setting)
    found, width = np.zeros(truth.size, dtype=np.int64), np.zeros(truth.size)
    for comparison in comparisons(setting, n, runs):
        estimates = list(comparison.estimates.values())
        low, high = np.array([e.low for e in estimates]), np.array([e.high for e in estimates])
        found += (truth < low) | (truth > high)
        width += high - low
    return found, width / runs


def _curve(setting: Setting, rng: np.random.Generator) -> Evasion:
    """The detector is asked again if its answers are all alike, as one would do."""
    if setting.fit is None or setting.ask is None:
        return setting.detector
    while True:
        answers = setting.ask(setting.detector, rng)
        if answers[1].any() and not answers[1].all():
            return setting.fit(*answers)


def main(
    runs: int = 100,
    settings: dict[str, Setting] = SETTINGS,
    sizes: Sequence[int] = (100,),
    *,
    tiny: bool = False,
) -> None:
    """Print a table: a line for each setting and n, a column for each population."""
    runs, sizes = (1, (20,)) if tiny else (runs, sizes)
    print(f"{'coverage, and mean width':<34} {'n':>5}  " + "  ".join(f"{name:>12}" for name in POPULATIONS))
    for n in sizes:
        for name, setting in settings.items():
            found, width = misses(setting, n, runs)
            cells = [f"{100 * (1 - m / runs):5.1f} {w:6.3f}" for m, w in zip(found, width, strict=True)]
            print(f"{name:<34} {n:>5}  " + "  ".join(f"{cell:>12}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
