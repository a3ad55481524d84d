"""Damage as people saw it: Algorithm 1 with human detectors.

Samples are walked through in a random order. Those that the model resisted do no damage and need no answer; of the
others, people were shown the nearest success, or the clean input if the model has that wrong.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
from numpy.typing import ArrayLike

from advrisk.answers.records import Answer
from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.seeds import key
from advrisk.risk.evasion import Floats
from advrisk.risk.monte_carlo import monte_carlo_from_answers

Said = dict[str, dict[str, bool]]  # sample -> labeller -> whether nothing was noticed; the last answer counts


@dataclass(frozen=True, eq=False)
class SeenByPeople:
    """Samples in a random order, up to the first that nobody has answered yet.

    The value of a sample is 0 if the model resisted, else the share of labellers who noticed nothing.
    """

    model: str
    samples: tuple[str, ...]
    values: Floats
    of_labellers: Mapping[str, float]  # the same share of each, over the samples that they have come to

    def estimate(self, *, level: float = 0.95) -> Estimate:
        """The share of samples that were broken and not noticed.

        Of one labeller the interval is Clopper and Pearson's, and says nothing about others. With several, those
        who were asked stand for all who could have been: a t interval with the variance between them and that
        between samples, or Gaffke's where that is wider.
        """
        if not self.samples:
            raise RiskError(f"{self.model}: no sample was walked yet; answer at least one")
        found = monte_carlo_from_answers(self.values, level=level, rng=np.random.default_rng(0))
        shares = np.array(list(self.of_labellers.values()))
        if shares.size < 2:
            return Estimate(found.value, found.low, found.high, level, found.n, f"{found.method}, one labeller")
        half = self._half_width(shares, level)
        low, high = max(min(found.low, found.value - half), 0.0), min(max(found.high, found.value + half), 1.0)
        return Estimate(found.value, low, high, level, found.n, f"{found.method}, {shares.size} labellers")

    def _half_width(self, shares: Floats, level: float) -> float:
        from scipy.special import stdtrit

        n = self.values.size
        between = float(shares.var(ddof=1)) / shares.size
        within = float(self.values.var(ddof=1)) / n if n > 1 else 0.25
        return float(stdtrit(shares.size - 1, (1 + level) / 2)) * float(np.sqrt(between + within))


def walk_order(samples: Sequence[str], *, seed: int) -> list[str]:
    """The samples in an order that depends on the seed and each name alone; the same for all models."""
    return sorted(samples, key=lambda sample: key("walk", seed, sample))


def seen_by_people(
    answers: Iterable[Answer],
    samples: Sequence[str],
    distances_by_model: Mapping[str, ArrayLike],
    *,
    seed: int,
    nearest_arms: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, SeenByPeople]:
    """What was seen of each model that was asked about at random.

    It ends before the first sample that is still to be answered, not with the last that was: that the last one
    is always one that the model did not resist would make the share too large. With `nearest_arms` (of each sample,
    "" for a clean input) only answers about what these arms made count: other arms may have come since.
    """
    order = walk_order(samples, seed=seed)
    place = {sample: number for number, sample in enumerate(samples)}
    found = {}
    compared = [answer for answer in answers if answer.model in distances_by_model]
    for model, said in sorted(_said(compared, place, nearest_arms).items()):
        resisted = np.isinf(np.asarray(distances_by_model[model], dtype=np.float64))
        easy = {sample for sample in samples if resisted[place[sample]]}
        walked = _until_unknown(order, easy | said.keys())
        values = [0.0 if sample in easy else float(np.mean(list(said[sample].values()))) for sample in walked]
        found[model] = SeenByPeople(model, tuple(walked), np.array(values), _shares(order, easy, said))
    return found


def _said(
    answers: Iterable[Answer], place: Mapping[str, int], nearest_arms: Mapping[str, Sequence[str]] | None
) -> dict[str, Said]:
    said: dict[str, Said] = {}
    for answer in answers:
        if answer.trials != "random" or answer.catch or answer.model is None or answer.sample not in place:
            continue
        if nearest_arms is not None and nearest_arms[answer.model][place[answer.sample]] != (answer.arm or ""):
            continue
        said.setdefault(answer.model, {}).setdefault(answer.sample, {})[answer.labeller] = answer.undetected
    return said


def _shares(order: Sequence[str], easy: set[str], said: Said) -> dict[str, float]:
    """Of each labeller who has come to a sample: the share of those up to there that were broken and not noticed."""
    shares = {}
    for name in sorted({name for of_sample in said.values() for name in of_sample}):
        own = {sample: of_sample[name] for sample, of_sample in said.items() if name in of_sample}
        walked = _until_unknown(order, easy | own.keys())
        if walked:
            shares[name] = float(np.mean([own.get(sample, False) for sample in walked]))
    return shares


def _until_unknown(order: Sequence[str], known: set[str]) -> list[str]:
    """The samples before the first that is not known."""
    return list(takewhile(known.__contains__, order))
