"""Sections of certificates: the certified sizes of each model, what others would need, and every attack.

Words that are part of a certificate as a document are in `statements`; here are those around them.
"""

from collections.abc import Iterable, Iterator, Sequence

from advrisk.assess.certificate.figures import p_curves, risk_bars
from advrisk.assess.certificate.promises import promises
from advrisk.assess.certificate.records import (
    BETTING,
    AttackFacts,
    CertificateAssessment,
    ListCertificate,
    ModelCertificates,
)
from advrisk.assess.certificate.statements import (
    claim,
    failing,
    headline,
    in_the_end,
    on_each_attack,
    shared,
    would_take,
)
from advrisk.assess.certificate.words import percent, rate
from advrisk.core.estimate import NamedEstimate
from advrisk.core.names import few
from advrisk.core.numbers import size_text
from advrisk.core.palette import Places, model_places
from advrisk.core.sections import (
    Alternatives,
    Cell,
    Column,
    Figure,
    Group,
    Headline,
    Section,
    Summary,
    Table,
    Text,
    Value,
)
from advrisk.core.values import number_text
from advrisk.risk.certificate.verdict import Tested

_ON_ATTACKS = (
    "Certified is what these very attacks do, with these settings. A better attack may break more, and nothing is "
    "claimed about it."
)
_ON_COUNTS = (
    "Brackets hold the risk that a count certifies, taken by itself: that bound is wrong at most {zeta} of the time."
)
_ON_CURVES = (
    "A point is the largest p of all attacks within that eps. Filled points are certified: they, and all points left "
    "of them, lie below what they are held against (dotted). That is zeta, or a part of it where several models and "
    "norms share it; a model that is certified throughout hands its part on."
)
_ON_BARS = (
    "A bar is the share of samples that failed, its whisker ends at the risk that is certified by itself. Where the "
    "blue whisker ends left of the dotted line, a risk of alpha is certified by itself. Orange counts clean "
    "errors, too."
)
_ON_EVERY_ATTACK = (
    "The worst attack comes first. “First try” is less than “broke” where a random attack was tried several times.",
    "“Any attack” counts a sample if some attack of the list breaks it, the row below also if it is incorrect clean.",
)
_ON_DOCUMENTS = (
    "`advrisk certify RUN` writes each of these as a document of its own, with what it rests on and what it does not "
    "claim."
)


def sections(found: CertificateAssessment, models: Sequence[str] = ()) -> Iterator[Section]:
    """The verdict on each model and list first; attacks are folded."""
    yield Headline(_headline(found))
    yield from _summaries(found)
    yield _each_model(found)
    if caveats := _caveats(found):
        yield Text(tuple(caveats), "Caveats: read these before you rely on it")
    yield _each_list(found)
    yield _each_attack(found)
    yield from _figures(found, model_places(models))
    if needed := tuple(_needed(found)):
        yield Text(needed, "What it would take")
    yield Text(tuple(certificate_words(found)), "What is claimed")
    yield from (_every_attack(found, model) for model in found.models)
    yield Text((_ON_DOCUMENTS,), how=True)


def quantities(found: CertificateAssessment) -> Iterator[NamedEstimate]:
    """The clean error of each model, and the risks of each list with their bounds."""
    for model in found.models:
        terms = terms_note(found, model)
        yield NamedEstimate("calibration_error", model.model, model.clean_error)
        for one in model.lists:
            if one.certificate is not None:
                own = one.certificate
                tested = {"wrong": own.wrong, "broken_by_worst": own.worst, "broken": own.union}
                for name, test in tested.items():
                    if test is not None:
                        note = f"{one.verdict}; {terms}" if name == "broken" else terms
                        yield NamedEstimate(f"calibration_{name}", one.model, test.risk, one.norm, one.eps, note=note)
                bounds = {} if one.pending else {"wrong": own.wrong, "broken": own.union}
                for name, test in bounds.items():
                    if test is not None:
                        bound = found.bound([test])
                        yield NamedEstimate(f"certified_{name}", one.model, bound, one.norm, one.eps, note=terms)


def terms_note(found: CertificateAssessment, model: ModelCertificates) -> str:
    """The terms of a certificate's number, and its caveats."""
    caveats = (f"caveat: {text}" for text in model.caveats)
    return "; ".join((_terms(found), *caveats, *(f"note: {text}" for text in found.notes)))


def certificate_headlines(found: CertificateAssessment) -> list[str]:
    """A summary of the certificates of each model."""
    return [f"{headline(found, model, model.lists)} (at {_terms(found)})." for model in found.models]


def certificate_words(found: CertificateAssessment) -> list[str]:
    """What certificates mean."""
    told = [
        f"Tested on {found.calibration.n:,} samples that were kept apart; method: {found.method}.",
        *few([claim(found, model, model.lists) for model in found.models], "more models: see their certificates."),
        shared(found, found.n_claims, found.n_sequences),
        _ON_ATTACKS,
    ]
    if found.method != BETTING and found.most_failures >= 0:
        told.append(
            f"Of {found.calibration.n:,} samples, at most {found.most_failures} may fail within the smallest eps for "
            "it to be certified, whatever becomes of the rest."
        )
    return [*told, *promises(found), *found.notes]


