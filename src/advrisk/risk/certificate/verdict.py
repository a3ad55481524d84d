"""A certificate: counts of failures on one calibration set, and their tests.

A sample fails under an arm if it is correct clean and wrong attacked. It fails under the union if some arm of the list
breaks it. It is wrong (1 - robust accuracy) if it is wrong clean, fails under the union, or the model refuses to answer
it, clean or under some arm. An arm's failures are a subset of the union's, and these a subset of the wrong samples. So
a false claim about any of the three implies one about the first whose risk is above alpha: all claims of a certificate
together have an error rate of at most zeta.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.plain import InJson
from advrisk.risk.certificate.betting import betting_certified_risk, betting_p_values, last_before_failures
from advrisk.risk.certificate.counts import Count, Floats, check_rate
from advrisk.risk.certificate.p_values import Method, certified_risk, p_value
from advrisk.risk.proportion import proportion

Verdict = Literal["certified", "not certified"]


@dataclass(frozen=True)
class Tested:
    """A count of failures, and the test of "the risk is above alpha"."""

    name: str
    count: Count
    risk: Estimate  # the share of failures, with an upper bound of its probability at level 1 - zeta
    certified_risk: float  # the smallest alpha certified at zeta
    p: float
    certified: bool

    in_json: ClassVar[InJson] = {"count": None, "count.failures": "failures", "count.n": "n"}


@dataclass(frozen=True)
class Certificate:
    """Whether the risk of every arm of a frozen list is certified to be at most alpha, with all tests."""

    alpha: float
    zeta: float
    method: str  # exact, hoeffding-bentkus or betting
    n: int  # tested samples
    calibration: str  # fingerprint of the calibration set
    arms: tuple[Tested, ...]  # the worst first
    union: Tested  # a sample fails if any arm of the list breaks it
    wrong: Tested | None  # 1 - robust accuracy: no correct answer clean or under some arm
    clean: Estimate | None  # share of samples that are wrong clean
    decided_at: int | None = None  # betting: number of samples after which the list was certified

    in_json: ClassVar[InJson] = {
        "verdict": "verdict",
        "worst.name": "worst",
        "p": "p",
        "certified_risk": "certified_risk",
    }

    @property
    def worst(self) -> Tested:
        """The arm with the largest p-value, which decides."""
        return self.arms[0]

    @property
    def p(self) -> float:
        """p-value of the whole list: the largest of its arms."""
        return self.worst.p

    @property
    def verdict(self) -> Verdict:
        """Verdict on the whole list."""
        return "certified" if self.worst.certified else "not certified"

    @property
    def certified_risk(self) -> float:
        """The smallest alpha certified for the whole list: an upper bound of its largest risk."""
        return max(arm.certified_risk for arm in self.arms)


def certify(
    arms: Mapping[str, Count],
    *,
    alpha: float,
    zeta: float = 0.05,
    union: Count | None = None,
    clean: Count | None = None,
    wrong: Count | None = None,
    method: Method = "exact",
) -> Certificate:
    """Test a frozen list of arms once, on counts of one calibration set.

    union: Samples that any arm of the list breaks; by default, the count of the only arm.
    clean: Samples that are wrong without an attack.
    wrong: Samples without a correct answer, clean or under some arm; by default, `union` plus `clean`, which assumes
        that the model refuses no input.
    """
    check_rate("alpha", alpha)
    check_rate("zeta", zeta)
    broken = _checked_union(arms, union)
    optional = {name: count for name, count in (("clean", clean), ("wrong", wrong)) if count is not None}
    _check_counts(optional)
    _check_one_set({**arms, "union": broken, **optional})
    _check_clean(broken, clean)
    lost = _checked_wrong(broken, clean, wrong)

    def test(name: str, count: Count) -> Tested:
        bound = certified_risk(count.failures, count.n, zeta, method=method)
        p = p_value(count.failures, count.n, alpha, method=method)
        return _tested(name, count, bound, p, zeta, f"{method}, upper bound")

    return Certificate(
        alpha,
        zeta,
        method,
        broken.n,
        broken.calibration,
        _worst_first(test(name, count) for name, count in arms.items()),
        test("union", broken),
        test("wrong", lost) if lost else None,
        proportion(clean.failures, clean.n) if clean else None,
    )


def certify_in_order(
    failed: Mapping[str, ArrayLike],
    *,
    alpha: float,
    zeta: float = 0.05,
    calibration: str,
    clean: ArrayLike | None = None,
    wrong: ArrayLike | None = None,
) -> Certificate:
    """Test a frozen list of arms by betting, after any number of samples.

    `failed` says for each arm whether each sample failed, in calibration order. Stop once the list is certified, or
    when all samples are tested.
    """
    check_rate("alpha", alpha)
    check_rate("zeta", zeta)
    flags, wrong_clean = _checked_flags(failed, clean)
    union = np.any(list(flags.values()), axis=0)
    lost = _lost(union, wrong_clean, wrong)
    running = {name: betting_p_values(values, alpha) for name, values in flags.items()}
    decided = np.flatnonzero(np.max(list(running.values()), axis=0) <= zeta)

    def test(name: str, values: NDArray[np.bool_], p_values: Floats | None = None) -> Tested:
        bound = float(betting_certified_risk(values, zeta, at_n=last_before_failures(values))[-1])
        p = float((betting_p_values(values, alpha) if p_values is None else p_values)[-1])
        return _tested(name, Count(int(values.sum()), values.size, calibration), bound, p, zeta, "betting, upper bound")

    return Certificate(
        alpha,
        zeta,
        "betting",
        union.size,
        calibration,
        _worst_first(test(name, values, running[name]) for name, values in flags.items()),
        test("union", union),
        test("wrong", lost) if lost is not None else None,
        proportion(int(wrong_clean.sum()), wrong_clean.size) if wrong_clean is not None else None,
        int(decided[0]) + 1 if decided.size else None,
    )


def _tested(name: str, count: Count, bound: float, p: float, zeta: float, method: str) -> Tested:
    share = count.failures / count.n
    # A running bound may be below the final share of failures.
    risk = Estimate(share, 0.0, max(bound, share), 1 - zeta, count.n, method)
    return Tested(name, count, risk, bound, p, p <= zeta)


def _worst_first(tested: Iterable[Tested]) -> tuple[Tested, ...]:
    return tuple(sorted(tested, key=lambda one: (-one.p, -one.count.failures, one.name)))


def _checked_wrong(union: Count, clean: Count | None, wrong: Count | None) -> Count | None:
    """Check that `wrong` includes the samples that are wrong clean and those that are broken, which are disjoint."""
    least = union.failures + (clean.failures if clean else 0)
    if wrong is None:
        return Count(least, union.n, union.calibration) if clean else None
    if wrong.failures < least:
        raise RiskError(
            f"wrong: found {wrong.failures}, but {least} samples are wrong without an attack or broken; count all of "
            "them"
        )
    return wrong


def _lost(
    union: NDArray[np.bool_], clean: NDArray[np.bool_] | None, wrong: ArrayLike | None
) -> NDArray[np.bool_] | None:
    """Which samples have no correct answer, clean or under some arm."""
    least = union if clean is None else union | clean
    if wrong is None:
        return None if clean is None else least
    lost = _flags("wrong", wrong)
    if lost.size != least.size or (least & ~lost).any():
        raise RiskError("wrong: must include every sample that is wrong without an attack, or broken")
    return lost


def _checked_union(arms: Mapping[str, Count], union: Count | None) -> Count:
    if not isinstance(arms, Mapping):
        raise RiskError(f"arms must be a mapping of names to counts, found {arms!r}")
    if not arms:
        raise RiskError("there is no arm to certify")
    _check_counts({**arms, **({} if union is None else {"union": union})})
    counts = [count.failures for count in arms.values()]
    if union is None:
        if len(arms) > 1:
            raise RiskError("found several arms without `union`; give the count of samples that any of them breaks")
        return next(iter(arms.values()))
    if not max(counts) <= union.failures <= sum(counts):
        raise RiskError(
            f"the union of arms with {', '.join(map(str, counts))} failures cannot have {union.failures}; "
            "count the samples that at least one of them breaks"
        )
    return union


def _check_counts(counts: Mapping[str, Any]) -> None:
    for name, count in counts.items():
        if not isinstance(count, Count):
            raise RiskError(f"{name}: must be a Count, as in Count(84, 1000, 'set-1'), found {count!r}")


def _check_one_set(counts: Mapping[str, Count]) -> None:
    """Refuse counts of different calibration sets, which cannot be compared."""
    sets = {(count.calibration, count.n): name for name, count in counts.items()}
    if len(sets) > 1:
        listed = "; ".join(f"{name}: {n:,} samples of {calibration}" for (calibration, n), name in sets.items())
        raise RiskError(f"counts come from different calibration sets ({listed}); run all arms on the same samples")


def _check_clean(union: Count, clean: Count | None) -> None:
    if clean and clean.failures + union.failures > union.n:
        raise RiskError(
            f"{clean.failures} samples are wrong without an attack, so at most {union.n - clean.failures} of "
            f"{union.n} can be broken, found {union.failures}; a sample fails only if it is correct clean"
        )


def _checked_flags(
    failed: Mapping[str, ArrayLike], clean: ArrayLike | None
) -> tuple[dict[str, NDArray[np.bool_]], NDArray[np.bool_] | None]:
    if not isinstance(failed, Mapping):
        raise RiskError(f"failed must be a mapping of names to answers, found {failed!r}")
    if not failed:
        raise RiskError("there is no arm to certify")
    flags = {name: _flags(name, values) for name, values in failed.items()}
    wrong_clean = None if clean is None else _flags("clean", clean)
    columns = flags if wrong_clean is None else {**flags, "clean": wrong_clean}
    if len({values.size for values in columns.values()}) > 1:
        sizes = ", ".join(f"{name}: {values.size}" for name, values in columns.items())
        raise RiskError(f"all arms need the same samples in the same order, found {sizes}")
    for name, values in flags.items():
        if wrong_clean is not None and (values & wrong_clean).any():
            raise RiskError(f"{name}: a sample that is wrong without an attack cannot fail under one")
    return flags, wrong_clean


def _flags(name: str, values: ArrayLike) -> NDArray[np.bool_]:
    try:
        flags = np.asarray(values)
    except ValueError:
        raise RiskError(f"{name}: must be one answer for each sample, found {values!r}") from None
    if flags.ndim != 1 or flags.size == 0:
        raise RiskError(f"{name}: must be one answer for each sample, found an array of shape {flags.shape}")
    if flags.dtype != np.bool_ and not np.isin(flags, (0, 1)).all():
        raise RiskError(f"{name}: must be 0 or 1 for each sample, found other values")
    return flags.astype(np.bool_)
