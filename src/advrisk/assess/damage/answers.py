"""Curves of answers, doubts about their shape and about one curve for all models, and how far people agree.

Nothing here knows pictures, pages or databases.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from advrisk.answers.records import Answer, Design
from advrisk.core.errors import RiskError
from advrisk.risk.evasion import (
    BayesianEvasion,
    DifferenceTest,
    MonotoneEvasion,
    ShapeTest,
    fit_bayesian,
    fit_monotone,
    shape_test,
    tested_groups,
)
from advrisk.risk.labelling import Agreement, krippendorff_alpha

_ALPHA = 0.01  # answers are looked at again and again while they come in
FORCED_CHOICE_UNTESTED = "Whether answers differ between models or arms is not tested for forced choices."
_BIN = np.log(1.25)  # sizes within it count as the same when labellers are compared
MONOTONE_OPTION = "fit a curve that only falls (`--fit monotone`), whose intervals are wider and hold"
MONOTONE_LABELS = "write one that only falls (`--fit FILE --curve monotone`), whose intervals are wider and hold"
MONOTONE_OF_RUN = (
    "what is counted sample by sample assumes no shape, nor does `advrisk evasion RUN --detector NAME --fit monotone`"
)
NO_MONOTONE = "of forced choices there is no other fit; ask one picture at a time (`--design yes-no`)"


def shape_warning(found: ShapeTest | None, remedy: str = MONOTONE_OPTION, *, alpha: float = 0.05) -> str | None:
    """The doubt and its remedy; None where there is no doubt, or no shape is assumed."""
    if found is None or found.p_value > alpha:
        return None
    return (
        f"The answers do not have the shape that this curve assumes (p = {found.p_value:.2g}), so its intervals "
        f"and those of damage may be wrong; {remedy}."
    )


def shape_sentence(found: ShapeTest) -> str:
    """What the test says where it does not doubt the shape."""
    return f"Nothing in the answers speaks against the shape of the curve (p = {found.p_value:.2g})."


def difference_warning(found: DifferenceTest, alpha: float = 0.05) -> str | None:
    """What to tell before the curve is used for all groups alike, or None."""
    if found.p_value > alpha:
        return None
    return (
        f"the answers differ between {', '.join(found.groups)} (p = {found.p_value:.3g}): one evasion curve for all "
        "of them is doubtful; fit one for each"
    )


def unlike_groups(
    sizes: ArrayLike,
    undetected: ArrayLike,
    groups: Mapping[str, Sequence[str | None]],
    *,
    alpha: float = 0.05,
    rng: np.random.Generator,
) -> list[str]:
    """Warnings where answers differ between models, arms or whatever `groups` name."""
    tests = tested_groups(sizes, undetected, groups, rng=rng)
    warnings = (difference_warning(found, alpha) for found in tests)
    return [f"{warning[0].upper()}{warning[1:]}." for warning in warnings if warning]


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


def monotone_answers(answers: Sequence[Answer]) -> MonotoneEvasion:
    """The curve that only falls; it takes labellers and pictures as all alike, and knows no forced choice."""
    if _design(answers, None) == "forced-choice":
        raise RiskError(
            "of forced choices, half of what went unnoticed is hidden by luck, which a monotone fit does not know; "
            "leave out `--curve monotone`"
        )
    return fit_monotone([answer.size for answer in answers], [answer.undetected for answer in answers])


def monotone_notes(answers: Sequence[Answer]) -> list[str]:
    """What a monotone curve of these answers leaves aside."""
    if len({answer.labeller for answer in answers}) < 2:
        return []
    return ["The monotone curve takes all labellers for one: where they differ, its intervals are too narrow."]


def shape_doubts(curve: BayesianEvasion) -> tuple[ShapeTest | None, list[str]]:
    """Whether the answers have the shape of the curve, and the warning where they do not."""
    found = shape_test(curve)
    warning = shape_warning(found, NO_MONOTONE if curve.forced_choice else MONOTONE_LABELS, alpha=_ALPHA)
    return found, [warning] if warning else []


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
