"""The certificate of one model as a machine-readable document: everything that supports the claim, and nothing else.

Counts are what counts: p-values, bounds, verdicts and words all follow from them, and `verification` makes them again.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from advrisk.assess.certificate.calibration import Population
from advrisk.assess.certificate.identity import recorded_answers
from advrisk.assess.certificate.per_attack import attack_claims
from advrisk.assess.certificate.promises import promise, promised_level
from advrisk.assess.certificate.records import (
    BETTING,
    AnyMethod,
    CertificateAssessment,
    ListCertificate,
    ModelCertificates,
    SearchFacts,
)
from advrisk.assess.certificate.signature import SIGNATURE, SIGNER
from advrisk.assess.certificate.statements import (
    assumptions,
    claim,
    headline,
    left_out,
    not_claimed,
    shared,
    would_take,
)
from advrisk.core.errors import RiskError, RunError
from advrisk.core.files import regular
from advrisk.core.version import VERSION as PROGRAM
from advrisk.ledger import Ledger
from advrisk.risk.certificate.counts import MOST
from advrisk.risk.certificate.exploration import Kernel
from advrisk.risk.certificate.verdict import Tested

KIND: Literal["certificate"] = "certificate"
VERSION: Literal[4] = 4
MAX_BYTES = 20_000_000
MAX_LISTS = 10_000
Order = Literal["shuffled", "balanced", "file"]
Samples = Annotated[int, Field(ge=1, le=MOST)]
Some = Annotated[int, Field(ge=0, le=MOST)]  # of the samples, maybe none
Size = Annotated[float, Field(ge=0, le=1e12)]
Label = Annotated[str, Field(pattern=r"^(-1|0|[1-9][0-9]{0,17})$")]


class _Part(BaseModel):
    """A strict record: refuses unknown fields, and numbers written as text."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class TestedCount(_Part):
    """Failures, and their test."""

    failures: Some = Field(description="samples that failed")
    p: float = Field(ge=0, le=1, description="p-value of: the risk is above alpha")
    certified_risk: float = Field(ge=0, le=1, description="the smallest alpha that these failures certify at zeta")
    failed_at: list[int] | None = Field(
        default=None, description="betting: which samples failed, in the order of looks"
    )


class Attack(TestedCount):
    """One attack of a list, with everything that configures it."""

    arm: str
    origin: str = Field(description="study, or frozen: found by a search on other samples")
    family: str | None
    objective: str | None
    keep: str | None = Field(description="which of its points is judged")
    max_queries: int | None = Field(description="of each sample; null: as many as it takes")
    version: int | None = Field(description="of the attack, as a part of advrisk")
    params: dict[str, Any]
    tries: int = Field(ge=1, description="a sample fails if any try breaks it")
    first_try: Some = Field(description="samples that the first try broke")
    untold: Some = Field(description="failures that are errors or timeouts")
    flags: list[str] = Field(description="reasons not to trust it")


class SearchPromise(_Part):
    """A search for attacks of a list, and its guarantee about untried settings."""

    name: str
    method: str
    rounds: int = Field(ge=0, le=10_000)
    parameters: list[str] = Field(min_length=1)
    beta: float | None = Field(ge=0, description="the least that it used; it takes the root")
    level: float | None = Field(description="zeta', on the study's premise; null: no guarantee")
    text: str


class SearchPremise(_Part):
    """The study's assumptions on p as a function of an attack's setting."""

    norm_bound: float = Field(ge=0, le=1e12, description="B: its norm in the Hilbert space of the kernel")
    noise: float = Field(ge=0, le=1e12, description="R: the noise is R-sub-Gaussian")
    kernel: Kernel
    length_scale: float = Field(ge=1e-6, le=1e6, description="as a share of the range of each parameter")
    delta: float = Field(gt=0, lt=1)


class AttackList(_Part):
    """The attacks within one norm and eps."""

    norm: str
    eps: Size
    n: Samples = Field(description="samples that were looked at")
    certified: bool = Field(description="together with all other claims of the run")
    level: float = Field(gt=0, lt=1, description="the share of zeta that the largest p is held against")
    attacks: list[Attack] = Field(min_length=1, description="the worst first")
    union: TestedCount = Field(description="a sample fails if any attack of the list breaks it")
    wrong: TestedCount = Field(description="not answered rightly, clean or under any attack: 1 - robust accuracy")
    would_take: str | None
    searches: list[SearchPromise] = Field(max_length=100)


