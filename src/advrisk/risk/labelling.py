"""Numbers from people's answers: their curve, what to ask next, and how far they agree.

Nothing here knows pictures, pages or databases.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from advrisk.answers.records import Answer, Design
from advrisk.core.errors import RiskError
from advrisk.risk.evasion import BayesianEvasion, fit_bayesian, unlike_groups

_ALPHA = 0.01  # answers are looked at again and again while they come in
FORCED_CHOICE_UNTESTED = "Whether answers differ between models or arms is not tested for forced choices."
_NEARLY_BEST = 0.9  # sizes that promise so much of the best one's information are as good
_BIN = np.log(1.25)  # sizes within it count as the same when labellers are compared


# The curve


def fit_answers(
    answers: Sequence[Answer],
    *,
    design: Design | None = None,
    plausible: tuple[float, float] | None = None,
    few: bool = False,
) -> BayesianEvasion:
    """The evasion curve of a new labeller and a new picture; false alarms and lapses are learned from the answers.

    With several labellers, or pictures that were asked about twice, their differences are learned, too. Sizes are
    chosen in the light of earlier answers, so the curve is a posterior and nothing is resampled. `few` takes any
    number of answers, even none, of which `design` then says how they would be given.
    """
    forced = _design(answers, design) == "forced-choice"
    return fit_bayesian(
        [answer.size for answer in answers],
        [answer.undetected for answer in answers],
        guess=0.0 if forced else None,  # of two pictures one is changed: there is no false alarm
        lapse=None,
        plausible=plausible,
        few=few,
        forced_choice=forced,
        labellers=[answer.labeller for answer in answers],
        images=[answer.sample for answer in answers],
    )


def group_warnings(answers: Sequence[Answer]) -> list[str]:
    """What to say before one curve is used for all models and arms: where their answers differ.

    Answers to unchanged pictures belong to no model and are left out; of a forced choice, which is no yes or no, it
    is said that nothing was tested. Differences between labellers are part of the curve.
    """
    if any(answer.design == "forced-choice" for answer in answers):
        return [FORCED_CHOICE_UNTESTED]
    asked = [answer for answer in answers if answer.size > 0]
    if len({answer.undetected for answer in asked}) < 2 or len({answer.size for answer in asked}) < 2:
        return []
    return unlike_groups(
        [answer.size for answer in asked],
        [answer.undetected for answer in asked],
        {"model": [answer.model for answer in asked], "arm": [answer.arm for answer in asked]},
        alpha=_ALPHA,
        rng=np.random.default_rng(0),
    )


# What to ask next


def next_size(curve: BayesianEvasion, sizes: ArrayLike, rng: np.random.Generator) -> float:
    """A size of nearly the greatest expected information: not always the same one, as several may be asked at once."""
    array = np.asarray(sizes, dtype=np.float64)
    if array.size == 0:
        raise RiskError("there is no size to choose from")
    information = curve.expected_information(array)
    return float(rng.choice(array[information >= _NEARLY_BEST * information.max()]))


# Agreement


@dataclass(frozen=True)
class Agreement:
    """How far labellers say the same of the same."""

    alpha: float | None  # None where it is not defined
    n_units: int  # pictures (one original at about one size) that two or more labellers answered
    n_labellers: int  # who answered such


def krippendorff_alpha(values: ArrayLike) -> float | None:
    """Krippendorff's alpha for nominal values (labellers, units); nan where a labeller did not answer.

    alpha = 1 - D_o / D_e (Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability"): D_o is the share of
    unlike pairs within units, D_e that among all values that can be paired. None if nothing can be paired, or if
    all such values are the same: then nothing says whether labellers could have differed.
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2:
        raise RiskError(f"values of (labellers, units) are needed, found an array of shape {table.shape}")
    categories = np.unique(table[~np.isnan(table)])
    counts = (table == categories[:, None, None]).sum(axis=1)  # (categories, units)
    total = counts.sum(axis=0)
    counts, total = counts[:, total >= 2], total[total >= 2]
    of_category, n = counts.sum(axis=1), counts.sum()
    expected = n**2 - (of_category**2).sum()
    if expected == 0:
        return None
    unlike = ((total**2 - (counts**2).sum(axis=0)) / (total - 1)).sum()
    return float(1 - (n - 1) * unlike / expected)


def agreement(answers: Iterable[Answer]) -> Agreement:
    """Alpha over originals at about the same size, whatever changed them; of a labeller the last answer counts."""
    said: dict[tuple[str, int | None], dict[str, bool]] = {}
    for answer in answers:
        step = None if answer.size == 0 else round(float(np.log(answer.size) / _BIN))
        said.setdefault((answer.sample, step), {})[answer.labeller] = answer.undetected
    shared = [unit for unit in said.values() if len(unit) >= 2]
    names = sorted({name for unit in shared for name in unit})
    table = np.array([[float(unit[name]) if name in unit else np.nan for unit in shared] for name in names])
    return Agreement(krippendorff_alpha(table) if shared else None, len(shared), len(names))


def _design(answers: Sequence[Answer], given: Design | None) -> Design:
    designs = {answer.design for answer in answers} | ({given} if given else set())
    if len(designs) > 1:
        raise RiskError(f"answers of {' and '.join(sorted(designs))} do not belong to one curve; fit them apart")
    return designs.pop() if designs else "yes-no"
