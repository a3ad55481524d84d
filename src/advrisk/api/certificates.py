"""Certificates of a run as documents: which question is asked, and the files that answer it."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from advrisk.assess.certificate.assessment import too_small
from advrisk.assess.certificate.document import CertificateDocument, Order, certificate_document, parsed, read_document
from advrisk.assess.certificate.question import assess_run
from advrisk.assess.certificate.records import CertificateAssessment, ListCertificate, ModelCertificates
from advrisk.assess.certificate.signature import SIGNATURE, check_signer, signed
from advrisk.assess.certificate.verification import UNCHECKED, Verification, compare_documents, verify_document
from advrisk.core.clock import time_of_making
from advrisk.core.errors import AdvriskError, LedgerError, RiskError, RunError
from advrisk.core.files import write_whole
from advrisk.core.names import did_you_mean
from advrisk.core.numbers import size_text
from advrisk.ledger import Ledger
from advrisk.ledger.frozen import asked_question
from advrisk.plan import (
    ModelCard,
    certified_arms,
    expand_arms,
    expand_defences,
    expand_detectors,
    expand_searches,
    names_of,
)
from advrisk.report.certificate_page import certificate_page
from advrisk.risk.certificate.planning import smallest_n
from advrisk.study import StudySpec

FOLDER = "certificates"  # of a run


@dataclass(frozen=True)
class WrittenCertificate:
    """A certificate, and the files that hold it."""

    model: str
    certified: bool  # without a caveat
    weakened: bool  # certified, but for its caveats
    document: Path
    page: Path
    content: Mapping[str, Any]


def certificate_doubts(study: StudySpec) -> list[str]:
    """A sentence where there are too few samples to calibrate for anything to be certified, ever."""
    asked = study.assess.certificate
    if asked is None:
        return []
    try:
        n_sequences = _n_sequences(study)
    except AdvriskError:  # what is wrong with the study is said when it is run
        return []
    needed = smallest_n(asked.alpha, asked.zeta / max(1, n_sequences), method=asked.method)
    n = study.data.calibrate
    return [too_small(n, asked.alpha, asked.zeta, needed)] if n < needed else []


def _n_sequences(study: StudySpec) -> int:
    """How many pairs of a model and a norm will share zeta: those whose attacks are certified."""
    from advrisk.parts import REGISTRIES

    assessed = [name for name, spec in study.models.items() if not spec.surrogate]
    assessed += [one.name for one in expand_defences(study, REGISTRIES) if not one.surrogate]
    arms = expand_arms(study, REGISTRIES, names_of(expand_detectors(study, REGISTRIES, examples="")))
    searches = expand_searches(study, REGISTRIES, [ModelCard("any", "", "gradients", 0)])
    return len(assessed) * len({arm.norm for arm in certified_arms(study, arms)} | {one.arm.norm for one in searches})


def write_certificates(
    ledger: Ledger,
    study: StudySpec | None,
    given: Mapping[str, Any],
    *,
    name: str,
    models: Sequence[str] | None,
    norm: str | None,
    eps: float | None,
    out: Path,
    key: Path | None,
    signer: str | None = None,
    replace: bool = False,
) -> list[WrittenCertificate]:
    """A document and a page for each model, or for those named.

    A signed document stays, unless the new one is signed and answers the same question, or `replace` is set.
    """
    check_signer(key, signer)  # before anything is written
    found = assess_run(ledger, study, given)
    made = time_of_making()
    chosen = [found.of(model) for model in models] if models else list(found.models)
    lists = {model.model: claimed_lists(model, norm, eps) for model in chosen}
    chosen = [model for model in chosen if lists[model.model]]
    if not chosen:
        raise RiskError(f"nothing was attacked within {norm or 'any norm'}{'' if eps is None else f' {eps:g}'}")
    contents = {
        model.model: _content(ledger, found, model, lists[model.model], name=name, made=made) for model in chosen
    }
    names = _file_names(list(contents))
    if not replace:
        for model, content in contents.items():  # before anything is written
            _refuse_to_replace(out / f"{names[model]}.json", content, sign=key is not None)
    return [
        _written(model, signed(content, key, name=signer) if key else content, out / names[model])
        for model, content in contents.items()
    ]


def _refuse_to_replace(target: Path, content: Mapping[str, Any], *, sign: bool) -> None:
    """Refuse where a signed certificate would give way to an unsigned one, or to the answer to another question."""
    if not target.exists():
        return
    try:
        earlier = read_document(target)
    except RiskError:  # damaged, so there is nothing to lose
        return
    if earlier.get(SIGNATURE) is None:
        return
    if differences := [*([] if sign else ["is not signed"]), *_other_terms(earlier, content)]:
        raise RunError(
            f"{target}: is signed, and the new certificate {' and '.join(differences)}; write it to another folder "
            "with --out FOLDER, or replace the signed one with --replace (in Python: out, replace=True)"
        )


def _other_terms(earlier: Mapping[str, Any], content: Mapping[str, Any]) -> list[str]:
    """In what the question of a certificate differs from that of an earlier one."""
    try:
        then = _terms(parsed(earlier))
    except RiskError as error:
        return [f"cannot be compared with it ({error})"]
    return [
        f"is about {name} {now} instead of {then[name]}"
        for name, now in _terms(parsed(content)).items()
        if now != then[name]
    ]


def _terms(document: CertificateDocument) -> dict[str, Any]:
    """What a certificate answers: the model, the terms of its claim, and the sizes that it is about."""
    claim = document.claim
    sizes = ", ".join(f"{one.norm} {size_text(one.eps)}" for one in document.lists)
    terms = {"alpha": claim.alpha, "zeta": claim.zeta, "method": claim.method, "sizes": sizes}
    return {"model": document.model.name, **terms}


def claimed_lists(model: ModelCertificates, norm: str | None, eps: float | None) -> list[ListCertificate]:
    """The lists of a model to make claims about: within one norm, and up to one eps."""
    norms = dict.fromkeys(one.norm for one in model.lists)
    if norm is not None and norm not in norms:
        raise RiskError(f"{model.model} was not attacked in {norm}; {did_you_mean(norm, norms)}")
    own = [one for one in model.lists if norm in (None, one.norm)]
    if eps is not None and norm is None and len(norms) > 1:
        raise RiskError(
            f"{model.model} was attacked in {' and '.join(norms)}; say in which norm eps = {eps:.6g} is meant"
        )
    if eps is not None and eps not in {one.eps for one in own}:
        sizes = ", ".join(f"{one.eps:.6g}" for one in own)
        raise RiskError(f"{model.model} was not attacked within eps = {eps:.6g}; known: {sizes}")
    return [one for one in own if eps is None or one.eps <= eps]


def _content(
    ledger: Ledger,
    found: CertificateAssessment,
    model: ModelCertificates,
    lists: Sequence[ListCertificate],
    *,
    name: str,
    made: datetime,
) -> dict[str, Any]:
    question = asked_question(ledger)
    settings = {} if question is None else question.settings
    order, seed = settings.get("order", "shuffled"), settings.get("seed", 0)
    if order not in get_args(Order) or type(seed) is not int:
        raise LedgerError(f"{ledger.path}: settings of the frozen question: found order {order!r} and seed {seed!r}")
    return certificate_document(
        ledger,
        found,
        model,
        every=found.lists,
        study=name,
        seed=seed,
        order=order,
        question=None if question is None else question.id,
        lists=lists,
        made=made,
    )


def _written(model: str, content: Mapping[str, Any], stem: Path) -> WrittenCertificate:
    document, page = stem.with_name(f"{stem.name}.json"), stem.with_name(f"{stem.name}.html")
    texts = {document: json.dumps(content, indent=1, ensure_ascii=False) + "\n", page: certificate_page(content)}
    for target, text in texts.items():
        write_whole(target, text, "the certificate")
    claim = content["claim"]
    weakened = bool(claim["caveats"]) and all(one["certified"] for one in content["lists"])
    return WrittenCertificate(model, claim["certified"], weakened, document, page, content)


def _file_names(models: Sequence[str]) -> dict[str, str]:
    """Model -> a name that is safe in any folder; those that would be alike are numbered."""
    names: dict[str, str] = {}
    for model in models:
        plain = re.sub(r"[^A-Za-z0-9._-]", "_", model).lstrip(".")[:100] or "model"
        taken = {name.lower() for name in names.values()}
        place, name = 2, plain
        while name.lower() in taken:
            place, name = place + 1, f"{plain}-{place}"
        names[model] = name
    return names


def verify_certificate(
    content: Mapping[str, Any],
    *,
    key: Path | None = None,
    ledger: Ledger | None = None,
    study: StudySpec | None = None,
    name: str = "",
) -> Verification:
    """Check a certificate by itself and, with a run, by counting again."""
    alone = verify_document(content, key=key)
    if ledger is None:
        return alone
    try:
        again = _again(content, ledger, study, name)
    except RiskError as error:
        counted = Verification((), (f"The run does not give this certificate: {error}.",))
    else:
        counted = compare_documents(content, again)
    notes = tuple(note for note in alone.notes if note != UNCHECKED)
    held, problems = alone.held + counted.held, alone.problems + counted.problems
    return Verification(held, problems, notes + counted.notes, alone.caveats, alone.stated)


def _again(content: Mapping[str, Any], ledger: Ledger, study: StudySpec | None, name: str) -> dict[str, Any]:
    """The certificate that a run gives for the same question now."""
    document = parsed(content)
    claim = document.claim
    given = {"alpha": claim.alpha, "zeta": claim.zeta, "method": claim.method}
    found = assess_run(ledger, study, given)
    model = found.of(document.model.name)
    lists = [model.of(one.norm, one.eps) for one in document.lists]
    return _content(ledger, found, model, lists, name=name, made=datetime.now(UTC))
