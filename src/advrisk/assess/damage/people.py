"""What people saw of a model's samples, from their answers; `risk.people` makes the damage of it.

Samples are walked through in a random order. Those that the model resisted do no damage and need no answer; of the
others, people were shown the nearest success, or the clean input if the model has that wrong.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

import numpy as np
from numpy.typing import ArrayLike

from advrisk.answers.records import Answer
from advrisk.core.seeds import key
from advrisk.risk.labelling import LabelledDamage

Said = dict[str, dict[str, bool]]  # sample -> labeller -> whether nothing was noticed; the last answer counts


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
) -> dict[str, LabelledDamage]:
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
        found[model] = LabelledDamage(model, tuple(walked), np.array(values), _shares(order, easy, said))
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
