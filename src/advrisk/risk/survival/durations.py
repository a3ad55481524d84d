"""Durations: how much work each attack took until it first succeeded, or gave up, and what is known of everything else.

Meyers et al., "A Systematic Approach to Robustness Modelling". A duration is the work up to the first success within
eps, whatever was kept in the end; a sample that held is censored at what was spent on it. Every row that is not fitted
is counted by its reason, and every arm that is not fitted is named with one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from advrisk.core.errors import RiskError
from advrisk.core.plain import InJson
from advrisk.risk.survival.frames import Floats
from advrisk.risk.survival.kaplan_meier import KaplanMeier, kaplan_meier

WorkMeasure = Literal["forward", "gradient", "seconds", "process-seconds"]
MEASURES: tuple[WorkMeasure, ...] = get_args(WorkMeasure)
UNITS: Mapping[WorkMeasure, str] = {
    "forward": "forward passes",
    "gradient": "gradient passes",
    "seconds": "seconds",
    "process-seconds": "processor seconds",
}
UNIT: Mapping[WorkMeasure, str] = {
    "forward": "forward pass",
    "gradient": "gradient pass",
    "seconds": "second",
    "process-seconds": "processor second",
}
COUNTED: tuple[WorkMeasure, ...] = ("forward", "gradient")  # whole numbers

RowValues = NDArray[Any]
Flags = NDArray[np.bool_]


class NoDurationsError(RiskError):
    """No arm of a run has a duration; the message says why."""


@dataclass(frozen=True)
class Tally:
    """Numbers of rows of one model and the fitted arms, by outcome."""

    events: int = 0  # broken after some work
    resisted: int = 0  # censored, as are the next four
    rejected: int = 0
    timeout: int = 0
    unconfirmed: int = 0  # the judge did not confirm the attack's success
    already_wrong: int = 0  # mass at zero: not fitted
    without_work: int = 0  # broken before the first unit of the measure: mass at zero, too
    error: int = 0  # left out
    not_attacked: int = 0  # left out: nothing was spent on it

    in_json: ClassVar[InJson] = {"censored": "censored", "at_zero": "at_zero", "fitted": "fitted"}

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(**{name: n + getattr(other, name) for name, n in asdict(self).items()})

    @property
    def censored(self) -> int:
        """Rows of samples that were not broken by what was spent on them."""
        return self.resisted + self.rejected + self.timeout + self.unconfirmed

    @property
    def at_zero(self) -> int:
        """Rows that needed no work to be wrong."""
        return self.already_wrong + self.without_work

    @property
    def fitted(self) -> int:
        """Rows with a duration."""
        return self.events + self.censored

    @property
    def share_attacked(self) -> float:
        """Of the rows that count, those whose sample was correct without any attack; 0 if none counts."""
        attacked = self.fitted + self.without_work
        return attacked / max(attacked + self.already_wrong, 1)


@dataclass(frozen=True)
class Facts:
    """Properties of one model beside its rows."""

    tags: Mapping[str, Any]
    train_s: float | None
    train_samples: int | None
    inference_s: float | None  # seconds of a clean pass per sample
    right: Mapping[str, float] | None  # sample -> 1 if its clean answer is correct; None: not measured
    n_clean_rejected: int = 0
    train_process_s: float | None = None  # processor seconds of training
    train_cost: float | None = None  # as the study states it, in any unit
    wrong: Mapping[str, float] = field(default_factory=dict)  # sample -> 1 if it is incorrect; a refusal is neither

    def training_seconds(self, measure: WorkMeasure) -> float | None:
        """Training time in the unit of the durations: processor time for `process-seconds`, else wall time."""
        return self.train_process_s if measure == "process-seconds" else self.train_s

    @property
    def clean_accuracy(self) -> float | None:
        """Clean accuracy; for a random model, the share of queries with a correct answer."""
        return None if not self.right else sum(self.right.values()) / len(self.right)

    @property
    def train_s_per_sample(self) -> float | None:
        """Training seconds per training sample."""
        return None if self.train_s is None or not self.train_samples else self.train_s / self.train_samples


@dataclass(frozen=True, eq=False)
class Durations:
    """One row for each attempt on a sample: `duration`, `lower`, `event`, whose it was, and what is known of the arm.

    A pass count is discrete: a success came after the query before the one that found it, so it lies in
    (lower, duration]. A query is one pass, or several where it holds several points of a sample or draws.
    Rows at zero are apart: their models and samples stand in `zero`.
    """

    measure: WorkMeasure
    columns: Mapping[str, RowValues]
    zero: Mapping[str, RowValues]
    seconds: Floats  # wall time of the durations; nan if not measured
    arms: Mapping[str, Mapping[str, Any]]  # fitted: arm -> family, norm, eps, objective, keep, params
    left_out: Mapping[str, str]  # arm -> why it is not fitted
    by_arm: Mapping[tuple[str, str], Tally]  # model, arm -> its rows by outcome
    facts: Mapping[str, Facts]
    samples: Mapping[str, Mapping[str, Any]]  # sample -> class, and its strata
    n_missing: int = 0  # rows of an unfinished run
    weighted: bool = False  # whether samples have unequal weights, which are not used here

    @property
    def unit(self) -> str:
        return UNITS[self.measure]

    @property
    def one_unit(self) -> str:
        """`forward pass`."""
        return UNIT[self.measure]

    @property
    def models(self) -> tuple[str, ...]:
        """Models with at least one row."""
        return tuple(self.tallies)

    def of_model(self, model: str) -> Flags:
        """Mask of the rows of that model."""
        return np.asarray(self.columns["model"] == model, dtype=np.bool_)

    def kept(self, rows: Flags) -> "Durations":
        """Select rows; the tallies stay those of all rows."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        return replace(self, columns=columns, seconds=self.seconds[rows])

    def of_arms(self, arms: Sequence[str]) -> "Durations":
        """Select the rows and tallies of these arms."""
        rows = np.isin(self.columns["arm"], list(arms))
        zero = np.isin(self.zero["arm"], list(arms))
        kept = self.kept(np.asarray(rows, dtype=np.bool_))
        return replace(
            kept,
            zero={name: column[zero] for name, column in self.zero.items()},
            arms={arm: row for arm, row in self.arms.items() if arm in arms},
            by_arm={place: tally for place, tally in self.by_arm.items() if place[1] in arms},
        )

    @property
    def tallies(self) -> dict[str, Tally]:
        """Rows by outcome, for each model."""
        found: dict[str, Tally] = {}
        for (model, _), tally in self.by_arm.items():
            found[model] = found.get(model, Tally()) + tally
        return found

    def by_sample(self, model: str) -> tuple[Floats, Floats]:
        """For each sample: how often the model failed, those at zero counted, and what was spent on it in all."""
        place = {sample: number for number, sample in enumerate(self.samples)}
        failures, spent = np.zeros(len(place)), np.zeros(len(place))
        own, own_zero = self.of_model(model), self.zero["model"] == model
        rows = np.array([place[sample] for sample in self.columns["sample"][own]], dtype=np.int64)
        np.add.at(failures, rows, self.columns["event"][own].astype(np.float64))
        np.add.at(spent, rows, self.columns["duration"][own])
        zero = np.array([place[sample] for sample in self.zero["sample"][own_zero]], dtype=np.int64)
        np.add.at(failures, zero, 1.0)
        return failures, spent


