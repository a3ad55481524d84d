"""Interim analyses of a run under way: whether its targets are met, for `run.interim`."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from advrisk.api.run import Run
from advrisk.assess.gate import Held
from advrisk.assess.gate.measures import Measures
from advrisk.assess.gate.question import run_ground
from advrisk.assess.interim import Seen, look_level
from advrisk.core.errors import RiskError, StudyError
from advrisk.core.estimate import Estimate
from advrisk.core.numbers import level_text
from advrisk.ledger import Ledger
from advrisk.study import Requirement, StoppingTarget, StudySpec, Term, parse_requirement
from advrisk.study.target import DECIDED, NOT_LOOKED_AT, target_terms


def interim_analysis(study: StudySpec, folder: Path) -> Callable[[StoppingTarget, Ledger, float], Seen]:
    """Analyses the targets of a run in a folder; the ledger that it receives holds the samples that count."""

    def analyse(target: StoppingTarget, ledger: Ledger, share: float) -> Seen:
        run = Run(folder, ledger, study)
        run.decision_level = look_level(target, study, share, n_models=len(run_ground(run.context).models))
        try:
            if not target.decides:
                return _precision(run, target)
            return _decided(run) if target.text == DECIDED else _gate(run)
        except (RiskError, StudyError) as error:  # no sample has a verdict yet, say
            return Seen(met=False, said=str(error), level=run.decision_level or study.assess.damage.level)

    return analyse


def _precision(run: Run, target: StoppingTarget) -> Seen:
    """Whether every interval lies within the margin of its value, on both sides."""
    found = _estimates(run, target_terms(target, run_ground(run.context)))
    sides = {str(term): max(one.high - one.value, one.value - one.low) for term, one in found.items()}
    widest = max(sides, key=sides.__getitem__)
    level = next(iter(found.values())).level
    said = f"{'each' if len(sides) > 1 else widest} is known to ±{_shown(sides[widest])} at {level_text(level)}"
    if (wide := sides[widest]) > target.margin:
        return Seen(met=False, said=f"{widest} is known to ±{_shown(wide)}", level=level)
    return Seen(met=True, said=said, level=level)


def _estimates(run: Run, terms: list[Term]) -> Mapping[Term, Estimate]:
    if terms[0].quantity == "damage":  # relative damage, too, which no requirement may be about
        estimates = run.damage().estimates
        return {term: estimates[str(term.subject)] for term in terms}
    measures, found = Measures(run.context, None), {}
    for term in terms:
        measured = measures.of(Requirement(term, "<="))
        if measured.estimate is None:
            raise RiskError(f"{term}: {measured.why_not or measured.pending}")
        if term.size is not None and measured.untried:
            raise RiskError(f"{term}: {measured.untried}")
        found[term] = measured.estimate
    return found


def _decided(run: Run) -> Seen:
    """Whether one model is told apart from all others."""
    found = run.damage()
    said = (
        f"{found.least_bad} is the least bad"
        if found.decided
        else f"{found.models[0].model} is {found.models[0].verdict}"
    )
    return Seen(met=found.decided, said=said, level=found.level)


def _gate(run: Run) -> Seen:
    """Whether every requirement that more samples decide passes or fails."""
    assert run.decision_level is not None  # a gate is a decision
    results = [
        one for one in run.gate().results if parse_requirement(one.requirement).left.quantity not in NOT_LOOKED_AT
    ]
    undecided = [one.requirement for one in results if one.verdict == "undecided"]
    said = f"undecided are {', '.join(undecided)}" if undecided else _verdicts(results)
    return Seen(met=not undecided, said=said, level=run.decision_level)


def _verdicts(results: Sequence[Held]) -> str:
    return ", ".join(f"{one.requirement}: {one.verdict}" for one in results)


def _shown(number: float) -> str:
    return f"{number:.2g}"
