"""The question of the gate: the requirements, the quantities that they may name, and their results."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from advrisk.assess.context import Context
from advrisk.assess.damage.distances import chosen_arms
from advrisk.assess.damage.question import AnyEvasion
from advrisk.assess.damage.walk import own_detectors
from advrisk.assess.gate import GateEstimate, GateResult, RequirementResult, check_requirement
from advrisk.assess.gate.quantities import Quantities
from advrisk.assess.gate.reading import assessed_models, attack_sizes, is_targeted
from advrisk.assess.gate.records import Origin
from advrisk.assess.gate.sections import sections
from advrisk.assess.gate.verdict import within_data
from advrisk.assess.protocol import Assessment
from advrisk.assess.stopping import stopping_words
from advrisk.core.errors import LedgerError, RiskError, StudyError
from advrisk.core.flags import FLAGS
from advrisk.core.sections import Section, Unanswered
from advrisk.ledger.frozen import LostQuestionError, frozen_lists
from advrisk.ledger.layout import STUDY_FILE
from advrisk.risk.losses import bound_losses
from advrisk.study import (
    AVERAGE,
    CERTIFIED,
    DamageSpec,
    Ground,
    Norm,
    Requirement,
    assessments,
    expanded,
    parse_requirement,
    study_ground,
)
from advrisk.study.options import GateOptions

_LOWER_BOUND = "these attacks did no more; a better one may"
_FLAGGED = "some of its attacks are flagged "
_CHECKS = "`advrisk gate RUN` checks it"


@assessments.register("gate")
class Gate(Assessment):
    """Whether the run meets the study's requirements: pass, fail or undecided, decided by intervals."""

    kind = GateResult

    def assess(self, context: Context, spec: GateOptions) -> GateResult:
        """Check the study's requirements and the given ones."""
        context = context.as_study_asks
        ground = run_ground(context, evasion=spec.evasion, cost=spec.cost)
        requirements = _requirements(context, spec.require or (), ground)
        if not requirements:
            raise StudyError(
                'nothing is required: write `gate: ["damage.MODEL <= 0.2"]` into the study, or give a requirement '
                "(`--require`)"
            )
        quantities = Quantities(context, spec.level, evasion=spec.evasion, cost=spec.cost)
        results = [
            _checked(requirement, origin, quantities, context, strict_flags=spec.strict_flags)
            for requirement, origin in requirements
        ]
        notes = stopping_words(context.stopping, context.study, level=spec.level)
        notes += [f"{quantities.pending[0].upper()}{quantities.pending[1:]}."] if quantities.pending else []
        notes += [f"{flag}: {meaning}." for flag, meaning in FLAGS.items() if _mentions(flag, results)]
        return GateResult(context.run_name, tuple(results), tuple(notes))

    def asked(self, context: Context) -> Mapping[str, Any] | Unanswered | None:
        """No options if the study has requirements that apply here; why not; or None without requirements."""
        if context.study is None or not context.study.gate:
            return None
        why = _why_unchecked(context)
        return Unanswered(why) if why else {}

    def sections(self, result: GateResult, models: Sequence[str]) -> Iterable[Section]:
        """Every requirement, in the order of the study."""
        return sections(result, models)


def _why_unchecked(context: Context) -> str:
    """Why the study's requirements are not checked on a part of the run; empty if they are."""
    own = context.study.assess.damage if context.study else DamageSpec()
    asked = context.asked
    if context.view or ("arms" in asked and (context.scenarios_stated or not _same_arms(context, own.arms))):
        return f"it holds for all models, samples and attacks of the study, and this is a part; {_CHECKS}"
    if asked.get("norm", own.norm) != own.norm:
        return f"the study asks about {own.norm}, and this about {asked['norm']}; {_CHECKS}"
    return f"the study does not ask with this detector; {_CHECKS}" if "detector" in asked else ""


def _same_arms(context: Context, own: Sequence[str] | None) -> bool:
    """Whether the selected attacks are those of the study's own question."""
    ledger = context.ledger
    selected, stated = ({row["arm"] for row in chosen_arms(ledger, one)} for one in (context.asked["arms"], own))
    return selected == stated


