"""Warnings where one evasion curve for all models or arms is doubtful."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from advrisk.risk.evasion import DifferenceTest, tested_groups


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
