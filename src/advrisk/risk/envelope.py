"""Which arms earn their passes: each arm's distances against the envelope, the smallest that any arm found.

Optimality is measured as AttackBench does (Cinà et al. 2024, arXiv:2404.19460). The robust accuracy of arm a at ε is
the share of samples that it did not break within ε, ρ_a(ε) = #{i: d_i > ε} / n; ρ* is that of the envelope, ρ_0 the
clean accuracy, which is what an attack that never succeeds leaves. Then

    ξ_a = 1 − ∫ (ρ_a − ρ*) dε / ∫ (ρ_0 − ρ*) dε,    both from 0 to ε0.

The area under a curve of steps is a sum, n ∫ ρ_a dε = Σ_i min(d_i, ε0), so that over the samples with d*_i > 0

    ξ_a = Σ_i (ε0 − min(d_i, ε0)) / Σ_i (ε0 − min(d*_i, ε0)).

Where this differs from the paper:
- ε0 is there the ε at which the envelope reaches zero. Where samples resist every arm there is none; here it is the
  largest finite distance of the envelope, which is the same thing where all are broken.
- The authors' program joins the steps by straight lines; here the area is exact.
- Where nothing is broken, or everything at one and the same distance, both areas are empty: ξ is undefined (None).
- The envelope is that of the run's own arms, and ε0 with it. So ξ compares these arms with each other; the same arm
  among other arms has another ξ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from advrisk.core.flags import BLACK_BOX
from advrisk.core.plain import plain
from advrisk.core.tables import Columns, Row, Tabular
from advrisk.ledger import EVALUATED_CELL, Ledger
from advrisk.risk.black_box import black_box_leads
from advrisk.risk.distances import ArmDistances, Distances, arm_distances
from advrisk.study import Norm

ROUNDING = 1e-6  # distances that differ by less, relatively, are equal

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ArmOptimality:
    """What one arm (or all arms of a family) found of one model, or of all models together.

    Of all models, shares and passes are means and counts are sums. `nearest` and `only` count samples that were broken
    by attack, not those that were wrong from the start.
    """

    name: str
    broken: float  # share of samples, with those that were wrong from the start
    passes: float | None  # forward and backward per sample, the judge's not counted; None where nobody counted
    optimality: float | None
    nearest: int  # samples of which it found the smallest distance, alone or with others
    only: int  # samples whose smallest distance would grow without it
    lost: float | None  # how much optimality all arms together would lose without it
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class ArmComparison(Tabular):
    """Arms held against their envelope, the most useful first."""

    distances: Distances
    by_model: Mapping[str, tuple[ArmOptimality, ...]]
    overall: tuple[ArmOptimality, ...]
    families: tuple[ArmOptimality, ...]  # over all models; each family's arms taken together
    spare: tuple[str, ...]  # could go, all at once, and no smallest distance would change
    other_norms: tuple[str, ...]  # norms that spare arms were made for, other than the one compared in
    n_passes: int | None  # of all arms, models and samples compared
    n_passes_spare: int | None  # of these, what the spare arms took

    columns: ClassVar[Columns] = {
        "kind": "text",  # arm or family
        "model": "text",  # None: all models together
        "name": "text",
        "broken": "number",
        "passes": "number",
        "optimality": "number",
        "nearest": "count",
        "only": "count",
        "lost": "number",
        "flags": "text",
        "spare": "flag",
    }

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        told = {
            "norm": self.distances.norm,
            "n_samples": len(self.distances.samples),
            "n_unfinished": self.distances.n_unfinished,
            "n_without_verdict": self.distances.n_without_verdict,
            "overall": [asdict(row) for row in self.overall],
            "families": [asdict(row) for row in self.families],
            "models": {model: [asdict(row) for row in rows] for model, rows in self.by_model.items()},
            "spare": list(self.spare),
            "n_passes": self.n_passes,
            "n_passes_spare": self.n_passes_spare,
        }
        return dict(plain(told))

    def rows(self) -> list[Row]:
        """Every arm of all models together, then of each model; and the families."""
        told = [("arm", None, self.overall), *(("arm", model, found) for model, found in self.by_model.items())]
        return [
            {"kind": kind, "model": model, **vars(one), "flags": " ".join(one.flags)}
            | {"spare": one.name in self.spare if kind == "arm" else None}
            for kind, model, found in [*told, ("family", None, self.families)]
            for one in found
        ]


def arm_optimality(ledger: Ledger, *, norm: Norm, arms: Sequence[str] | None = None) -> ArmComparison:
    """Hold every arm against the envelope of all; `arms` and what is left out are as in `smallest_distances`."""
    found = arm_distances(ledger, norm=norm, arms=arms)
    names, models = found.envelope.arms, list(found.envelope.by_model)
    rows = _compare(found.distance, found.passes, names, models, _flags(ledger, found))
    is_spare = spare_arms(found.distance, found.passes)
    overall = _mean_of(rows)
    order = _most_useful_first(overall, is_spare)
    known = _facts(ledger)
    facts = [known[name] for name in names]
    spare = [place for place in order if is_spare[place]]
    return ArmComparison(
        distances=found.envelope,
        by_model={model: tuple(row[place] for place in order) for model, row in zip(models, rows, strict=True)},
        overall=tuple(overall[place] for place in order),
        families=_by_family(found, [fact["family"] for fact in facts]),
        spare=tuple(names[place] for place in spare),
        other_norms=tuple(sorted({facts[place]["norm"] for place in spare} - {norm, None})),
        n_passes=_total(found, range(len(names))),
        n_passes_spare=_total(found, spare),
    )


def optimality(distances: Array, envelope: Array) -> float | None:
    """ξ of one arm against the envelope of all; see the top of this file."""
    broken = envelope[(envelope > 0) & (envelope < np.inf)]
    if not broken.size or np.ptp(broken) <= ROUNDING * broken.max():
        return None
    reach, right = broken.max(), envelope > 0
    gained = reach - np.minimum(distances[right], reach)
    possible = reach - np.minimum(envelope[right], reach)
    return float(gained.sum() / possible.sum())


def spare_arms(distance: Array, passes: Array) -> NDArray[np.bool_]:
    """Arms that can all go at once without changing a smallest distance, of (models, arms, samples).

    They are tried one by one, those with the most passes first. Where two arms found the same, one of them stays.
    """
    envelope = distance.min(1)
    spare = np.zeros(distance.shape[1], dtype=bool)
    if not ((envelope > 0) & (envelope < np.inf)).any():
        return spare  # nothing was broken: that says nothing about any arm
    for place in np.argsort(-np.nan_to_num(passes.mean(0)), kind="stable"):
        spare[place] = True
        if not _same(distance[:, ~spare].min(1, initial=np.inf), envelope).all():
            spare[place] = False
    return spare


def without_each(distances: Array) -> Array:
    """The envelope without each arm in turn, of (arms, samples)."""
    if len(distances) == 1:
        return np.full(distances.shape, np.inf)
    smallest, second = np.partition(distances, 1, axis=0)[:2]
    without: Array = np.where(distances == smallest, second, smallest)  # of two that tie, second is smallest
    return without


def _same(distance: Array, envelope: Array) -> NDArray[np.bool_]:
    return distance <= envelope * (1 + ROUNDING)


def _compare(
    distance: Array,
    passes: Array,
    names: Sequence[str],
    models: Sequence[str],
    flags: Mapping[tuple[str, str], tuple[str, ...]],
) -> list[list[ArmOptimality]]:
    """For each model, a row for each of the names."""
    return [
        [
            _row(name, arm, without, of_model.min(0), passes[m, a], flags.get((model, name), ()))
            for a, (name, arm, without) in enumerate(zip(names, of_model, without_each(of_model), strict=True))
        ]
        for m, (model, of_model) in enumerate(zip(models, distance, strict=True))
    ]


def _row(
    name: str, arm: Array, without: Array, envelope: Array, passes: float, flags: tuple[str, ...]
) -> ArmOptimality:
    attacked = (envelope > 0) & (envelope < np.inf)
    left = optimality(without, envelope)
    return ArmOptimality(
        name=name,
        broken=float(np.isfinite(arm).mean()),
        passes=None if np.isnan(passes) else float(passes),
        optimality=optimality(arm, envelope),
        nearest=int((_same(arm, envelope) & attacked).sum()),
        only=int((~_same(without, envelope) & attacked).sum()),
        lost=None if left is None else 1 - left,
        flags=flags,
    )


def _mean_of(by_model: Sequence[Sequence[ArmOptimality]]) -> tuple[ArmOptimality, ...]:
    """The rows of all models in one: means of shares, sums of counts, every flag."""
    return tuple(
        ArmOptimality(
            name=rows[0].name,
            broken=float(np.mean([row.broken for row in rows])),
            passes=_mean([row.passes for row in rows]),
            optimality=_mean([row.optimality for row in rows]),
            nearest=sum(row.nearest for row in rows),
            only=sum(row.only for row in rows),
            lost=_mean([row.lost for row in rows]),
            flags=tuple(dict.fromkeys(flag for row in rows for flag in row.flags)),
        )
        for rows in zip(*by_model, strict=True)
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """Over the models of which it is known; AttackBench's global optimality."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _by_family(found: ArmDistances, of_arm: Sequence[str]) -> tuple[ArmOptimality, ...]:
    """Families as if each were one arm that keeps the nearest success of its arms, and takes all their passes."""
    names = sorted(set(of_arm))
    members = [[place for place, family in enumerate(of_arm) if family == name] for name in names]
    distance = np.stack([found.distance[:, places].min(1) for places in members], axis=1)
    passes = np.stack([found.passes[:, places].sum(1) for places in members], axis=1)
    rows = _mean_of(_compare(distance, passes, names, list(found.envelope.by_model), {}))
    return tuple(sorted(rows, key=lambda row: -(row.optimality or 0.0)))


