"""Verify a certificate: its signature, and its numbers and sentences, recomputed from its counts.

What a document says of other models' betting p-values, of flags and of notes cannot be made again from it alone: that
takes the run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from advrisk.assess.certificate.assessment import useless
from advrisk.assess.certificate.calibration import CalibrationSet
from advrisk.assess.certificate.document import AttackList, CertificateDocument, composed, parsed
from advrisk.assess.certificate.records import (
    BETTING,
    AttackFacts,
    CertificateAssessment,
    InterimPValue,
    ListCertificate,
    ModelCertificates,
    Premise,
    SearchFacts,
    of_counts,
)
from advrisk.assess.certificate.signature import SIGNATURE, SIGNER, signature_problem, signer
from advrisk.core.errors import RiskError
from advrisk.core.names import counted
from advrisk.core.plain import InJson
from advrisk.risk.certificate.counts import Count
from advrisk.risk.certificate.families import CertifiedSizes, certified_sizes
from advrisk.risk.certificate.p_values import p_value
from advrisk.risk.certificate.planning import smallest_n
from advrisk.risk.certificate.verdict import Certificate, certify, certify_in_order
from advrisk.risk.proportion import proportion

_CLOSE = 1e-9  # relative: two builds of a library may differ by that
_MOST = 10  # reported differences
UNCHECKED = "Its caveats, notes, flags and attacks' settings are taken as they stand: --run checks them."


@dataclass(frozen=True)
class Verification:
    """The result of a verification."""

    held: tuple[str, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()  # stated by the document: weaknesses of its claim
    stated: tuple[str, ...] = ()  # notes stated by the document, such as flagged attacks

    in_json: ClassVar[InJson] = {"holds": "holds", "stated": "certificate_notes"}

    @property
    def holds(self) -> bool:
        """Whether there are no problems."""
        return not self.problems

    def calling(self, path: Path, place: str) -> "Verification":
        """The same result under another file name."""
        every = (self.held, self.problems, self.notes, self.caveats, self.stated)
        return Verification(*(tuple(one.replace(str(path), place) for one in of) for of in every))


def verify_document(content: Mapping[str, Any], *, key: str | Path | None = None) -> Verification:
    """Verify the signature, and recompute every number and sentence from the counts."""
    signature = verify_signature(content, key=key)
    held, problems, notes = list(signature.held), list(signature.problems), list(signature.notes)
    try:
        again = _made_again(parsed(content))
    except RiskError as error:
        return Verification(tuple(held), (*problems, f"It does not hold together: {error}."), tuple(notes))
    wrong = list(differences(content, again))
    if wrong:
        problems += [f"It does not follow from its own counts: {text}." for text in wrong[:_MOST]]
    else:
        held.append("Every p-value, bound, verdict and sentence of the claim follows from its counts.")
    notes.append(UNCHECKED)
    stated = tuple(again["notes"])
    return Verification(tuple(held), tuple(problems), tuple(notes), tuple(again["claim"]["caveats"]), stated)


def verify_signature(content: Mapping[str, Any], *, key: str | Path | None = None, what: str = "It") -> Verification:
    """Verify the signature only; an unsigned document is valid unless a key is given.

    `what` is the document, as the sentences call it.
    """
    if content.get(SIGNATURE) is None and content.get(SIGNER) is not None:
        return Verification((), (f"{what} names a signer and is not signed.",))
    if key is None and content.get(SIGNATURE) is None:
        return Verification((), (), (f"{what} is not signed: anyone could have written it.",))
    if (problem := signature_problem(content, key)) is not None:
        return Verification((), (f"The signature does not hold: {problem}.",))
    name, fingerprint = content.get(SIGNER), signer(content)
    named = "" if name is None else f" in the name of {name}"
    if key is not None:
        held = f"{what} was signed{named} with that key ({fingerprint}), and not changed since."
        return Verification((held,), ())
    unchecked = "Whose key it is was not checked: give the signer's public key with --key."
    return Verification(
        (f"{what} was signed{named} with the key {fingerprint}, and not changed since.",),
        (),
        (unchecked if name is None else f"The name {name} is the signer's own word. {unchecked}",),
    )


def compare_documents(content: Mapping[str, Any], again: Mapping[str, Any]) -> Verification:
    """Compare a certificate with the one that a run gives now."""
    told = {
        "model.digest": "The run holds another model of that name",
        "model.answers.digest": "The model of the run answers other classes",
        "calibration.fingerprint": "The run was calibrated on other samples",
        "provenance.ledger": "The rows of the run are not those that the certificate was made from",
        "provenance.question": "The run was asked another question",
    }
    ignored = {"provenance.made", "provenance.advrisk"}
    found = [(path, text) for path, text in _unlike(content, again, "") if path not in ignored]
    problems = [f"{told[path]}: {text}." for path, text in found if path in told]
    problems += [f"The run says otherwise: {text}." for path, text in found if path not in told]
    if problems:
        return Verification((), tuple(problems[:_MOST]))
    return Verification(("The run gives the same certificate: samples, model, attacks, rows and counts.",), ())


def differences(content: Mapping[str, Any], again: Mapping[str, Any]) -> Iterator[str]:
    """The fields that differ from the recomputed ones, except the signature."""
    for _, text in _unlike(content, again, ""):
        yield text


def _unlike(found: Any, wanted: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(found, Mapping) and isinstance(wanted, Mapping):
        for name in dict.fromkeys([*wanted, *found]):
            if path or name not in (SIGNATURE, SIGNER):
                yield from _unlike(found.get(name), wanted.get(name), f"{path}.{name}" if path else name)
    elif isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
        for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
            yield from _unlike(one, other, f"{path}[{place}]")
    elif not _alike(found, wanted):
        yield path, f"{path} is {_shown(found)}, and should be {_shown(wanted)}"


def _alike(found: Any, wanted: Any) -> bool:
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (found, wanted))
    if numbers and (isinstance(found, float) or isinstance(wanted, float)):
        try:
            return bool(np.isclose(found, wanted, rtol=_CLOSE, atol=1e-300))
        except OverflowError:  # an integer beyond the range of floats
            return False
    return type(found) is type(wanted) and bool(found == wanted)


def _shown(value: Any) -> str:
    """A short text of a value; the number of entries for containers."""
    if isinstance(value, Mapping | list):
        return counted(len(value), "field" if isinstance(value, Mapping) else "value")
    if value is None:
        return "missing"
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _made_again(document: CertificateDocument) -> dict[str, Any]:
    """The document recomputed from its counts."""
    claim, about = document.claim, document.model
    _check_sizes(document)
    sizes = _sizes(document)
    for one in document.lists:
        if (about.name, one.norm) not in sizes:
            raise RiskError(f"the list within {one.norm} {one.eps:g} is not among those of the run")
    lists = tuple(_list(document, one, sizes[about.name, one.norm]) for one in document.lists)
    _check_own(document, lists)
    clean = document.clean_error
    least = clean.wrong + clean.refused
    if claim.method != BETTING and any(one.wrong.failures < least for one in document.lists):
        raise RiskError(f"{least} samples are wrong or refused without any attack, and a list says that fewer are")
    model = ModelCertificates(
        model=about.name,
        criterion=document.criterion,
        clean_error=proportion(clean.wrong, clean.n),
        n_wrong=clean.wrong,
        n_refused=clean.refused,
        lists=lists,
        sizes={norm: found for (name, norm), found in sizes.items() if name == about.name},
        rows=document.provenance.ledger,
        targets={int(label): tuple(targets) for label, targets in document.targets.items()},
        caveats=_caveats(document),
    )
    known = document.calibration
    calibration = CalibrationSet(
        samples=("",) * known.n,
        fingerprint=known.fingerprint,
        classes={int(label): count for label, count in known.classes.items()},
        population=known.population,
        evened=tuple(known.evened),
    )
    found = CertificateAssessment(
        alpha=claim.alpha,
        zeta=claim.zeta,
        method=claim.method,
        calibration=calibration,
        models=(model,),
        most_failures=-1,
        smallest_n=smallest_n(claim.alpha, claim.zeta / len(sizes), method=claim.method),
        notes=tuple(document.notes),
        premise=None if document.search_guarantee is None else Premise(**document.search_guarantee.model_dump()),
    )
    return composed(found, model, lists, document.family, about, document.provenance)


def _caveats(document: CertificateDocument) -> tuple[str, ...]:
    """The document's caveats, and those that follow from its counts."""
    by_counts = useless(proportion(document.clean_error.wrong, document.clean_error.n))
    return (*(text for text in document.claim.caveats if text not in by_counts), *by_counts)


