"""The sections of `studies.damage`: each takes a run's findings and gives lines of text."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np

from advrisk import Run
from advrisk.assess.damage.assessment import DamageAssessment, ModelDamage
from advrisk.assess.damage.conflicts import conflict_text
from advrisk.core.errors import RiskError
from advrisk.core.names import counted
from advrisk.risk.convergence import DAMAGE, SMALLEST, Convergence, convergence
from advrisk.risk.damage import DamageComparison, EvasionComparison, compare_damage
from advrisk.risk.decision import Pair, decided_pairs
from advrisk.risk.evasion import Evasion, FunctionEvasion, threshold
from studies import orders
from studies.page import fenced
from studies.text import NOTHING, band_text, number_text, p_text, size_text, table, wrapped

NUMBERS = (10, 100, 1000)  # of samples
RESAMPLES = 200
NOISE = 0.05


@dataclass(frozen=True)
class Findings:
    """A run's answer, and what every section is read from."""

    name: str
    damage: DamageAssessment
    comparison: DamageComparison
    settled: Convergence  # how the numbers settle as samples are added
    small: float  # the two sizes at which success ratios are compared
    large: float

    @property
    def distances(self) -> orders.ByModel:
        return self.damage.distances.by_model

    @property
    def models(self) -> list[str]:
        """Least damage first."""
        return [row.model for row in self.damage.models]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return list(combinations(self.models, 2))

    @property
    def counts(self) -> list[int]:
        """Numbers of samples to look at: 10, 100, 1000, or as many as there are."""
        return sorted({min(number, self.comparison.n) for number in NUMBERS})

    @cached_property
    def sections(self) -> dict[str, list[str]]:
        """Name -> lines of each."""
        return {section.__name__: section(self) for section in SECTIONS}


def findings(folder: Path, eps: Sequence[float] | None = None) -> Findings:
    """Open a run and assess damage at two sizes: the study's smallest and largest, or those given."""
    run = Run.open(folder)
    damage = run.damage(thresholds=list(eps) if eps else None)
    if damage.comparison is None:
        raise RiskError(f"{folder}: holds one model, and orders need two or more")
    sizes = sorted(set(damage.thresholds))
    if len(sizes) < 2:
        raise RiskError(f"{folder}: has {counted(len(sizes), 'size')} to compare success at; give two with --eps")
    settled = convergence(damage.distances.by_model, thresholds=(sizes[0], sizes[-1]), rng=_rng())
    name = run.study.name if run.study else run.folder.name
    return Findings(name, damage, damage.comparison, settled, sizes[0], sizes[-1])


def lines_of(found: Findings) -> list[str]:
    """All sections."""
    return [line for lines in found.sections.values() for line in [*lines, ""]]


def blocks_of(found: Findings) -> dict[str, list[str]]:
    """What a page shows: `run-section` -> a block of its lines."""
    return {f"{found.name}-{name}": fenced(lines) for name, lines in found.sections.items()}


def decision(found: Findings) -> list[str]:
    """The table of the decision, below what it rests on."""
    n, norm = counted(found.comparison.n, "sample"), found.damage.distances.norm
    title = f"{found.name}: {counted(len(found.models), 'model')}, {n}, {norm}"
    head = ["model", "relative damage", "of it clean", "best"]
    head += ["accuracy", f"ASR {found.small:.4g}", f"ASR {found.large:.4g}", "MPS", "mean size"]
    rows = [_decision_row(row, found) for row in found.damage.models]
    return [
        title,
        "=" * len(title),
        "",
        "Which model? Least damage first. ASR is a lower bound; a better attack may move relative damage either way.",
        *table(head, rows),
        *wrapped(f"{row.model}: {row.verdict}." for row in found.damage.models),
    ]


def disagreement(found: Findings) -> list[str]:
    """Pairs that success ratios at two sizes order differently."""
    small, large, n_pairs = f"{found.small:.4g}", f"{found.large:.4g}", len(found.pairs)
    pairs = orders.disagreements(found.distances, small=found.small, large=found.large)
    n_sure = sum(pair.p_value <= NOISE for pair in pairs)
    sentence = (
        f"ASR at {small} and at {large} disagree on the order of {len(pairs)} of {n_pairs} pairs; for {n_sure} of them "
        f"both orders are more than noise (p <= {NOISE}: exact paired tests, the larger of two, Holm over all pairs)."
    )
    rows = [
        [
            _both(each.first, each.second),
            *_paired(each.small),
            *_paired(each.large),
            p_text(each.p_value),
            _less(found, each),
        ]
        for each in pairs
    ]
    lost = "lost by one only"
    head = ["pair", f"ASR {small}", lost, f"ASR {large}", lost, "p", "less relative damage"]
    return [*wrapped([sentence]), *(table(head, rows) if rows else [])]


