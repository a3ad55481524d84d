"""The question of certificates, answered from a ledger: every model, norm and eps, and all of them together.

A *list* is the attacks on one model within one norm and eps. Lists of one model and norm are tested in ascending eps
until the first that fails; models and norms share zeta (`families`). So all claims of an assessment together are wrong
at most zeta of the time, although there are many of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import get_args

import numpy as np

from advrisk.assess.certificate.calibration import CalibrationSet, Population, read_calibration
from advrisk.assess.certificate.per_attack import attack_claims
from advrisk.assess.certificate.reading import AttackRows, Flags, ModelRows, read_rows
from advrisk.assess.certificate.records import (
    BETTING,
    AnyMethod,
    AttackFacts,
    CertificateAssessment,
    InterimPValue,
    ListCertificate,
    ModelCertificates,
    of_counts,
)
from advrisk.assess.certificate.settled import caveats_of_samples
from advrisk.assess.certificate.strength import on_weak_attacks
from advrisk.assess.certificate.words import rate
from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.names import counted, did_you_mean, few
from advrisk.ledger import Ledger
from advrisk.risk.certificate.betting import betting_p_values
from advrisk.risk.certificate.counts import Count, check_rate
from advrisk.risk.certificate.families import CertifiedSizes, certified_sizes
from advrisk.risk.certificate.p_values import most_failures
from advrisk.risk.certificate.planning import samples_to_certify, smallest_n
from advrisk.risk.certificate.verdict import Certificate, certify, certify_in_order
from advrisk.risk.proportion import proportion

METHODS: tuple[AnyMethod, ...] = get_args(AnyMethod)
SMALLEST_ZETA = 1e-15
_CAUSES = """
    SELECT message::VARCHAR AS message, outcome::VARCHAR AS outcome, count(*) AS n FROM outcomes
    WHERE kind = 'attack' AND outcome IN ('error', 'timeout') AND model IN (SELECT unnest($models))
    AND sample IN (SELECT sample FROM samples WHERE split = 'calibrate') GROUP BY ALL ORDER BY n DESC, message
"""
POWER = 0.9  # probability that a planned number of samples certifies


def assess_certificates(
    ledger: Ledger,
    *,
    alpha: float = 0.1,
    zeta: float = 0.05,
    method: AnyMethod = "exact",
    models: Sequence[str] | None = None,
    arms: Sequence[str] | None = None,
    population: Population | None = None,
    notes: Sequence[str] = (),
    caveats: Sequence[str] = (),
    asked: bool = False,
) -> CertificateAssessment:
    """Test every list of every model of a run on its calibration split.

    All models of the run share zeta, whatever `models` names: these are merely the ones to tell of. `arms` are names or
    patterns of attacks; by default all within some eps, and always those that a search froze. `caveats` weaken what is
    claimed, beside those that the run itself gives. `asked`: the study asks for a certificate.
    """
    check_rate("alpha", alpha)
    check_rate("zeta", zeta)
    if zeta < SMALLEST_ZETA:
        raise RiskError(f"zeta must be at least {SMALLEST_ZETA:g}, found {zeta:g}: 1 - zeta would be 1 to the computer")
    if method not in METHODS:
        raise RiskError(f"no method is called {method!r}; {did_you_mean(method, METHODS)}")
    calibration = read_calibration(ledger, population=population)
    if method == BETTING and calibration.population == "balanced":
        raise RiskError(
            "a balanced set is not drawn sample by sample, and bets are made on the next draw: `method: betting` and "
            "`population: balanced` do not go together; choose another method"
        )
    every = read_rows(ledger, calibration, arms=arms, asked=asked)
    at_first = zeta / len({(rows.model, attack.norm) for rows in every for attack in rows.attacks})
    lists = {
        rows.model: _lists(rows, calibration, alpha=alpha, zeta=zeta, share=at_first, method=method) for rows in every
    }
    sizes = _sizes(lists, zeta)
    of_run = (*caveats, *caveats_of_samples(ledger, zeta), *calibration.caveats)
    assessment = CertificateAssessment(
        alpha=alpha,
        zeta=zeta,
        method=method,
        calibration=calibration,
        models=tuple(_model(rows, lists[rows.model], sizes, of_run) for rows in every),
        most_failures=int(most_failures(calibration.n, alpha, at_first, method=of_counts(method))),
        smallest_n=smallest_n(alpha, at_first, method=method),
        notes=tuple(notes),
        n_claims=sum(map(len, lists.values())),
        n_sequences=len(sizes),
    )
    chosen = assessment.models if models is None else tuple(assessment.of(name) for name in models)
    return replace(
        assessment,
        models=chosen,
        notes=(
            *assessment.notes,
            *calibration.notes,
            *_on_errors(ledger, assessment),
            *_notes(assessment),
        ),
        claims=attack_claims(assessment.lists, zeta),
    )


Groups = dict[tuple[str, float], tuple[AttackRows, ...]]


def _groups(rows: ModelRows) -> Groups:
    """(norm, eps) -> the attacks within it, ascending."""
    found: dict[tuple[str, float], list[AttackRows]] = {}
    for attack in rows.attacks:
        found.setdefault((str(attack.norm), float(attack.eps or 0.0)), []).append(attack)
    return {key: tuple(found[key]) for key in sorted(found)}


def _lists(
    rows: ModelRows, calibration: CalibrationSet, *, alpha: float, zeta: float, share: float, method: AnyMethod
) -> list[ListCertificate]:
    """Each list by itself; the joint decision follows later. `share` is each list's least part of zeta."""
    return [
        _list(rows, norm, eps, attacks, calibration, alpha=alpha, zeta=zeta, share=share, method=method)
        for (norm, eps), attacks in _groups(rows).items()
    ]


