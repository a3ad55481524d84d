"""Failure modes with what is left to show of them: clean inputs beside those that made the model err."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from advrisk.assess.failures.modes import Failure, FailureMode, FailureModes
from advrisk.core.errors import LedgerError
from advrisk.core.names import counted
from advrisk.core.numbers import percent_text
from advrisk.core.pictures import UNIT, Bounds, png
from advrisk.ledger.inputs import cell_inputs, read_bounds, read_inputs, shard_inputs
from advrisk.ledger.storage import Storage
from advrisk.report.indicator_figures import loss_interval
from advrisk.risk.indicators.tensor import CLEAN

Array = npt.NDArray[Any]

MAX_MODELS = 6  # whose failures the report shows, least risk first
SHOWN = 6  # samples of each branch in the report
_NEARLY = 0.995
_FEATURES = 5  # of a table's row, the most changed first
NOT_KEPT = (
    "Pictures are missing where the perturbed input was not kept: `keep_inputs: successful` keeps those that are read "
    "wrongly, `keep_inputs: all` every one."
)


@dataclass(frozen=True)
class Change:
    """One feature of a row of a table."""

    feature: int
    before: float
    after: float


@dataclass(frozen=True)
class Exhibit:
    """One failure, and what is left to show of it."""

    failure: Failure
    caption: str
    original: Array | None
    perturbed: Array | None  # None where it was not kept, and for clean inputs
    bounds: Bounds = UNIT

    @property
    def pictures(self) -> tuple[str, ...]:
        """Addresses of the clean and the perturbed picture, as far as they are known."""
        images = [png(x, self.bounds) for x in (self.original, self.perturbed) if x is not None and is_image(x)]
        return tuple(f"data:image/png;base64,{b64encode(image).decode()}" for image in images)

    @property
    def n_changed(self) -> int:
        """Features of a row of a table that are not as they were."""
        if self.original is None or self.perturbed is None or is_image(self.original):
            return 0
        return int((self.original != self.perturbed).sum())

    @property
    def changes(self) -> tuple[Change, ...]:
        """Of a row of a table: the features that changed most, in units of what they were where that is not 0."""
        if not self.n_changed or self.original is None or self.perturbed is None:
            return ()
        before, after = (x.astype(np.float64).ravel() for x in (self.original, self.perturbed))
        moved = np.abs(after - before) / np.where(before == 0, 1.0, np.abs(before))
        order = np.argsort(-moved, kind="stable")[: min(_FEATURES, self.n_changed)]
        return tuple(Change(int(place), float(before[place]), float(after[place])) for place in order)


@dataclass(frozen=True)
class Sheet:
    """One branch of one model: its heading and its exhibits."""

    mode: FailureMode
    heading: str
    explanation: str
    exhibits: tuple[Exhibit, ...]

    @property
    def n_without_picture(self) -> int:
        return sum(one.perturbed is None and one.failure.arm != CLEAN for one in self.exhibits)

    @property
    def of_images(self) -> bool:
        """Whether there is something to look at."""
        return any(one.original is not None and is_image(one.original) for one in self.exhibits)


class _Store:
    """Inputs beside a ledger; each file is read once."""

    def __init__(self, storage: Storage) -> None:
        self._storage, self._read = storage, dict[Path, dict[str, Array]]()

    def original(self, failure: Failure) -> Array | None:
        return self._input(shard_inputs(self._storage.folder, failure.shard), failure.sample)

    def perturbed(self, failure: Failure) -> Array | None:
        return self._input(cell_inputs(self._storage.folder, failure.cell), failure.sample)

    def _input(self, path: Path, sample: str) -> Array | None:
        if path not in self._read:
            try:
                self._read[path] = read_inputs(self._storage.fetch(path))
            except LedgerError:  # not kept, or deleted
                self._read[path] = {}
        return self._read[path].get(sample)


def contact_sheets(storage: Storage, found: FailureModes) -> list[Sheet]:
    """Every failure mode with the inputs that were kept."""
    store, bounds = _Store(storage), read_bounds(storage.folder)
    sheets = []
    for mode in found.modes:
        exhibits = [
            Exhibit(one, caption(one), store.original(one), None if one.arm == CLEAN else store.perturbed(one), bounds)
            for one in mode.failures
        ]
        sheets.append(Sheet(mode, heading(mode, found), explanation(mode), tuple(exhibits)))
    return sheets


def failure_content(storage: Storage, found: Sequence[FailureModes]) -> dict[str, Any]:
    """What the template shows of failures."""
    sheets = [(one, contact_sheets(storage, one)) for one in found]
    return {
        "failures": [(one, {model: [s for s in all_ if s.mode.model == model] for model in one.models})
                     for one, all_ in sheets],
        "not_kept": NOT_KEPT if any(sheet.n_without_picture for _, all_ in sheets for sheet in all_) else "",
        "max_failing": MAX_MODELS,
    }  # fmt: skip


def caption(failure: Failure) -> str:
    """`7 read as 1, 98 %`."""
    if failure.outcome == "rejected":
        return "refused" if failure.label is None else f"{failure.label} refused"
    said = "read as " + ("something else" if failure.prediction is None else str(failure.prediction))
    if failure.label is not None:
        said = f"{failure.label} {said}"
    if failure.label is not None and failure.prediction == failure.label:
        said = f"{failure.label} read rightly"
    return said if failure.confidence is None else f"{said}, {_sure(failure.confidence)}"


def _sure(confidence: float) -> str:
    """Never 100 % where it was not."""
    return "> 99 %" if _NEARLY < confidence < 1 else percent_text(confidence)


def heading(mode: FailureMode, found: FailureModes) -> str:
    """`wet.rain: 40 % of the risk`."""
    name = "clean inputs" if mode.path == CLEAN else mode.path
    risk = loss_interval(mode.value, found.bounds)
    if mode.share is None:
        return f"{name}: mean loss {risk}"
    return f"{name}: {percent_text(mode.share)} of the risk, mean loss {risk}"


def explanation(mode: FailureMode) -> str:
    """How many samples it concerns."""
    told = f"{mode.n_hurt} of {counted(mode.n, 'sample')} have a loss here"
    if mode.path == CLEAN or mode.path.endswith(f".{CLEAN}"):
        return f"{told}, though nothing was done to them."
    return f"{told}, {mode.n_made_worse} of them a larger one than without it; these come first."


def is_image(x: Array) -> bool:
    """Gray or coloured, channels first."""
    return x.ndim == 3 and x.shape[0] in (1, 3) and min(x.shape[1:]) > 1


def losses_text(failure: Failure) -> str:
    """`1 (0.75 in the branch)`: of the answer, and of the sample under the whole branch where that differs."""
    if failure.loss == failure.branch_loss:
        return f"{failure.loss:.3g}"
    return f"{failure.loss:.3g} ({failure.branch_loss:.3g} in the branch)"
