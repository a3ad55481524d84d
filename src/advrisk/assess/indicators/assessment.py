"""Assess scenarios from a ledger: the risk of every model, what drives it, and which model to ship."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from advrisk.assess.damage.clean import clean_shares, on_rejection
from advrisk.assess.damage.distances import Distances, smallest_distances
from advrisk.assess.damage.queries import read_queries
from advrisk.assess.indicators.reading import LedgerTensors, read_tensors
from advrisk.assess.measures import read_measures
from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.names import counted, did_you_mean, matches
from advrisk.core.plain import InJson
from advrisk.core.seeds import generator
from advrisk.core.tables import Columns, Row, Tabular
from advrisk.ledger import Ledger
from advrisk.risk.indicators.comparison import COLUMNS, ScenarioResult, compare_models
from advrisk.risk.indicators.robustness import Robustness, model_robustness
from advrisk.risk.indicators.scenario import Scenario
from advrisk.risk.indicators.tree import arm_risks, uniform_scenario

_WRONG = """
    SELECT o.model::VARCHAR AS model, o.sample::VARCHAR AS sample FROM outcomes o JOIN samples s USING (sample)
    WHERE o.kind = 'clean' AND o.prediction <> s.label AND o.criterion = 'prediction'
"""


@dataclass(frozen=True, eq=False)
class IndicatorAssessment(Tabular):
    """Every scenario under every loss, for all models, and robustness numbers."""

    results: tuple[ScenarioResult, ...]  # by scenario, then by loss
    arms: Mapping[str, Mapping[str, Mapping[str, Estimate]]]  # loss -> model -> arm -> its mean loss
    robustness: tuple[Robustness, ...]
    measures: Mapping[str, Mapping[str, Estimate]]  # model -> measure, such as CLEVER
    level: float
    notes: tuple[str, ...] = ()
    tensors: LedgerTensors | None = field(default=None, repr=False)
    samples_left: int | None = None  # samples of the data set not evaluated yet; None: unknown
    unanswered: Mapping[str, str] = field(default_factory=dict)  # scenario -> why it has no result under the first loss

    columns: ClassVar[Columns] = COLUMNS
    in_json: ClassVar[InJson] = {"tensors": None, "samples_left": None, "unanswered": None}

    def of(self, scenario: str, loss: str | None = None) -> ScenarioResult:
        """The result of a scenario, by default under the first loss."""
        results = [one for one in self.results if one.scenario.name == scenario and loss in (None, one.loss)]
        if not results:
            names = [f"{one.scenario.name}, {one.loss}" for one in self.results]
            wanted = scenario if loss is None else f"{scenario}, {loss}"
            raise RiskError(f"no result of {wanted}; {did_you_mean(wanted, names)}")
        return results[0]

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The names of the scenarios."""
        return tuple(dict.fromkeys(one.scenario.name for one in self.results))

    @property
    def losses(self) -> tuple[str, ...]:
        """The names of the losses."""
        return tuple(dict.fromkeys(one.loss for one in self.results))

    def rows(self) -> list[Row]:
        """One row for each model and branch, class or stratum of every result."""
        return [row for one in self.results for row in one.rows()]


