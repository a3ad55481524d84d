"""The sections of `studies.detection`: each takes what is known of one model of a run and gives lines of text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from advrisk import Run
from advrisk.assess.detection.assessment import DetectorPair
from advrisk.core.estimate import Estimate
from advrisk.core.names import counted
from advrisk.risk.detection.adaptive import AdaptiveEffect
from advrisk.risk.detection.arms import ArmDefeat
from advrisk.risk.detection.entries import Entry
from advrisk.risk.detection.groups import MULTI_ARMED as MULTI
from studies.detection_damage import damage, learned, short
from studies.text import NOTHING, table, wrapped

OBJECTIVES = {"ace": "ACE", "kl": "KL", "fisher-rao": "Fisher-Rao", "gini": "Gini"}  # in the paper's order


@dataclass(frozen=True)
class Group:
    """Arms of one norm and size."""

    name: str
    entry: Entry  # all arms of it together; the same for every detector but for the scores


@dataclass(frozen=True)
class Judged:
    """One detector."""

    detector: str
    columns: Mapping[str, Entry]  # objective, and MULTI -> average over norms
    norms: Mapping[str, Entry]  # norm -> average over its groups, all arms together
    oftenest: ArmDefeat | None  # the arm that defeats it on most samples
    cheapest: ArmDefeat | None  # and the one with the fewest passes for each
    survival: tuple[AdaptiveEffect, ...] = ()

    @property
    def name(self) -> str:
        return short(self.detector)

    @property
    def single(self) -> dict[str, float]:
        """Objective -> AUROC, where there is one."""
        return {name: entry.auroc.value for name, entry in self.columns.items() if name != MULTI and entry.auroc}

    @property
    def worst_single(self) -> str | None:
        return min(self.single, key=self.single.__getitem__) if self.single else None

    @property
    def fall(self) -> float | None:
        """From the best single-armed AUROC to the multi-armed one."""
        multi = self.columns[MULTI].auroc
        return max(self.single.values()) - multi.value if self.single and multi else None


@dataclass(frozen=True, eq=False)
class Findings:
    """One model of a run."""

    name: str  # of the study
    run: Run
    model: str
    n: int  # samples
    accuracy: float
    groups: tuple[Group, ...]
    judged: tuple[Judged, ...]  # best first
    pairs: tuple[DetectorPair, ...] = ()
    notes: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)  # group -> which columns lack it: in no average

    @property
    def detectors(self) -> list[str]:
        return [each.detector for each in self.judged]

    @property
    def knowing(self) -> bool:
        """Whether some arms know a detector."""
        return any(each.survival for each in self.judged)


def lines_of(found: Findings) -> list[str]:
    """All sections."""
    n = counted(found.n, "sample")
    head = f"{found.name}: {found.model}, {n}, {found.accuracy:.1%} classified correctly"
    lines = [head, "=" * len(head)]
    for section in (averages, by_norm, counts, defeats, survivals, damages, learning):
        if told := section(found):
            lines += ["", *told]
    return [*lines, *(["", *wrapped(found.notes)] if found.notes else []), ""]


def averages(found: Findings) -> list[str]:
    """The paper's Table 3, last rows: averages over the norms."""
    names = [*(name for name in OBJECTIVES if name in found.judged[0].columns), MULTI]
    head = ["detector", *(OBJECTIVES.get(name, name) for name in names)]
    auroc = [[each.name, *(_text(each.columns[name].auroc) for name in names)] for each in found.judged]
    alarms = [[each.name, *(_text(each.columns[name].fpr_at_tpr) for name in names)] for each in found.judged]
    guessed = [found.judged[0].columns[name] for name in names]  # arms and successes are the same for all detectors
    return [
        *wrapped([f"AUROC, averaged over the sizes of a norm and then over the norms{_of_groups(found)}:"]),
        *table(head, [*auroc, ["(chance)", *(_number(entry.chance_auroc) for entry in guessed)]]),
        "",
        "FPR@95, averaged in the same way:",
        *table(head, [*alarms, ["(chance)", *(_number(entry.chance_fpr) for entry in guessed)]]),
        *wrapped(told(found)),
    ]