class OneAttack(_Part):
    """A claim about one attack over its sizes, taken by itself."""

    attack: str
    norm: str
    eps: list[Size]
    p: list[float]
    largest: float | None = Field(description="the largest certified eps; null: none")


class Claim(_Part):
    """The claim."""

    certified: bool = Field(description="whether all lists are, and no caveat weakens that")
    caveats: list[str] = Field(description="what weakens every claim made here")
    headline: str
    text: str
    shared: str
    alpha: float = Field(gt=0, lt=1)
    zeta: float = Field(gt=0, lt=1)
    method: AnyMethod
    largest_eps: dict[str, float | None] = Field(description="by norm; null: none is certified")


class ReferenceAnswers(_Part):
    """The classes of clean answers to the calibration samples, which identify the model."""

    n: Samples = Field(description="samples whose class is part of the digest")
    left_out: list[Some] = Field(
        description="the others, by their place among all in the order of ids: near ties, and those without an answer"
    )
    digest: str = Field(description="of ids and classes")


class CertifiedModel(_Part):
    """The certified model."""

    name: str
    digest: str | None
    source_digest: str | None = Field(description="of the Python files that make it; null: not known")
    answers: ReferenceAnswers | None = Field(
        description="null: it may say another class when asked again, or none is known"
    )
    capability: str | None
    random: bool | None


class CleanError(_Part):
    """Samples that are incorrect without any attack, with an interval."""

    wrong: Some
    refused: Some = Field(description="samples that the model refuses to answer without any attack")
    n: Samples = Field(description="samples of which it is known")
    share: float
    low: float
    high: float
    level: float


class CalibrationSamples(_Part):
    """The samples that support the claim."""

    n: Samples
    fingerprint: str = Field(description="of the samples' ids and contents")
    classes: dict[Label, Some] = Field(description="samples of each class; -1: not known")
    population: Population
    evened: list[str] = Field(description="what was made equally frequent, where the population is balanced")


class Member(_Part):
    """A list of any model of the run; all lists share zeta."""

    model: str
    norm: str
    eps: Size
    failures: Some | None = Field(description="of its worst attack; null: not finished")
    n: Samples
    p: float = Field(ge=0, le=1)


class DocumentProvenance(_Part):
    """The origin of the numbers."""

    study: str
    seed: int
    made: str
    advrisk: str = Field(description="the version that wrote this")
    cells: list[str] = Field(description="the versions of advrisk that ran the attacks")
    torch: list[str] = Field(description="the versions of torch that ran the attacks")
    order: Order
    ledger: str = Field(description="digest of every row and attack that decided")
    question: str | None = Field(description="digest of the question, as it was frozen before the test")


class Signature(_Part):
    """An Ed25519 signature of the document without this field."""

    algorithm: str
    public_key: str
    value: str


class CertificateDocument(_Part):
    """A certificate of one model, as `advrisk certify` writes it and `advrisk verify` reads it."""

    advrisk: Literal["certificate"]
    version: Literal[4]
    claim: Claim
    model: CertifiedModel
    criterion: Literal["label", "prediction", "target"] = Field(description="what success is judged by")
    targets: dict[Label, list[int]] = Field(
        description="of the criterion target: the classes that samples of each class were to be read as"
    )
    calibration: CalibrationSamples
    clean_error: CleanError
    lists: list[AttackList] = Field(min_length=1, max_length=MAX_LISTS)
    attacks: list[OneAttack] = Field(description="each attack by itself, which shares zeta with nothing")
    search_guarantee: SearchPremise | None
    family: list[Member] = Field(min_length=1, max_length=MAX_LISTS)
    assumptions: list[str]
    not_claimed: list[str]
    notes: list[str]
    provenance: DocumentProvenance
    signer: str | None = Field(default=None, description="the signer's own word; signed with the rest")
    signature: Signature | None = None


