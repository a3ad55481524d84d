"""Evasion curves fitted to answers, tests of their assumptions, and the agreement of labellers.

Independent of pictures, pages and databases.
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

_ALPHA = 0.01  # strict, as the tests are repeated while answers come in
FORCED_CHOICE_UNTESTED = "Whether answers differ between models or arms is not tested for forced choices."
_BIN = np.log(1.25)  # sizes within it count as the same when labellers are compared
MONOTONE_OPTION = "fit a curve that only falls (`--fit monotone`), whose intervals are wider and hold"
MONOTONE_LABELS = "write one that only falls (`--fit FILE --curve monotone`), whose intervals are wider and hold"
MONOTONE_OF_RUN = "counts by sample assume no shape, nor does `advrisk evasion RUN --detector NAME --fit monotone`"
NO_MONOTONE = "forced choices have no other fit; show one picture at a time (`--design yes-no`)"


def shape_warning(test: ShapeTest | None, remedy: str = MONOTONE_OPTION, *, alpha: float = 0.05) -> str | None:
    """A warning with its remedy if the test rejects the shape; None if it does not, or no shape is assumed."""
    if test is None or test.p_value > alpha:
        return None
    return (
        f"The answers do not have the shape that this curve assumes (p = {test.p_value:.2g}), so its intervals "
        f"and those of damage may be wrong; {remedy}."
    )


def shape_sentence(test: ShapeTest) -> str:
    """The result of a test that does not reject the shape."""
    return f"The answers are consistent with the shape of the curve (p = {test.p_value:.2g})."


def difference_warning(test: DifferenceTest, alpha: float = 0.05) -> str | None:
    """A warning if the answers of the groups differ; None if they do not."""
    if test.p_value > alpha:
        return None
    return (
        f"the answers differ between {', '.join(test.groups)} (p = {test.p_value:.3g}): one evasion curve for all "
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
    """Warnings where answers differ between the groups: models, arms or others."""
    tests = tested_groups(sizes, undetected, groups, rng=rng)
    warnings = (difference_warning(test, alpha) for test in tests)
    return [f"{warning[0].upper()}{warning[1:]}." for warning in warnings if warning]


def fit_answers(
    answers: Sequence[Answer],
    *,
    design: Design | None = None,
    plausible: tuple[float, float] | None = None,
    few: bool = False,
) -> BayesianEvasion:
    """The evasion curve for a new labeller and a new picture, with false alarms and lapses fitted to the answers.

    With several labellers, or pictures that were shown twice, their differences are fitted, too. Sizes depend on
    earlier answers, so the curve is a posterior and nothing is resampled. `few` accepts any number of answers; without
    any, `design` is needed.
    """
    forced = _design(answers, design) == "forced-choice"
    return fit_bayesian(
        [answer.size for answer in answers],
        [answer.undetected for answer in answers],
        guess=0.0 if forced else None,  # one of two pictures is changed: there is no false alarm
        lapse=None,
        plausible=plausible,
        few=few,
        forced_choice=forced,
        labellers=[answer.labeller for answer in answers],
        images=[answer.sample for answer in answers],
    )


def group_warnings(answers: Sequence[Answer]) -> list[str]:
    """Warnings where one curve for all models and arms is doubtful, as their answers differ.

    Answers to unchanged pictures belong to no model and are left out. Forced choices are not tested, which the result
    says. Differences between labellers are part of the curve.
    """
    if any(answer.design == "forced-choice" for answer in answers):
        return [FORCED_CHOICE_UNTESTED]
    changed = [answer for answer in answers if answer.size > 0]
    if len({answer.undetected for answer in changed}) < 2 or len({answer.size for answer in changed}) < 2:
        return []
    return unlike_groups(
        [answer.size for answer in changed],
        [answer.undetected for answer in changed],
        {"model": [answer.model for answer in changed], "arm": [answer.arm for answer in changed]},
        alpha=_ALPHA,
        rng=np.random.default_rng(0),
    )


def monotone_answers(answers: Sequence[Answer]) -> MonotoneEvasion:
    """A non-increasing curve; it ignores differences of labellers and pictures, and refuses forced choices."""
    if _design(answers, None) == "forced-choice":
        raise RiskError(
            "found forced choices, where luck hides half of the unnoticed changes; a monotone fit does not model "
            "that, so leave out `--curve monotone`"
        )
    return fit_monotone([answer.size for answer in answers], [answer.undetected for answer in answers])


def monotone_notes(answers: Sequence[Answer]) -> list[str]:
    """A note on what a monotone curve of these answers ignores."""
    if len({answer.labeller for answer in answers}) < 2:
        return []
    return ["The monotone curve treats all labellers as one: if they differ, its intervals are too narrow."]


def shape_doubts(curve: BayesianEvasion) -> tuple[ShapeTest | None, list[str]]:
    """The test of the curve's shape, and a warning if it rejects."""
    test = shape_test(curve)
    warning = shape_warning(test, NO_MONOTONE if curve.forced_choice else MONOTONE_LABELS, alpha=_ALPHA)
    return test, [warning] if warning else []


def agreement(answers: Iterable[Answer]) -> Agreement:
    """Krippendorff's alpha over originals at about the same size; the last answer of a labeller counts."""
    by_unit: dict[tuple[str, int | None], dict[str, bool]] = {}
    for answer in answers:
        step = None if answer.size == 0 else round(float(np.log(answer.size) / _BIN))
        by_unit.setdefault((answer.sample, step), {})[answer.labeller] = answer.undetected
    shared = [unit for unit in by_unit.values() if len(unit) >= 2]
    names = sorted({name for unit in shared for name in unit})
    table = np.array([[float(unit[name]) if name in unit else np.nan for unit in shared] for name in names])
    return Agreement(krippendorff_alpha(table) if shared else None, len(shared), len(names))


def _design(answers: Sequence[Answer], stated: Design | None) -> Design:
    designs = {answer.design for answer in answers} | ({stated} if stated else set())
    if len(designs) > 1:
        raise RiskError(f"answers of {' and '.join(sorted(designs))} do not belong to one curve; fit them separately")
    return designs.pop() if designs else "yes-no"