EPS, STEP, STEPS = "eps", "1/255", 255
_MOST_STEPS = 128  # an eps above half of the range is not reported in grey levels


def default_units(
    durations: Durations, names: Sequence[str], given: Mapping[str, float | str]
) -> dict[str, float | str]:
    """The units given, and one grey level, 1/255, for an eps in linf of at most half of [0, 1].

    What is not named is left to the fit: 1 for small whole numbers, else one standard deviation.
    """
    units = {name: unit for name, unit in given.items() if name in names}
    norms = {durations.arms[arm]["norm"] for arm in np.unique(durations.columns["arm"]).tolist()}
    if EPS in names and EPS not in units and norms == {"linf"}:
        sizes = durations.columns[EPS]
        if float(np.max(sizes)) <= _MOST_STEPS / STEPS:
            units[EPS] = STEP
    return units


def rows_curve(columns: Mapping[str, Any], level: float) -> KaplanMeier | None:
    """The curve of these rows, up to where the first of their attacks gave up; None where there is no row.

    Beyond, only the longer attacks go on, and what they do says nothing of those that ended. Rows of one sample depend
    on each other.
    """
    duration, event, samples = columns["duration"], columns["event"].astype(np.bool_), columns["sample"]
    if not duration.size:
        return None
    held = [duration[(columns["arm"] == arm) & ~event] for arm in np.unique(columns["arm"])]
    end = min((float(times.max()) for times in held if times.size), default=float(duration.max()))
    cluster = samples if len(np.unique(samples)) > 1 else None
    return kaplan_meier(np.minimum(duration, end), event & (duration <= end), cluster=cluster, level=level)


def model_curve(durations: Durations, model: str, level: float, *, among: Flags | None = None) -> KaplanMeier | None:
    """Kaplan-Meier curve of a model's rows, or of some of them."""
    own = durations.of_model(model)
    own = own if among is None else own & among
    return rows_curve({name: column[own] for name, column in durations.columns.items()}, level)


def common_end(curves: Mapping[str, KaplanMeier]) -> float:
    """The latest time at which the means of all curves are defined: the first end of a curve above 0."""
    end = min(curve.end for curve in curves.values())
    return end if np.isfinite(end) else max(curve.longest for curve in curves.values())
