"""The usefulness of each arm of a run, from its ledger; `risk.envelope` compares each with the envelope of all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from advrisk.assess.attacks.black_box import black_box_leads
from advrisk.assess.damage.distances import ArmDistances, Distances, arm_distances
from advrisk.core.flags import BLACK_BOX
from advrisk.core.plain import InJson
from advrisk.core.tables import Columns, Row, Tabular
from advrisk.core.traits import Norm
from advrisk.ledger import EVALUATED_CELL, Ledger
from advrisk.risk.envelope import ArmOptimality, compared_arms, mean_of_models, most_useful_first, spare_arms


@dataclass(frozen=True)
class ArmComparison(Tabular):
    """Arms compared with their envelope, the most useful first."""

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

    in_json: ClassVar[InJson] = {
        **dict.fromkeys(("distances", "other_norms")),
        **{f"distances.{name}": name for name in ("norm", "n_unfinished", "n_without_verdict")},
        "by_model": "models",
    }

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return super().as_dict() | {"n_samples": len(self.distances.samples)}

    def rows(self) -> list[Row]:
        """Every arm of all models together, then of each model; and the families."""
        of_arms = [("arm", None, self.overall), *(("arm", model, found) for model, found in self.by_model.items())]
        return [
            {"kind": kind, "model": model, **vars(one), "flags": " ".join(one.flags)}
            | {"spare": one.name in self.spare if kind == "arm" else None}
            for kind, model, found in [*of_arms, ("family", None, self.families)]
            for one in found
        ]


def arm_optimality(ledger: Ledger, *, norm: Norm, arms: Sequence[str] | None = None) -> ArmComparison:
    """Compare every arm with the envelope of all; `arms` and left-out samples are as in `smallest_distances`."""
    found = arm_distances(ledger, norm=norm, arms=arms)
    names, models = found.envelope.arms, list(found.envelope.by_model)
    rows = compared_arms(found.distance, found.passes, names, models, _flags(ledger, found))
    is_spare = spare_arms(found.distance, found.passes)
    overall = mean_of_models(rows)
    order = most_useful_first(overall, is_spare)
    facts_by_arm = _facts(ledger)
    facts = [facts_by_arm[name] for name in names]
    spare = [index for index in order if is_spare[index]]
    return ArmComparison(
        distances=found.envelope,
        by_model={model: tuple(row[index] for index in order) for model, row in zip(models, rows, strict=True)},
        overall=tuple(overall[index] for index in order),
        families=_by_family(found, [fact["family"] for fact in facts]),
        spare=tuple(names[index] for index in spare),
        other_norms=tuple(sorted({facts[index]["norm"] for index in spare} - {norm, None})),
        n_passes=_total(found, range(len(names))),
        n_passes_spare=_total(found, spare),
    )


def _by_family(found: ArmDistances, of_arm: Sequence[str]) -> tuple[ArmOptimality, ...]:
    """Each family as one arm with the nearest success of its arms and all their passes."""
    names = sorted(set(of_arm))
    members = [[place for place, family in enumerate(of_arm) if family == name] for name in names]
    distance = np.stack([found.distance[:, places].min(1) for places in members], axis=1)
    passes = np.stack([found.passes[:, places].sum(1) for places in members], axis=1)
    rows = mean_of_models(compared_arms(distance, passes, names, list(found.envelope.by_model), {}))
    return tuple(sorted(rows, key=lambda row: -(row.optimality or 0.0)))


def _total(found: ArmDistances, arms: Sequence[int]) -> int | None:
    """The passes of these arms on all models and samples."""
    passes = found.passes[:, list(arms)].sum() * len(found.envelope.samples)
    return None if np.isnan(passes) else round(float(passes))


def _facts(ledger: Ledger) -> dict[str, dict[str, Any]]:
    """Family and norm of each arm."""
    rows = ledger.query("SELECT arm, coalesce(min(family), arm) AS family, min(norm) AS norm FROM arms GROUP BY arm")
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
