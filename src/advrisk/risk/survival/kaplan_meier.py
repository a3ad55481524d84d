"""Kaplan and Meier (1958): the nonparametric survival curve.

Pass counts need no interval method here: an event noticed at pass k lies in (k - 1, k], all intervals are of one grid,
and on its points the curve is the same.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.names import counted
from advrisk.core.numbers import percent_text
from advrisk.core.plain import InJson
from advrisk.risk.proportion import t_quantile
from advrisk.risk.survival.checks import checked_duration, checked_event
from advrisk.risk.survival.frames import Floats, read_columns

_HIGH = 0.05  # a curve that ends below this has no plateau
_RARE = 0.05
_BLOCK = 2_000_000  # numbers in memory at once


@dataclass(frozen=True)
class Plateau:
    """A plateau at the end of a curve: samples that no arm breaks."""

    share: Estimate
    since: float  # the last event
    until: float  # the longest duration
    message: str


@dataclass(frozen=True, eq=False)
class KaplanMeier:
    """The curve from each time on, until the next; it is 1 before the first."""

    times: Floats
    survival: Floats
    low: Floats
    high: Floats
    at_risk: Floats
    events: Floats
    level: float
    n: int
    n_events: int
    plateau: Plateau | None
    n_clusters: int | None  # None where rows count as independent
    _quantile: float = field(repr=False)
    _rows: "_Rows" = field(repr=False)

    in_json: ClassVar[InJson] = dict.fromkeys(("level", "n", "n_events", "plateau", "n_clusters"))

    @property
    def longest(self) -> float:
        return float(self.times[-1])

    def at(self, time: float) -> Estimate:
        """Survival past a time."""
        self._check(time)
        place = int(np.searchsorted(self.times, time, side="right")) - 1
        if place < 0:
            least = _none_seen(self.n_clusters or self.n, self.level)
            return Estimate(1.0, least, 1.0, self.level, self.n, "Kaplan-Meier")
        value, low, high = (float(array[place]) for array in (self.survival, self.low, self.high))
        return Estimate(value, low, high, self.level, self.n, "Kaplan-Meier, log(-log) interval")

    def mean(self, until: float) -> Estimate:
        """The mean time up to `until`, the area under the curve; its interval is on the log.

        Where no row differs from another, the spread is 0 and says nothing: the interval then allows for as many rows
        (clusters) of any time as are consistent with having seen none.
        """
        value, weights = self._area(until)
        method = f"Kaplan-Meier, mean time up to {until:g}"
        spread = self._rows.spread(weights)
        if not spread > 0:
            half = self._unseen(until)
            return Estimate(value, max(value - half, 0.0), min(value + half, until), self.level, self.n, method)
        half = self._quantile * math.sqrt(spread) / value
        return Estimate(value, value * math.exp(-half), min(value * math.exp(half), until), self.level, self.n, method)

    def mean_difference(self, other: "KaplanMeier", until: float) -> Estimate:
        """By how much the mean time up to `until` exceeds that of another curve; paired where both have clusters.

        Clusters of the same name (the attempts on one sample, say) are in both curves, so the variance is that of the
        differences of their influences on the two means.
        """
        (mine, weights), (theirs, others) = self._area(until), other._area(until)
        value = mine - theirs
        spreads = (self._rows.spread(weights), other._rows.spread(others))
        both = _paired(self._rows.influence(weights), other._rows.influence(others))
        if both is None:
            error, quantile, n = float(np.sqrt(sum(spreads))), max(self._quantile, other._quantile), self.n + other.n
        else:
            n = both.size
            error, quantile = float(np.sqrt((both**2).sum() * n / (n - 1))), float(t_quantile(n, self.level))
        unseen = [one._unseen(until) for one, spread in zip((self, other), spreads, strict=True) if not spread > 0]
        half = quantile * error + sum(unseen)
        method = f"Kaplan-Meier, {'paired ' if both is not None else ''}difference of mean times up to {until:g}"
        return Estimate(value, value - half, value + half, self.level, n, method)

    def quantile(self, share: float) -> Estimate:
        """The time by which this share has failed; infinite where the curve does not come down as far.

        The interval is that of Brookmeyer and Crowley (1982): the times at which the curve's band holds that share.
        Where not even the band comes down as far, it begins where the rows end: they say nothing of what comes later.
        """
        if not 0 < share < 1:
            raise RiskError(f"a quantile needs a share between 0 and 1, found {share}")
        low, value, high = (
            _first_below(self.times, curve, 1 - share) for curve in (self.low, self.survival, self.high)
        )
        what = "median" if share == 0.5 else f"time by which a share of {share:g} has failed"
        beyond = "" if np.isfinite(value) else f", not reached within {self.longest:g}"
        return Estimate(value, min(low, self.longest), high, self.level, self.n, f"Kaplan-Meier, {what}{beyond}")

    def median(self) -> Estimate:
        """The time by which half have failed; infinite if the curve stays above 1/2."""
        return self.quantile(0.5)

    @property
    def end(self) -> float:
        """The latest time of a mean: the longest duration, or infinity once the curve is 0."""
        return np.inf if self.survival[-1] == 0 else self.longest

    def _area(self, until: float) -> tuple[float, Floats]:
        """The area under the curve up to a time, and its part after each time."""
        if until > self.longest and self.survival[-1] == 0:  # no area beyond
            until = self.longest
        self._check(until)
        inside = self.times < until
        starts = np.concatenate([[0.0], self.times[inside]])
        heights = np.concatenate([[1.0], self.survival[inside]])
        areas = heights * np.diff(np.append(starts, until))
        after = np.cumsum(areas[::-1])[::-1][1:]
        return float(areas.sum()), np.concatenate([after, np.zeros(self.times.size - after.size)])

    def _unseen(self, until: float) -> float:
        """Error bound of a mean if all rows are equal: an unobserved share times the whole length."""
        return until * (1 - _none_seen(self.n_clusters or self.n, self.level))

    def _check(self, time: float) -> None:
        if not 0 < time <= self.longest * (1 + 1e-12):
            raise RiskError(
                f"a Kaplan-Meier curve is undefined at time {time:g}: the longest duration is {self.longest:g}"
            )


def _first_below(times: Floats, curve: Floats, height: float) -> float:
    """The first time at which a curve is at that height or below; infinite if there is none."""
    there = np.flatnonzero(curve <= height + 1e-12)
    return float(times[there[0]]) if there.size else np.inf


def _paired(mine: dict[str, float] | None, theirs: dict[str, float] | None) -> Floats | None:
    """Differences of influences by cluster; a cluster that is in one curve only has none on the other."""
    if mine is None or theirs is None:
        return None
    names = sorted(mine.keys() | theirs.keys())
    return np.array([mine.get(name, 0.0) - theirs.get(name, 0.0) for name in names])


def kaplan_meier(
    durations: ArrayLike, event: ArrayLike, *, cluster: ArrayLike | None = None, level: float = 0.95
) -> KaplanMeier:
    """The product of (1 - events/at risk), with intervals by Greenwood's formula on the log(-log) scale.

    With `cluster`, rows of one cluster (the attempts on one sample, say) may depend on each other: the variance of
    log S is then the sum over clusters of their squared influence, which for clusters of one row is Greenwood's.
    Where the scale fails, before the first event and once nothing is left, the interval is that of no event among
    those at risk (clusters, where there are some), and the last upper end (a survival curve does not rise).
    """
    from scipy.special import ndtri

    columns = read_columns({"durations": durations, "event": event}, ("durations", "event"))
    duration, happened = checked_duration(columns, "durations"), checked_event(columns, "event")
    if not 0 < level < 1:
        raise RiskError(f"level must lie between 0 and 1, found {level}")
    names, codes = _codes(cluster, duration.size)
    times, place = np.unique(duration, return_inverse=True)
    events: Floats = np.bincount(place, weights=happened, minlength=times.size).astype(np.float64)
    at_risk = (duration.size - np.concatenate([[0], np.cumsum(np.bincount(place))[:-1]])).astype(np.float64)
    survival: Floats = np.asarray(np.cumprod(1 - events / at_risk), dtype=np.float64)
    rows = _Rows(place, happened, events, at_risk, codes, names)
    n_clusters = None if codes is None else int(codes.max()) + 1
    quantile = float(ndtri((1 + level) / 2) if n_clusters is None else t_quantile(n_clusters, level))
    low, high = _band(survival, rows, quantile, level)
    curve = (times, survival, low, high, at_risk, events)
    return KaplanMeier(
        *curve, level, duration.size, int(events.sum()), _plateau(*curve, level), n_clusters, quantile, rows
    )


def _codes(cluster: ArrayLike | None, n: int) -> tuple[tuple[str, ...], NDArray[np.intp] | None]:
    if cluster is None:
        return (), None
    names, codes = np.unique(np.asarray(cluster), return_inverse=True)
    if codes.size != n:
        raise RiskError(f"there must be a cluster for each of the {n} rows, found {codes.size}")
    if codes.max() == 0:
        raise RiskError("all rows are of one cluster; the variance between clusters needs two or more")
    return tuple(map(str, names.tolist())), codes


@dataclass(frozen=True, eq=False)
class _Rows:
    """What the curve is made of, by the number of each row's time."""

    place: NDArray[np.intp]
    happened: Floats
    events: Floats
    at_risk: Floats
    codes: NDArray[np.intp] | None
    names: tuple[str, ...] = ()  # of the clusters

    def running_spread(self) -> Floats:
        """The variance of log S, from each time on."""
        if self.codes is None:
            return np.asarray(np.cumsum(self._greenwood()), dtype=np.float64)
        found, total = [], np.zeros(int(self.codes.max()) + 1)
        for steps in self._steps():
            running = total[:, None] + np.cumsum(steps, axis=1)
            found.append((running**2).sum(axis=0))
            total = running[:, -1]
        return np.asarray(np.concatenate(found) * self._few())

    def spread(self, weights: Floats) -> float:
        """The variance of the sum over times of these weights times the steps of log S."""
        if self.codes is None:
            return float((weights**2 * self._greenwood()).sum())
        return float((self._totals(weights) ** 2).sum() * self._few())

    def influence(self, weights: Floats) -> dict[str, float] | None:
        """Each cluster's influence on that sum; None where rows count as independent."""
        return None if self.codes is None else dict(zip(self.names, self._totals(weights).tolist(), strict=True))

    def _totals(self, weights: Floats) -> Floats:
        assert self.codes is not None
        total, first = np.zeros(int(self.codes.max()) + 1), 0
        for steps in self._steps():
            total += steps @ weights[first : first + steps.shape[1]]
            first += steps.shape[1]
        return total

    def _greenwood(self) -> Floats:
        d, y = self.events, self.at_risk
        return np.divide(d, y * (y - d), out=np.zeros_like(d), where=y > d)

    def _few(self) -> float:
        n = int(self.codes.max()) + 1 if self.codes is not None else 0
        return n / (n - 1)

    def _steps(self) -> Iterator[Floats]:
        """Each cluster's influence on the steps of log S, (clusters, times): (dN_c - Y_c d/Y) / (Y - d)."""
        assert self.codes is not None
        n_clusters, n_times = int(self.codes.max()) + 1, self.events.size
        size = max(1, _BLOCK // n_clusters)
        left = np.bincount(self.codes, minlength=n_clusters).astype(np.float64)
        for first in range(0, n_times, size):
            own = (self.place >= first) & (self.place < first + size)
            width = min(size, n_times - first)
            at = self.codes[own] * width + self.place[own] - first
            seen = np.bincount(at, weights=self.happened[own], minlength=n_clusters * width).reshape(n_clusters, width)
            gone = np.bincount(at, minlength=n_clusters * width).reshape(n_clusters, width)
            watched = left[:, None] - np.cumsum(gone, axis=1) + gone
            d, y = self.events[first : first + width], self.at_risk[first : first + width]
            yield np.divide(seen - watched * d / y, y - d, out=np.zeros_like(seen), where=y > d)
            left = left - gone.sum(axis=1)


def _band(survival: Floats, rows: _Rows, quantile: float, level: float) -> tuple[Floats, Floats]:
    between = (survival > 0) & (survival < 1)
    logs = np.log(np.where(between, survival, 0.5))
    half = quantile * np.sqrt(rows.running_spread()) / np.abs(logs)
    low = np.where(between, np.exp(logs * np.exp(half)), 0.0)
    high = np.where(between, np.exp(logs * np.exp(-half)), 1.0)
    watched = rows.at_risk if rows.codes is None else np.full(survival.size, rows.codes.max() + 1.0)
    low = np.where(survival == 1, ((1 - level) / 2) ** (1 / watched), low)
    gone = survival == 0
    if gone.any():
        first = int(np.argmax(gone))
        high[gone] = high[first - 1] if first else 1 - _none_seen(int(watched[0]), level)
    return low, high


def _none_seen(n: int, level: float) -> float:
    """Lower limit of survival after n rows without an event (Clopper and Pearson)."""
    return float(((1 - level) / 2) ** (1 / n))


def _plateau(
    times: Floats, survival: Floats, low: Floats, high: Floats, at_risk: Floats, events: Floats, level: float
) -> Plateau | None:
    """Maller and Zhou (1996): flat for as long as the rows' last events were spread over, or longer.

    With N events among n rows in as long a stretch before the last event as the curve is flat after it, the curve is
    flat only by chance with a probability of about (1 - N/n)^n.
    """
    share, n, until = float(survival[-1]), int(at_risk[0]), float(times[-1])
    seen = times[events > 0]
    since = float(seen[-1]) if seen.size else 0.0
    before = events[(times > 2 * since - until) & (times <= since)].sum()
    if share < _HIGH or since == until or (seen.size and (1 - before / n) ** n > _RARE):
        return None
    estimate = Estimate(share, float(low[-1]), float(high[-1]), level, n, "Kaplan-Meier, the end of the curve")
    what = f"the last event came at {since:g}" if seen.size else "no event came at all"
    message = (
        f"the curve ends flat at {percent_text(share)}: {what}, and {counted(int(at_risk[times > since][0]), 'row')} "
        f"went on, to {until:g} at most"
    )
    return Plateau(estimate, since, until, message)
