"""Sentences that several assessments share."""

from advrisk.core.names import counted


def samples_that_decide(n: int, left: int | None = None) -> str:
    """`about 120 more samples would probably decide`, where the data set may have them."""
    if left is None or n <= left:
        return f"about {n:,} more samples would probably decide"
    if left == 0:
        return "these samples do not decide, and the data set has no more"
    return f"the data set has {counted(left, 'more sample')}, probably too few to decide"
