"""Everything a run answers, gathered for its report: what cannot be answered leaves the rest as it is."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from advrisk.api.part import asked_words, asks_for_damage, states_scenarios, why_no_gate
from advrisk.assess.built_in import QUESTIONS
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
from advrisk.core.sections import Unanswered, result_of
from advrisk.core.seeds import generator
from advrisk.report.findings import Findings
from advrisk.report.stopping import stopping_words

if TYPE_CHECKING:
    from advrisk.api.run import Run


T = TypeVar("T")
_METHODS = {"search": "searches"}  # of `Run`, where they are not called like the question


def run_findings(run: "Run", assess_damage: Callable[[], DamageAssessment]) -> Findings:
    """All assessments as the study asks for them."""
    damage: DamageAssessment | Unanswered
    convergence = attacks = None
    try:
        damage = assess_damage()
        attacks = run.attacks(norm=run.asked.get("norm"), arms=run.asked.get("arms"))
        if damage.comparison:
            convergence = assessed_convergence(damage, rng=generator("convergence", run.seed))
    except RiskError as error:  # corruptions alone, say
        damage = Unanswered(" ".join([str(error), *stopping_words(run.stopping, run.study)]))
    indicators, status = _asked(lambda: _indicators(run)), run.status()
    risks = result_of(indicators)
    return Findings(
        damage=damage,
        convergence=convergence,
        attacks=attacks,
        flags=run.own_flags,
        detection=_asked(lambda: _detection(run)),
        indicators=indicators,
        failures=_failures(run, risks) if risks else [],
        survival=_asked(lambda: _survival(run)),
        search=run.searches(),
        certificate=_asked(lambda: _certificate(run)),
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


def gate_finding(run: "Run") -> GateResult | Unanswered | None:
    """What the study requires, checked; or why it is not, or None where nothing is required."""
    if run.study is None or not run.study.gate:
        return None
    if why := why_no_gate(run):
        return Unanswered(why)
    return _asked(lambda: run.gate(evasion=run.asked.get("evasion"), cost=run.asked.get("cost")))


def built_in_finding(run: "Run", name: str, **options: Any) -> Finding | Unanswered:
    """The answer to one built-in question, with the arguments of the method of `Run` that answers it."""
    question = QUESTIONS[name]
    found = _asked(lambda: getattr(run, _METHODS.get(name, name))(**options))
    if isinstance(found, Unanswered):
        return found
    if question.several and not found:
        return Unanswered(f"this run holds nothing of {name}", f"add a section `{name}` to the study and run it again")
    several = question.several and isinstance(found, question.result)
    return question.finding(name, (found,) if several else found, run.model_names)


def _asked(answer: Callable[[], T]) -> T | Unanswered:
    """An answer; or why there is none: the run is not finished, not all is scored yet, or a file is lost."""
    try:
        return answer()
    except (RiskError, StudyError) as error:
        return Unanswered(str(error))


def _further(run: "Run") -> dict[str, Finding | Unanswered]:
    """What the study asks of registered assessments."""
    return {name: run.finding(name) for name in (run.study.assess.further if run.study else ())}


def _detection(run: "Run") -> DetectionAssessment | None:
    if not detectors_of(run.ledger):
        return None
    alarm, arms = run.asked.get("detector"), run.asked.get("arms")
    if alarm is None:
        return run.detection(arms=arms)
    limit = alarm["threshold"] if alarm.get("threshold") is not None else {"false_alarms": alarm["false_alarms"]}
    return run.detection(arms=arms, detectors=[alarm["name"]], threshold=limit)


def _indicators(run: "Run") -> IndicatorAssessment | None:
    """Nothing where nobody asked and nature did nothing."""
    corrupted = "SELECT 1 FROM arms WHERE kind = 'corruption' AND origin <> 'dropped'"
    return run.own_indicators if states_scenarios(run) or len(run.query(corrupted)) else None


def _failures(run: "Run", found: IndicatorAssessment) -> list[FailureModes]:
    return [
        failure_modes(
            run.ledger, one, found.tensors or {}, models=[row.model for row in one.models[:MAX_MODELS]], n=SHOWN
        )
        for one in found.results
    ]


def _survival(run: "Run") -> SurvivalAssessment | None:
    """Nothing where the study does not ask for it (`assess: {survival: {…}}`)."""
    if run.study is None or "survival" not in run.study.assess.model_fields_set:
        return None
    return run.survival(norm=run.asked.get("norm"), arms=run.asked.get("arms"))


def _certificate(run: "Run") -> CertificateAssessment | None:
    return run.certificate() if run.study is not None and run.study.assess.certificate is not None else None
