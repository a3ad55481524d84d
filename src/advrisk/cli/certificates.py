"""Certificates as text for a terminal: what is certified, what was written, and what was verified."""

from typing import TYPE_CHECKING, Any

from rich.console import Console

from advrisk.assess.certificate.statements import would_take
from advrisk.assess.certificate.words import percent
from advrisk.cli.lines import show_result
from advrisk.core.errors import RiskError
from advrisk.core.numbers import size_text
from advrisk.core.plain import json_text
from advrisk.render.terminal import indented, print_fitting
from advrisk.report.certificate_figures import p_text
from advrisk.report.certificates import certificate_headlines, certificate_words

if TYPE_CHECKING:
    from advrisk.api import Run
    from advrisk.api.certificates import WrittenCertificate
    from advrisk.assess.certificate.records import CertificateAssessment, ListCertificate
    from advrisk.assess.certificate.verification import Verification
    from advrisk.risk.certificate.verdict import Tested


def show_certificates(
    run: "Run",
    alpha: float | None,
    zeta: float | None,
    models: list[str] | None,
    arms: list[str] | None,
    *,
    out_csv: str | None,
    as_json: bool,
) -> None:
    """`advrisk show certificate RUN`: every model, norm and eps."""
    found = run.certificate(alpha=alpha, zeta=zeta, models=models, arms=arms)
    show_result(found, found.as_dict, lambda: print_certificates(found), out_csv=out_csv, as_json=as_json)


def print_certificates(found: "CertificateAssessment") -> None:
    """A line for each list, what it would take where it is not certified, and how that is meant."""
    console = Console()
    console.print(
        f"At most {percent(found.alpha)} of inputs broken, said wrongly at most {percent(found.zeta)} of the time: "
        f"{found.calibration.n:,} samples, {found.method}",
        style="bold",
        markup=False,
        highlight=False,
    )
    for sentence in certificate_headlines(found):
        indented(console, sentence, by=0)
    columns = [
        "model",
        "within",
        "p",
        "held against",
        "worst attack broke",
        "any attack",
        "or wrong before",
        "certified",
    ]
    print_fitting(console, columns, [_row(one) for one in found.lists])
    for model in found.models:
        refused = f", {model.n_refused} refused" if model.n_refused else ""
        told = f"{model.n_wrong} of {model.clean_error.n:,} wrong without any attack{refused}"
        indented(console, f"{model.model}: {told}", by=0)
    for one in _stopped_at(found):
        needed = would_take(found, one) or _so_far(one)
        indented(console, f"{one.model}, {one.norm} {size_text(one.eps)}: {needed}{_behind(found, one)}", by=0)
    for sentence in certificate_words(found):
        indented(console, f"· {sentence}", by=0)


def _stopped_at(found: "CertificateAssessment") -> "list[ListCertificate]":
    """Of each model and norm, the smallest eps that is not certified."""
    first: dict[tuple[str, str], ListCertificate] = {}
    for one in found.lists:
        if not one.certified:
            first.setdefault((one.model, one.norm), one)
    return list(first.values())


def _behind(found: "CertificateAssessment", first: "ListCertificate") -> str:
    """Why the larger eps behind one that is not certified are not, either, however small their p is."""
    own = [one for one in found.of(first.model).lists if one.norm == first.norm and one.eps > first.eps]
    behind = [size_text(one.eps) for one in own if not one.certified and not one.pending]
    if not behind or first.pending:
        return ""
    return f" So {first.norm} {', '.join(behind)} cannot be certified, whatever p is there: no smaller eps is skipped."


def _row(one: "ListCertificate") -> list[str]:
    head = [one.model, f"{one.norm} {size_text(one.eps)}"]
    certified = {"certified": "yes", "not certified": "no"}.get(one.verdict, one.verdict)
    if one.certificate is None:
        return [*head, "–", p_text(one.level), "–", "–", "–", certified]
    found = one.certificate
    wrong = "–" if found.wrong is None else _bound(found.wrong)
    return [*head, p_text(found.p), p_text(one.level), _bound(found.worst), _bound(found.union), wrong, certified]


def _bound(test: "Tested") -> str:
    """Failures, and the risk that they certify by themselves."""
    return f"{test.count.failures}\n[≤ {100 * test.certified_risk:.1f} %]"


def _so_far(one: "ListCertificate") -> str:
    decided = "" if one.look.decided_at is None else f"; it was at most its share of zeta after {one.look.decided_at}"
    return (
        f"not finished: {one.look.n} of {one.n_total} samples in the order of looks. Betting p so far: "
        f"{p_text(one.look.p)}{decided}."
    )


def print_certified(run: "Run") -> None:
    """What is certified of each model, in a sentence; or why nothing can be said."""
    console = Console()
    try:
        sentences = certificate_headlines(run.certificate())
    except RiskError as error:
        sentences = [f"Nothing can be certified: {error}"]
    for sentence in sentences:
        indented(console, f"· {sentence}", by=0)


def print_written(written: "list[WrittenCertificate]", *, as_json: bool) -> None:
    """What each certificate claims, and where it is."""
    if as_json:
        print(json_text([_summary(one) for one in written]))
        return
    console = Console()
    for one in written:
        claim = one.content["claim"]
        console.print(claim["headline"], style="bold", markup=False, highlight=False)
        indented(console, claim["text"], by=2)
        for of_list in one.content["lists"]:
            if of_list["would_take"]:
                within = f"{of_list['norm']} {size_text(of_list['eps'])}"
                indented(console, f"{within}: {of_list['would_take']}", by=2)
        for note in one.content["notes"]:
            indented(console, f"· {note}", by=2)
        print(f"  {one.page}\n  {one.document}{' (signed)' if 'signature' in one.content else ''}")


def _summary(one: "WrittenCertificate") -> dict[str, Any]:
    claim = one.content["claim"]
    return {
        "model": one.model,
        "certified": one.certified,
        "headline": claim["headline"],
        "claim": claim["text"],
        "largest_eps": claim["largest_eps"],
        "document": str(one.document),
        "page": str(one.page),
        "signed": "signature" in one.content,
    }


def print_verification(found: "Verification", says: str | None, *, what: str, as_json: bool) -> None:
    """Whether a certificate or another document holds and then what it says, what was checked, and what is wrong."""
    if as_json:
        print(json_text(found.as_dict() | {"says": says}))
        return
    console = Console()
    if found.holds:
        console.print(f"Nothing is wrong with it. It says: {says}", style="bold", markup=False, highlight=False)
    else:
        console.print(f"Do not trust this {what}.", style="bold red", markup=False, highlight=False)
    for sentence in (*found.problems, *found.held, *found.notes):
        indented(console, f"· {sentence}", by=0)
