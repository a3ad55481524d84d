"""What was shown to whom, held in memory: the next picture is chosen as fast after 20,000 answers as after 20.

Of each labeller only what is new is read from the database. It may have been written by another server: the last trial
of a labeller shows it, since trials are answered, taken back and withdrawn at the end only.
"""

import threading
from collections import Counter, defaultdict
from collections.abc import Sequence, Set
from itertools import islice
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from advrisk.answers.records import Shown, State, TrialRow
from advrisk.answers.store import AnswerStore

Places = NDArray[np.int64]


_Number = TypeVar("_Number", np.int64, np.float64, np.bool_)


class _Column(Generic[_Number]):
    """Numbers to which more are appended."""

    def __init__(self, kind: type[_Number]) -> None:
        self._held: NDArray[_Number] = np.zeros(64, kind)
        self._n = 0

    @property
    def values(self) -> NDArray[_Number]:
        return self._held[: self._n]

    def append(self, value: float) -> None:
        if self._n == len(self._held):
            self._held = np.concatenate([self._held, np.zeros_like(self._held)])
        self._held[self._n] = value
        self._n += 1


class _Counts:
    """How often each code occurred."""

    def __init__(self) -> None:
        self._held = np.zeros(64, np.int64)

    def add(self, code: int, by: int) -> None:
        if code >= len(self._held):
            more = np.zeros(max(code + 1, 2 * len(self._held)) - len(self._held), np.int64)
            self._held = np.concatenate([self._held, more])
        self._held[code] += by

    def of(self, codes: Places) -> Places:
        there = codes < len(self._held)
        return np.where(there, self._held[np.where(there, codes, 0)], 0)


class _Codes(dict[object, int]):
    """A number for each thing, counted up from 0."""

    def __missing__(self, thing: object) -> int:
        self[thing] = code = len(self)
        return code


class TrialHistory:
    """Everything that was shown, in the order of the trials; `samples` are those that may be shown."""

    def __init__(self, samples: Sequence[str] = ()) -> None:
        self.lock = threading.RLock()
        self.samples, self.pictures = _Codes(), _Codes()
        self.shown: list[Shown] = []
        self._ids, self._sizes = _Column(np.int64), _Column(np.float64)
        self._sample, self._picture, self._withdrawn = _Column(np.int64), _Column(np.int64), _Column(np.bool_)
        self._of: dict[int, LabellerHistory] = {}
        self.examples: Places = np.array([self.samples[sample] for sample in samples], np.int64)

    def update(self, store: AnswerStore) -> None:
        """Read what happened since the last time."""
        with self.lock:
            for labeller, place, state in store.last_trials():
                seen = self.of(labeller)
                if seen.last != (place, state):
                    for row in store.trials_from(labeller, seen.settled):
                        self.put(row)

    def of(self, labeller: int) -> "LabellerHistory":
        """What one labeller was shown."""
        with self.lock:
            return self._of.setdefault(labeller, LabellerHistory(self))

    def put(self, row: TrialRow) -> None:
        """Take in a trial, or what became of it."""
        with self.lock:
            seen = self.of(row.labeller)
            at = seen.position(row.place)
            if at is None:
                at = self._append(row)
            self._withdrawn.values[at] = row.state == "withdrawn"
            seen.put(row.place, at, row.state)

    def _append(self, row: TrialRow) -> int:
        shown = row.shown
        self._ids.append(row.id)
        self._sizes.append(shown.size)
        self._sample.append(self.samples[shown.sample])
        self._picture.append(self.pictures[shown.sample, shown.cell, shown.factor])
        self._withdrawn.append(False)
        self.shown.append(shown)
        return len(self.shown) - 1

    def codes(self, at: int) -> tuple[int, int]:
        """The sample and the picture of a trial."""
        return int(self._sample.values[at]), int(self._picture.values[at])

    def about(self, size: float, within: float) -> tuple[Places, Places, Places]:
        """Trials of about a size that were not withdrawn, in their order; their samples and their pictures."""
        at = np.flatnonzero((np.abs(self._sizes.values - size) <= within) & ~self._withdrawn.values)
        at = at[np.argsort(self._ids.values[at], kind="stable")]
        return at, self._sample.values[at], self._picture.values[at]


class LabellerHistory:
    """What one labeller was shown and answered."""

    def __init__(self, history: TrialHistory) -> None:
        self._history = history
        self._trials: list[tuple[int, State]] = []  # by place
        self._by_sample, self._by_picture = _Counts(), _Counts()
        self._walked: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._n_walked: Counter[str] = Counter()
        self._last_answer = 0  # the place of the last answer that stands
        self.n_answers = 0  # that stand

    @property
    def last(self) -> tuple[int, State] | None:
        """Where the last trial stands, and what became of it."""
        return (len(self._trials) - 1, self._trials[-1][1]) if self._trials else None

    @property
    def settled(self) -> int:
        """The first place whose trial may still change: only the last answer that stands can be taken back."""
        return self._last_answer

    def position(self, place: int) -> int | None:
        return self._trials[place][0] if place < len(self._trials) else None

    def put(self, place: int, at: int, state: State) -> None:
        if place < len(self._trials):
            self._count(*self._trials[place], by=-1)
            self._trials[place] = (at, state)
        else:
            self._trials.append((at, state))
        self._count(at, state, by=1)
        if state == "stands":
            self._last_answer = place

    def _count(self, at: int, state: State, *, by: int) -> None:
        if state == "withdrawn":
            return
        shown = self._history.shown[at]
        sample, picture = self._history.codes(at)
        self._by_sample.add(sample, by)
        self._by_picture.add(picture, by)
        walk = shown.model if shown.trials == "random" else None
        if walk is not None:
            self._walked[walk][shown.sample] += by
        if state == "stands":
            self.n_answers += by
            if walk is not None and not shown.catch:
                self._n_walked[walk] += by

    def n_walked(self, model: str) -> int:
        """How many answers to the walk through this model's samples stand."""
        return self._n_walked[model]

    def walked(self, model: str) -> Set[str]:
        """The samples of the walk through this model's samples that were shown."""
        return {sample for sample, n in self._walked[model].items() if n > 0}

    def example_counts(self) -> Places:
        """How often the sample of each example was shown."""
        with self._history.lock:
            return self._by_sample.of(self._history.examples)

    def counts(self, samples: Sequence[str]) -> Places:
        """How often these samples were shown."""
        with self._history.lock:
            return self._by_sample.of(np.array([self._history.samples[sample] for sample in samples], np.int64))

    def recent(self, n: int) -> Places:
        """The codes of the samples that were shown last."""
        with self._history.lock:
            last = (at for at, state in reversed(self._trials) if state != "withdrawn")
            return np.array([self._history.codes(at)[0] for at in islice(last, n)], np.int64)

    def recent_examples(self, n: int) -> NDArray[np.bool_]:
        """Which examples are of a sample that was shown lately."""
        return np.isin(self._history.examples, self.recent(n))

    def of_others(self, size: float, *, within: float, recent: int) -> Places:
        """Trials of others of about this size whose picture this labeller was never shown, nor its sample lately."""
        with self._history.lock:
            at, samples, pictures = self._history.about(size, within)
            fit: Places = at[(self._by_picture.of(pictures) == 0) & ~np.isin(samples, self.recent(recent))]
            return fit

    def shown(self, at: int) -> Shown:
        return self._history.shown[at]