def smallest(found: Findings) -> list[str]:
    """The minimal perturbation size rests on one sample, and falls with the number of samples."""
    held = orders.smallest_sizes(found.distances)
    places = [_place(found, n) for n in found.counts]
    bands = {model: found.settled.bands[model][SMALLEST] for model in held}
    ranked = [orders.ranks({model: float(band.middle[place]) for model, band in bands.items()}) for place in places]
    rows = [
        [
            model,
            *(band_text(bands[model].middle[p], bands[model].low[p], bands[model].high[p]) for p in places),
            " ".join(str(rank[model]) for rank in ranked),
            number_text(held[model].value),
            number_text(held[model].next),
            f"{held[model].rank} -> {held[model].rank_without or NOTHING}",
        ]
        for model in found.models
        if model in held
    ]
    sentence = (
        f"Minimal perturbation size (MPS) of n drawn samples: median and 5-95 % band of {found.settled.resamples} "
        "draws; ranks by these medians, 1 the largest size. Then the smallest and the next size of all samples, and "
        "how the model's rank changes if its nearest sample alone is left out."
    )
    head = ["model", *(f"n = {found.settled.n[place]}" for place in places), "ranks", "smallest", "next", "its rank"]
    return [*wrapped([sentence]), *table(head, rows)]


def agreement(found: Findings) -> list[str]:
    """How soon each measure has the order that all samples give."""
    found_orders = orders.same_order(
        found.distances, counts=found.counts, thresholds=(found.small, found.large), resamples=RESAMPLES, rng=_rng()
    )
    rows = [
        [
            "relative damage" if name == DAMAGE else name,
            f"{each.n_pairs} of {len(found.pairs)}",
            *(NOTHING if np.isnan(share) else f"{share:.0%}" for share in each.shares),
            *(_width(found, name, n) for n in found.counts),
        ]
        for name, each in found_orders.items()
    ]
    sentence = (
        "How soon does a measure settle? Pairs that it tells apart on all samples; the share of these that n drawn "
        f"samples put in the same order ({RESAMPLES} draws); the width of its 5-95 % band as a share of its "
        "middle (the median of the models)."
    )
    drawn = [found.settled.n[_place(found, n)] for n in found.counts]
    head = ["measure", "pairs", *(f"n = {n}" for n in found.counts), *(f"band, n = {n}" for n in drawn)]
    return [*wrapped([sentence]), *table(head, rows)]


def undecided(found: Findings) -> list[str]:
    """Pairs that are not told apart: what it would take, or which numbers stand against it."""
    open_ones = [pair for pair in decided_pairs(found.comparison, text=conflict_text) if pair.undecided]
    lines = [f"Relative damage leaves {len(open_ones)} of {counted(len(found.pairs), 'pair')} undecided."]
    rows = [
        [
            _both(pair.lower, pair.higher),
            str(found.comparison.difference(pair.lower, pair.higher)),
            f"{found.comparison.probability_lower(pair.lower, pair.higher):.0%}",
            _more(pair),
        ]
        for pair in open_ones
    ]
    lines += table(["pair", "difference", "first lower", "more samples to decide"], rows) if rows else []
    return lines + wrapped(text for pair in open_ones for text in (*pair.conflicts, *pair.obstacles))


def _more(pair: Pair) -> str:
    if pair.conflicts or pair.obstacles:
        return "not by samples"
    return "no number seen" if pair.more_samples is None else f"{pair.more_samples:,}"


def relative(found: Findings) -> list[str]:
    """What the other models do to the number and to the order."""
    without = orders.left_out(found.distances, rng=_rng())
    rows = [
        [model, f"{found.comparison.estimates[model].value:.3f}"]
        + [f"{rest[model]:.3f}" if model in rest else "" for rest in without.values()]
        for model in found.models
    ]
    lines = ["Relative damage depends on which models are compared: among all, and without one of them."]
    lines += table(["model", "among all", *(f"no {model}" for model in without)], rows)
    lines += wrapped(
        f"Without {change.dropped}, the order of {change.lower} and {change.higher} reverses."
        for change in found.comparison.order_changes
    ) or ["No single model that is left out turns the order of two others round."]
    lines += wrapped(
        f"The order of {lower} and {higher} depends on how equal distances are counted."
        for lower, higher in found.comparison.ties
    )
    return lines + _swaps(found)


