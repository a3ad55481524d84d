"""Tables of the case study of certificates: what is certified, the p-values behind it, the searches and their price."""

from collections.abc import Sequence

import numpy as np

from advrisk.assess.certificate.records import ListCertificate
from advrisk.ledger.searches import SearchRecord, Trial
from advrisk.risk.certificate import most_failures, p_value
from studies.certificate_findings import Attacked, Findings, tested
from studies.text import NOTHING, p_text, table

PAPER_ROUNDS = 50


def sizes(found: Findings) -> list[str]:
    """The largest certified eps of every model, the clean error beside."""
    first, second = found.both
    lines = [_asked(first)]
    head = ["model", "trained", "wrong clean"]
    head += [f"{one.family}: broken" for one in found.both] + [f"{one.family}: wrong" for one in found.both]
    rights = [one.right for one in found.both]
    rows = []
    for model in first.models:
        clean = first.found.of(model).clean_error
        row = [model, found.training[model], f"{clean.value:.1%}"]
        row += [_eps(one.largest(model)) for one in found.both]
        row += [_eps(right[model].largest) for right in rights]
        rows.append(row)
    return [*lines, "", *table(head, rows), "", *_meaning(second)]


def _asked(one: Attacked) -> str:
    found = one.found
    return (
        f"The largest eps within which at most {found.alpha:.0%} are certified, zeta = {found.zeta:.0%} for each "
        f"column, {found.calibration.n:,} samples"
    )


def _meaning(one: Attacked) -> list[str]:
    return [
        "  broken: right without an attack and wrong under it; wrong: wrong without an attack or under it",
        f"  {NOTHING}: not even the smallest eps, {one.found.lists[0].eps:g}",
    ]


def curves(found: Findings) -> list[str]:
    """Failures and p of every list: what the figure shows."""
    head = ["model", "eps"]
    for one in found.both:
        head += [f"{one.family} broke", "at most", "p", "certified"]
    rows = []
    for model in found.searched.models:
        for pair in zip(*(one.lists(model) for one in found.both), strict=True):
            row = [model, f"{pair[0].eps:g}"]
            for one in pair:
                row += _line(one)
            rows.append(row)
    n = found.searched.found.calibration.n
    return [f"Failures of {n:,} samples, the risk that they certify by themselves, and p", "", *table(head, rows)]


def _line(one: ListCertificate) -> list[str]:
    worst = tested(one).worst
    certified = "yes" if one.certified else "no"
    return [str(worst.count.failures), f"{worst.certified_risk:.1%}", p_text(worst.p), certified]


def search(found: Findings) -> list[str]:
    """The worst of the first settings, the worst of all, and what it did to the samples to calibrate."""
    n_tuned = found.searched.searches[0].n_samples
    lines = [
        f"Broken of {n_tuned} samples to tune, and the share of the frozen setting on the samples to calibrate",
        "",
    ]
    names = [str(axis["name"]) for axis in found.searched.searches[0].axes]
    head = ["model", "eps", "settings", "first, mean", "first, worst", "all, worst", *names, "calibrate"]
    rows = [[*_found(one, names), _calibrated(found.searched, one)] for one in found.searched.searches]
    return lines + table(head, rows)


def _found(one: SearchRecord, names: Sequence[str]) -> list[str]:
    first = [trial.failures for trial in one.trials if trial.round == 0]
    worst = _frozen(one)
    counts = [f"{np.mean(first):.1f}", str(max(first)), str(worst.failures)]
    return [one.model, f"{one.eps:g}", str(len(one.trials)), *counts, *(f"{worst.setting[name]:.3g}" for name in names)]


def _frozen(one: SearchRecord) -> Trial:
    return max((trial for trial in one.trials if trial.frozen), key=lambda trial: trial.failures)


def _calibrated(attacked: Attacked, one: SearchRecord) -> str:
    of_list = attacked.found.of(one.model).of(one.norm, one.eps)
    return f"{tested(of_list).worst.count.failures / of_list.n_total:.1%}"


