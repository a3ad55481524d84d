"""The question of certificates: its spec, and the answer of a run."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from advrisk.assess.certificate.assessment import assess_certificates
from advrisk.assess.certificate.leftovers import caveats_of_leftovers
from advrisk.assess.certificate.promises import with_searches
from advrisk.assess.certificate.records import CertificateAssessment, Premise
from advrisk.assess.certificate.sections import quantities, sections
from advrisk.assess.certificate.settled import refuse_other_question
from advrisk.assess.certificate.words import LATER
from advrisk.assess.context import Context
from advrisk.assess.protocol import Assessment
from advrisk.core.errors import RiskError
from advrisk.core.estimate import NamedEstimate
from advrisk.core.names import one_or_many
from advrisk.core.sections import Section
from advrisk.ledger import Ledger
from advrisk.ledger.frozen import asked_question, refuse_lost
from advrisk.ledger.searches import fruitless_words, read_searches
from advrisk.risk.certificate.counts import check_rate
from advrisk.study import OPTIONS, CertificateSpec, Source, StudySpec, assessments, validated

ON_FILTERS = (
    "a certificate holds for its frozen attacks on the whole calibration split, so a filter of samples does not apply"
)
_CHOSEN = "If it was chosen after results were seen, nothing is guaranteed."


@assessments.register("certificate")
class Certificates(Assessment):
    """What is certified: attacks break at most alpha of inputs, said wrongly at most zeta of the time (PROSAC)."""

    kind = CertificateAssessment

    def question(self, context: Context, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """The given options, validated; notes say where they differ from the study."""
        own = {name: value for name, value in options.items() if name not in _OF_RUN}
        asked_certificate(_stated_certificate(context.study), own)
        models = options.get("models")
        return {**options, "models": one_or_many(models)}

    def assess(self, context: Context, options: Mapping[str, Any]) -> CertificateAssessment:
        """Assess the named models, or those of the part; all models of the run share zeta."""
        if context.view.where:
            raise RiskError(ON_FILTERS)
        own = None if context.view.models is None else list(context.view.models)
        changes = {name: value for name, value in options.items() if name not in _OF_RUN}
        return assess_run(context.whole or context.ledger, context.study, changes, models=options.get("models") or own)

    def asked(self, context: Context) -> Mapping[str, Any] | None:
        """No options if the study has a certificate; else None."""
        return {} if context.study is not None and context.study.assess.certificate is not None else None

    def missing(self, ledger: Ledger, why: str) -> str:
        """Why nothing is certified."""
        if why:
            return f"Nothing is certified: {why}."
        if not len(ledger.query("SELECT 1 FROM samples WHERE split = 'calibrate' LIMIT 1")):
            return "Nothing is certified: no samples were set aside to calibrate."
        return "Nothing is certified: samples were set aside to calibrate, but no certificate was asked for."

    def sections(self, result: CertificateAssessment, models: Sequence[str]) -> Iterable[Section]:
        """The verdict on each model and list first, every attack folded away."""
        return sections(result, models)

    def quantities(self, result: CertificateAssessment) -> Iterable[NamedEstimate]:
        """The clean error of each model, and the risks of each list by the worst attack and by any attack."""
        return quantities(result)


_OF_RUN = ("models", "level")  # options that are no fields of the spec


def asked_certificate(base: CertificateSpec, options: Mapping[str, Any]) -> tuple[CertificateSpec, list[str]]:
    """The spec changed by options, with a caveat for each change, as it was not frozen before the test."""
    changed = {name: value for name, value in options.items() if value is not None}
    for name in ("alpha", "zeta"):
        if name in changed:
            check_rate(name, changed[name])
    spec = validated(CertificateSpec, base.model_dump() | changed, OPTIONS)
    caveats = [
        f"{name} = {getattr(spec, name)} was chosen later; {getattr(base, name)} was frozen before the test. "
        f"{LATER if name == 'alpha' else _CHOSEN}"
        for name in ("alpha", "zeta", "method")
        if getattr(spec, name) != getattr(base, name)
    ]
    caveats += [
        f"{name} was stated later, and otherwise than it was frozen before the test. {_CHOSEN}"
        for name in ("population", "search_guarantee")
        if getattr(spec, name) != getattr(base, name)
    ]
    if "arms" in changed:
        named = ", ".join(spec.arms or ())
        caveats.append(f"Only attacks called {named} are counted here, and not all that were frozen. {_CHOSEN}")
    return spec, caveats


def assess_run(
    ledger: Ledger, study: StudySpec | None, options: Mapping[str, Any], *, models: Sequence[str] | None = None
) -> CertificateAssessment:
    """Assess every frozen list of a run; the study must have the same question."""
    refuse_lost(ledger)
    spec, caveats = asked_certificate(_frozen_certificate(ledger, study), options)
    assessment = assess_certificates(
        ledger,
        alpha=spec.alpha,
        zeta=spec.zeta,
        method=spec.method,
        models=models,
        arms=spec.arms,
        population=spec.population,
        notes=_fruitless(ledger),
        caveats=[*caveats, *caveats_of_leftovers(ledger)],
        asked=study is not None and study.assess.certificate is not None,
    )
    stated = spec.search_guarantee
    return with_searches(assessment, ledger, None if stated is None else Premise(**stated.model_dump()))


def _stated_certificate(study: StudySpec | None) -> CertificateSpec:
    return (study.assess.certificate if study else None) or CertificateSpec()


def _frozen_certificate(ledger: Ledger, study: StudySpec | None) -> CertificateSpec:
    """The spec that was frozen before the test, or the study's if nothing was frozen and no sample was attacked."""
    question = asked_question(ledger)
    if question is None:
        return _stated_certificate(study)
    if study is not None:
        refuse_other_question(study, question)
    frozen = {name: question.settings.get(name) for name in CertificateSpec.model_fields}
    return validated(CertificateSpec, frozen, Source())


def _fruitless(ledger: Ledger) -> list[str]:
    """A note on searches without a success, whose frozen attacks are arbitrary."""
    searches = [one for one in read_searches(ledger) if one.fruitless]
    if not searches:
        return []
    return [f"{', '.join(one.label for one in searches)}: {fruitless_words(searches)}"]