def _caveats(found: CertificateAssessment) -> list[str]:
    """The distinct caveats, with their models if they do not concern all."""
    about: dict[str, list[str]] = {}
    for model in found.models:
        for text in model.caveats:
            about.setdefault(text, []).append(model.model)
    every = len(found.models)
    return [text if len(models) == every else f"{', '.join(models)}: {text}" for text, models in about.items()]


def _headline(found: CertificateAssessment) -> str:
    """The headline of a single model, or which of several models are certified."""
    if len(found.models) == 1:
        return certificate_headlines(found)[0]
    named: dict[str, list[str]] = {}
    for model in found.models:
        named.setdefault(model.verdict, []).append(f"{model.model}{_beside(model)}")
    told = "; ".join(f"{verdict}: {', '.join(models)}" for verdict, models in sorted(named.items()))
    bound = f"each bound is wrong at most {percent(found.zeta)} of the time, by itself; "
    beside = f"{bound if any(one.certified for one in found.lists) else ''}clean errors are on the calibration samples"
    return f"At {_terms(found)}, {told}. {beside[0].upper()}{beside[1:]} ({found.calibration.n:,})."


def _beside(model: ModelCertificates) -> str:
    """The certified bound on the risk, or the size that fails, with the clean error."""
    bounds = [f"at most {rate(bound)} within {_within(one)}" for one, bound in in_the_end(model.lists) if one.certified]
    told = [f"wrong under these attacks: {', '.join(bounds)}"] if bounds else []
    told += [f"not {why}"] if (why := failing(model.lists)) else []
    clean = f"clean error {rate(model.clean_error.value)}"
    return f" ({'; '.join(told)}; {clean})" if told else ""


def _terms(found: CertificateAssessment) -> str:
    return f"alpha = {percent(found.alpha)} and zeta = {percent(found.zeta)}"


def _summaries(found: CertificateAssessment) -> Iterator[Summary]:
    each = certificate_headlines(found)
    yield Summary("headlines", tuple(each))
    yield Summary("ship", tuple(few(each, "more models: see the section on certificates.")))
    yield Summary(
        "sure",
        (
            f"Certificates rest on {found.calibration.n:,} samples that were kept apart; all claims together are wrong "
            f"at most {percent(found.zeta)} of the time.",
        ),
    )
    open_ones = [
        f"{one.model} within {_within(one)} is not certified. {needed}"
        for one in found.lists
        if (needed := would_take(found, one))
    ]
    caveats = [f"Certificates have a caveat: {text}" for text in _caveats(found)]
    yield Summary("undecided", (*caveats, *few(open_ones, "more lists of attacks are not certified.")))


# Tables


def _each_model(found: CertificateAssessment) -> Table:
    norms = sorted({norm for model in found.models for norm in model.sizes})
    refused = any(model.n_refused for model in found.models)
    columns = (
        Column("model"),
        Column("verdict"),
        *(Column(f"largest certified eps, {norm}", "distance") for norm in norms),
        Column("clean error", "share"),
        *((Column("clean inputs refused", "count"),) if refused else ()),
    )
    rows = tuple(
        (
            model.model,
            _marked(model.verdict),
            *(_largest(model, norm) for norm in norms),
            Cell(model.clean_error, (f"{model.n_wrong:,} of {model.clean_error.n:,}",)),
            *((model.n_refused,) if refused else ()),
        )
        for model in found.models
    )
    return Table("What is certified of each model", columns, rows)


def _largest(model: ModelCertificates, norm: str) -> Value:
    sizes = model.sizes.get(norm)
    return None if sizes is None else "none" if sizes.largest is None else sizes.largest


def _each_list(found: CertificateAssessment) -> Table:
    columns = (
        Column("model"),
        Column("within"),
        Column("verdict"),
        Column("incorrect, clean or attacked", "count"),
        Column("worst attack broke", "count"),
        Column("p", "p-value"),
        Column("held against", "p-value"),
        Column("any attack broke", "count", detail=True),
    )
    rows = tuple((one.model, _within(one), _verdict(one), *_counts(one)) for one in found.lists)
    note = _ON_COUNTS.format(zeta=percent(found.zeta))
    return Table("Each list of attacks, within one norm and eps", columns, rows, (note,), lead=True)


def _each_attack(found: CertificateAssessment) -> Table:
    """Claims about single attacks, which do not depend on stronger attacks of the same list."""
    own = {model.model for model in found.models}
    columns = (
        Column("model"),
        Column("attack"),
        Column("norm"),
        Column("tested at eps"),
        Column("certified up to, by itself", "distance"),
        Column("certified up to, all together", "distance", detail=True),
    )
    claims = [one for one in found.claims if one.model in own]
    rows = tuple(
        (
            one.model,
            one.attack,
            one.norm,
            ", ".join(map(size_text, one.eps)),
            "none" if one.largest is None else one.largest,
            "none" if one.together is None else one.together,
        )
        for one in claims
    )
    return Table("Each attack by itself", columns, rows, (on_each_attack(len(claims), found.zeta),))