def certificate_document(
    ledger: Ledger,
    found: CertificateAssessment,
    model: ModelCertificates,
    *,
    every: Sequence[ListCertificate],
    study: str,
    seed: int,
    order: Order = "shuffled",
    question: str | None = None,
    lists: Sequence[ListCertificate] | None = None,
    made: datetime | None = None,
) -> dict[str, Any]:
    """The document of a model; `every` is all lists of the run, `lists` those of the claims (default: all)."""
    told = model.lists if lists is None else tuple(lists)
    for one in told:
        if one.certificate is None:
            raise RiskError(
                f"{model.model}: the attacks within {one.norm} {one.eps:g} are done on {one.look.n} of {one.n_total} "
                "samples to calibrate, and a certificate is made at the end; run the same study again to go on"
            )
    origin = DocumentProvenance(
        study=study,
        seed=seed,
        made=(made or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        advrisk=PROGRAM,
        cells=_versions(ledger, model.model, "version"),
        torch=_versions(ledger, model.model, "torch"),
        order=order,
        ledger=model.rows,
        question=question,
    )
    noted = replace(found, notes=(*found.notes, *left_out(model.lists, told)))
    return composed(noted, model, told, [_member(one) for one in every], _model(ledger, model.model), origin)


def composed(
    found: CertificateAssessment,
    model: ModelCertificates,
    told: Sequence[ListCertificate],
    family: Sequence[Member],
    about: CertifiedModel,
    origin: DocumentProvenance,
) -> dict[str, Any]:
    """Compose an unsigned document; everything except counts and names is computed here."""
    document = CertificateDocument(
        advrisk=KIND,
        version=VERSION,
        claim=_claim(found, model, told, family),
        model=about,
        criterion=model.criterion,  # type: ignore[arg-type]
        targets={str(label): list(targets) for label, targets in model.targets.items()},
        calibration=_calibration(found),
        clean_error=_clean(model),
        lists=[_list(found, one) for one in told],
        attacks=[
            OneAttack(attack=one.attack, norm=one.norm, eps=list(one.eps), p=list(one.p), largest=one.largest)
            for one in attack_claims(told, found.zeta)
        ],
        search_guarantee=None if found.premise is None else SearchPremise(**vars(found.premise)),
        family=list(family),
        assumptions=assumptions(found, model, order=origin.order),
        not_claimed=not_claimed(found, model),
        notes=list(found.notes),
        provenance=origin,
    )
    return document.model_dump(mode="json", exclude={SIGNER, SIGNATURE})


def read_document(path: str | Path) -> dict[str, Any]:
    """The content of a certificate's file, valid or not; RiskError if the file is no certificate."""
    target = Path(path)
    try:
        if regular(target).stat().st_size > MAX_BYTES:
            raise RiskError(f"{target}: larger than {MAX_BYTES} bytes; this is no certificate")
        return document_of(target.read_bytes(), str(target))
    except OSError as error:
        raise RunError(f"{target}: the certificate cannot be read: {error.strerror}") from None


def document_of(content: bytes, origin: str) -> dict[str, Any]:
    """`read_document` from bytes; `origin` names the file in errors."""
    try:
        document = strict_json(content)
    except (ValueError, RecursionError) as error:
        raise RiskError(f"{origin}: not a JSON file of a certificate ({error})") from None
    if not isinstance(document, dict) or document.get("advrisk") != KIND:
        raise RiskError(f'{origin}: not a certificate; such a file says "advrisk": "{KIND}"')
    return document


def strict_json(content: bytes) -> Any:
    """Parse JSON; ValueError on duplicate names and on numbers such as NaN."""
    return json.loads(
        content.decode("utf-8"),
        parse_constant=_no_constant,
        parse_float=_finite,
        object_pairs_hook=_no_duplicates,
    )


def parsed(content: Mapping[str, Any]) -> CertificateDocument:
    """The validated fields of a document; RiskError names the first invalid one."""
    if content.get("version") != VERSION:
        raise RiskError(
            f"it has version {content.get('version')!r} of the document, and this program verifies {VERSION}: take the "
            "version of advrisk that wrote it, or certify again"
        )
    try:
        return CertificateDocument.model_validate_json(json.dumps(content, allow_nan=False))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise RiskError(f"{place}: {first['msg'][0].lower()}{first['msg'][1:]}") from None
    except (ValueError, RecursionError) as error:
        raise RiskError(f"not JSON as certificates have it ({error})") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"found {name}")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is no number that a certificate can hold")
    return number


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} stands there twice")
    return found