def _most_useful_first(rows: Sequence[ArmOptimality], spare: NDArray[np.bool_]) -> list[int]:
    """Spare arms last; otherwise by optimality, and of equal ones the cheaper first."""

    def key(place: int) -> tuple[bool, float, int, float]:
        row = rows[place]
        return bool(spare[place]), -(row.optimality or 0.0), -row.only, row.passes or 0.0

    return sorted(range(len(rows)), key=key)


def _total(found: ArmDistances, arms: Sequence[int]) -> int | None:
    """The passes of these arms on all models and samples."""
    passes = found.passes[:, list(arms)].sum() * len(found.envelope.samples)
    return None if np.isnan(passes) else round(float(passes))


def _facts(ledger: Ledger) -> dict[str, dict[str, Any]]:
    """Family and norm of each arm."""
    rows = ledger.query(
        "SELECT arm, any_value(coalesce(family, arm)) AS family, any_value(norm) AS norm FROM arms GROUP BY arm"
    )
    return {row["arm"]: row for row in rows.to_pylist()}


def _flags(ledger: Ledger, found: ArmDistances) -> dict[tuple[str, str], tuple[str, ...]]:
    """The flags of each model's arms: those of their cells, and that of black-box attacks that did better."""
    rows = ledger.query(
        f"SELECT DISTINCT model, arm, unnest(flags) AS flag FROM cells WHERE {EVALUATED_CELL} ORDER BY ALL"
    ).to_pylist()
    raised = [(row["model"], row["arm"], row["flag"]) for row in rows]
    raised += [(lead.model, lead.arm, BLACK_BOX) for lead in black_box_leads(ledger, found)]
    flags: dict[tuple[str, str], tuple[str, ...]] = {}
    for model, arm, flag in raised:
        flags[model, arm] = (*flags.get((model, arm), ()), flag)
    return flags
