"""What a certificate means, and shares as people write them: the one place for both."""

LATER = "Chosen after a look, it holds for each list taken by itself, not for all of them together."


def meaning(alpha: float, zeta: float) -> str:
    """What "certified" says, and no more."""
    return (
        f"Were the true risk above {percent(alpha)}, this procedure would certify it at most {percent(zeta)} of the "
        "time."
    )


def percent(share: float) -> str:
    """`10 %`."""
    return f"{100 * share:.4g} %"


def rate(share: float) -> str:
    """`6.67 %`: what was seen, as exactly as it is worth."""
    return f"{100 * share:.3g} %"