def _claim(
    assessment: CertificateAssessment,
    model: ModelCertificates,
    lists: Sequence[ListCertificate],
    family: Sequence[Member],
) -> Claim:
    norms = dict.fromkeys(one.norm for one in lists)
    certified = {norm: [one.eps for one in lists if one.norm == norm and one.certified] for norm in norms}
    return Claim(
        certified=all(one.certified for one in lists) and not model.caveats,
        caveats=list(model.caveats),
        headline=headline(assessment, model, lists),
        text=claim(assessment, model, lists),
        shared=shared(assessment, len(family), len({(one.model, one.norm) for one in family})),
        alpha=assessment.alpha,
        zeta=assessment.zeta,
        method=assessment.method,
        largest_eps={norm: max(sizes) if sizes else None for norm, sizes in certified.items()},
    )


def _model(ledger: Ledger, name: str) -> CertifiedModel:
    rows = ledger.query("SELECT * FROM models WHERE model = $model", {"model": name}).to_pylist()
    row = rows[0] if rows else {}
    answers = recorded_answers(ledger, name)
    return CertifiedModel(
        name=name,
        digest=row.get("digest"),
        source_digest=row.get("source_digest"),
        answers=None
        if answers is None
        else ReferenceAnswers(n=answers.n, left_out=list(answers.left_out), digest=answers.digest),
        capability=row.get("capability"),
        random=row.get("random"),
    )


def _versions(ledger: Ledger, model: str, of: Literal["version", "torch"]) -> list[str]:
    """The versions that ran on the calibration split."""
    rows = ledger.query(
        f"SELECT DISTINCT {of}::VARCHAR AS found FROM cells WHERE model = $model AND {of} IS NOT NULL "
        "AND shard IN (SELECT shard FROM samples WHERE split = 'calibrate') ORDER BY 1",
        {"model": model},
    )
    return [str(version) for version in rows["found"].to_pylist()]


def _calibration(assessment: CertificateAssessment) -> CalibrationSamples:
    calibration = assessment.calibration
    return CalibrationSamples(
        n=calibration.n,
        fingerprint=calibration.fingerprint,
        classes={str(label): count for label, count in calibration.classes.items()},
        population=calibration.population,
        evened=list(calibration.evened),
    )


def _clean(model: ModelCertificates) -> CleanError:
    own = model.clean_error
    share = {"share": own.value, "low": own.low, "high": own.high, "level": own.level}
    return CleanError(wrong=model.n_wrong, refused=model.n_refused, n=own.n, **share)


def _list(assessment: CertificateAssessment, one: ListCertificate) -> AttackList:
    certificate = one.certificate
    if certificate is None or certificate.wrong is None:
        raise RiskError(f"{one.model}: nothing was tested within {one.norm} {one.eps:g}")
    tests = {test.name: test for test in certificate.arms}
    betting = assessment.method == BETTING
    return AttackList(
        norm=one.norm,
        eps=one.eps,
        n=certificate.n,
        certified=one.certified,
        level=one.level,
        attacks=[
            Attack(
                **_counted(tests[attack.arm], attack.failed_at if betting else None),
                arm=attack.arm,
                origin=attack.origin,
                family=attack.family,
                objective=attack.objective,
                keep=attack.keep,
                max_queries=attack.max_queries,
                version=attack.version,
                params=dict(attack.params),
                tries=attack.tries,
                first_try=attack.first_try,
                untold=attack.untold,
                flags=list(attack.flags),
            )
            for attack in one.attacks
        ],
        union=TestedCount(**_counted(certificate.union, one.union_at if betting else None)),
        wrong=TestedCount(**_counted(certificate.wrong, one.wrong_at if betting else None)),
        would_take=would_take(assessment, one),
        searches=[_searched(assessment, one, search) for search in one.searches],
    )


def _searched(assessment: CertificateAssessment, one: ListCertificate, search: SearchFacts) -> SearchPromise:
    return SearchPromise(
        name=search.name,
        method=search.method,
        rounds=search.rounds,
        parameters=list(search.parameters),
        beta=search.beta,
        level=promised_level(search, one.level, assessment.premise),
        text=promise(search, one.level, assessment.premise),
    )


def _counted(test: Tested, failed_at: Sequence[int] | None) -> dict[str, Any]:
    return {
        "failures": test.count.failures,
        "p": test.p,
        "certified_risk": test.certified_risk,
        "failed_at": None if failed_at is None else list(failed_at),
    }


def _member(one: ListCertificate) -> Member:
    test = None if one.certificate is None else one.certificate.worst
    return Member(
        model=one.model,
        norm=one.norm,
        eps=one.eps,
        failures=None if test is None else test.count.failures,
        n=one.n_total if test is None else test.count.n,
        p=1.0 if test is None else test.p,
    )
