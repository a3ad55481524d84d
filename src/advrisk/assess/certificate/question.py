"""What is certified: which question is asked, and the answer of a run."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from advrisk.assess.certificate.assessment import assess_certificates
from advrisk.assess.certificate.promises import with_searches
from advrisk.assess.certificate.records import CertificateAssessment, Premise
from advrisk.assess.certificate.sections import quantities, sections
from advrisk.assess.certificate.settled import not_settled
from advrisk.assess.certificate.words import LATER
from advrisk.assess.context import Context
from advrisk.assess.protocol import Assessment
from advrisk.core.errors import RiskError
from advrisk.core.estimate import NamedEstimate
from advrisk.core.sections import Section
from advrisk.ledger import Ledger
from advrisk.ledger.frozen import refuse_lost
from advrisk.ledger.searches import fruitless_words, read_searches
from advrisk.risk.certificate.counts import check_rate
from advrisk.study import CertificateSpec, Source, StudySpec, assessments, validated

ON_FILTERS = (
    "a certificate holds for its frozen attacks on the whole calibration split, so a filter of samples does not apply"
)


@assessments.register("certificate")
class Certificate(Assessment):
    """What is certified: attacks break at most alpha of inputs, said wrongly at most zeta of the time (PROSAC)."""

    kind = CertificateAssessment

    def question(self, context: Context, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """What was given, unless there is no such certificate: notes say where it differs from the study."""
        asked_certificate(context.study, {name: value for name, value in given.items() if name not in _OF_RUN})
        return given

    def assess(self, context: Context, given: Mapping[str, Any]) -> CertificateAssessment:
        """Of the models that are asked about, or those of the part; all of the run share zeta."""
        if context.view.where:
            raise RiskError(ON_FILTERS)
        own = None if context.view.models is None else list(context.view.models)
        asked = {name: value for name, value in given.items() if name not in _OF_RUN}
        return assess_run(context.whole or context.ledger, context.study, asked, models=given.get("models") or own)

    def asked(self, context: Context) -> Mapping[str, Any] | None:
        """Where the study asks for it."""
        return {} if context.study is not None and context.study.assess.certificate is not None else None

    def sections(self, result: CertificateAssessment, models: Sequence[str]) -> Iterable[Section]:
        """The verdict on each model and list first, every attack folded away."""
        return sections(result, models)

    def quantities(self, result: CertificateAssessment) -> Iterable[NamedEstimate]:
        """The clean error of each model, and of each list what the worst attack and any attack broke."""
        return quantities(result)


_OF_RUN = ("models", "level")  # what is given beside the certificate's own question


def asked_certificate(study: StudySpec | None, given: Mapping[str, Any]) -> tuple[CertificateSpec, list[str]]:
    """The study's question with what was given instead, and notes on what that changes."""
    base = (study.assess.certificate if study else None) or CertificateSpec()
    changed = {name: value for name, value in given.items() if value is not None}
    for name in ("alpha", "zeta"):
        if name in changed:
            check_rate(name, changed[name])
    asked = validated(CertificateSpec, base.model_dump() | changed, Source())
    stated = study is not None and study.assess.certificate is not None
    notes = [
        f"{name} = {getattr(asked, name)} is not the study's, which says {getattr(base, name)}."
        + (
            f" {LATER}"
            if name == "alpha"
            else " It must have been settled before the samples to calibrate were looked at."
        )
        for name in ("alpha", "zeta", "method")
        if stated and getattr(asked, name) != getattr(base, name)
    ]
    if stated and asked.arms != base.arms:
        named = ", ".join(asked.arms or ())
        notes.append(
            f"Only attacks called {named} are counted here, which the study does not say. Chosen after a look at what "
            "they broke, nothing is guaranteed: this is no certificate of the list that was frozen."
        )
    return asked, notes


def assess_run(
    ledger: Ledger, study: StudySpec | None, given: Mapping[str, Any], *, models: Sequence[str] | None = None
) -> CertificateAssessment:
    """Every list of a run, as its study asks."""
    refuse_lost(ledger)
    asked, notes = asked_certificate(study, given)
    base, _ = asked_certificate(study, {})
    settings = base.model_dump(include={"alpha", "zeta", "method", "population"})
    found = assess_certificates(
        ledger,
        alpha=asked.alpha,
        zeta=asked.zeta,
        method=asked.method,
        models=models,
        arms=asked.arms,
        population=asked.population,
        seed=study.seed if study else 0,
        notes=[*notes, *not_settled(ledger, **settings), *_fruitless(ledger)],
    )
    stated = asked.search_guarantee
    return with_searches(found, ledger, None if stated is None else Premise(**stated.model_dump()))


def _fruitless(ledger: Ledger) -> list[str]:
    """A note where searches found nothing: what they froze was not chosen for what it does."""
    searches = [one for one in read_searches(ledger) if one.fruitless]
    if not searches:
        return []
    return [f"{', '.join(one.label for one in searches)}: {fruitless_words(searches)}"]