def _check_sizes(document: CertificateDocument) -> None:
    """Check that counts are possible and that nothing occurs twice."""
    known, clean = document.calibration, document.clean_error
    if sum(known.classes.values()) != known.n:
        raise RiskError(f"calibration.classes: {sum(known.classes.values())} samples in all, but n is {known.n}")
    if not clean.wrong + clean.refused <= clean.n <= known.n:
        found = f"{clean.wrong} wrong and {clean.refused} refused of {clean.n}"
        raise RiskError(f"clean_error: {found}, but there are {known.n} samples to calibrate")
    if (answers := document.model.answers) is not None:
        left_out = {place for place in answers.left_out if place < known.n}
        if len(left_out) < len(answers.left_out) or answers.n + len(left_out) != known.n:
            found = f"{answers.n} of them and {len(answers.left_out)} that are left out"
            raise RiskError(f"model.answers: found {found}, but there are {known.n} samples to calibrate")
    within = set[tuple[str, float]]()
    for one in document.lists:
        where, arms = f"the list within {one.norm} {one.eps:g}", set[str]()
        if one.n > known.n or (document.claim.method != BETTING and one.n != known.n):
            raise RiskError(f"{where} has {one.n} samples of {known.n}")
        if (one.norm, one.eps) in within:
            raise RiskError(f"{where} stands there twice")
        within.add((one.norm, one.eps))
        for attack in one.attacks:
            if attack.arm in arms:
                raise RiskError(f"{where}: {attack.arm} stands there twice")
            arms.add(attack.arm)


