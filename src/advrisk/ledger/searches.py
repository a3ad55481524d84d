"""What searches tried, round by round: a file for each beside the ledger; how often a setting broke is in the ledger.

A round is written down before its cells are run, so a search that was stopped goes on where it was, whatever a
surrogate fitted anew would say.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from advrisk.core.errors import LedgerError
from advrisk.core.files import NOT_AS_WRITTEN, read_json, write_json
from advrisk.core.names import search_label
from advrisk.core.plain import InJson
from advrisk.core.tables import Columns, Row, Tabular
from advrisk.ledger.ledger import Ledger

FOLDER = "search"
_CURRENT = "current.json"
_FACTS: Mapping[str, Any] = {  # beside the axes
    **dict.fromkeys(("model", "name", "method"), str),
    "norm": str | None,
    "eps": int | float | None,
    **dict.fromkeys(("n_rounds", "freeze"), int),
}

# How often each setting broke a sample to tune on; of several repeats, any one counts. What ended with an error or a
# timeout may have been broken: it counts neither way. Of success that is a wrong class: see `run.search.tally`.
_COUNTS = """
    SELECT model, arm, count(*) FILTER (failed) AS failures, count(*) FILTER (failed OR NOT lost) AS n,
           count(*) FILTER (lost AND NOT failed) AS n_errors FROM (
        SELECT o.model::VARCHAR AS model, o.arm::VARCHAR AS arm, o.sample,
               coalesce(bool_or(
                   o.outcome = 'success' AND (o.criterion = 'label' OR o.clean_prediction = s.label)
               ), false) AS failed,
               bool_or(o.outcome IN ('error', 'timeout')) AS lost
        FROM outcomes o JOIN samples s USING (sample)
        WHERE s.split = 'tune' GROUP BY ALL
    ) GROUP BY ALL