def _of_groups(found: Findings) -> str:
    """Averages compare columns on the groups that all of them have."""
    if not found.left_out:
        return ""
    n = len(found.groups)
    reasons = "; ".join(f"{label} ({reason})" for label, reason in found.left_out.items())
    return f", in the {n - len(found.left_out)} of {n} groups that every column has (left out: {reasons})"


def told(found: Findings) -> list[str]:
    """The averages in words."""
    sentences = []
    falls = {each.name: each.fall for each in found.judged if each.fall is not None}
    if falls and max(falls.values()) > 0:
        most = max(falls, key=falls.__getitem__)
        sentences.append(f"Falls most, from its best objective to all arms together: {most}, by {falls[most]:.3f}.")
    for each in found.judged:
        worst, multi = each.worst_single, each.columns[MULTI].auroc
        if worst is not None and multi is not None:
            below = "below" if multi.value < each.single[worst] else "not below"
            sentences.append(
                f"{each.name}: least against {OBJECTIVES.get(worst, worst)} ({each.single[worst]:.3f}; most against "
                f"{_best(each)}); multi-armed ({multi.value:.3f}) is {below} the least."
            )
    open_ = [f"{short(pair.better)} and {short(pair.worse)}" for pair in found.pairs if pair.undecided]
    if found.pairs:
        sentences.append(f"Not told apart by these samples, multi-armed: {'; '.join(open_) or 'no two detectors'}.")
    return sentences


def by_norm(found: Findings) -> list[str]:
    """Multi-armed, norm by norm."""
    names = list(found.judged[0].norms)
    rows = [[each.name, *(_text(each.norms[name].auroc) for name in names)] for each in found.judged]
    chance = ["(chance)", *(_number(found.judged[0].norms[name].chance_auroc) for name in names)]
    return [
        "AUROC against all arms of a norm together, averaged over its sizes:",
        *table(["detector", *names], [*rows, chance]),
    ]


def counts(found: Findings) -> list[str]:
    """The paper's Table 4: how many arms succeed on a sample."""
    rows = [
        [
            group.name,
            str(group.entry.n_arms),
            str(group.entry.n_attackable),
            str(group.entry.n_broken),
            f"{group.entry.successes:.2f}",
            f"{group.entry.successes_paper:.2f}",
        ]
        for group in found.groups
    ]
    sentence = (
        "Arms of each norm and size, samples that could be attacked and that at least one arm broke, and arms that "
        "succeed on a sample (mean): of attackable samples, and as the paper counts, natural errors included:"
    )
    head = ["group", "arms", "attackable", "broken", "successful arms", "paper's count"]
    return [*wrapped([sentence]), *table(head, rows)]


def defeats(found: Findings) -> list[str]:
    """Which arm gets past a detector."""
    rows = [
        [each.name, *_defeat(each.oftenest), *_defeat(each.cheapest)]
        for each in found.judged
        if each.oftenest or each.cheapest
    ]
    if not rows:
        return []
    sentence = (
        "The arm that breaks most samples unseen (threshold: 5 % false alarms), and the one that needs the fewest "
        "passes for each: share of attackable samples, and passes for each sample broken unseen."
    )
    head = ["detector", "most often", "unseen", "passes", "cheapest", "unseen", "passes"]
    return [*wrapped([sentence]), *table(head, rows)]


def survivals(found: Findings) -> list[str]:
    """What is left once the attacker knows the detector."""
    rows = [
        [each.name, kept.label, *(_text(entry.auroc) for entry in (kept.without, kept.together, kept.alone))]
        for each in found.judged
        for kept in each.survival
    ]
    if not rows:
        return []
    sentence = (
        "AUROC once the attacker knows the detector: without such arms and together with them, both on the samples "
        "that the other arms broke; and of these arms alone, on the samples that they broke."
    )
    return [*wrapped([sentence]), *table(["detector", "group", "without", "together", "knowing"], rows)]