def _sizes(document: CertificateDocument) -> dict[tuple[str, str], CertifiedSizes]:
    """The joint decision on all lists of the run, from their counts."""
    claim, grids = document.claim, dict[tuple[str, str], dict[float, float]]()
    for place, one in enumerate(document.family):
        p = one.p
        if one.failures is not None and claim.method != BETTING:
            p = float(p_value(one.failures, one.n, claim.alpha, method=of_counts(claim.method)))
        if not _alike(p, one.p):
            raise RiskError(f"family[{place}].p is {one.p}, and {one.failures} failures of {one.n} give {p}")
        grid = grids.setdefault((one.model, one.norm), {})
        if one.eps in grid:
            raise RiskError(f"family[{place}]: {one.model}, {one.norm} {one.eps:g} stands there twice")
        grid[one.eps] = p
    return certified_sizes(grids, claim.zeta)


def _check_own(document: CertificateDocument, lists: Sequence[ListCertificate]) -> None:
    """Check that the lists of a document are among those of the run, with the same numbers."""
    family = {(one.norm, one.eps): one for one in document.family if one.model == document.model.name}
    for one in lists:
        member = family.get((one.norm, one.eps))
        if member is None or one.certificate is None:
            raise RiskError(f"the list within {one.norm} {one.eps:g} is not among those of the run")
        if member.failures != one.certificate.worst.count.failures or not _alike(member.p, one.certificate.p):
            raise RiskError(
                f"the list within {one.norm} {one.eps:g} has other numbers than it has among those of the run"
            )


def _list(document: CertificateDocument, one: AttackList, sizes: CertifiedSizes) -> ListCertificate:
    certificate = _certificate(document, one)
    for place, attack in enumerate(one.attacks):
        if attack.first_try > attack.failures or attack.untold > attack.failures:
            raise RiskError(f"attacks[{place}] of {one.norm} {one.eps:g}: more failures of a kind than failures")
    return ListCertificate(
        model=document.model.name,
        norm=one.norm,
        eps=one.eps,
        attacks=tuple(
            AttackFacts(
                arm=attack.arm,
                origin=attack.origin,
                family=attack.family,
                objective=attack.objective,
                params=attack.params,
                tries=attack.tries,
                failures=attack.failures,
                first_try=attack.first_try,
                untold=attack.untold,
                flags=tuple(attack.flags),
                failed_at=tuple(attack.failed_at or ()),
                keep=attack.keep,
                max_queries=attack.max_queries,
                version=attack.version,
            )
            for attack in one.attacks
        ),
        certificate=certificate,
        look=InterimPValue(one.n, 1.0, None),
        certified=one.eps in sizes.eps[: sizes.n_certified],
        level=sizes.level,
        n_total=document.calibration.n,
        union_at=tuple(one.union.failed_at or ()),
        wrong_at=tuple(one.wrong.failed_at or ()),
        searches=tuple(
            SearchFacts(search.name, search.method, search.rounds, tuple(search.parameters), search.beta)
            for search in one.searches
        ),
    )


def _certificate(document: CertificateDocument, one: AttackList) -> Certificate:
    claim, known = document.claim, document.calibration.fingerprint
    if claim.method == BETTING:
        return _by_betting(document, one)
    return certify(
        {attack.arm: Count(attack.failures, one.n, known) for attack in one.attacks},
        alpha=claim.alpha,
        zeta=claim.zeta,
        union=Count(one.union.failures, one.n, known),
        clean=Count(document.clean_error.wrong, one.n, known),
        wrong=Count(one.wrong.failures, one.n, known),
        method=of_counts(claim.method),
    )


def _by_betting(document: CertificateDocument, one: AttackList) -> Certificate:
    losses = {attack.arm: _marks(attack.failed_at, one.n) for attack in one.attacks}
    union, wrong = _marks(one.union.failed_at, one.n), _marks(one.wrong.failed_at, one.n)
    if not np.array_equal(np.max(list(losses.values()), axis=0), union):
        raise RiskError(f"the union within {one.norm} {one.eps:g} is not that of its attacks")
    return certify_in_order(
        losses,
        alpha=document.claim.alpha,
        zeta=document.claim.zeta,
        calibration=document.calibration.fingerprint,
        clean=wrong - union,
    )


def _marks(places: Sequence[int] | None, n: int) -> Any:
    marks = np.zeros(n)
    if places is None or len(set(places)) < len(places) or any(not 0 <= place < n for place in places):
        raise RiskError(f"failed_at must name each failed sample once, from 0 to {n - 1}")
    marks[list(places)] = 1.0
    return marks