"""


@dataclass(frozen=True)
class Round:
    """Settings that were chosen together, and the arms they make; `by` is what chose them."""

    by: str
    settings: tuple[dict[str, float], ...]
    arms: tuple[str, ...]
    beta: float | None = None


@dataclass(frozen=True)
class Course:
    """A search as it was written down. `facts` say what it looks for: model, name, norm, eps, axes, method, …"""

    id: str
    facts: Mapping[str, Any]
    rounds: tuple[Round, ...] = ()
    frozen: tuple[str, ...] = ()  # arms; empty until it is finished

    def __post_init__(self) -> None:
        """Refuse, with a ValueError, what cannot be a search: a file that somebody wrote by hand may hold anything."""
        _refuse_strange_facts(self.facts)
        _refuse_strange_rounds(self.rounds)
        if not all(isinstance(word, str) for word in (self.id, *self.frozen)):
            raise ValueError("a name is no text")


def _refuse_strange_facts(facts: object) -> None:
    if not isinstance(facts, Mapping) or facts.keys() != {*_FACTS, "axes"}:
        raise ValueError(f"these are told of a search: {', '.join(_FACTS)}, axes")
    if strange := [name for name, kind in _FACTS.items() if not isinstance(facts[name], kind)]:
        raise ValueError(f"{strange[0]} is {str(facts[strange[0]])[:50]!r}")
    axes = facts["axes"]
    if not isinstance(axes, list | tuple) or not all(
        isinstance(axis, Mapping) and isinstance(axis.get("name"), str) for axis in axes
    ):
        raise ValueError("axes have names")


def _refuse_strange_rounds(rounds: Sequence[Round]) -> None:
    for one in rounds:
        if not all(isinstance(word, str) for word in (one.by, *one.arms)) or len(one.arms) != len(one.settings):
            raise ValueError("each setting of a round has the name of an arm")
        if not all(isinstance(setting, Mapping) for setting in one.settings):
            raise ValueError("a setting has a number for each axis")
        numbers = [number for setting in one.settings for number in setting.values()]
        if not all(_is_number(number) for number in (*numbers, *([] if one.beta is None else [one.beta]))):
            raise ValueError("a setting is no number")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@dataclass(frozen=True)
class Trial:
    """One setting: in which round it was tried, and how many of the samples seen it broke.

    `n` leaves out the `n_errors` samples that ended with an error or a timeout: a setting that has such is flagged, as
    nobody knows what else it breaks.
    """

    round: int
    by: str
    arm: str
    setting: Mapping[str, float]
    failures: int
    n: int
    n_errors: int
    frozen: bool

    @property
    def rate(self) -> float | None:
        """The share of samples that broke; None where nothing is known yet."""
        return self.failures / self.n if self.n else None

    @property
    def text(self) -> str:
        """`sigma 0.01, eta 0.02`."""
        return ", ".join(f"{name} {value:g}" for name, value in self.setting.items())

    @property
    def order(self) -> tuple[float, bool, str]:
        """The worst first, of equals what is frozen, then by name; last of all what nothing is known of."""
        return -1.0 * (self.rate if self.rate is not None else -1.0), not self.frozen, self.arm


@dataclass(frozen=True)
class SearchRecord(Tabular):
    """What one search found: all its trials in their order. `n_samples` are there; racing may leave some unseen."""

    id: str
    model: str
    name: str
    norm: str
    eps: float
    method: str
    axes: tuple[Mapping[str, Any], ...]
    n_rounds: int  # that were asked for, beside the first design
    freeze: int
    n_samples: int
    trials: tuple[Trial, ...] = field(repr=False)
    finished: bool
    least_beta: float | None = None  # of the rounds that a surrogate chose; None: there is none

    columns: ClassVar[Columns] = {
        **dict.fromkeys(("search", "model", "norm"), "text"),
        "eps": "number",
        "round": "count",
        **dict.fromkeys(("by", "setting"), "text"),
        **dict.fromkeys(("failures", "n", "n_errors"), "count"),
        "frozen": "flag",
        "arm": "text",
    }

    in_json: ClassVar[InJson] = {"label": "label"}

    @property
    def label(self) -> str:
        return search_label(self.name, [str(axis["name"]) for axis in self.axes], self.model)

    @property
    def n_rounds_done(self) -> int:
        """Rounds that are begun, the first design aside; the last of them may not be finished."""
        begun = {trial.round for trial in self.trials if trial.by != "design"}
        return len(begun)

    @property
    def worst(self) -> Trial | None:
        """The setting that broke the largest share of samples; of equals what is frozen, then the first by name."""
        return min(self.trials, key=lambda trial: trial.order, default=None)

    @property
    def n_worst(self) -> int:
        """How many settings broke as large a share as the worst, itself among them."""
        most = None if self.worst is None else self.worst.rate
        return sum(most is not None and trial.rate == most for trial in self.trials)

    @property
    def fruitless(self) -> bool:
        """Whether it is finished, and no setting broke anything."""
        return self.finished and any(trial.n for trial in self.trials) and not any(one.failures for one in self.trials)

    def rows(self) -> list[Row]:
        """Every setting on a row of its own."""
        place = {"search": self.name, "model": self.model, "norm": self.norm, "eps": self.eps}
        told = ("round", "by", "failures", "n", "n_errors", "frozen", "arm")
        return [
            place | {"setting": trial.text} | {name: getattr(trial, name) for name in told} for trial in self.trials
        ]


def fruitless_words(searches: Sequence[SearchRecord]) -> str:
    """What it means that searches broke nothing."""
    n = max(one.n_samples for one in searches)
    return (
        f"the search found nothing that breaks a sample on the {n} samples to tune; what is frozen is its default "
        "setting or nearest to it, so it was not chosen for being strong."
    )


def read_course(folder: Path, name: str) -> Course | None:
    """What is written down of a search; None where nothing is."""
    path = folder / FOLDER / f"{name}.json"
    if not path.is_file():
        return None
    try:
        content = read_json(path)
        rounds = [
            Round(row["by"], tuple(row["settings"]), tuple(row["arms"]), row["beta"]) for row in content["rounds"]
        ]
        return Course(content["id"], content["facts"], tuple(rounds), tuple(content["frozen"]))
    except NOT_AS_WRITTEN as error:
        raise LedgerError(f"{path}: cannot be read ({error}); delete it, and the search begins anew") from None


def write_course(folder: Path, course: Course) -> None:
    """Write a search down as it stands."""
    _write(folder / FOLDER / f"{course.id}.json", asdict(course))


def write_current(folder: Path, names: Sequence[str]) -> None:
    """Which searches the study asks for now; others stay where they are, and are not shown."""
    if names or (folder / FOLDER / _CURRENT).is_file():
        _write(folder / FOLDER / _CURRENT, list(names))


def read_searches(ledger: Ledger) -> list[SearchRecord]:
    """The searches of the study as it is now, in its order, with what the ledger says of their settings."""
    folder = ledger.path.parent
    path = folder / FOLDER / _CURRENT
    if not path.is_file():
        return []
    try:
        names = read_json(path)
        courses = [course for name in names if (course := read_course(folder, str(name)))]
    except NOT_AS_WRITTEN as error:
        raise LedgerError(f"{path}: cannot be read ({error}); run the study again") from None
    ledger = ledger.by_id()  # as settings are written down
    counts = {(row.pop("model"), row.pop("arm")): row for row in ledger.query(_COUNTS).to_pylist()}
    n_samples = ledger.query("SELECT count(*) AS n FROM samples WHERE split = 'tune'")["n"][0].as_py()
    return [_record(course, counts, n_samples) for course in courses]


def _record(course: Course, counts: Mapping[tuple[str, str], Mapping[str, int]], n_samples: int) -> SearchRecord:
    facts = dict(course.facts)
    nothing = {"failures": 0, "n": 0, "n_errors": 0}
    trials = [
        Trial(
            place,
            one.by,
            arm,
            setting,
            frozen=arm in course.frozen,
            **counts.get((facts["model"], arm), nothing),
        )
        for place, one in enumerate(course.rounds)
        for setting, arm in zip(one.settings, one.arms, strict=True)
    ]
    axes = tuple(facts.pop("axes"))
    return SearchRecord(
        course.id,
        axes=axes,
        n_samples=n_samples,
        trials=tuple(trials),
        finished=bool(course.frozen),
        least_beta=min((one.beta for one in course.rounds if one.beta is not None), default=None),
        **facts,
    )


def _write(path: Path, content: Any) -> None:
    write_json(path, content)
