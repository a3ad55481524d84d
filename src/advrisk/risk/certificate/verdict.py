"""A certificate: counts of failures on one calibration set, the tests made of them, and the claim in plain words.

A sample fails under an arm when it was right clean and is wrong attacked. It fails under the union when some arm of the
list breaks it, and is wrong in the end when it was wrong clean or fails under the union (1 - robust accuracy). An arm's
failures are among the union's, and these among the wrong ones. So a false claim about any of the three needs a false one
about the least of them that is above alpha: all claims of a certificate together are wrong at most zeta of the time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import ArrayLike

from advrisk.core.estimate import Estimate
from advrisk.risk.certificate.counts import Count
from advrisk.risk.certificate.p_values import Method

Verdict = Literal["certified", "not certified"]


@dataclass(frozen=True)
class Tested:
    """A count of failures, and the test of "the risk is above alpha"."""

    name: str
    count: Count
    risk: Estimate  # the share that failed; from 0 to the smallest alpha that is certified at zeta
    p: float
    zeta: float

    @property
    def certified(self) -> bool:
        """Whether the risk is certified to be at most alpha."""
        return self.p <= self.zeta

    @property
    def certified_risk(self) -> float:
        """The smallest alpha that this count certifies at zeta."""
        return self.risk.high

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        count = {"failures": self.count.failures, "n": self.count.n}
        return {"name": self.name, **count, "risk": self.risk.as_dict(), "p": self.p, "certified": self.certified}


@dataclass(frozen=True)
class Certificate:
    """Whether the risk of every arm of a frozen list is certified to be at most alpha, and what goes with that."""

    alpha: float
    zeta: float
    method: str  # exact, hoeffding-bentkus or betting
    n: int  # samples that were looked at
    calibration: str  # the fingerprint of their set
    arms: tuple[Tested, ...]  # the worst first
    union: Tested  # a sample fails if any arm of the list breaks it
    wrong: Tested | None  # wrong, clean or under any arm: 1 - robust accuracy
    clean: Estimate | None  # share of samples that are wrong without any attack
    decided_at: int | None = None  # betting: the number of samples after which it was certified

    @property
    def worst(self) -> Tested:
        """The arm that decides."""
        return self.arms[0]

    @property
    def p(self) -> float:
        """Of the whole list: the largest of its arms'."""
        return self.worst.p

    @property
    def verdict(self) -> Verdict:
        """Of the whole list."""
        return "certified" if self.worst.certified else "not certified"

    @property
    def certified_risk(self) -> float:
        """The smallest alpha that would be certified for the whole list: an upper bound of its largest risk."""
        return self.worst.certified_risk

    @property
    def claim(self) -> str:
        """What is claimed, in plain words."""
        raise NotImplementedError

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        raise NotImplementedError


def certify(
    arms: Mapping[str, Count],
    *,
    alpha: float,
    zeta: float = 0.05,
    union: Count | None = None,
    clean: Count | None = None,
    method: Method = "exact",
) -> Certificate:
    """Test a frozen list of arms once, on counts of one calibration set.

    `union` counts the samples that any arm of the list breaks (with one arm, it is that arm's count), `clean` those that
    are wrong without any attack.
    """
    raise NotImplementedError


def certify_in_order(
    losses: Mapping[str, ArrayLike],
    *,
    alpha: float,
    zeta: float = 0.05,
    calibration: str,
    clean: ArrayLike | None = None,
) -> Certificate:
    """The same by betting, from what was seen so far: for each arm, whether each sample failed, in the settled order."""
    raise NotImplementedError
