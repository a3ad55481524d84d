"""Requirements held against a run: which there are, what they may speak of, and what came of each."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from advrisk.api.measures import Measures
from advrisk.assess.damage.walk import own_detectors
from advrisk.assess.gate import GateResult, Held, Measured, held
from advrisk.assess.gate.reading import assessed_models, attack_sizes, is_targeted
from advrisk.assess.gate.records import Origin
from advrisk.core.errors import LedgerError, RiskError, StudyError
from advrisk.core.flags import FLAGS
from advrisk.core.names import counted
from advrisk.ledger.layout import STUDY_FILE
from advrisk.report.stopping import stopping_words
from advrisk.risk.losses import bound_losses
from advrisk.study import (
    AVERAGE,
    CERTIFIED,
    DamageSpec,
    Ground,
    Norm,
    Requirement,
    expanded,
    parse_requirement,
    study_ground,
)

if TYPE_CHECKING:
    from advrisk.api.damage import AnyEvasion
    from advrisk.api.run import Run

_LOWER_BOUND = "these attacks did no more; a better one may"
_FLAGGED = "some of its attacks are flagged "
_NO_MORE = "these samples do not settle it, and the data set has no more"


def run_gate(
    run: "Run",
    require: Sequence[str] | str | None = None,
    *,
    level: float | None = None,
    evasion: "AnyEvasion | None" = None,
    cost: float | None = None,
    strict_flags: bool = False,
) -> GateResult:
    """The study's requirements, and those given beside them."""
    ground = run_ground(run, evasion=evasion, cost=cost)
    asked = _asked(run, [require] if isinstance(require, str) else list(require or ()), ground)
    if not asked:
        raise StudyError(
            'nothing is required: write `gate: ["damage.MODEL <= 0.2"]` into the study, or give a requirement '
            "(`--require`)"
        )
    measures = Measures(run, run.level(level), evasion=evasion, cost=cost)
    results = [_held(requirement, origin, measures, run, strict_flags=strict_flags) for requirement, origin in asked]
    notes = stopping_words(run.stopping, run.study, level=level)
    notes += [f"{measures.pending[0].upper()}{measures.pending[1:]}."] if measures.pending else []
    notes += [f"{flag}: {meaning}." for flag, meaning in FLAGS.items() if _tells_of(flag, results)]
    return GateResult(run.name, tuple(results), tuple(notes))


def refuse_lost_study(run: "Run") -> None:
    """A run that a study made, and that does not say any more what was required."""
    if run.study is None and len(run.query("SELECT 1 FROM arms WHERE origin = 'study' LIMIT 1")):
        raise LedgerError(f"{run.folder / STUDY_FILE}: is gone, and with it what the study requires; put it back")


def _tells_of(flag: str, results: Sequence[Held]) -> bool:
    return any(caution.startswith(f"{_FLAGGED}{flag} ") for one in results for caution in one.cautions)


def _asked(run: "Run", given: Sequence[str], ground: Ground) -> list[tuple[Requirement, Origin]]:
    """Every requirement of every model, each once; the study's come first."""
    found: dict[Requirement, Origin] = {}
    for origin, texts in (("study", run.study.gate if run.study else ()), ("given", given)):
        for text in texts:
            for one in expanded(parse_requirement(text), ground):
                found.setdefault(one, origin)  # type: ignore[arg-type]
    return list(found.items())


def run_ground(run: "Run", *, evasion: "AnyEvasion | None" = None, cost: float | None = None) -> Ground:
    """What requirements may speak of in a run; with another evasion curve or cost than the study's, if given."""
    asked = run.study.assess.damage if run.study else DamageSpec(norm=_norm(run))
    sizes, endless = attack_sizes(run.ledger, asked.norm, asked.arms)
    found = study_ground(
        run.study,
        models=assessed_models(run.ledger),
        damage=asked,
        sizes=sizes,
        endless=endless,
        refuses=bool(len(run.query("SELECT 1 FROM outcomes WHERE outcome = 'rejected' OR n_rejected > 0 LIMIT 1"))),
        detectors=own_detectors(run.ledger),
        losses=[loss.label for loss in bound_losses(run.study.loss_entries() if run.study else ())],
        criterion="target" if is_targeted(run.ledger) else "label",
    )
    return replace(
        found,
        relative=found.relative if evasion is None else evasion == AVERAGE,
        has_cost=found.has_cost or cost is not None,
        certified_sizes={one.eps for one in run.frozen_lists()} or None if found.certified else None,
    )


def _norm(run: "Run") -> Norm:
    """Of a run without a study: its only norm, or the usual one where there are several and no size may be meant."""
    try:
        return run.norm
    except LedgerError:
        return "linf"


def _held(requirement: Requirement, origin: Origin, measures: Measures, run: "Run", *, strict_flags: bool) -> Held:
    try:
        found = measures.of(requirement)
    except RiskError as error:  # nothing that cannot be told passes
        found = Measured(None, why_not=str(error))
    flagged = _flagged(requirement, run, measures)
    bound = requirement.left.what.bound or (requirement.left.quantity == "risk" and measures.attacked(requirement.left))
    cautions = (*([_LOWER_BOUND] if bound else []), *flagged)
    strict = f"it would pass, but flags count ({flagged[0]})" if strict_flags and flagged else ""
    checked = held(requirement, found, origin=origin, cautions=cautions, strict=strict)
    left = run.samples_left
    if checked.more_samples is None or left is None or checked.more_samples <= left:
        return checked
    too_few = f"the data set has {counted(left, 'more sample')}, probably too few to settle it"
    return replace(checked, settle=_NO_MORE if left == 0 else too_few)


def _flagged(requirement: Requirement, run: "Run", measures: Measures) -> tuple[str, ...]:
    """Reasons not to trust the attacks that a pass rests on: the flags of the models concerned, each in a sentence."""
    if requirement.left.quantity in CERTIFIED:
        return tuple(
            f"{_FLAGGED}{flag} on samples to calibrate" for flag in measures.certificate_flags(requirement.left)
        )
    if not requirement.left.what.bound and requirement.left.quantity != "risk":
        return ()
    models = {term.inside[0] if term.what.of == "detector" else term.subject for term in requirement.terms}
    rows = [row for row in run.own_flags if row["model"] in models]
    return tuple(
        f"{_FLAGGED}{flag} (`advrisk status` says where)" for flag in dict.fromkeys(row["flag"] for row in rows)
    )
