"""The certificate of one model as a page for people: one file that prints well and loads nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

from advrisk.assess.certificate.signature import SIGNER, document_digest, signer
from advrisk.assess.certificate.statements import on_each_attack, target_text
from advrisk.assess.certificate.words import percent, rate
from advrisk.core.flags import FLAGS
from advrisk.core.numbers import size_text
from advrisk.core.values import number_text

_METHODS = {
    "exact": "exact binomial tail, P(Bin(n, alpha) <= failures)",
    "hoeffding-bentkus": "Hoeffding–Bentkus, as PROSAC has it",
    "betting": "betting martingale, which may be looked at while samples come in",
}
_CRITERIA = {
    "label": "The attacked input is read as another class than its label.",
    "prediction": "The attacked input is read as another class than the clean one.",
    "target": "The attacked input is read as {target}.",
}
_CLASSES = 60  # class counts that are listed


def certificate_page(document: Mapping[str, Any]) -> str:
    """The page of a document; all it says comes from there."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("advrisk.report", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    classes = list(document["calibration"]["classes"].items())
    return environment.get_template("certificate.html").render(
        document,
        signer_name=document.get(SIGNER),
        digest=document_digest(document),
        signed_by=signer(document),
        method=_METHODS[document["claim"]["method"]],
        success=_CRITERIA[document["criterion"]].format(target=target_text(document["targets"])),
        classes=classes[:_CLASSES],
        n_more_classes=max(0, len(classes) - _CLASSES),
        flags=_flags(document),
        verdict=_verdict(document),
        ends=_ends(document["lists"]),
        each_attack=on_each_attack(len(document["attacks"]), document["claim"]["zeta"]),
        percent=percent,
        rate=rate,
        size_text=size_text,
        p_text=lambda p: number_text(p, "p-value"),
    )


def _verdict(document: Mapping[str, Any]) -> str:
    held = [one["certified"] for one in document["lists"]]
    if not any(held):
        return "Not certified"
    told = "Certified" if all(held) else "Certified in part"
    return f"{told}, with caveats" if document["claim"]["caveats"] else told


def _ends(lists: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Of each norm the largest eps that is certified, or else the smallest."""
    leading: dict[str, Mapping[str, Any]] = {}
    for one in lists:
        leading.setdefault(one["norm"], one)
        if one["certified"]:
            leading[one["norm"]] = one
    return list(leading.values())


def _flags(document: Mapping[str, Any]) -> dict[str, str]:
    """What the flags of the attacks mean, those that are known."""
    found = {flag for one in document["lists"] for attack in one["attacks"] for flag in attack["flags"]}
    return {flag: FLAGS[flag] for flag in sorted(found & FLAGS.keys())}
