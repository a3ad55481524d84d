"""What is left of a detector once attackers know it: with their arms and without, on the same samples. Arrays only."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from advrisk.risk.detection.entries import Cut, Entry, Places, Scored, Settings, entry_of, measured
from advrisk.risk.detection.groups import ADAPTIVE, NO_NORM, ArmGroup, ScoredArm, size_of
from advrisk.risk.detection.roc import Flags

NO_OTHER = "no other arm broke a sample"


@dataclass(frozen=True)
class AdaptiveEffect:
    """What is left of a group's AUROC once attackers know the detector.

    `without` and `together` rest on the same samples, those that the group's other arms broke: a sample's least score
    can but fall as arms are added, so `together` is never above `without`. `alone` rests on the samples that the
    adaptive arms broke themselves, which may be others.
    """

    label: str
    norm: str
    without: Entry  # the group as it stands in the table
    alone: Entry  # the adaptive arms alone
    together: Entry
    n_left_out: int  # samples on which some adaptive arm gave no verdict: no entry counts them as attacked

    @property
    def entries(self) -> dict[str, Entry]:
        """The three, by name."""
        return {"without": self.without, "alone": self.alone, "together": self.together}


def adaptive_effects(
    scored: Scored, detector: str, groups: Sequence[ArmGroup], settings: Settings
) -> tuple[AdaptiveEffect, ...]:
    """One for each norm and size at which arms know this detector."""
    adaptive = adaptive_arms(scored.arms, detector, groups)
    cuts = {label: _cuts(scored, _arms_like(label, groups), arms) for label, arms in adaptive.items()}
    found = iter(measured(scored, [cut for of_label in cuts.values() for cut in of_label], settings) if cuts else [])
    made = []
    for label, arms in adaptive.items():
        without, alone, together = (entry_of(cut, next(found), settings) for cut in cuts[label])
        if together.auroc is None:
            together = replace(together, reason=NO_OTHER)
        norm = scored.arms[arms[0]].norm or NO_NORM
        made.append(AdaptiveEffect(label, norm, without, alone, together, int((~_judged(scored, arms)).sum())))
    return tuple(made)


def adaptive_arms(arms: Sequence[ScoredArm], detector: str, groups: Sequence[ArmGroup]) -> dict[str, Places]:
    """Norm and size -> the adaptive arms against this detector."""
    found: dict[str, list[int]] = {}
    for place, arm in enumerate(arms):
        if arm.family == ADAPTIVE and arm.against == detector:
            found.setdefault(size_of(arm, groups), []).append(place)
    return {label: tuple(places) for label, places in found.items()}


def _cuts(scored: Scored, usual: Places, knowing: Places) -> tuple[Cut, Cut, Cut]:
    """Without the arms that know, these alone, and both on the samples of the first."""
    judged = _judged(scored, knowing)
    without, alone, together = (Cut.of(scored, arms, judged) for arms in (usual, knowing, (*usual, *knowing)))
    return without, alone, replace(together, success=together.success & without.success.any(axis=0))


def _judged(scored: Scored, knowing: Places) -> Flags:
    """The samples on which all these arms gave a verdict."""
    return np.asarray(scored.verdicts[list(knowing)].all(axis=0))


def _arms_like(label: str, groups: Sequence[ArmGroup]) -> Places:
    return next((group.arms for group in groups if group.label == label), ())
