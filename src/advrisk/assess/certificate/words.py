"""Shared sentences on certificates and searches, and the format of shares."""

from advrisk.core.values import number_text
from advrisk.risk.certificate.exploration import SearchGuarantee

NOTHING = "no guarantee from the search"
LATER = "Chosen after the results, it holds for each list taken by itself, not for all of them together."


def tolerated(alpha: float) -> str:
    """The share of inputs that an attack may break."""
    return f"{percent(alpha)} (alpha, the tolerated share)"


def fallible_test(zeta: float) -> str:
    """What decides, and how often it is wrong."""
    return (
        f"a test that certifies a model with a larger share at most {percent(zeta)} of the time (zeta, its error rate)"
    )


def guarantee_text(said: SearchGuarantee) -> str:
    """A search's guarantee about untried settings, or why there is none."""
    if said.level is not None:
        return f"all settings searched are certified if the largest p found is at most {said.level:.3g}"
    if said.beta_used < said.beta:
        return f"{NOTHING}: it used beta = {said.beta_used:.3g}, and the theorem asks for {said.beta:.3g}"
    return f"{NOTHING}: untried settings may have a p larger by {said.gap:.3g}, and zeta is {said.zeta:.3g}"


def percent(share: float) -> str:
    """`10 %`."""
    return f"{100 * share:.4g} %"


def rate(share: float) -> str:
    """`6.67 %`: an observed share, with its significant digits."""
    return number_text(share, "weight")