def printed(found: Findings) -> list[str]:
    """The paper's p, the mean over the rounds of a search on the samples that it searched, and the largest of them."""
    alpha, zeta = found.searched.found.alpha, found.searched.found.zeta
    n = found.searched.searches[0].n_samples
    few = most_failures(n, alpha, zeta, method="hoeffding-bentkus")
    lines = [
        f"p by Hoeffding and Bentkus on the {n} samples to tune, where p <= {zeta:g} takes {few} failures at most",
        "",
    ]
    rows, turned = [], 0
    for one in found.searched.searches:
        p = p_value([trial.failures for trial in one.trials], n, alpha, method="hoeffding-bentkus")
        mean, largest = float(np.mean(p)), float(np.max(p))
        turned += mean <= zeta < largest
        verdicts = ["yes" if each <= zeta else "no" for each in (mean, largest)]
        rows.append([one.model, f"{one.eps:g}", p_text(mean), verdicts[0], p_text(largest), verdicts[1]])
    head = ["model", "eps", "mean p", "safe", "largest p", "safe"]
    return [*lines, *table(head, rows), "", f"  safe by the mean and not by the largest: {turned} of {len(rows)}"]


def price(found: Findings) -> list[str]:
    """What both runs took, and what as many rounds as in the paper would."""
    lines = ["What it took"]
    for one in found.both:
        tuning, calibrating = one.spent.tuning / 1e6, one.spent.calibrating / 1e6
        passes = f"{tuning:.1f} million passes to tune, {calibrating:.1f} million to calibrate"
        lines.append(f"  {one.name}: {passes}, {one.spent.busy_s / 60:.1f} minutes of a core")
    first = found.searched
    tried = sum(len(one.trials) for one in first.searches)
    more = sum(sum(trial.by == "design" for trial in one.trials) + PAPER_ROUNDS for one in first.searches)
    passes = first.spent.tuning * more / tried
    busy = first.spent.busy_s * (passes + first.spent.calibrating) / (first.spent.tuning + first.spent.calibrating)
    lines.append(
        f"  {tried} settings were tried; {PAPER_ROUNDS} rounds of one setting each would try {more}: about "
        f"{passes / 1e6:.0f} million passes to tune and {busy / 60:.0f} minutes in all"
    )
    return lines


def claims(found: Findings) -> list[str]:
    """What differs between the two attacks, as a list for the page."""
    lost = [model for model in found.searched.models if _less(found, model)]
    names = ", ".join(f"`{model}`" for model in lost) or "none"
    first, second = found.both
    exact = [most_failures(first.found.calibration.n, first.found.alpha, share) for share in _shares(first)]
    paper = [
        most_failures(first.found.calibration.n, first.found.alpha, share, method="hoeffding-bentkus")
        for share in _shares(first)
    ]
    saved = [f"`{one.model}` at {one.eps:g}" for each in found.both for one in each.found.lists if _only_exact(one)]
    return [
        f"- Certified up to a larger eps against {first.family} than against {second.family}: {names} ({len(lost)} of "
        f"{len(first.models)}).",
        f"- Held against zeta / {len(first.models)}, the share of one model, {exact[0]} failures are few enough by the "
        f"exact tail and {paper[0]} by Hoeffding and Bentkus; held against all of it {exact[1]} and {paper[1]}.",
        "- Lists whose p passes their level by the exact tail and not by Hoeffding and Bentkus: "
        f"{', '.join(saved) or 'none'}.",
    ]


def _less(found: Findings, model: str) -> bool:
    weak, strong = (one.largest(model) or 0.0 for one in found.both)
    return strong < weak


def _shares(one: Attacked) -> tuple[float, float]:
    return one.found.zeta / len(one.models), one.found.zeta


def _only_exact(one: ListCertificate) -> bool:
    count, alpha = tested(one).worst.count, tested(one).alpha
    p = {name: p_value(count.failures, count.n, alpha, method=name) for name in ("exact", "hoeffding-bentkus")}
    return bool(p["exact"] <= one.level < p["hoeffding-bentkus"])


def _eps(size: float | None) -> str:
    return NOTHING if size is None else f"{size:g}"
