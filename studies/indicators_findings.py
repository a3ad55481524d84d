"""What a run says of risks in its scenarios, read through advrisk's Python interface."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advrisk import Run
from advrisk.assess.damage.distances import smallest_distances
from advrisk.assess.indicators.assessment import IndicatorAssessment, distances_to_wrong
from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.risk.indicators.comparison import ScenarioResult
from advrisk.risk.indicators.robustness import Robustness
from advrisk.risk.proportion import proportion
from advrisk.study import Norm

Flag = Mapping[str, Any]
CROSS_ENTROPY = "ace"
_SHARES = """
    SELECT o.arm::VARCHAR AS arm, o.model::VARCHAR AS model, count(*) FILTER (outcome <> 'error') AS n,
        count(*) FILTER (outcome <> 'error' AND (o.clean_prediction <> s.label OR o.prediction <> s.label)) AS wrong
    FROM outcomes o JOIN samples s USING (sample) JOIN arms a USING (model, arm)
    WHERE o.kind <> 'corruption' AND a.origin = 'study' GROUP BY o.arm, o.model
"""


@dataclass(frozen=True)
class Question:
    """What if some weights of a scenario were others?"""

    words: str
    scenario: str
    changes: Mapping[str, Any]


QUESTIONS = (
    Question("half of all pages askew or ill lit", "scanner", {"sensor": 0.5}),
    Question("no page askew", "scanner", {"sensor.rotation": 0}),
    Question("rain on twice as many days", "street", {"weather.rain": 240, "weather.clean": 33}),
    Question("twice as much noise", "street", {"noise": 0.2}),
    Question("one input in ten tampered with", "street-attacked", {"attacks": 0.1}),
    Question("nobody attacks", "street-attacked", {"attacks": 0}),
)


@dataclass(frozen=True)
class Attack:
    """An attack arm at the largest size that the study allows."""

    arm: str
    family: str
    objective: str | None

    @property
    def climbs_cross_entropy(self) -> bool:
        """Whether it follows the slopes of the model's own cross-entropy."""
        return self.objective == CROSS_ENTROPY and self.family != "transfer"


@dataclass(frozen=True, eq=False)
class Findings:
    """One run."""

    name: str  # of the study
    run: Run
    found: IndicatorAssessment  # every scenario under every loss
    uniform: ScenarioResult  # all corruptions alike: an indicator of every cause and family
    answers: tuple[tuple[Question, ScenarioResult], ...]
    attacks: tuple[Attack, ...]
    unlimited: frozenset[str]  # attacks without a limit of size
    within: Mapping[float, Mapping[str, Estimate]]  # eps -> model -> share wrong under the strongest attack within it
    wrong: Mapping[str, Mapping[str, Estimate]]  # arm -> model -> share wrong: without perturbation, under each attack
    flags: tuple[Flag, ...]

    @property
    def loss(self) -> str:
        """The first: what models are ranked by."""
        return self.found.losses[0]

    @property
    def ranked(self) -> list[ScenarioResult]:
        """Every scenario under the first loss."""
        return [self.found.of(name) for name in self.found.scenarios]

    @property
    def models(self) -> list[str]:
        """In the order of the first scenario, least risk first."""
        return [one.model for one in self.ranked[0].models]

    @property
    def robustness(self) -> dict[str, Robustness]:
        """Model -> its numbers in the norm that the study assesses."""
        return {one.model: one for one in self.found.robustness if one.norm == _norm(self.run)}


def findings(folder: Path) -> Findings:
    """A run that is finished; others are refused, since fewer samples would be assessed than asked for."""
    run = Run.open(folder)
    status = run.status()
    if not status.complete:
        raise RiskError(
            f"{folder}: {status.n_cells} of {status.n_cells_expected} cells are done; finish the run (the same command "
            "goes on)"
        )
    if run.study is None or not run.study.scenarios:
        raise RiskError(f"{folder}: its study states no scenario; add `scenarios` to it, and run it again")
    found = run.indicators()
    first = run.named_losses([found.losses[0]])
    return Findings(
        name=run.study.name,
        run=run,
        found=found,
        uniform=run.indicators(scenarios={}, losses=first).results[0],
        answers=tuple(_answers(run, found, first)),
        attacks=_attacks(run),
        unlimited=_unlimited(run),
        within=_within(run),
        wrong=_wrong(run),
        flags=tuple(run.flags()),
    )


def _answers(run: Run, found: IndicatorAssessment, first: list[object] | None) -> list[tuple[Question, ScenarioResult]]:
    """What the questions about this run's scenarios come to, under the first loss."""
    asked = [one for one in QUESTIONS if one.scenario in found.scenarios and _fits(one, found)]
    return [
        (one, run.indicators(scenario=[one.scenario], losses=first, what_if=one.changes).results[-1]) for one in asked
    ]


def _fits(question: Question, found: IndicatorAssessment) -> bool:
    return set(question.changes) <= set(found.of(question.scenario).branches)


def _attacks(run: Run) -> tuple[Attack, ...]:
    rows = run.query(
        "WITH own AS (SELECT DISTINCT arm, family, objective, eps FROM arms WHERE kind = 'attack' AND origin = 'study' "
        "AND norm = $norm) SELECT arm, family, objective FROM own WHERE eps = (SELECT max(eps) FROM own) ORDER BY arm",
        {"norm": _norm(run)},
    ).to_pylist()
    return tuple(Attack(row["arm"], row["family"], row["objective"]) for row in rows)


def _unlimited(run: Run) -> frozenset[str]:
    rows = run.query("SELECT DISTINCT arm FROM arms WHERE kind = 'attack' AND eps IS NULL")
    return frozenset(rows["arm"].to_pylist())


def _within(run: Run) -> dict[float, dict[str, Estimate]]:
    """For all sizes of the study's attacks, in the norm that it assesses."""
    arms = run.query(
        "SELECT DISTINCT arm, eps FROM arms WHERE kind = 'attack' AND origin = 'study' AND norm = $norm",
        {"norm": _norm(run)},
    ).to_pylist()
    sizes = sorted({row["eps"] for row in arms if row["eps"]})
    if not sizes:
        return {}
    found = smallest_distances(run.ledger, norm=_norm(run), arms=[row["arm"] for row in arms])
    distances = distances_to_wrong(run.ledger, found)
    return {
        eps: {model: proportion(int((own <= eps).sum()), own.size) for model, own in distances.items()} for eps in sizes
    }


def _norm(run: Run) -> Norm:
    return run.study.assess.damage.norm if run.study else "linf"


def _wrong(run: Run) -> dict[str, dict[str, Estimate]]:
    """Shares of samples that are wrong without a perturbation or under an attack, whatever success was judged by."""
    shares: dict[str, dict[str, Estimate]] = {}
    for row in run.query(_SHARES).to_pylist():
        if not row["n"]:
            raise RiskError(f"{run.folder}: {row['arm']} gave no verdict for {row['model']}; see `advrisk status`")
        shares.setdefault(row["arm"], {})[row["model"]] = proportion(row["wrong"], row["n"])
    return shares
