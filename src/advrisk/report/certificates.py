"""Certificates in words and tables, and which figures the report shows of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from advrisk.assess.certificate.promises import promises
from advrisk.assess.certificate.records import BETTING, CertificateAssessment, ListCertificate, ModelCertificates
from advrisk.assess.certificate.statements import claim, headline, looked_at, shared, would_take
from advrisk.assess.certificate.words import meaning, percent
from advrisk.core.numbers import size_text
from advrisk.core.palette import Places, Plot
from advrisk.report.certificate_figures import p_curves, p_text, risk_bars

ON_ATTACKS = (
    "Certified is what these very attacks do, with these settings. A better attack may break more, and nothing is "
    "claimed about it."
)
ON_UNION = (
    "“Any attack” counts a sample if some attack of the list breaks it, the number beside it also if it was wrong "
    "before. These bounds, and those of single attacks, are wrong at most {zeta} of the time, each taken by itself."
)


@dataclass(frozen=True)
class Choice:
    """One of several figures that a reader can choose."""

    figure: str
    label: str


@dataclass(frozen=True)
class NormView:
    """All lists within one norm: models as lines, sizes as columns."""

    norm: str
    sizes: tuple[float, ...]
    rows: tuple[tuple[ModelCertificates, tuple[ListCertificate | None, ...]], ...]
    curves: str
    bars: tuple[Choice, ...]


def certificate_content(
    found: CertificateAssessment | None, reason: str = "", *, places: Places | None = None
) -> dict[str, Any]:
    """What the template shows of certificates, or why it cannot."""
    figures: dict[str, Plot] = {}
    return {
        "certificates": found,
        "uncertified": reason,
        "certificate_views": [] if found is None else _views(found, figures, places),
        "certificate_figures": figures,
        "certificate_words": [] if found is None else certificate_words(found),
        "in_certificates": [] if found is None else certificate_headlines(found),
        "p_text": p_text,
        "size_text": size_text,
        "would_take": would_take,
        "certificate_claim": claim,
    }


def certificate_headlines(found: CertificateAssessment) -> list[str]:
    """What is certified of each model, for those who read no further."""
    return [
        f"{headline(model, model.lists)}, at alpha = {percent(found.alpha)} and zeta = {percent(found.zeta)}."
        for model in found.models
    ]


def certificate_words(found: CertificateAssessment) -> list[str]:
    """How certificates are meant."""
    told = [
        meaning(found.alpha, found.zeta),
        shared(found, found.n_claims, found.n_sequences),
        ON_ATTACKS,
        ON_UNION.format(zeta=percent(found.zeta)),
    ]
    if found.method != BETTING and found.most_failures >= 0:
        told.append(
            f"Of {found.calibration.n:,} samples, at most {found.most_failures} may fail within the smallest eps for "
            "it to be certified, whatever becomes of the rest."
        )
    told += [f"{model.model}:{said}" for model in found.models if (said := looked_at(model.lists))]
    return [*told, *promises(found), *found.notes]


def _views(found: CertificateAssessment, figures: dict[str, Plot], places: Places | None) -> list[NormView]:
    return [_view(found, norm, figures, places) for norm in sorted({one.norm for one in found.lists})]


def _view(found: CertificateAssessment, norm: str, figures: dict[str, Plot], places: Places | None) -> NormView:
    sizes = tuple(sorted({one.eps for one in found.lists if one.norm == norm}))
    curves = f"certificates {norm}"
    figures[curves] = p_curves(found, norm, places=places)
    choices = []
    for size in sizes:
        name = f"certified {norm} {size!r}"
        figures[name] = risk_bars(found, norm, size)
        choices.append(Choice(name, f"eps = {size_text(size)}"))
    return NormView(norm, sizes, tuple(_rows(found, norm, sizes)), curves, tuple(choices))


def _rows(
    found: CertificateAssessment, norm: str, sizes: Sequence[float]
) -> list[tuple[ModelCertificates, tuple[ListCertificate | None, ...]]]:
    rows = []
    for model in found.models:
        own = {one.eps: one for one in model.lists if one.norm == norm}
        if own:
            rows.append((model, tuple(own.get(size) for size in sizes)))
    return rows