def damages(found: Findings) -> list[str]:
    return damage(found.run, found.model, found.detectors)


def learning(found: Findings) -> list[str]:
    return learned(found.run.folder, found.model, found.detectors)


def compared(all_found: Sequence[Findings]) -> list[str]:
    """The paper's claims, and what the runs say of each."""
    usual = [found for found in all_found if not found.knowing]
    judged = [(found, each) for found in usual for each in found.judged if each.columns[MULTI].auroc and each.single]
    known = [line for found in all_found for line in _known(found)]
    if not judged:
        return known or ["No finished run yet."]
    below = [each for _, each in judged if _multi(each) < min(each.single.values())]
    near = [each for _, each in judged if (chance := each.columns[MULTI].chance_auroc) and _multi(each) <= chance + 0.1]
    lines = [
        f"- **A single attack is too optimistic.** All arms together leave less than the worst objective alone in "
        f"{len(below)} of {len(judged)} pairs of network and detector; the mean fall from the best objective is "
        f"{sum(each.fall or 0.0 for _, each in judged) / len(judged):.3f}.",
        f"- **Poor against all.** The multi-armed AUROC is below 0.5 in {sum(_multi(e) < 0.5 for _, e in judged)} of "
        f"{len(judged)} pairs, and at most 0.1 above chance in {len(near)}.",
    ]
    lines += [_best_and_falling(found) for found in usual if any(f is found for f, _ in judged)]
    hurt = {name: sum(each.worst_single == name for _, each in judged) for name in OBJECTIVES}
    lines.append(
        "- **Which objective hurts.** The worst single-armed column is "
        + ", ".join(f"{OBJECTIVES[name]} for {n}" for name, n in hurt.items())
        + f" of {len(judged)}."
    )
    return lines + known


def _known(found: Findings) -> list[str]:
    """What is left of each detector once the attacker knows it."""
    told = [
        f"{each.name} {_kept(kept.without.auroc.value, kept.together.auroc.value)}"
        for each in found.judged
        for kept in each.survival
        if kept.without.auroc and kept.together.auroc
    ]
    if not told:
        return []
    where = "AUROC on the samples that other arms broke"
    return [f"- **Attackers who know the detector** (`{found.name}`): {where}: {', '.join(told)}."]


def _kept(without: float, together: float) -> str:
    before, after = f"{without:.3f}", f"{together:.3f}"
    return f"stays at {after}" if before == after else f"falls from {before} to {after}"


def _best_and_falling(found: Findings) -> str:
    judged = [each for each in found.judged if each.columns[MULTI].auroc and each.single]
    best, most = max(judged, key=_multi), max(judged, key=lambda each: each.fall or 0.0)
    fall = f"{most.name} falls most, from {max(most.single.values()):.3f} to {_multi(most):.3f}"
    told = fall if most.fall and most.fall > 0 else "no detector is below its best objective"
    return f"- `{found.name}`: the best against all arms is {best.name} ({_multi(best):.3f}); {told}."


def _best(each: Judged) -> str:
    best = max(each.single, key=each.single.__getitem__)
    return f"{OBJECTIVES.get(best, best)}, {each.single[best]:.3f}"


def _multi(each: Judged) -> float:
    found = each.columns[MULTI].auroc
    return found.value if found else float("nan")


def _text(estimate: Estimate | None) -> str:
    return NOTHING if estimate is None else str(estimate)


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"


def _defeat(found: ArmDefeat | None) -> list[str]:
    if found is None:
        return [NOTHING] * 3
    passes = NOTHING if found.passes_per_unseen is None else f"{found.passes_per_unseen:,.0f}"
    arm = found.arm.partition(",detector=")[0].removesuffix(",keep=last")  # of the arms that know one, its own alone
    return [arm, f"{found.unseen.value:.1%}", passes]
