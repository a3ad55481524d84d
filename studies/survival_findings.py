"""What a run says of survival: durations with what may explain them, and fits by all families.

Everything comes from the run's ledger through advrisk's own readers; nothing is run again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advrisk import Run
from advrisk.assess.survival.reading import read_durations
from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.risk.survival import FAMILIES, SurvivalFit, fit_survival
from advrisk.risk.survival.durations import COUNTED, Durations, WorkMeasure
from studies.survival_clock import train_seconds

Frame = Mapping[str, NDArray[Any]]

PASSES: WorkMeasure = "forward"
SECONDS: WorkMeasure = "process-seconds"
BARE = "none"
LAYERS = 10.0  # factors are told for so many layers more
_LEVELS = ("threshold", "sigma", "bits", "quality", "window")  # of a defence, as its model is tagged

_INFERENCE = """
    SELECT model, sum(inference_s * process_s / wall_s * n_samples) / sum(n_samples) AS seconds
    FROM cells WHERE inference_s IS NOT NULL AND wall_s > 0 GROUP BY model
"""


@dataclass(frozen=True)
class Reading:
    """A way to read the same rows: in which measure, with which covariates beside depth, and what counts as a unit."""

    measure: WorkMeasure
    inference: bool = False  # whether seconds of a clean pass are a covariate, too
    unit: str | None = None  # the column whose values count once; None: every row does


@dataclass(frozen=True, eq=False)
class Findings:
    """One run whose models are tagged with their depth."""

    name: str
    run: Run
    durations: Mapping[WorkMeasure, Durations]
    inference: Mapping[str, float]  # model -> processor seconds of a clean pass, for each sample
    beside: tuple[str, ...]  # covariates beside depth
    trained: Mapping[str, float] = field(default_factory=dict)  # kind -> processor seconds of training for each sample

    @property
    def models(self) -> tuple[str, ...]:
        return self.durations[PASSES].models

    def tag(self, model: str, name: str) -> Any:
        """A tag of a model."""
        return self.durations[PASSES].facts[model].tags.get(name)

    def label(self, model: str) -> str:
        """The defence of a model, with its level."""
        return defence_of(self.durations[PASSES].facts[model].tags)

    @cached_property
    def frames(self) -> dict[WorkMeasure, Frame]:
        """Rows of both measures, with covariates."""
        return {measure: self._frame(one) for measure, one in self.durations.items()}

    def _frame(self, durations: Durations) -> Frame:
        of_model = {
            "depth": {model: float(self.tag(model, "depth")) for model in durations.models},
            "noise": {model: noise_of(self.tag(model, "noise")) for model in durations.models},
            "defence": {model: defence_of(durations.facts[model].tags) for model in durations.models},
            "inference_s": dict(self.inference),
        }
        models = durations.columns["model"]
        known = {name: np.array([own[model] for model in models]) for name, own in of_model.items()}
        return {**durations.columns, **known}

    def fit(self, reading: Reading, family: str) -> SurvivalFit:
        """A fit of that reading."""
        covariates = ["depth", *self.beside, *(["inference_s"] if reading.inference else [])]
        return fit_survival(
            self.frames[reading.measure],
            duration="duration",
            event="event",
            lower="lower" if reading.measure in COUNTED else None,
            covariates=covariates,
            family=family,
            cluster=reading.unit,
            reference={"defence": BARE} if "defence" in covariates else None,
        )

    def fits(self, reading: Reading) -> dict[str, SurvivalFit]:
        """Fits by all families, that with the least AIC first."""
        found = {family: self.fit(reading, family) for family in FAMILIES}
        return dict(sorted(found.items(), key=lambda item: item[1].aic))


def findings(folder: Path, clock: Path | None = None) -> Findings:
    """A finished run; its models must be tagged with their depth. `clock` is a table of what training took."""
    run = Run.open(folder)
    status = run.status()
    if not status.complete:
        raise RiskError(
            f"{folder}: {status.n_cells} of {status.n_cells_expected} cells are done; finish the run (the same command "
            "goes on)"
        )
    durations = {measure: read_durations(run.ledger, measure=measure) for measure in (PASSES, SECONDS)}
    facts = durations[PASSES].facts
    if missing := [model for model, own in facts.items() if not isinstance(own.tags.get("depth"), int | float)]:
        raise RiskError(f"{folder}: the model {missing[0]} has no depth; tag it in the study: `tags: {{depth: 20}}`")
    varying = [
        name
        for name, values in (
            ("noise", {noise_of(own.tags.get("noise")) for own in facts.values()}),
            ("defence", {defence_of(own.tags) for own in facts.values()}),
            ("arm", set(durations[PASSES].arms)),
        )
        if len(values) > 1
    ]
    inference = {row["model"]: row["seconds"] for row in run.query(_INFERENCE).to_pylist()}
    name = run.study.name if run.study else folder.name
    trained = {} if clock is None else train_seconds(clock)
    return Findings(name, run, durations, inference, tuple(varying), trained)


def defence_of(tags: Mapping[str, Any]) -> str:
    """The defence with its level, as one word: `conf 0.9`."""
    if "defence" not in tags:
        return BARE
    level = next((f" {tags[name]:g}" for name in _LEVELS if isinstance(tags.get(name), int | float)), "")
    return f"{tags['defence']}{level}"


def noise_of(tag: Any) -> str:
    """The noise of the training as a level, not as a number: what 0.5 does need not be five times what 0.1 does."""
    return f"{tag:g}" if isinstance(tag, int | float) else "0"


def depth_factor(fit: SurvivalFit) -> Estimate:
    """How many times as long survival lasts with so many layers more."""
    own = fit.coefficient("depth").natural.estimate
    value, low, high = (float(np.exp(LAYERS * end)) for end in (own.value, own.low, own.high))
    return Estimate(value, low, high, own.level, own.n, own.method)


def correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Pearson's, of numbers that models have."""
    return float(np.corrcoef(np.asarray(one, float), np.asarray(other, float))[0, 1])
