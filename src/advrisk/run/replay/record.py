"""What a replay gave, and what follows from it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from advrisk.assess.certificate.verification import Verification
from advrisk.core.names import counted
from advrisk.core.numbers import percent_text
from advrisk.risk.accuracy import probability_at_most
from advrisk.run.replay.comparing import Difference

# On other arithmetic an attack may take another path: outcomes that differ are a problem where they are more than
# `_FLIPS` of the rows, by a test that is wrong once in a hundred times.
_FLIPS, _LEVEL = 0.02, 0.01
_SAME = ("n_equal", "n_rounded")
_MOST = 10  # differences that are shown
_ALTERED = (0.01, 0.05)  # shares of samples that an operator might have altered


@dataclass
class ReplayCounts:
    """Rows of one model, as they were compared."""

    n_equal: int = 0
    n_rounded: int = 0
    differences: list[Difference] = field(default_factory=list)
    n_clean_equal: int = 0  # of rows with logits of clean inputs
    n_clean_rounded: int = 0

    @property
    def same_arithmetic(self) -> bool:
        """Whether this machine computes as the run's did: of clean answers, more are equal than rounded."""
        return self.n_clean_equal >= self.n_clean_rounded

    @property
    def wrong(self) -> list[Difference]:
        """Rows that rounding does not explain. On other arithmetic an attack may take another path."""
        if self.same_arithmetic:
            return self.differences
        flipped = [one for one in self.differences if one.outcome_differs and not one.certain]
        by_chance = probability_at_most(self.n - len(flipped), self.n, 1 - _FLIPS) >= _LEVEL
        return [one for one in self.differences if one.certain] + ([] if by_chance else flipped)

    @property
    def n(self) -> int:
        return self.n_equal + self.n_rounded + len(self.differences)


@dataclass(frozen=True)
class Replay:
    """Samples that were attacked again from the stored seeds, and how their rows compare with the recorded ones."""

    seed: int
    samples: tuple[str, ...]
    n_eligible: int
    models: Mapping[str, ReplayCounts]
    unreplayed: Mapping[str, int]  # reason -> rows
    foreign: Mapping[str, int]  # what rows are that the study does not give -> rows
    ended_otherwise: int = 0  # rows recorded as an error, which have an outcome now
    n_whole: int = 0  # rows for which their whole shard was attacked again

    @property
    def n_rows(self) -> int:
        """Rows that were compared."""
        return sum(tally.n for tally in self.models.values())

    @property
    def differences(self) -> list[Difference]:
        """Rows that their replay does not give, and that rounding does not explain."""
        return [one for tally in self.models.values() for one in tally.wrong]

    def chance_of_finding(self, share: float) -> float:
        """The probability that a replay finds rows that were written for this share of the samples."""
        n_altered, left = max(1, round(share * self.n_eligible)), 1.0
        for place in range(len(self.samples)):
            left *= max(0, self.n_eligible - n_altered - place) / (self.n_eligible - place)
        return 1 - left

    def verification(self) -> Verification:
        """What held, what is wrong, and what was not looked at."""
        problems = [f"{counted(n, 'row')} could not be replayed: {reason}." for reason, n in self.foreign.items()]
        notes = [self._drawn()]
        for model, tally in self.models.items():
            problems += _problems(model, tally)
            notes += _notes(model, tally)
        if not self.n_rows:
            problems.append("No row could be compared with a replay.")
        notes += [f"{counted(n, 'row')} not replayed: {reason}." for reason, n in self.unreplayed.items()]
        if self.ended_otherwise:
            rows = counted(self.ended_otherwise, "row")
            notes.append(f"{rows} recorded as an error or timeout ended otherwise now, which errors may do.")
        held = () if problems else (self._held(),)
        return Verification(held, tuple(problems), tuple(notes))

    def _held(self) -> str:
        n_equal, n_rounded = (sum(getattr(tally, name) for tally in self.models.values()) for name in _SAME)
        rest = self.n_rows - n_equal - n_rounded
        how = "bit by bit" if not n_rounded else f"({n_equal:,} bit by bit, {n_rounded:,} but for rounding)"
        other = f"; {counted(rest, 'row')} came out in another way, which other arithmetic explains" if rest else ""
        samples = counted(len(self.samples), "sample")
        return f"Attacked again, {samples} gave the same {n_equal + n_rounded:,} rows {how}{other}."

    def _drawn(self) -> str:
        drawn = f"{len(self.samples)} of {counted(self.n_eligible, 'sample')}, drawn with the seed {self.seed}"
        if len(self.samples) == self.n_eligible:
            return f"Replayed: {drawn}."
        few, many = (percent_text(self.chance_of_finding(share), 0) for share in _ALTERED)
        return (
            f"Replayed: {drawn}. Were rows of 1 % of the samples rewritten, it would find that with probability {few}; "
            f"of 5 %, with {many}."
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "seed": self.seed,
            "samples": list(self.samples),
            "n_eligible": self.n_eligible,
            "n_rows": self.n_rows,
            "n_equal": sum(tally.n_equal for tally in self.models.values()),
            "n_rounded": sum(tally.n_rounded for tally in self.models.values()),
            "n_whole_shard": self.n_whole,
            "differences": [vars(one) for one in self.differences],
            "not_replayed": dict(self.unreplayed),
            "foreign": dict(self.foreign),
            "ended_otherwise": self.ended_otherwise,
            "other_arithmetic": [name for name, tally in self.models.items() if not tally.same_arithmetic],
        }


def _problems(model: str, tally: ReplayCounts) -> list[str]:
    wrong = tally.wrong
    arms = Counter(one.arm for one in wrong)
    more = f"{model}: {len(wrong) - _MOST} more rows differ ({', '.join(f'{arm} {n}' for arm, n in arms.items())})."
    return [f"Replayed, {one}." for one in wrong[:_MOST]] + ([more] if len(wrong) > _MOST else [])


def _notes(model: str, tally: ReplayCounts) -> list[str]:
    if tally.same_arithmetic:
        return []
    n_other = sum(one.outcome_differs for one in tally.differences)
    return [
        f"{model}: clean answers differ by rounding, so this machine or its version of torch computes otherwise than "
        f"the run's, and attacks may take another path: {n_other} of {tally.n:,} outcomes differ, and "
        f"{len(tally.differences) - n_other} rows in other numbers. Up to about {percent_text(_FLIPS, 0)} of the "
        "outcomes, that is no problem."
    ]
