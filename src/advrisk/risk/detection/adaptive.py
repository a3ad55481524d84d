"""Effect of adaptive arms on a detector: its performance with and without them on the same samples. Arrays only."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from advrisk.risk.detection.entries import Cut, Entry, Indices, Scored, Settings, entry_of, measured
from advrisk.risk.detection.groups import ADAPTIVE, NO_NORM, ArmGroup, ScoredArm, size_of
from advrisk.risk.detection.roc import Flags

NO_OTHER = "no other arm broke a sample"


@dataclass(frozen=True)
class AdaptiveEffect:
    """A group's performance without adaptive arms, with these alone, and with both.

    `without` and `together` use the same samples, those that the group's other arms broke. More arms can only lower a
    sample's least score, so `together` is never above `without`. `alone` uses the samples that the adaptive arms broke,
    which may be others.
    """

    label: str
    norm: str
    without: Entry  # the group in the table
    alone: Entry  # the adaptive arms alone
    together: Entry
    n_left_out: int  # samples without a verdict of some adaptive arm, which no entry counts as attacked

    @property
    def entries(self) -> dict[str, Entry]:
        """The three entries by name."""
        return {"without": self.without, "alone": self.alone, "together": self.together}


def adaptive_effects(
    scored: Scored, detector: str, groups: Sequence[ArmGroup], settings: Settings
) -> tuple[AdaptiveEffect, ...]:
    """Effects for each norm and size that has arms adapted to this detector."""
    adaptive = adaptive_arms(scored.arms, detector, groups)
    cuts = {label: _cuts(scored, _arms_of(label, groups), arms) for label, arms in adaptive.items()}
    rates = iter(measured(scored, [cut for of_label in cuts.values() for cut in of_label], settings) if cuts else [])
    effects = []
    for label, arms in adaptive.items():
        without, alone, together = (entry_of(cut, next(rates), settings) for cut in cuts[label])
        if together.auroc is None:
            together = replace(together, reason=NO_OTHER)
        norm = scored.arms[arms[0]].norm or NO_NORM
        effects.append(AdaptiveEffect(label, norm, without, alone, together, int((~_judged(scored, arms)).sum())))
    return tuple(effects)


def adaptive_arms(arms: Sequence[ScoredArm], detector: str, groups: Sequence[ArmGroup]) -> dict[str, Indices]:
    """Norm and size -> indices of the arms that are adapted to this detector."""
    indices: dict[str, list[int]] = {}
    for index, arm in enumerate(arms):
        if arm.family == ADAPTIVE and arm.against == detector:
            indices.setdefault(size_of(arm, groups), []).append(index)
    return {label: tuple(of_label) for label, of_label in indices.items()}


def _cuts(scored: Scored, usual: Indices, adaptive: Indices) -> tuple[Cut, Cut, Cut]:
    """The usual arms, the adaptive ones, and both on the samples of the first."""
    judged = _judged(scored, adaptive)
    without, alone, together = (Cut.of(scored, arms, judged) for arms in (usual, adaptive, (*usual, *adaptive)))
    return without, alone, replace(together, success=together.success & without.success.any(axis=0))


def _judged(scored: Scored, arms: Indices) -> Flags:
    """Samples on which all these arms gave a verdict."""
    return np.asarray(scored.verdicts[list(arms)].all(axis=0))


def _arms_of(label: str, groups: Sequence[ArmGroup]) -> Indices:
    return next((group.arms for group in groups if group.label == label), ())