def refuse_lost_study(context: Context) -> None:
    """Refuse a run that a study made but whose study file is missing, as its requirements are unknown."""
    if context.study is None and len(context.ledger.query("SELECT 1 FROM arms WHERE origin = 'study' LIMIT 1")):
        raise LedgerError(
            f"{context.folder / STUDY_FILE}: the file is missing, so the study's requirements are unknown; put it back"
        )


def _mentions(flag: str, results: Sequence[RequirementResult]) -> bool:
    return any(caution.startswith(f"{_FLAGGED}{flag} ") for one in results for caution in one.cautions)


def _requirements(context: Context, texts_given: Sequence[str], ground: Ground) -> list[tuple[Requirement, Origin]]:
    """Every distinct requirement, expanded over models; the study's come first."""
    origins: dict[Requirement, Origin] = {}
    for origin, texts in (("study", context.study.gate if context.study else ()), ("given", texts_given)):
        for text in texts:
            for one in expanded(parse_requirement(text), ground):
                origins.setdefault(one, origin)  # type: ignore[arg-type]
    return list(origins.items())


def run_ground(context: Context, *, evasion: AnyEvasion | None = None, cost: float | None = None) -> Ground:
    """The quantities that requirements may name in a run; `evasion` and `cost` replace the study's."""
    spec = context.study.assess.damage if context.study else DamageSpec(norm=_norm(context))
    sizes, endless = attack_sizes(context.ledger, spec.norm, spec.arms)
    ground = study_ground(
        context.study,
        models=assessed_models(context.ledger),
        damage=spec,
        sizes=sizes,
        endless=endless,
        refuses=bool(
            len(context.ledger.query("SELECT 1 FROM outcomes WHERE outcome = 'rejected' OR n_rejected > 0 LIMIT 1"))
        ),
        detectors=own_detectors(context.ledger),
        losses=[loss.label for loss in bound_losses(context.study.loss_entries() if context.study else ())],
        criterion="target" if is_targeted(context.ledger) else "label",
    )
    return replace(
        ground,
        relative=ground.relative if evasion is None else evasion == AVERAGE,
        has_cost=ground.has_cost or cost is not None,
        certified_sizes=_certified_sizes(context) if ground.certified else None,
    )


def _certified_sizes(context: Context) -> set[float] | None:
    """The frozen sizes; None if they are unknown, which leaves requirements on them undecided."""
    try:
        return {one.eps for one in frozen_lists(context.ledger)} or None
    except LostQuestionError:
        return None


def _norm(context: Context) -> Norm:
    """The only norm of a run without a study, or linf if it has several."""
    try:
        return context.norm
    except LedgerError:
        return "linf"


def _checked(
    requirement: Requirement, origin: Origin, quantities: Quantities, context: Context, *, strict_flags: bool
) -> RequirementResult:
    try:
        estimate = quantities.of(requirement)
    except RiskError as error:  # a requirement without an estimate cannot pass
        estimate = GateEstimate(None, why_not=str(error))
    flagged = _flagged(requirement, context, quantities)
    left = requirement.left
    bound = left.what.bound or left.quantity in CERTIFIED or (left.quantity == "risk" and quantities.attacked(left))
    cautions = (*([_LOWER_BOUND] if bound else []), *flagged)
    strict = f"it would pass, but flags count ({flagged[0]})" if strict_flags and flagged else ""
    checked = check_requirement(requirement, estimate, origin=origin, cautions=cautions, strict=strict)
    return replace(checked, settle=within_data(checked.settle, checked.more_samples, context.samples_left))


def _flagged(requirement: Requirement, context: Context, quantities: Quantities) -> tuple[str, ...]:
    """Reasons not to trust the attacks behind a pass: the flags of the models, each as a sentence."""
    if requirement.left.quantity in CERTIFIED:
        return tuple(
            f"{_FLAGGED}{flag} on samples to calibrate" for flag in quantities.certificate_flags(requirement.left)
        )
    if not requirement.left.what.bound and requirement.left.quantity != "risk":
        return ()
    models = {term.inside[0] if term.what.of == "detector" else term.subject for term in requirement.terms}
    rows = [row for row in context.flags if row["model"] in models]
    return tuple(
        f"{_FLAGGED}{flag} (`advrisk status` says where)" for flag in dict.fromkeys(row["flag"] for row in rows)
    )
