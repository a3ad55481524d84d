"""Answers of people to a model's samples; `risk.labelling` computes the damage.

Samples come in a random order. Those that the model resisted do no damage and need no answer. For the others, people
see the nearest success, or the clean input if the model misclassifies it.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

import numpy as np
from numpy.typing import ArrayLike

from advrisk.answers.records import Answer
from advrisk.core.seeds import key
from advrisk.risk.labelling import LabelledDamage

Answers = dict[str, dict[str, bool]]  # sample -> labeller -> whether nothing was noticed; the last answer counts


def walk_order(samples: Sequence[str], *, seed: int) -> list[str]:
    """The samples in random order, which depends on the seed and the names alone; the same for all models."""
    return sorted(samples, key=lambda sample: key("walk", seed, sample))


def damage_by_people(
    answers: Iterable[Answer],
    samples: Sequence[str],
    distances_by_model: Mapping[str, ArrayLike],
    *,
    seed: int,
    nearest_arms: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, LabelledDamage]:
    """Model -> the answers about its samples in random order, for each model with such answers.

    The walk ends before the first sample without an answer. It does not end at the last answer, as the model never
    resisted that sample: the share would be biased upwards. With `nearest_arms` (of each sample, "" for a clean input)
    only answers about the points of these arms count, as arms may have been added since.
    """
    order = walk_order(samples, seed=seed)
    index = {sample: number for number, sample in enumerate(samples)}
    damage = {}
    compared = [answer for answer in answers if answer.model in distances_by_model]
    for model, by_sample in sorted(_answers_by_model(compared, index, nearest_arms).items()):
        resisted = np.isinf(np.asarray(distances_by_model[model], dtype=np.float64))
        easy = {sample for sample in samples if resisted[index[sample]]}
        walked = _until_unanswered(order, easy | by_sample.keys())
        values = [0.0 if sample in easy else float(np.mean(list(by_sample[sample].values()))) for sample in walked]
        damage[model] = LabelledDamage(model, tuple(walked), np.array(values), _shares(order, easy, by_sample))
    return damage


def _answers_by_model(
    answers: Iterable[Answer], index: Mapping[str, int], nearest_arms: Mapping[str, Sequence[str]] | None
) -> dict[str, Answers]:
    by_model: dict[str, Answers] = {}
    for answer in answers:
        if answer.trials != "random" or answer.catch or answer.model is None or answer.sample not in index:
            continue
        if nearest_arms is not None and nearest_arms[answer.model][index[answer.sample]] != (answer.arm or ""):
            continue
        by_model.setdefault(answer.model, {}).setdefault(answer.sample, {})[answer.labeller] = answer.undetected
    return by_model


def _shares(order: Sequence[str], easy: set[str], by_sample: Answers) -> dict[str, float]:
    """Labeller -> the share of their samples, up to the first without an answer, that were broken and not noticed."""
    shares = {}
    for labeller in sorted({labeller for of_sample in by_sample.values() for labeller in of_sample}):
        own = {sample: of_sample[labeller] for sample, of_sample in by_sample.items() if labeller in of_sample}
        walked = _until_unanswered(order, easy | own.keys())
        if walked:
            shares[labeller] = float(np.mean([own.get(sample, False) for sample in walked]))
    return shares


def _until_unanswered(order: Sequence[str], answered: set[str]) -> list[str]:
    """The samples before the first without an answer."""
    return list(takewhile(answered.__contains__, order))