def _list(
    rows: ModelRows,
    norm: str,
    eps: float,
    attacks: Sequence[AttackRows],
    calibration: CalibrationSet,
    *,
    alpha: float,
    zeta: float,
    share: float,
    method: AnyMethod,
) -> ListCertificate:
    seen = _n_complete(attacks) if method == BETTING else calibration.n
    broken = {attack.arm: attack.broken[:seen] for attack in attacks}
    union, wrong = np.logical_or.reduce(list(broken.values())), rows.wrong[:seen]
    lost = union | _not_right(rows, attacks)[:seen]
    certificate = None
    if method == BETTING and seen:
        certificate = _by_betting(broken, wrong, lost, calibration, alpha=alpha, zeta=zeta)
    elif method != BETTING and all(attack.there.all() for attack in attacks):
        certificate = _by_counts(broken, union, wrong, lost, calibration, alpha=alpha, zeta=zeta, method=method)
    return ListCertificate(
        model=rows.model,
        norm=norm,
        eps=eps,
        attacks=_worst_first([_facts(one, seen) for one in attacks], certificate),
        certificate=certificate,
        look=_look(attacks, calibration, alpha=alpha, share=share),
        certified=False,
        level=zeta,
        n_total=calibration.n,
        union_at=_positions(union),
        wrong_at=_positions(lost),
    )


def _not_right(rows: ModelRows, attacks: Sequence[AttackRows]) -> Flags:
    """Samples that are incorrect clean, refused clean or attacked, or incorrect attacked."""
    attacked = ((one.refused | one.incorrect).any(axis=0) for one in attacks)
    return np.asarray(np.logical_or.reduce([rows.wrong, rows.refused, *attacked]))


def _facts(attack: AttackRows, seen: int) -> AttackFacts:
    return AttackFacts(
        arm=attack.arm,
        origin=attack.origin,
        family=attack.family,
        objective=attack.objective,
        params=dict(attack.params),
        tries=attack.tries,
        failures=int(attack.broken[:seen].sum()),
        first_try=int(attack.failed[0, :seen].sum()),
        untold=int((attack.untold & attack.failed)[:, :seen].any(axis=0).sum()),
        flags=attack.flags,
        failed_at=_positions(attack.broken[:seen]),
        keep=attack.keep,
        max_queries=attack.max_queries,
        version=attack.version,
    )


