"""Certificates as text for a terminal: what a run certifies, what was written, and what was verified."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from advrisk.assess.certificate.sections import certificate_headlines
from advrisk.core.errors import RiskError
from advrisk.core.numbers import size_text
from advrisk.core.plain import json_text, plain_fields
from advrisk.render.terminal import Terminal, indented

if TYPE_CHECKING:
    from advrisk.api import Run
    from advrisk.api.certificates import WrittenCertificate
    from advrisk.assess.certificate.verification import Verification


def print_certified(run: "Run") -> None:
    """What is certified of each model, in a sentence; or why nothing can be said."""
    console = Terminal()
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
    console = Terminal()
    for one in written:
        claim = one.content["claim"]
        console.print(claim["headline"], style="bold")
        for caveat in claim["caveats"]:
            indented(console, f"Caveat: {caveat}", by=2)
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
        "caveats": claim["caveats"],
        "notes": one.content["notes"],
        "headline": claim["headline"],
        "claim": claim["text"],
        "alpha": claim["alpha"],
        "zeta": claim["zeta"],
        "largest_eps": claim["largest_eps"],
        "clean_error": one.content["clean_error"],
        "document": str(one.document),
        "page": str(one.page),
        "signed": "signature" in one.content,
    }


def print_verification(
    found: "Verification",
    says: str | None,
    *,
    what: str,
    as_json: bool,
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Whether a certificate or another document holds and then what it says, what was checked, and what is wrong."""
    if as_json:
        print(json_text(plain_fields(found) | {"says": says} | {**facts}))
        return
    console = Terminal()
    if found.holds:
        console.print(f"It holds. It says: {says}", style="bold")
        for sentence in found.caveats:
            indented(console, f"Caveat: {sentence}", by=0)
        for sentence in found.stated:
            indented(console, f"Note: {sentence}", by=0)
    else:
        console.print(f"Do not trust this {what}.", style="bold red")
    for sentence in (*found.problems, *found.held, *found.notes):
        indented(console, f"· {sentence}", by=0)


def claim_text(content: Mapping[str, Any]) -> str:
    """What a certificate says: its headline, and its claim, which explains alpha and zeta."""
    claim = content["claim"]
    return f"{claim['headline']}. {claim['text']} Method: {claim['method']}."
