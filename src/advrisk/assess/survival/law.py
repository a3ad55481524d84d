"""The fitted law of an assessment: its covariates, the families, and whether the law may be quoted.

A law estimates the effects of covariates. It is quoted only if it holds: on held-out samples (calibration), and for
every model against the Kaplan-Meier curve of the rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from advrisk.assess.survival.covariates import default_reference
from advrisk.core.errors import RiskError
from advrisk.core.names import counted
from advrisk.core.numbers import percent_text
from advrisk.core.sections import Unanswered, result_of
from advrisk.core.seeds import generator
from advrisk.risk.survival.calibration import Calibration, calibrated_on_half
from advrisk.risk.survival.checks import FEWEST_CLUSTERS
from advrisk.risk.survival.choice import FamilyChoice, FamilyRow, families_table
from advrisk.risk.survival.durations import COUNTED, Durations, default_units
from advrisk.risk.survival.fit import SurvivalFit
from advrisk.risk.survival.kaplan_meier import KaplanMeier
from advrisk.risk.survival.records import Curve

AUTO = "auto"
TOLERANCE = 0.02  # an error up to this is accepted, even if chance explains less
OFF_THE_BAND = 0.05  # a law may leave the band of the rows' curve by this much, as the band is pointwise


@dataclass
class Sentences:
    """Distinct sentences, in order."""

    sentences: list[str] = field(default_factory=list)

    def add(self, note: str) -> None:
        if note and note not in self.sentences:
            self.sentences.append(note)


@dataclass(frozen=True)
class Law:
    """The law to fit, and how."""

    shape: tuple[str, ...]  # covariates of the shape
    family: str
    level: float
    until: float
    seed: int
    explicit: bool  # whether the user named the covariates
    reference: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, float | str] = field(default_factory=dict)
    tolerance: float = TOLERANCE


@dataclass(frozen=True, eq=False)
class Fitted:
    """The chosen law, all families, and the calibration on held-out samples."""

    fit: SurvivalFit | None = None
    families: tuple[FamilyRow, ...] = ()
    choice: FamilyChoice | None = None
    calibrations: tuple[Calibration, ...] = ()  # at several times, the worst first
    names: tuple[str, ...] = ()  # of the covariates
    models: frozenset[str] = frozenset()  # in the fitted rows; a model that no attack broke may be missing
    why_not: str = ""  # why there is no fit
    unchecked: str = ""  # why there is no calibration


def fitted_law(durations: Durations, names: Sequence[str], law: Law, notes: Sentences) -> Fitted:
    """The fit of the chosen family and of all families, or why there is none.

    Default covariates are dropped from the last one on until the others can be fitted.
    """
    durations, kept = _breakable(durations, names, notes)
    law = replace(law, shape=tuple(name for name in law.shape if name in kept or name not in names))
    first: RiskError | None = None
    for n in range(len(kept), -1, -1):
        try:
            fitted = _fitted_with(durations, kept[:n], law, notes)
        except RiskError as error:
            if law.explicit or law.shape:
                raise
            first = first or error
            continue
        if first is not None:
            notes.add(f"Not among the covariates: {', '.join(kept[n:])}. With it, {first}.")
        return fitted
    return Fitted(why_not=str(first))


def why_not_quoted(
    fitted: Fitted, durations: Durations, curves: Mapping[str, tuple[Curve, KaplanMeier]], tolerance: float
) -> str:
    """Why no number of the law may be quoted; empty if it holds.

    `curves` maps models to the curves of the law and of the fitted rows.
    """
    if fitted.fit is None:
        return fitted.why_not
    if not fitted.calibrations:
        return fitted.unchecked
    for checked in fitted.calibrations:
        if complaint := _off_on_held_out(checked, durations.unit, tolerance):
            return complaint
    for model, (own, observed) in curves.items():
        if complaint := _off_the_curve(model, own, observed, durations):
            return complaint
    return ""


def _off_on_held_out(checked: Calibration, unit: str, tolerance: float) -> str:
    """Why a calibration is off by more than the tolerance and than chance explains; else empty."""
    off = (
        f"of samples held out, the shares that fail by {checked.at_time:g} {unit} are off by {100 * checked.ici:.1f} "
        "points on average"
    )
    if checked.ici <= tolerance:
        return ""
    if checked.by_chance is None:
        needed = f"({2 * FEWEST_CLUSTERS} are needed)"
        return f"{off}, and there are too few samples to say whether chance explains that {needed}"
    if checked.ici <= checked.by_chance:
        return ""
    return f"{off}, where chance takes a correct law up to {100 * checked.by_chance:.1f}"


def _off_the_curve(model: str, law: Curve, curve: KaplanMeier, durations: Durations) -> str:
    """Where a law leaves the band of the rows' own curve by more than `OFF_THE_BAND`; else empty.

    A success recorded at pass k happened after the previous query. If a query is one pass, both curves mean the
    same at k; if it is several, that of the rows is up to so many passes late.
    """
    events = durations.columns["event"].astype(np.bool_)
    late = durations.columns["duration"][events] - durations.columns["lower"][events]
    shift = max(float(late.mean()) - 1, 0.0) if durations.measure in COUNTED and events.any() else 0.0
    ends = np.minimum(np.searchsorted(curve.times, law.times + shift, side="right") - 1, curve.times.size - 1)
    starts = np.searchsorted(curve.times, law.times, side="right") - 1
    beyond = np.maximum(curve.low[ends] - law.survival, law.survival - curve.high[starts])
    worst = int(np.argmax(beyond))
    if not beyond.size or beyond[worst] <= OFF_THE_BAND:
        return ""
    start = starts[worst]
    observed = f"{percent_text(curve.survival[start])} [{100 * curve.low[start]:.0f}, {100 * curve.high[start]:.0f}]"
    return (
        f"after {law.times[worst]:g} {durations.unit} it has {percent_text(law.survival[worst])} of {model} left, "
        f"where the attempts show {observed}"
    )


def _fitted_with(durations: Durations, names: Sequence[str], law: Law, notes: Sentences) -> Fitted:
    frame, options = _frame(durations, names, law, notes)
    families, choice = families_table(
        frame,
        options,
        chosen=None if law.family == AUTO else law.family,
        until=law.until,
        rng=generator("survival", law.seed),
    )
    fit = next(one.fit for one in families if one.chosen)
    if isinstance(choice, Unanswered) and law.family == AUTO:
        notes.add(f"The family is chosen by AIC, as samples could not be held out: {choice}.")
    calibrations, refused = calibrated_on_half(frame, options, fit.family, generator("calibration", law.seed))
    unchecked = f"it could not be checked on samples held out: {refused}" if not calibrations else ""
    for note in _on_models(durations, names):
        notes.add(note)
    models = frozenset(durations.columns["model"].tolist())
    return Fitted(fit, families, result_of(choice), calibrations, tuple(names), models, unchecked=unchecked)


def _on_models(durations: Durations, names: Sequence[str]) -> Iterator[str]:
    """A note on covariates with one value for each model, whose effects do not generalise to other models."""
    columns = durations.columns
    models = np.unique(columns["model"])
    own = [
        name
        for name in names
        if name != "model" and all(len(np.unique(columns[name][columns["model"] == one])) == 1 for one in models)
    ]
    if own and len(models) > 1:
        yield (
            f"{', '.join(own)}: one value for each of {counted(len(models), 'model')}. The interval and the p-value "
            "cover samples only, not other differences of models: they hold for these models, not for others."
        )


def _breakable(durations: Durations, names: Sequence[str], notes: Sentences) -> tuple[Durations, list[str]]:
    """Drop models that no attack broke if the model is a covariate, as their effect would be infinite."""
    columns = durations.columns
    never = [model for model in durations.models if not columns["event"][columns["model"] == model].any()]
    if "model" not in names or not never or len(never) == len(durations.models):
        return durations, list(names)
    notes.add(f"Not in the fit, as no attack broke any of its samples: {', '.join(never)}.")
    alone = len(never) == len(durations.models) - 1
    kept = durations.kept(np.asarray(~np.isin(columns["model"], never), dtype=np.bool_))
    return kept, [name for name in names if not (alone and name == "model")]


def _frame(
    durations: Durations, names: Sequence[str], law: Law, notes: Sentences
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The rows to fit, and the options of the fit."""
    columns, every = durations.columns, list(dict.fromkeys([*names, *law.shape]))
    reference, unused = default_reference(durations, every, law.reference)
    for note in unused:
        notes.add(note)
    options: dict[str, Any] = {
        "duration": "duration",
        "event": "event",
        "covariates": list(names),
        "shape_covariates": list(law.shape),
        "level": law.level,
        "reference": reference,
        "units": default_units(durations, every, law.units),
    }
    if durations.measure in COUNTED:
        options["lower"] = "lower"
    if (n := len(set(columns["sample"]))) >= FEWEST_CLUSTERS:
        options["cluster"] = "sample"
    else:
        notes.add(
            f"Rows count as independent, as {counted(n, 'sample')} are too few for errors by sample "
            f"({FEWEST_CLUSTERS} are needed): the fit's intervals are too narrow where samples recur."
        )
    wanted = ("duration", "event", "sample", *every, *([options["lower"]] if "lower" in options else []))
    return {name: columns[name] for name in dict.fromkeys(wanted)}, options
