"""How likely chance is to make groups of samples equally frequent."""

import math
from collections.abc import Sequence


def as_even_as_can_be(counts: Sequence[int]) -> float:
    """The probability that n draws from equally frequent groups fall as evenly as n allows.

    With n = q k + r that is n! / (q!^(k-r) (q+1)!^r) k^-n, times the ways to choose the r larger groups. Draws from
    groups that are not equally frequent fall as evenly even less often.
    """
    n, k = sum(counts), len(counts)
    q, r = divmod(n, k)
    each = math.lgamma(n + 1) - (k - r) * math.lgamma(q + 1) - r * math.lgamma(q + 2) - n * math.log(k)
    return min(1.0, math.exp(each + math.log(math.comb(k, r))))
