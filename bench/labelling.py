"""Labelling: how much a number of answers tells, with sizes that are chosen by what is known or at random.

Run: python -m bench labelling. It takes some minutes.

Labellers are simulated: false alarms of 4 %, lapses of 2 %, and half of what can be noticed at all is noticed at 0.1.
One trial of six is a catch trial. The damage is that of 300 samples whose distances are exponential with mean 0.12.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np

from advrisk.answers.records import Answer, Design
from advrisk.assess.damage.answers import fit_answers
from advrisk.risk.damage import damage_probability
from advrisk.risk.evasion import half_detected
from advrisk.risk.labelling import next_size

SIZES = np.unique(np.round(np.geomspace(1, 255, 48))) / 255
PLAUSIBLE = (1 / 255, 1.0)
_WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def main(*, tiny: bool = False) -> None:
    """Print, after some numbers of answers, how wide the intervals are and how often they hold the truth."""
    labellers, checkpoints = (1, (7,)) if tiny else (40, (15, 30, 60))
    print(f"medians over {labellers} labellers; the interval of the half size as highest / lowest")
    print(f"{'design':14} {'sizes':9} {'answers':>7} {'half size':>10} {'damage ±':>9} {'held':>6} {'held':>6}")
    for design in ("yes-no", "forced-choice"):
        for adaptive in (True, False):
            rows = [list(_labeller(seed, design, checkpoints, adaptive=adaptive)) for seed in range(labellers)]
            for place, n in enumerate(checkpoints):
                ratio, width, half_held, damage_held = np.array([row[place] for row in rows]).T
                print(
                    f"{design:14} {'chosen' if adaptive else 'random':9} {n:7} {np.median(ratio):10.1f} "
                    f"{np.median(width) / 2:9.3f} {half_held.mean():6.0%} {damage_held.mean():6.0%}",
                    flush=True,
                )


def psi(sizes: Any, design: Design) -> Any:
    """The true curve; in a forced choice there are no false alarms."""
    false_alarms = 0.0 if design == "forced-choice" else 0.04
    return 0.02 + (0.98 - false_alarms) / (1 + (np.asarray(sizes) / 0.1) ** 3)


def _labeller(
    seed: int, design: Design, checkpoints: tuple[int, ...], *, adaptive: bool
) -> Iterator[tuple[float, float, bool, bool]]:
    rng, answers = np.random.default_rng(seed), list[Answer]()
    distances = rng.exponential(0.12, 300)
    truth = psi(np.sort(np.random.default_rng(0).exponential(0.12, 200_000)), design).mean()
    grid = np.geomspace(0.001, 10, 100_000)
    true_half = grid[np.argmax(psi(grid, design) < 0.5)]
    for place in range(max(checkpoints)):
        size = _next(answers, design, rng, place, adaptive=adaptive)
        wrong = rng.random() < psi(size, design) / (2 if design == "forced-choice" else 1)
        answers.append(Answer("a", "m", "a", "s", size, bool(wrong), design, "adaptive", False, False, 1.0, _WHEN))
        if len(answers) in checkpoints:
            curve = fit_answers(answers, design=design, plausible=PLAUSIBLE, few=True)
            half = half_detected(curve)
            damage = damage_probability(distances, curve, rng=rng)
            ratio = half.high / max(half.low, 1e-4)
            yield (
                ratio,
                damage.high - damage.low,
                half.low <= true_half <= half.high,
                damage.low <= truth <= damage.high,
            )


def _next(answers: list[Answer], design: Design, rng: np.random.Generator, place: int, *, adaptive: bool) -> float:
    if place % 6 == 5:
        return 1.0 if design == "forced-choice" else 0.0
    if not adaptive:
        return float(rng.choice(SIZES))
    return next_size(fit_answers(answers, design=design, plausible=PLAUSIBLE, few=True), SIZES, rng)


if __name__ == "__main__":
    main()