def absolute(found: Findings) -> list[str]:
    """The same distances under curves that no model takes part in."""
    curves = given_curves(found.small, found.large)
    compared = {name: compare_damage(found.distances, curve, rng=_rng()) for name, curve in curves.items()}
    rows = [[model, *(str(each.estimates[model]) for each in compared.values())] for model in found.models]
    change = max(orders.largest_change(found.distances, curve, rng=_rng()) for curve in curves.values())
    turned = [pair for pair in found.pairs if len({_sign(each, *pair) for each in compared.values()} - {0}) > 1]
    sentence = (
        "Damage under given evasion curves: of a detector that sees every change above a size and no other, and of one "
        "that notices half of all changes of a size (a logistic curve)."
    )
    return [
        *wrapped([sentence]),
        *table(["model", *curves], rows),
        *wrapped(f"Undecided, {name}: {_named(_undecided(each, found))}." for name, each in compared.items()),
        f"Leaving out any one model changes these numbers by at most {change:g}.",
        *wrapped([f"Order depends on the curve: {_named(turned)}."]),
    ]


def given_curves(small: float, large: float) -> dict[str, Evasion]:
    """A detector with a limit, and one that notices half of all changes of a size, at each of two sizes."""
    limits: dict[str, Evasion] = {f"sees > {eps:.4g}": threshold(eps) for eps in (small, large)}
    return limits | {f"half at {eps:.4g}": half_noticed(eps) for eps in (small, large)}


def half_noticed(eps: float) -> FunctionEvasion:
    """Psi(s) = 1 / (1 + exp(5 (s/eps - 1))): 0.993 at 0, one half at eps, 0.007 at twice eps."""
    return FunctionEvasion(lambda sizes: 1 / (1 + np.exp(np.minimum(5 * (sizes / eps - 1), 700))))


# Rows and cells


def _decision_row(row: ModelDamage, found: Findings) -> list[str]:
    return [
        row.model,
        str(row.relative_damage),
        f"{row.clean_error_part:.3f}",
        NOTHING if row.probability_best is None else f"{row.probability_best:.1%}",
        NOTHING if row.clean_accuracy is None else f"{row.clean_accuracy.value:.1%}",
        *(f"{row.success_ratio[eps].value:.1%}" for eps in (found.small, found.large)),
        NOTHING if row.minimal_size is None else number_text(row.minimal_size.value),
        NOTHING if row.mean_size is None else size_text(row.mean_size.estimate),
    ]


def _swaps(found: Findings) -> list[str]:
    """Swaps that need more than one model left out are not among the comparison's own order changes."""
    swaps = orders.swaps(found.distances, rng=_rng())
    pairs = list(dict.fromkeys((swap.lower, swap.higher) for swap in swaps))
    n_pairs = counted(len(found.pairs), "pair")
    if not pairs:
        return [f"The order of 0 of {n_pairs} can be turned round by leaving out others."]
    rows = [[_both(s.lower, s.higher), str(s.before), str(s.after), ", ".join(s.dropped)] for s in swaps]
    votes = [orders.votes(found.distances, *pair) for pair in pairs]
    polled = [
        [_both(*pair), *(f"{row[model]:+.3f}" for model in found.models)]
        for pair, row in zip(pairs, votes, strict=True)
    ]
    return [
        f"The order of {len(pairs)} of {n_pairs} can be turned round by leaving out others.",
        "The smallest set that does it, and the one that does it most:",
        *table(["pair", "difference among all", "difference without", "those left out"], rows),
        "Each model's vote: the difference of the pair's ASR, averaged over sizes just below that model's distances.",
        "The mean of a row is the difference among all.",
        *table(["pair", *found.models], polled),
    ]


def _place(found: Findings, n: int) -> int:
    """Where the number of samples nearest to n stands."""
    return int(np.abs(found.settled.n - n).argmin())


def _width(found: Findings, name: str, n: int) -> str:
    place = _place(found, n)
    bands = [found.settled.bands[model][name] for model in found.models]
    widths = [(band.high[place] - band.low[place]) / band.middle[place] for band in bands if band.middle[place] > 0]
    return f"{np.median(widths):.0%}" if widths else NOTHING


def _both(one: str, other: str) -> str:
    return f"{one}, {other}"


def _paired(at: orders.Paired) -> list[str]:
    return [f"{at.ratios[0]:.1%}, {at.ratios[1]:.1%}", f"{at.only[0]}, {at.only[1]}"]


def _less(found: Findings, pair: orders.Disagreement) -> str:
    if found.comparison.undecided(pair.first, pair.second):
        return "undecided"
    return min((pair.first, pair.second), key=lambda model: found.comparison.estimates[model].value)


def _undecided(compared: EvasionComparison, found: Findings) -> list[tuple[str, str]]:
    return [pair for pair in found.pairs if compared.undecided(*pair)]


def _sign(compared: EvasionComparison, one: str, other: str) -> int:
    return int(np.sign(compared.estimates[one].value - compared.estimates[other].value))


def _named(pairs: Sequence[tuple[str, str]]) -> str:
    return "; ".join(_both(*pair) for pair in pairs) or "no pair"


def _rng() -> np.random.Generator:
    """The same draws for every section, so that each can be read without the others."""
    return np.random.default_rng(0)


SECTIONS = (decision, disagreement, smallest, agreement, undecided, relative, absolute)
