"""The question of attacks: the usefulness of each arm."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from advrisk.assess.attacks.envelope import ArmComparison, arm_optimality
from advrisk.assess.context import Context
from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.protocol import Assessment
from advrisk.core.flags import FLAGS
from advrisk.core.names import counted, listed
from advrisk.core.numbers import percent_text
from advrisk.core.sections import Cell, Column, Group, Headline, Section, Summary, Table, Text, Value, distinct_columns
from advrisk.risk.envelope import ArmOptimality
from advrisk.study import assessments
from advrisk.study.assess import AttacksSpec

_MEASURES = (
    Column("optimality", "number"),
    Column("nearest", "count"),
    Column("only", "count"),
    Column("lost without", "share"),
    Column("broken", "share"),
    Column("passes per sample", "count"),
)
_HOW = (
    "Optimality: 1 is as close as all arms together; 0 is no closer than the largest of their smallest distances.",
    "Nearest: samples where this arm came closest; only: where no other arm came as close.",
    "Lost without: how far all other arms together fall short of 1.",
)


@assessments.register("attacks")
class Attacks(Assessment):
    """Each arm against the smallest distances that all arms found together."""

    kind = ArmComparison

    def assess(self, context: Context, spec: AttacksSpec) -> ArmComparison:
        """Compare arms, by default in the norm of damage and with its arms."""
        return arm_optimality(context.ledger, norm=spec.norm or context.norm, arms=spec.arms or context.arms)

    def asked(self, context: Context) -> Mapping[str, Any] | None:
        """No options if damage has an answer; else None."""
        return {} if isinstance(context.attempt("damage"), DamageAssessment) else None

    def sections(self, result: ArmComparison, models: Sequence[str]) -> Iterable[Section]:
        """Every arm, the most useful first."""
        return sections(result, models)


def sections(found: ArmComparison, models: Sequence[str] = ()) -> Iterator[Section]:
    """Every arm, the most useful first."""
    del models
    first, *others = spare_words(found)
    yield Headline(first)
    yield Summary("drivers", (_nearest(found),))
    if others:
        yield Text(tuple(others))
    several = len(found.by_model) > 1
    notes = (*_HOW, *(["Counts are sums over the models, the rest are means."] if several else []))
    rows = tuple((_name(one, found), *_measured(one)) for one in found.overall)
    yield Table(f"Each arm against all of them, {found.distances.norm}", (Column("arm"), *_MEASURES), rows, notes)
    if flags := dict.fromkeys(flag for one in found.overall for flag in one.flags):
        yield Text(tuple(f"{flag}: {FLAGS.get(flag, '')}." for flag in flags), "Flags")
    if 1 < len(found.families) < len(found.overall):
        rows = tuple((one.name, *_measured(one)) for one in found.families)
        families = Table("Arms of a family taken as one", (Column("family"), *_MEASURES), rows)
        yield Group("By family", (families,), folded=True)
    if several:
        yield Group("Optimality for each model", (_by_model(found),), folded=True)


def _by_model(found: ArmComparison) -> Table:
    of_model = {model: {one.name: one.optimality for one in rows} for model, rows in found.by_model.items()}
    columns = distinct_columns([Column("arm"), *(Column(f"optimality, {model}", "number") for model in of_model)])
    rows = ((one.name, *(held[one.name] for held in of_model.values())) for one in found.overall)
    return Table("Optimality for each model", columns, tuple(rows))


def _name(one: ArmOptimality, found: ArmComparison) -> Value:
    spare = one.name in found.spare
    return Cell(one.name, (*(["could be dropped"] if spare else []), *one.flags), "spare" if spare else "")


def _measured(one: ArmOptimality) -> tuple[Value, ...]:
    return one.optimality, one.nearest, one.only, one.lost, one.broken, one.passes


def spare_words(found: ArmComparison) -> list[str]:
    """Which arms could be dropped and what that saves, and what to know before doing so."""
    norm, n_arms = found.distances.norm, len(found.overall)
    broken = any(one.nearest for one in found.overall)
    sentences = []
    if not broken:
        sentences.append("No sample was broken by attack, so nothing can be said about the arms.")
    elif found.overall[0].optimality is None:
        sentences.append("Every success lies at the same distance, so optimality says nothing here.")
    if found.spare:
        sentences += [
            f"{len(found.spare)} of {counted(n_arms, 'arm')} could be dropped together without changing any sample's "
            f"smallest {norm} distance{_saving(found)}: {', '.join(found.spare)}.",
            "That holds for these models and samples. Another assessment may need those arms.",
        ]
    elif broken:
        sentences.append(f"No arm could be dropped without changing some sample's smallest {norm} distance.")
    if found.other_norms:
        sentences.append(f"Some of those were made for {listed(found.other_norms)}: compare them in that norm, too.")
    return sentences + found.distances.left_out


def _nearest(found: ArmComparison) -> str:
    """The families that found the smallest changes."""
    broken = sum(int(((one > 0) & np.isfinite(one)).sum()) for one in found.distances.by_model.values())
    ranked = sorted((one for one in found.families if one.nearest), key=lambda one: -one.nearest)
    if not broken or not ranked:
        return "No sample was broken by an attack."
    shares = ", ".join(f"{one.name} {percent_text(one.nearest / broken)}" for one in ranked[:3])
    return f"Share of broken samples on which an attack found the smallest change (of equals, each counts): {shares}."


def _saving(found: ArmComparison) -> str:
    if not found.n_passes or found.n_passes_spare is None:
        return ""
    share = found.n_passes_spare / found.n_passes
    return f", which saves {found.n_passes_spare:,} of {found.n_passes:,} passes ({percent_text(share)})"
