"""The question of scenarios, answered from a ledger: the risk of every model, what drives it, and which to ship."""

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
    """Every scenario under every loss, for all models; and the robustness numbers beside them."""

    results: tuple[ScenarioResult, ...]  # by scenario, then by loss
    arms: Mapping[str, Mapping[str, Mapping[str, Estimate]]]  # loss -> model -> arm -> its mean loss
    robustness: tuple[Robustness, ...]
    measures: Mapping[str, Mapping[str, Estimate]]  # model -> measure, such as CLEVER
    level: float
    notes: tuple[str, ...] = ()
    tensors: LedgerTensors | None = field(default=None, repr=False)
    samples_left: int | None = None  # that the data set still has to evaluate; None: unknown
    unanswered: Mapping[str, str] = field(default_factory=dict)  # scenario -> why it has no result under the first loss

    columns: ClassVar[Columns] = COLUMNS
    in_json: ClassVar[InJson] = {"tensors": None, "samples_left": None, "unanswered": None}

    def of(self, scenario: str, loss: str | None = None) -> ScenarioResult:
        """The result of a scenario; under the first loss, unless it is named."""
        found = [one for one in self.results if one.scenario.name == scenario and loss in (None, one.loss)]
        if not found:
            known = [f"{one.scenario.name}, {one.loss}" for one in self.results]
            wanted = scenario if loss is None else f"{scenario}, {loss}"
            raise RiskError(f"no result of {wanted}; {did_you_mean(wanted, known)}")
        return found[0]

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The scenarios, each once."""
        return tuple(dict.fromkeys(one.scenario.name for one in self.results))

    @property
    def losses(self) -> tuple[str, ...]:
        """The losses, each once."""
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
    """Answer every scenario under every loss from a run's ledger.

    Without a scenario all corruptions count alike (`uniform_scenario`), which describes no deployment, and a note says
    so. `losses` are as a study names them; without any, `misclassified`. `arms` are names or patterns of those that
    count; by default the study's own. A scenario that cannot be answered is left out with a note; if that is so for all
    of them, the first says why.
    """
    tensors = read_tensors(ledger, losses, models=models, arms=arms)
    notes: list[str] = []
    asked = list(scenarios)
    if not asked:
        asked = [uniform_scenario(next(iter(tensors.values())))]
        notes.append("No scenario was stated: all corruptions count alike. This describes no deployment.")
    names = [loss.label for loss in tensors.losses]
    results, refused = _answered(tensors, asked, names, level=level, seed=seed)
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
    """What the numbers of models that answer at random are, and what is not known of them."""
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


def _answered(
    tensors: LedgerTensors, scenarios: Sequence[Scenario], losses: Sequence[str], *, level: float, seed: int
) -> tuple[list[ScenarioResult], list[tuple[str, str, str]]]:
    """Every scenario under every loss; and scenario, loss and reason of those that have no answer."""
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


def _on_left_out(found: ScenarioResult) -> list[str]:
    notes = []
    if found.n_unfinished:
        notes.append(f"{found.scenario.name}: not finished, and left out: {counted(found.n_unfinished, 'sample')}.")
    if found.n_without_verdict:
        notes.append(
            f"{found.scenario.name}: left out because an arm gave no verdict: "
            f"{counted(found.n_without_verdict, 'sample')}. An error is never counted as harmless."
        )
    return notes


def robustness(
    ledger: Ledger, *, models: Sequence[str] | None = None, arms: Sequence[str] | None = None, level: float = 0.95
) -> tuple[tuple[Robustness, ...], tuple[str, ...]]:
    """For every model and every norm that the attacks have; and why something cannot be said.

    `arms` are names or patterns; by default the attacks of the study. There is a mean distance, that of the
    nearest successes, only where some attack looks for the smallest change (`keep: smallest`, or no eps): others go as
    far as they may. Whatever success was judged by, a sample that is wrong when clean is at distance 0.
    """
    rows = _attacks(ledger, arms)
    found: list[Robustness] = []
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
                f"There is no mean distance in {norm}: all attacks have an eps, none looks for the smallest change; "
                "one without eps does, or one with `keep: smallest`."
            )
        queries = read_queries(ledger, norm=norm, arms=distances.arms, samples=distances.samples)
        to_wrong = distances_to_wrong(ledger, distances)
        found += [
            model_robustness(model, norm, to_wrong[model], eps, level, queries.get(model), sized=sized)
            for model in distances.by_model
            if models is None or model in models
        ]
    return tuple(found), tuple(notes)


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
    """Model -> how far each sample is from being misread: 0 where it is when clean, whatever success was judged by."""
    wrong: dict[str, set[str]] = {}
    for row in ledger.query(_WRONG).to_pylist():
        wrong.setdefault(row["model"], set()).add(row["sample"])
    return {
        model: np.where([name in wrong.get(model, ()) for name in distances.samples], 0.0, own)
        for model, own in distances.by_model.items()
    }
