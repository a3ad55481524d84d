"""Whether attacks tried a size: one rule for tables, headlines, gates and comparisons of runs."""

import math
from collections.abc import Iterable

TriedAttack = tuple[float | None, str | None]  # its eps and `keep`


def was_tried(size: float, attacks: Iterable[TriedAttack]) -> bool:
    """Whether an attack had this eps or none, or looked for the smallest change at least so far.

    An attack that may go as far as its eps does so, and says little of sizes in between.
    """
    return size == 0 or any(
        eps is None or math.isclose(eps, size, rel_tol=1e-9) or (keep == "smallest" and eps >= size)
        for eps, keep in attacks
    )