def assess_indicators(
    ledger: Ledger,
    scenarios: Sequence[Scenario] = (),
    losses: Sequence[object] = (),
    *,
    models: Sequence[str] | None = None,
    arms: Sequence[str] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> IndicatorAssessment:
    """Assess every scenario under every loss from a run's ledger.

    Without a scenario all corruptions have equal weights (`uniform_scenario`), which describes no deployment; a note
    says so. `losses` are named as in a study; the default is `misclassified`. `arms` are names or patterns; by default
    the study's own arms count. A scenario that cannot be assessed is left out with a note. If none can, the first error
    is raised.
    """
    tensors = read_tensors(ledger, losses, models=models, arms=arms)
    notes: list[str] = []
    scenarios_or_default = list(scenarios)
    if not scenarios_or_default:
        scenarios_or_default = [uniform_scenario(next(iter(tensors.values())))]
        notes.append("No scenario was stated: all corruptions count alike. This describes no deployment.")
    names = [loss.label for loss in tensors.losses]
    results, refused = _scenario_results(tensors, scenarios_or_default, names, level=level, seed=seed)
    beside, left_out = robustness(ledger, models=models, arms=arms, level=level)
    rejection = {model: one for model, one in clean_shares(ledger, level=level).rejection.items() if model in tensors}
    return IndicatorAssessment(
        results=tuple(results),
        arms={
            loss: {model: arm_risks(tensor, loss=loss, level=level) for model, tensor in tensors.items()}
            for loss in names
        },
        robustness=beside,
        measures=read_measures(ledger, models=models, level=level),
        level=level,
        notes=tuple(
            dict.fromkeys(
                [
                    *notes,
                    *(f"The scenario {name} is left out: {reason}." for name, _, reason in refused),
                    *(note for one in results for note in _on_left_out(one)),
                    *left_out,
                    *on_rejection(rejection),
                    *_on_random(ledger, tensors),
                ]
            )
        ),
        tensors=tensors,
        unanswered={name: reason for name, loss, reason in refused if loss == results[0].loss},
    )


def _on_random(ledger: Ledger, tensors: LedgerTensors) -> list[str]:
    """Notes on models that answer at random."""
    rows = ledger.query("SELECT model FROM models WHERE random ORDER BY model")["model"].to_pylist()
    drawn = [name for name in rows if name in tensors and tensors[name].is_random]
    others = [name for name in rows if name in tensors and not tensors[name].is_random]
    notes = []
    if drawn:
        notes.append(f"Answers at random: {', '.join(drawn)}. Its loss is that of a query, the mean over draws.")
    if others:
        notes.append(
            f"Answers at random, and what it said in each draw is not stored: {', '.join(others)}. The loss "
            "misclassified is that of a query; other losses count what it says most. Run the study again to have them."
        )
    return notes


def _scenario_results(
    tensors: LedgerTensors, scenarios: Sequence[Scenario], losses: Sequence[str], *, level: float, seed: int
) -> tuple[list[ScenarioResult], list[tuple[str, str, str]]]:
    """The result of every scenario under every loss; and scenario, loss and reason of those without an answer."""
    results: list[ScenarioResult] = []
    refused: list[tuple[str, str, RiskError]] = []
    for scenario in scenarios:
        for loss in losses:
            rng = generator("indicators", seed, scenario.name)
            try:
                results.append(compare_models(tensors, scenario, loss=loss, level=level, rng=rng))
            except RiskError as error:
                refused.append((scenario.name, loss, error))
    if refused and not results:
        raise refused[0][-1]
    return results, [(name, loss, str(error)) for name, loss, error in refused]


def _on_left_out(result: ScenarioResult) -> list[str]:
    notes = []
    if result.n_unfinished:
        notes.append(f"{result.scenario.name}: not finished, and left out: {counted(result.n_unfinished, 'sample')}.")
    if result.n_without_verdict:
        notes.append(
            f"{result.scenario.name}: left out because an arm gave no verdict: "
            f"{counted(result.n_without_verdict, 'sample')}. An error is never counted as harmless."
        )
    return notes


def robustness(
    ledger: Ledger, *, models: Sequence[str] | None = None, arms: Sequence[str] | None = None, level: float = 0.95
) -> tuple[tuple[Robustness, ...], tuple[str, ...]]:
    """Robustness numbers for every model and every norm of the attacks, and notes on missing ones.

    `arms` are names or patterns; by default the attacks of the study. A mean distance exists only if some attack
    minimises the distance (`keep: smallest`, or no eps); other attacks use all of their eps. A sample that is
    incorrect clean has the distance 0, whatever the criterion of success.
    """
    rows = _attacks(ledger, arms)
    rows_by_model: list[Robustness] = []
    notes: list[str] = []
    for norm in dict.fromkeys(row["norm"] for row in rows):
        own = [row for row in rows if row["norm"] == norm]
        sized = any(row["keep"] == "smallest" or not row["eps"] for row in own)
        eps = max((row["eps"] for row in own if row["eps"]), default=None)
        try:
            distances = smallest_distances(ledger, norm=norm, arms=[row["arm"] for row in own])
        except RiskError as error:
            notes.append(f"Distances in {norm} are left out: {error}.")
            continue
        if not sized:
            notes.append(
                f"There is no mean distance in {norm}: all attacks have an eps, and none minimises the distance; "
                "add one without eps or with `keep: smallest`."
            )
        queries = read_queries(ledger, norm=norm, arms=distances.arms, samples=distances.samples)
        to_wrong = distances_to_wrong(ledger, distances)
        rows_by_model += [
            model_robustness(model, norm, to_wrong[model], eps, level, queries.get(model), sized=sized)
            for model in distances.by_model
            if models is None or model in models
        ]
    return tuple(rows_by_model), tuple(notes)


def _attacks(ledger: Ledger, patterns: Sequence[str] | None) -> list[dict[str, Any]]:
    """Attacks with a norm that are asked about, each once."""
    rows: list[dict[str, Any]] = ledger.query(
        "SELECT DISTINCT norm, arm, eps, keep, origin FROM arms WHERE kind = 'attack' AND norm IS NOT NULL "
        "AND origin IN ('study', 'import') ORDER BY ALL"
    ).to_pylist()
    if patterns is not None:
        return [row for row in rows if matches(row["arm"], patterns)]
    own = "study" if ledger.query("SELECT 1 FROM arms WHERE origin = 'study' LIMIT 1").num_rows else "import"
    return [row for row in rows if row["origin"] == own]


def distances_to_wrong(ledger: Ledger, distances: Distances) -> dict[str, NDArray[np.float64]]:
    """Model -> each sample's distance to a misclassification: 0 if it is incorrect clean, whatever the criterion."""
    wrong: dict[str, set[str]] = {}
    for row in ledger.query(_WRONG).to_pylist():
        wrong.setdefault(row["model"], set()).add(row["sample"])
    return {
        model: np.where([name in wrong.get(model, ()) for name in distances.samples], 0.0, own)
        for model, own in distances.by_model.items()
    }
