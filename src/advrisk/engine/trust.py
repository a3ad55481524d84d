"""Signs that an attack did not work properly: reasons not to take its failures for robustness.

The probe records the merit of each sample's point, pass by pass; the shares follow from this record. They follow the
advice of Carlini et al. 2019 (arXiv:1902.06705) and Pintor et al. 2022 (arXiv:2106.09947).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

EARLY = 0.75  # passes after this share of a sample's passes are late
GAIN = 0.05  # a late gain counts if it is more than this share of the whole climb
CLOSER = 0.05  # a late success counts if it is nearer by more than this share of the distance
FEWEST = 8  # samples with fewer passes do not count for late gains


@dataclass(frozen=True)
class Trust:
    """Shares of an attack's gradients or samples; None where undefined.

    `zero_gradients`: of all gradients, those that were zero in every feature.
    `not_increasing`: of the samples that resisted, those whose objective never rose above its first value.
    `still_gaining`: of the samples with enough queries, those not converged: the objective of a sample that resisted,
    or the distance of one whose smallest perturbation is sought, still improved late.
    `no_start`: of all samples, those without a starting point; the other shares leave them out. None if all have one.
    """

    zero_gradients: float | None = None
    not_increasing: float | None = None
    still_gaining: float | None = None
    no_start: float | None = None


@dataclass
class Trace:
    """The merits of all queried points in the order of the queries, and a count of zero gradients."""

    rows: list[Tensor] = field(default_factory=list)
    merits: list[Tensor] = field(default_factory=list)
    successes: list[Tensor] = field(default_factory=list)
    n_gradients: int = 0
    n_zero: int = 0

    def note(self, rows: Tensor, merit: Tensor, success: Tensor) -> None:
        self.rows.append(rows.clone())  # the attack may write other numbers into its tensor
        self.merits.append(merit)
        self.successes.append(success)

    def note_slope(self, slope: Tensor) -> None:
        flat = slope.flatten(1)
        zero = flat.sum(1) == 0  # a quick check: slopes that only cancel out are excluded below
        if bool(zero.any()):
            self.n_zero += int((~flat[zero].any(1)).sum())
        self.n_gradients += len(flat)

    def trust(self, *, smallest: bool, no_start: Tensor | None = None) -> Trust:
        """The shares; with `smallest`, the merit of a success is its nearness, not its objective.

        `no_start` marks the samples without a starting point.
        """
        samples = self._samples(no_start)
        resisted = [values for values, hits in samples if not hits.any() and np.isfinite(values).all()]
        late = [_gains_late(values) for values in resisted if len(values) >= FEWEST]
        if smallest:
            late += [_nears_late(-values, hits) for values, hits in samples if _succeeds_early(hits)]
        return Trust(
            zero_gradients=self.n_zero / self.n_gradients if self.n_gradients else None,
            not_increasing=_share([values.max() <= values[0] for values in resisted]),
            still_gaining=_share(late),
            no_start=None if no_start is None or not bool(no_start.any()) else _share(no_start.tolist()),
        )

    def _samples(self, no_start: Tensor | None) -> list[tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]]:
        """The merits and successes of each sample with a query within eps and a starting point."""
        if not self.rows:
            return []
        rows, merit, success = (torch.cat(part).cpu().numpy() for part in (self.rows, self.merits, self.successes))
        if no_start is not None:
            begun = ~no_start.cpu().numpy()[rows]
            rows, merit, success = rows[begun], merit[begun], success[begun]
        if not len(rows):
            return []
        order = np.argsort(rows, kind="stable")
        ends = np.flatnonzero(np.diff(rows[order])) + 1
        return list(zip(np.split(merit[order], ends), np.split(success[order], ends), strict=True))


def _share(marks: Sequence[bool]) -> float | None:
    return float(np.mean(marks)) if len(marks) else None


def _gains_late(values: npt.NDArray[np.float32]) -> bool:
    early, best = values[: int(EARLY * len(values))].max(), values.max()
    return bool(best - early > GAIN * (best - values[0]))


def _succeeds_early(hits: npt.NDArray[np.bool_]) -> bool:
    return len(hits) >= FEWEST and bool(hits[: int(EARLY * len(hits))].any())


def _nears_late(distances: npt.NDArray[np.float32], hits: npt.NDArray[np.bool_]) -> bool:
    early = int(EARLY * len(hits))
    return bool(distances[hits].min() < (1 - CLOSER) * distances[:early][hits[:early]].min())