def _worst_first(attacks: Sequence[AttackFacts], certificate: Certificate | None) -> tuple[AttackFacts, ...]:
    """The attacks in the order of their p-values, once those exist."""
    names = [] if certificate is None else [test.name for test in certificate.arms]
    order = {name: number for number, name in enumerate(names)}
    return tuple(sorted(attacks, key=lambda one: (order.get(one.arm, 0), -one.failures, one.arm)))


def _positions(marks: Flags) -> tuple[int, ...]:
    return tuple(int(place) for place in np.flatnonzero(marks))


def _by_counts(
    broken: Mapping[str, Flags],
    union: Flags,
    wrong: Flags,
    lost: Flags,
    calibration: CalibrationSet,
    *,
    alpha: float,
    zeta: float,
    method: AnyMethod,
) -> Certificate:
    def count(marks: Flags) -> Count:
        return Count(int(marks.sum()), calibration.n, calibration.fingerprint)

    return certify(
        {arm: count(marks) for arm, marks in broken.items()},
        alpha=alpha,
        zeta=zeta,
        union=count(union),
        clean=count(wrong),
        wrong=count(lost),
        method=of_counts(method),
    )


def _by_betting(
    broken: Mapping[str, Flags], wrong: Flags, lost: Flags, calibration: CalibrationSet, *, alpha: float, zeta: float
) -> Certificate:
    return certify_in_order(
        broken, alpha=alpha, zeta=zeta, calibration=calibration.fingerprint, clean=wrong, wrong=lost
    )


def _n_complete(attacks: Sequence[AttackRows]) -> int:
    """The number of leading samples, in the preset order, on which every attack of a list was run."""
    finished = np.logical_and.reduce([attack.finished for attack in attacks])
    return int(finished.size if finished.all() else np.argmin(finished))


def _look(attacks: Sequence[AttackRows], calibration: CalibrationSet, *, alpha: float, share: float) -> InterimPValue:
    seen = _n_complete(attacks)
    if not seen or calibration.population == "balanced":
        return InterimPValue(seen, 1.0, None)
    p = np.max([betting_p_values(attack.broken[:seen].astype(np.float64), alpha) for attack in attacks], axis=0)
    decided = np.flatnonzero(p <= share)
    return InterimPValue(seen, float(p[-1]), int(decided[0]) + 1 if decided.size else None)


def _sizes(lists: Mapping[str, Sequence[ListCertificate]], zeta: float) -> dict[tuple[str, str], CertifiedSizes]:
    """(model, norm) -> its grid of eps; a list that is not finished is not certified."""
    grids: dict[tuple[str, str], dict[float, float]] = {}
    for model, found in lists.items():
        for one in found:
            grids.setdefault((model, one.norm), {})[one.eps] = 1.0 if one.p is None else one.p
    return certified_sizes(grids, zeta)


def _model(
    rows: ModelRows,
    lists: Sequence[ListCertificate],
    sizes: Mapping[tuple[str, str], CertifiedSizes],
    caveats: Sequence[str],
) -> ModelCertificates:
    own = {norm: found for (model, norm), found in sizes.items() if model == rows.model}
    told = [
        replace(one, certified=one.eps in own[one.norm].eps[: own[one.norm].n_certified], level=own[one.norm].level)
        for one in lists
    ]
    told = [replace(one, waits=_waits(one, told)) for one in told]
    n_wrong = int(rows.wrong.sum())
    clean_error = proportion(n_wrong, max(1, int(rows.recorded.sum())))
    return ModelCertificates(
        model=rows.model,
        criterion=rows.criterion,
        clean_error=clean_error,
        n_wrong=n_wrong,
        n_refused=int(rows.refused.sum()),
        lists=tuple(told),
        sizes=own,
        rows=rows.digest,
        targets=rows.targets,
        caveats=(*caveats, *on_weak_attacks(rows.attacks), *useless(clean_error)),
    )