def _verdict(one: ListCertificate) -> Value:
    seen = (f"{one.look.n:,} of {one.n_total:,} samples",) if one.certificate is None else ()
    return _marked(one.verdict, *seen)


def _marked(verdict: str, *beside: str) -> Cell:
    return Cell(verdict, beside, "best" if verdict == "certified" else "")


def _counts(one: ListCertificate) -> tuple[Value, ...]:
    if one.certificate is None:
        return None, None, None, one.level, None
    found = one.certificate
    return _bound(found.wrong), _bound(found.worst), one.p, one.level, _bound(found.union)


def _bound(test: Tested | None) -> Value:
    """Failures, and the risk that they certify."""
    return None if test is None else Cell(test.count.failures, (f"[≤ {rate(test.certified_risk)}]",))


def _every_attack(found: CertificateAssessment, model: ModelCertificates) -> Group:
    tables = (_attacks(found, one) for one in model.lists)
    return Group(f"{model.model}: every attack", (Text(_ON_EVERY_ATTACK, how=True), *tables), folded=True)


def _attacks(found: CertificateAssessment, one: ListCertificate) -> Table:
    columns = (
        Column("attack"),
        Column("from"),
        Column("tries", "count"),
        Column("first try broke", "count"),
        Column("broke", "count"),
        Column("p", "p-value"),
        Column("certified risk", "weight"),
    )
    tested = {} if one.certificate is None else {test.name: test for test in one.certificate.arms}
    rows = [_attack(attack, tested.get(attack.arm)) for attack in one.attacks]
    if one.certificate is not None:
        rows.append(_together("any attack", one.certificate.union))
        rows += (
            [] if one.certificate.wrong is None else [_together("incorrect, clean or attacked", one.certificate.wrong)]
        )
    needed = would_take(found, one)
    title = f"Attacks on {one.model} within {_within(one)}: {one.verdict}"
    return Table(title, columns, tuple(rows), (needed,) if needed else ())


def _attack(attack: AttackFacts, test: Tested | None) -> tuple[Value, ...]:
    """The failures of an attack, once it is finished: partial counts are not valid."""
    head = Cell(attack.arm, attack.flags), "a search" if attack.origin == "frozen" else "the study", attack.tries
    if test is None:
        return *head, None, None, None, None
    errors = (f"errors: {attack.untold}",) if attack.untold else ()
    return *head, attack.first_try, Cell(attack.failures, errors), test.p, test.certified_risk


def _together(name: str, test: Tested) -> tuple[Value, ...]:
    return Cell(name, mark="total"), "", "", "", test.count.failures, test.p, test.certified_risk


def _within(one: ListCertificate) -> str:
    return f"{one.norm} {size_text(one.eps)}"


# Figures


def _figures(found: CertificateAssessment, places: Places) -> Iterator[Section]:
    for norm in sorted({one.norm for one in found.lists}):
        described = "p against eps for each model; the same numbers stand in the table above."
        curves = Figure(f"p against eps within {norm}", p_curves(found, norm, places=places), described)
        bars = Alternatives("Shown", tuple(_bars(found, norm)))
        yield Group(
            f"Attacks within {norm}", (Text((_ON_CURVES,), how=True), curves, Text((_ON_BARS,), how=True), bars)
        )


def _bars(found: CertificateAssessment, norm: str) -> Iterator[Figure]:
    described = "Share of failed samples of each model, and the risk that is certified."
    for size in sorted({one.eps for one in found.lists if one.norm == norm}):
        yield Figure(f"Certified risk within {norm} {size_text(size)}", risk_bars(found, norm, size), described)


# What a certificate would need


def _needed(found: CertificateAssessment) -> Iterator[str]:
    """For each model and norm, what would certify the smallest uncertified eps."""
    for one in _first(one for one in found.lists if not one.certified):
        needed = would_take(found, one) or _so_far(one)
        yield f"{one.model}, {_within(one)}: {needed}{_behind(found, one)}"


def _first(lists: Iterable[ListCertificate]) -> list[ListCertificate]:
    """The first list of each model and norm."""
    first: dict[tuple[str, str], ListCertificate] = {}
    for one in lists:
        first.setdefault((one.model, one.norm), one)
    return list(first.values())


def _behind(found: CertificateAssessment, first: ListCertificate) -> str:
    """Why an uncertified eps prevents all larger ones, however small their p."""
    own = [one for one in found.of(first.model).lists if one.norm == first.norm and one.eps > first.eps]
    behind = [size_text(one.eps) for one in own if not one.certified and not one.pending]
    if not behind or first.pending:
        return ""
    return f" So {first.norm} {', '.join(behind)} cannot be certified, whatever p is there: no smaller eps is skipped."


def _so_far(one: ListCertificate) -> str:
    decided = "" if one.look.decided_at is None else f"; it was at most its share of zeta after {one.look.decided_at}"
    return (
        f"not finished: {one.look.n} of {one.n_total} samples in the order of looks. Betting p so far: "
        f"{number_text(one.look.p, 'p-value')}{decided}."
    )
