"""Requirements held against a run: which there are, what they may speak of, and what came of each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from advrisk.assess.context import Context
from advrisk.assess.damage.distances import chosen_arms
from advrisk.assess.damage.question import AnyEvasion
from advrisk.assess.damage.walk import own_detectors
from advrisk.assess.gate import GateEstimate, GateResult, Held, held
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
    """Whether what the study requires is met: pass, fail or undecided, decided by intervals."""

    kind = GateResult

    def assess(self, context: Context, spec: GateOptions) -> GateResult:
        """The study's requirements, and those given beside them."""
        context = context.as_study_asks
        ground = run_ground(context, evasion=spec.evasion, cost=spec.cost)
        asked = _asked(context, spec.require or (), ground)
        if not asked:
            raise StudyError(
                'nothing is required: write `gate: ["damage.MODEL <= 0.2"]` into the study, or give a requirement '
                "(`--require`)"
            )
        quantities = Quantities(context, spec.level, evasion=spec.evasion, cost=spec.cost)
        results = [
            _held(requirement, origin, quantities, context, strict_flags=spec.strict_flags)
            for requirement, origin in asked
        ]
        notes = stopping_words(context.stopping, context.study, level=spec.level)
        notes += [f"{quantities.pending[0].upper()}{quantities.pending[1:]}."] if quantities.pending else []
        notes += [f"{flag}: {meaning}." for flag, meaning in FLAGS.items() if _tells_of(flag, results)]
        return GateResult(context.run_name, tuple(results), tuple(notes))

    def asked(self, context: Context) -> Mapping[str, Any] | Unanswered | None:
        """Where the study requires something, and that is about what is asked."""
        if context.study is None or not context.study.gate:
            return None
        why = _why_unchecked(context)
        return Unanswered(why) if why else {}

    def sections(self, result: GateResult, models: Sequence[str]) -> Iterable[Section]:
        """Every requirement, in the order of the study."""
        return sections(result, models)


def _why_unchecked(context: Context) -> str:
    """Why the study's requirements are not checked on what is asked of a part; empty where they are."""
    own = context.study.assess.damage if context.study else DamageSpec()
    asked = context.asked
    if context.view or ("arms" in asked and (context.scenarios_stated or not _same_arms(context, own.arms))):
        return f"it holds for all models, samples and attacks of the study, and this is a part; {_CHECKS}"
    if asked.get("norm", own.norm) != own.norm:
        return f"the study asks about {own.norm}, and this about {asked['norm']}; {_CHECKS}"
    return f"the study does not ask with this detector; {_CHECKS}" if "detector" in asked else ""


def _same_arms(context: Context, own: Sequence[str] | None) -> bool:
    """Whether the attacks that were asked for are those of the study's own question."""
    ledger = context.ledger
    asked, stated = ({row["arm"] for row in chosen_arms(ledger, one)} for one in (context.asked["arms"], own))
    return asked == stated


def refuse_lost_study(context: Context) -> None:
    """A run that a study made, and that does not say any more what was required."""
    if context.study is None and len(context.ledger.query("SELECT 1 FROM arms WHERE origin = 'study' LIMIT 1")):
        raise LedgerError(f"{context.folder / STUDY_FILE}: is gone, and with it what the study requires; put it back")


def _tells_of(flag: str, results: Sequence[Held]) -> bool:
    return any(caution.startswith(f"{_FLAGGED}{flag} ") for one in results for caution in one.cautions)


def _asked(context: Context, given: Sequence[str], ground: Ground) -> list[tuple[Requirement, Origin]]:
    """Every requirement of every model, each once; the study's come first."""
    found: dict[Requirement, Origin] = {}
    for origin, texts in (("study", context.study.gate if context.study else ()), ("given", given)):
        for text in texts:
            for one in expanded(parse_requirement(text), ground):
                found.setdefault(one, origin)  # type: ignore[arg-type]
    return list(found.items())


def run_ground(context: Context, *, evasion: AnyEvasion | None = None, cost: float | None = None) -> Ground:
    """What requirements may speak of in a run; with another evasion curve or cost than the study's, if given."""
    asked = context.study.assess.damage if context.study else DamageSpec(norm=_norm(context))
    sizes, endless = attack_sizes(context.ledger, asked.norm, asked.arms)
    found = study_ground(
        context.study,
        models=assessed_models(context.ledger),
        damage=asked,
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
        found,
        relative=found.relative if evasion is None else evasion == AVERAGE,
        has_cost=found.has_cost or cost is not None,
        certified_sizes=_certified_sizes(context) if found.certified else None,
    )


def _certified_sizes(context: Context) -> set[float] | None:
    """The sizes that were frozen; None where they are not known, and a requirement on any of them is undecided."""
    try:
        return {one.eps for one in frozen_lists(context.ledger)} or None
    except LostQuestionError:
        return None


def _norm(context: Context) -> Norm:
    """Of a run without a study: its only norm, or the usual one where there are several and no size may be meant."""
    try:
        return context.norm
    except LedgerError:
        return "linf"


def _held(
    requirement: Requirement, origin: Origin, quantities: Quantities, context: Context, *, strict_flags: bool
) -> Held:
    try:
        found = quantities.of(requirement)
    except RiskError as error:  # nothing that cannot be told passes
        found = GateEstimate(None, why_not=str(error))
    flagged = _flagged(requirement, context, quantities)
    left = requirement.left
    bound = left.what.bound or left.quantity in CERTIFIED or (left.quantity == "risk" and quantities.attacked(left))
    cautions = (*([_LOWER_BOUND] if bound else []), *flagged)
    strict = f"it would pass, but flags count ({flagged[0]})" if strict_flags and flagged else ""
    checked = held(requirement, found, origin=origin, cautions=cautions, strict=strict)
    return replace(checked, settle=within_data(checked.settle, checked.more_samples, context.samples_left))


def _flagged(requirement: Requirement, context: Context, quantities: Quantities) -> tuple[str, ...]:
    """Reasons not to trust the attacks that a pass rests on: the flags of the models concerned, each in a sentence."""
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
