"""Kaplan and Meier (1958): the survival curve that the rows show, without a law.

Pass counts need no interval method here: an event noticed at pass k lies in (k - 1, k], all intervals are of one grid,
and on its points the curve is the same.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.names import counted
from advrisk.risk.survival.checks import checked_duration, checked_event
from advrisk.risk.survival.frames import Floats, read_columns

_HIGH = 0.05  # a curve that ends below this is as good as down
_RARE = 0.05


@dataclass(frozen=True)
class Plateau:
    """A curve that ends flat and high: samples that no one breaks."""

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
    _quantile: float = field(repr=False)

    @property
    def longest(self) -> float:
        return float(self.times[-1])

    def at(self, time: float) -> Estimate:
        """Survival past a time."""
        self._check(time)
        place = int(np.searchsorted(self.times, time, side="right")) - 1
        if place < 0:
            return Estimate(1.0, _none_seen(self.n, self.level), 1.0, self.level, self.n, "Kaplan-Meier")
        value, low, high = (float(array[place]) for array in (self.survival, self.low, self.high))
        return Estimate(value, low, high, self.level, self.n, "Kaplan-Meier, log(-log) interval")

    def mean(self, until: float) -> Estimate:
        """The mean time up to `until`, the area under the curve; its interval is Greenwood's, on the log."""
        self._check(until)
        inside = self.times < until
        starts = np.concatenate([[0.0], self.times[inside]])
        heights = np.concatenate([[1.0], self.survival[inside]])
        areas = heights * np.diff(np.append(starts, until))
        value = float(areas.sum())
        after = np.cumsum(areas[::-1])[::-1][1:]
        d, y = self.events[inside], self.at_risk[inside]
        spread = np.divide(d, y * (y - d), out=np.zeros_like(y), where=y > d)
        half = self._quantile * float(np.sqrt((after**2 * spread).sum())) / value
        method = f"Kaplan-Meier, mean time up to {until:g}"
        return Estimate(value, value * np.exp(-half), min(value * np.exp(half), until), self.level, self.n, method)

    def _check(self, time: float) -> None:
        if not 0 < time <= self.longest * (1 + 1e-12):
            raise RiskError(
                f"a Kaplan-Meier curve says nothing of time {time:g}: the longest duration is {self.longest:g}"
            )


def kaplan_meier(durations: ArrayLike, event: ArrayLike, *, level: float = 0.95) -> KaplanMeier:
    """The product of (1 - events/at risk), with intervals by Greenwood's formula on the log(-log) scale.

    Where that scale fails, before the first event and once nothing is left, the interval is that of no event among
    those at risk, and the last upper end (a survival curve does not rise).
    """
    from scipy.special import ndtri

    columns = read_columns({"durations": durations, "event": event}, ("durations", "event"))
    duration, happened = checked_duration(columns, "durations"), checked_event(columns, "event")
    if not 0 < level < 1:
        raise RiskError(f"level must lie between 0 and 1, found {level}")
    times, place = np.unique(duration, return_inverse=True)
    events: Floats = np.bincount(place, weights=happened, minlength=times.size).astype(np.float64)
    at_risk = (duration.size - np.concatenate([[0], np.cumsum(np.bincount(place))[:-1]])).astype(np.float64)
    survival: Floats = np.asarray(np.cumprod(1 - events / at_risk), dtype=np.float64)
    quantile = float(ndtri((1 + level) / 2))
    low, high = _band(survival, events, at_risk, quantile, level)
    curve = (times, survival, low, high, at_risk, events)
    n_events = int(events.sum())
    return KaplanMeier(*curve, level, duration.size, n_events, _plateau(*curve, level), quantile)


def _band(survival: Floats, events: Floats, at_risk: Floats, quantile: float, level: float) -> tuple[Floats, Floats]:
    between = (survival > 0) & (survival < 1)
    spread = np.cumsum(
        np.divide(events, at_risk * (at_risk - events), out=np.zeros_like(events), where=at_risk > events)
    )
    logs = np.log(np.where(between, survival, 0.5))
    half = quantile * np.sqrt(spread) / np.abs(logs)
    low = np.where(between, np.exp(logs * np.exp(half)), 0.0)
    high = np.where(between, np.exp(logs * np.exp(-half)), 1.0)
    low = np.where(survival == 1, ((1 - level) / 2) ** (1 / at_risk), low)
    gone = survival == 0
    if gone.any():
        first = int(np.argmax(gone))
        high[gone] = high[first - 1] if first else 1 - _none_seen(int(at_risk[0]), level)
    return low, high


def _none_seen(n: int, level: float) -> float:
    """The least survival of which n rows without an event leave this much doubt (Clopper and Pearson)."""
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
        f"the curve ends flat at {share:.0%}: {what}, and {counted(int(at_risk[times > since][0]), 'row')} "
        f"went on, to {until:g} at most; a parametric law lets all of these break in the end, so what it says beyond "
        f"{since:g}, and its mean, is extrapolated"
    )
    return Plateau(estimate, since, until, message)
