"""Everything a run answers, gathered for its report: what cannot be answered leaves the rest as it is."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from advrisk.api.part import ON_CERTIFICATES, asked_words, asks_for_damage, states_scenarios, why_no_gate
from advrisk.assess.certificate.records import CertificateAssessment
from advrisk.assess.damage.assessment import DamageAssessment, assessed_convergence
from advrisk.assess.damage.walk import detectors_of
from advrisk.assess.detection.assessment import DetectionAssessment
from advrisk.assess.failures.modes import FailureModes, failure_modes
from advrisk.assess.failures.sections import MAX_MODELS, SHOWN
from advrisk.assess.gate.records import GateResult
from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.protocol import Finding
from advrisk.assess.survival.assessment import SurvivalAssessment
from advrisk.core.errors import RiskError, StudyError
from advrisk.core.sections import Unanswered
from advrisk.core.seeds import generator
from advrisk.report.findings import Findings
from advrisk.report.stopping import stopping_words

if TYPE_CHECKING:
    from advrisk.api.run import Run


def run_findings(run: "Run", assess_damage: Callable[[], DamageAssessment]) -> Findings:
    """All assessments as the study asks for them."""
    damage: DamageAssessment | str
    settled = attacks = None
    try:
        damage = assess_damage()
        attacks = run.attacks(norm=run.asked.get("norm"), arms=run.asked.get("arms"))
        if damage.comparison:
            settled = assessed_convergence(damage, rng=generator("convergence", run.seed))
    except RiskError as error:  # corruptions alone, say
        damage = " ".join([str(error), *stopping_words(run.stopping, run.study)])
    indicators, status = _indicators(run), run.status()
    return Findings(
        damage=damage,
        settled=settled,
        attacks=attacks,
        flags=run.own_flags,
        detection=_detection(run),
        indicators=indicators,
        failures=[] if isinstance(indicators, str) else _failures(run, indicators),
        survival=_survival(run),
        searches=run.searches(),
        certificates=_certificates(run),
        gate=gate_finding(run),
        models=run.model_names,
        further=_further(run),
        unfinished="" if status.done else status.so_far,
        scenarios_stated=states_scenarios(run),
        by_damage=asks_for_damage(run),
        view=run.view,
        asked=asked_words(run.asked),
        arms=run.asked.get("arms"),
        stopping=run.stopping,
    )


def gate_finding(run: "Run") -> GateResult | str:
    """What the study requires, checked; or why it is not, or empty where nothing is required."""
    if run.study is None or not run.study.gate:
        return ""
    if why := why_no_gate(run):
        return why
    try:
        return run.gate(evasion=run.asked.get("evasion"), cost=run.asked.get("cost"))
    except (RiskError, StudyError) as error:  # a requirement that the run as it is now cannot answer
        return str(error)


def _further(run: "Run") -> dict[str, Finding | Unanswered]:
    """What the study asks of registered assessments."""
    return {name: run.finding(name) for name in (run.study.assess.further if run.study else ())}


def _detection(run: "Run") -> DetectionAssessment | str:
    if not detectors_of(run.ledger):
        return ""
    alarm, arms = run.asked.get("detector"), run.asked.get("arms")
    try:
        if alarm is None:
            return run.detection(arms=arms)
        limit = alarm["threshold"] if alarm.get("threshold") is not None else {"false_alarms": alarm["false_alarms"]}
        return run.detection(arms=arms, detectors=[alarm["name"]], threshold=limit)
    except RiskError as error:  # not all is scored yet, say
        return str(error)


def _indicators(run: "Run") -> IndicatorAssessment | str:
    """Nothing where nobody asked and nature did nothing."""
    corrupted = "SELECT 1 FROM arms WHERE kind = 'corruption' AND origin <> 'dropped'"
    if not states_scenarios(run) and not len(run.query(corrupted)):
        return ""
    try:
        return run.own_indicators
    except (RiskError, StudyError) as error:  # not finished, or a file of costs is lost
        return str(error)


def _failures(run: "Run", found: IndicatorAssessment) -> list[FailureModes]:
    return [
        failure_modes(
            run.ledger, one, found.tensors or {}, models=[row.model for row in one.models[:MAX_MODELS]], n=SHOWN
        )
        for one in found.results
    ]


def _survival(run: "Run") -> SurvivalAssessment | str:
    """Nothing where the study does not ask for it (`assess: {survival: {…}}`)."""
    if run.study is None or "survival" not in run.study.assess.model_fields_set:
        return ""
    try:
        return run.survival(norm=run.asked.get("norm"), arms=run.asked.get("arms"))
    except RiskError as error:
        return str(error)


def _certificates(run: "Run") -> CertificateAssessment | str:
    if run.study is None or run.study.assess.certificate is None:
        return ""
    if run.view.where:
        return ON_CERTIFICATES
    try:
        return run.certificate()
    except RiskError as error:  # not begun yet, say
        return str(error)
