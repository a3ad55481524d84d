"""The guarantees of a run's searches about untried settings: a level zeta', or why there is none.

The theorem (`exploration`) is about a search that looks at p itself, under one kernel and with the beta it asks for.
The searches of this program look at the failure rate on samples to tune, and fit the kernel anew in every round. So a
zeta' depends on statements of the study that are not verified, and every sentence says so.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from advrisk.assess.certificate.records import CertificateAssessment, ListCertificate, Premise, SearchFacts
from advrisk.assess.certificate.words import NOTHING, guarantee_text, percent
from advrisk.ledger import Ledger
from advrisk.ledger.searches import SearchRecord, read_searches
from advrisk.risk.certificate.exploration import SearchGuarantee, search_guarantee
from advrisk.risk.certificate.p_values import p_value

SETTINGS = 1024  # approximate number of grid points that represent all settings
_PARAMETERS = 10
UNSTATED = (
    f"{NOTHING}: the study does not state what the theorem rests on (`search_guarantee` of assess.certificate), so "
    "nothing is claimed about settings that were not tried"
)


def with_searches(assessment: CertificateAssessment, ledger: Ledger, premise: Premise | None) -> CertificateAssessment:
    """The assessment, with the searches of each list."""
    searches = read_searches(ledger)
    if not searches:
        return assessment
    models = []
    for model in assessment.models:
        lists = [replace(one, searches=_of_list(one, searches, assessment.alpha)) for one in model.lists]
        models.append(replace(model, lists=tuple(lists)))
    return replace(assessment, models=tuple(models), premise=premise)


def promised_level(one: SearchFacts, zeta: float, premise: Premise | None) -> float | None:
    """zeta' of a search; None without a guarantee."""
    return None if premise is None or _outside(one) else _guarantee(one, zeta, premise).level


def promise(one: SearchFacts, zeta: float, premise: Premise | None) -> str:
    """The guarantee as a sentence, or the reason why there is none."""
    if reason := _outside(one):
        return f"{NOTHING}: {reason}"
    if premise is None:
        return UNSTATED
    guarantee = _guarantee(one, zeta, premise)
    if guarantee.level is None:
        return guarantee_text(guarantee)
    return (
        f"zeta' = {guarantee.level:.3g}: {guarantee_text(guarantee)}, and wrongly so at most "
        f"{percent(zeta + premise.delta)} of the time. This stands on what the study states of p as a function of the "
        "setting, which nobody checked; and the search looked at the failure rate on samples to tune with a kernel "
        "that was fitted anew, so it is not the theorem's"
    )


def promises(assessment: CertificateAssessment) -> Iterator[str]:
    """A sentence for each search, or a single one if all are equal."""
    every = [
        (search.name, one, promise(search, one.level, assessment.premise))
        for one in assessment.lists
        for search in one.searches
    ]
    if len({text for _, _, text in every}) == 1:
        yield f"{every[0][2][0].upper()}{every[0][2][1:]}."
    else:
        for name, one, text in every:
            yield f"{name} against {one.model}: {text}."


def _outside(one: SearchFacts) -> str | None:
    """Why the theorem does not apply to a search, whatever the study states."""
    if one.method != "gp-ucb" or one.rounds < 1 or one.beta is None:
        how = "a first design alone" if one.method == "gp-ucb" else f"method {one.method}"
        return f"the theorem is about GP-UCB, and this was {how}"
    if len(one.parameters) > _PARAMETERS:
        return f"it is not computed for more than {_PARAMETERS} parameters, found {len(one.parameters)}"
    return None


def _guarantee(one: SearchFacts, zeta: float, premise: Premise) -> SearchGuarantee:
    return search_guarantee(
        zeta,
        rounds=one.rounds,
        settings=_grid(len(one.parameters)),
        kernel=premise.kernel,
        length_scale=premise.length_scale,
        norm_bound=premise.norm_bound,
        noise=premise.noise,
        delta=premise.delta,
        beta=float(np.sqrt(one.beta or 0.0)),  # searches use the root
    )


def _grid(n_parameters: int) -> Any:
    """A grid over the unit cube, with at least two points along each side."""
    side = max(2, int(SETTINGS ** (1 / n_parameters) + 1e-9))
    return np.array(list(itertools.product(np.linspace(0, 1, side), repeat=n_parameters)))


def _of_list(one: ListCertificate, searches: list[SearchRecord], alpha: float) -> tuple[SearchFacts, ...]:
    own = [search for search in searches if (search.model, search.norm, search.eps) == (one.model, one.norm, one.eps)]
    return tuple(
        SearchFacts(
            name=search.name,
            method=search.method,
            rounds=search.n_rounds_done,
            parameters=tuple(str(axis["name"]) for axis in search.axes),
            beta=search.least_beta,
            mean_p=_mean_p(search, alpha),
        )
        for search in own
    )


def _mean_p(search: SearchRecord, alpha: float) -> float | None:
    """The paper's number (Algorithm 1): the mean p of all tried settings, on the tuning split."""
    p = [p_value(one.failures, one.n, alpha, method="hoeffding-bentkus") for one in search.trials if one.n]
    return float(np.mean(p)) if p else None