def useless(clean_error: Estimate) -> list[str]:
    """A caveat on a model that is incorrect on most clean inputs, which leaves little to break."""
    if clean_error.value <= 0.5:
        return []
    return [
        f"It is wrong on most inputs without any attack ({rate(clean_error.value)} of {clean_error.n:,} samples): "
        "attacks break few because few are right."
    ]


def _waits(one: ListCertificate, every: Sequence[ListCertificate]) -> bool:
    """Whether only an unfinished smaller eps prevents the certification of a list."""
    smaller = [other for other in every if other.norm == one.norm and other.eps < one.eps]
    return one.p is not None and one.p <= one.level and any(other.pending for other in smaller)


def _on_errors(ledger: Ledger, assessment: CertificateAssessment) -> list[str]:
    """A note on rows of attacks without a verdict, by cause, and the failures that they count as."""
    rows = ledger.query(_CAUSES, {"models": [one.model for one in assessment.models]}).to_pylist()
    if not rows:
        return []
    attacks = [attack for one in assessment.lists for attack in one.attacks]
    untold = sum(attack.untold for attack in attacks)
    several = any(attack.tries > 1 for attack in attacks) and sum(row["n"] for row in rows) > untold
    again = "are further tries, or " if several else ""
    causes = few([f"{row['n']:,}: {row['message'] or row['outcome']}" for row in rows], "more causes")
    return [
        f"Rows of attacks that ended with an error or a timeout, or where the model answered with no finite number: "
        f"{'; '.join(causes)}. {untold:,} count as failures; the rest {again}were incorrect or unanswered when clean."
    ]


def _notes(assessment: CertificateAssessment) -> list[str]:
    notes = []
    if assessment.calibration.n < assessment.smallest_n:
        notes.append(too_small(assessment.calibration.n, assessment.alpha, assessment.zeta, assessment.smallest_n))
    if refusing := [model for model in assessment.models if model.n_refused]:
        parts = ", ".join(f"{one.model} {one.n_refused} of {one.clean_error.n:,}" for one in refusing)
        notes.append(
            f"Clean inputs that are refused: {parts}. To refuse is no failure, but they are not answered rightly: they "
            "count as wrong in the end, as do those that are refused when attacked."
        )
    flagged: dict[str, dict[str, None]] = {}
    for one in assessment.lists:
        for flag in (flag for attack in one.attacks for flag in attack.flags):
            flagged.setdefault(flag, {})[one.model] = None
    if flagged:
        parts = "; ".join(f"{flag}, against {' and '.join(models)}" for flag, models in sorted(flagged.items()))
        notes.append(
            f"Some attacks on samples to calibrate are flagged ({parts}): they may be weaker than they could be, and a "
            "certificate against a weak attack says little."
        )
    looked = max(one.look.n for one in assessment.lists)
    if assessment.method == BETTING and assessment.decided and looked < assessment.calibration.n:
        notes.append(
            f"All lists were decided after {looked:,} of {assessment.calibration.n:,} samples, and the run stopped."
        )
    if not assessment.finished:
        notes.append(
            "The run is not finished. Until then only the betting p-value may be looked at; and where the study's "
            f"method is {assessment.method}, it does not decide."
        )
    return notes


def too_small(n: int, alpha: float, zeta: float, needed: int) -> str:
    """Why a calibration set is too small to certify anything."""
    return (
        f"{counted(n, 'sample')} to calibrate can never certify a risk of {alpha:.4g} at {zeta:.4g}: with what else is "
        f"tested, at least {needed:,} are needed, and no failure among them."
    )


def samples_needed(rate: float, alpha: float, zeta: float, method: AnyMethod) -> int | None:
    """The number of samples that certifies a risk of that rate with probability 0.9; None if no number suffices.

    Of betting it is the number of the exact test, which is smaller.
    """
    if rate >= alpha:
        return None
    try:
        return samples_to_certify(rate, alpha, zeta, power=POWER, method=of_counts(method))
    except RiskError:  # more samples than any data set has
        return None
