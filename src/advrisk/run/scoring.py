"""Letting detectors score inputs: the kept successes of every arm, and the clean inputs of every model.

Only what is not scored yet, so that a detector that is added later attacks nothing again. Rows go to the table
`scores` under the cell they belong to. Samples to calibrate are in no cell; theirs stand under the recipe of the
model's clean arm.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from advrisk.core.errors import AdvriskError, RunError
from advrisk.core.names import counted, did_you_mean
from advrisk.engine import Model
from advrisk.engine.threads import one_thread
from advrisk.ledger import Ledger, constant, table_from
from advrisk.ledger.inputs import cell_inputs, read_inputs
from advrisk.parts.detectors import Detector
from advrisk.plan import Plan, detector_id, expand_detectors
from advrisk.run.bench import Workbench
from advrisk.run.question import splits
from advrisk.study import StudySpec

N_FIXED_INPUTS = 8
_ROWS = 256  # scored at a time

# Rows that a detector has not scored: successes, and clean inputs, by cell.
_UNSCORED = """
    SELECT o.cell, any_value(o.model) AS model, any_value(o.arm) AS arm, any_value(o.kind) <> 'clean' AS perturbed,
           list(o.sample ORDER BY o.sample) AS samples
    FROM outcomes o
    JOIN arms a ON a.model = o.model AND a.arm = o.arm AND a.origin = 'study'
    ANTI JOIN (SELECT cell, sample FROM scores WHERE detector = $detector) s ON s.cell = o.cell AND s.sample = o.sample
    WHERE CASE o.kind WHEN 'clean' THEN o.outcome NOT IN ('error', 'timeout') ELSE o.outcome = 'success' END
    GROUP BY o.cell
    ORDER BY perturbed, o.cell
"""

_UNCALIBRATED = """
    SELECT recipe AS cell, min(model) AS model,
           (SELECT coalesce(list(sample), []) FROM scores s WHERE s.cell = recipe AND detector = $detector) AS scored
    FROM arms WHERE kind = 'clean' AND origin = 'study' GROUP BY recipe ORDER BY model
"""


class Scores(Protocol):
    """Any object of a user's that scores inputs: an array in, one number for each row out."""

    def score(self, x: NDArray[np.float32], /) -> Any: ...


@dataclass(frozen=True)
class Scorer:
    """A detector that is ready to score, and its name in the ledger."""

    id: str
    detector: Detector


@dataclass(frozen=True)
class Batch:
    """Inputs to one model that one detector has not scored yet."""

    scorer: Scorer
    cell: str  # what their rows stand under
    model: str
    arm: str
    perturbed: bool  # kept with the cell; else clean
    samples: tuple[str, ...]

    @property
    def what(self) -> str:
        return f"{self.arm} against {self.model}" if self.perturbed else f"the clean inputs of {self.model}"


@dataclass(frozen=True)
class _HandedOver:
    """A user's object as a detector; it is given plain arrays and does not see the model."""

    owner: Scores

    def score(self, x: Tensor, model: Model) -> Tensor:  # noqa: ARG002
        return torch.as_tensor(np.asarray(self.owner.score(x.cpu().numpy().copy())))


def load_scorers(bench: Workbench, objects: Mapping[str, Scores] | None = None) -> list[Scorer]:
    """The detectors of a study, and those that were handed over as Python objects (name -> object)."""
    study, parts = bench.study, bench.registries.detectors
    scorers = []
    for one in expand_detectors(study, bench.registries):
        try:
            scorers.append(Scorer(one.id, parts.get(one.name).function(**one.params)))
        except AdvriskError as error:
            raise study.where.error(one.place, str(error)) from None
    if objects and study.keep_inputs == "none":
        found = "`none` keeps no input, but detectors score those that succeeded; say `keep_inputs: successful`"
        raise study.where.error(("keep_inputs",), found)
    scorers += [_handed_over(name, owner, bench) for name, owner in (objects or {}).items()]
    _refuse_unnamed(study, scorers)
    return scorers


def _refuse_unnamed(study: StudySpec, scorers: Sequence[Scorer]) -> None:
    """The detector that damage is asked with must be among those that score."""
    asked = study.assess.damage.detector
    known = {name for scorer in scorers for name in (scorer.id, scorer.id.partition("@")[0])}
    known |= {spec.name for spec in study.detectors}
    if asked is not None and asked.name not in known:
        hint = did_you_mean(asked.name, known) if known else f"add `detectors: [{asked.name}]` to the study"
        found = f"no detector of this study is called {asked.name!r}; {hint}"
        raise study.where.error(("assess", "damage", "detector", "name"), found)


def _handed_over(name: str, owner: Scores, bench: Workbench) -> Scorer:
    """Named by what it says of fixed inputs, as nothing else is known of it."""
    if not name or "@" in name:
        raise RunError(f"a detector needs a name without '@', found {name!r}")
    if not callable(getattr(owner, "score", None)):
        raise RunError(f"the detector {name!r} is {type(owner).__name__}, which has no method score(x)")
    scorer = Scorer(name, _HandedOver(owner))
    model = next(iter(bench.material.models.values()))
    x = torch.from_numpy(bench.material.data.x[:N_FIXED_INPUTS])
    first, again = (_checked_scores(scorer, x, model, "fixed inputs") for _ in range(2))
    if not np.array_equal(first, again):
        raise RunError(f"the detector {name!r} scores the same inputs differently each time; give it a seed of its own")
    return Scorer(detector_id(name, [name, *np.round(first, 6).tolist()]), scorer.detector)


def refuse_unkept(ledger: Ledger, plan: Plan, bench: Workbench, scorers: Sequence[Scorer]) -> None:
    """Finished cells whose inputs a detector would have to score, but which were not kept."""
    planned = {cell.id for cell in plan.cells()} if scorers else set()
    lost = {
        batch.cell: batch
        for scorer in scorers
        for batch in _of_cells(ledger, scorer)
        if batch.perturbed and batch.cell in planned and not cell_inputs(bench.folder, batch.cell).is_file()
    }
    if lost:
        first = next(iter(lost.values()))
        raise RunError(
            f"{bench.folder}: {counted(len(lost), 'cell')} kept no inputs for {first.scorer.id} to score "
            f"({first.what}, say): they were run with `keep_inputs: none`, or their inputs were "
            "deleted; choose another folder"
        )


def unscored(ledger: Ledger, bench: Workbench, scorers: Sequence[Scorer]) -> list[Batch]:
    """What is still to be scored, clean inputs first."""
    return [
        batch for scorer in scorers for batch in (*_to_calibrate(ledger, bench, scorer), *_of_cells(ledger, scorer))
    ]


def scored(batch: Batch, bench: Workbench) -> pa.Table:
    """The rows of a batch."""
    model = bench.material.models[batch.model]
    x = _inputs(batch, bench)
    with one_thread(), torch.random.fork_rng(devices=()):
        torch.manual_seed(int(batch.cell[:15], 16))  # of a model that answers at random
        parts = [
            _checked_scores(batch.scorer, x[start : start + _ROWS].to(model.device), model, batch.what)
            for start in range(0, len(x), _ROWS)
        ]
    n = len(batch.samples)
    names = {"cell": constant(batch.cell, n), "detector": constant(batch.scorer.id, n)}
    return table_from("scores", names | {"sample": batch.samples, "score": np.concatenate(parts)})


def _of_cells(ledger: Ledger, scorer: Scorer) -> Iterator[Batch]:
    for row in ledger.query(_UNSCORED, {"detector": scorer.id}).to_pylist():
        yield Batch(scorer, samples=tuple(row.pop("samples")), **row)


def _to_calibrate(ledger: Ledger, bench: Workbench, scorer: Scorer) -> Iterator[Batch]:
    """All samples of a model at once, so that no threshold is ever taken from a part of them."""
    wanted = sorted(name for name, split in splits(bench.study, bench).items() if split == "calibrate")
    for row in ledger.query(_UNCALIBRATED, {"detector": scorer.id}).to_pylist() if wanted else ():
        known = set(row["scored"])
        if samples := tuple(name for name in wanted if name not in known):
            yield Batch(scorer, row["cell"], row["model"], "clean", perturbed=False, samples=samples)


def _inputs(batch: Batch, bench: Workbench) -> Tensor:
    if not batch.perturbed:
        rows = [bench.material.rows[name] for name in batch.samples]
        return torch.from_numpy(bench.material.data.x[rows])
    kept = read_inputs(cell_inputs(bench.folder, batch.cell))
    for name in batch.samples:
        if name not in kept:
            raise RunError(
                f"{bench.folder}: the input that {batch.what} made of sample {name} was not kept, so {batch.scorer.id} "
                "cannot score it; choose another folder"
            )
    return torch.from_numpy(np.stack([kept[name] for name in batch.samples]))


def _checked_scores(scorer: Scorer, x: Tensor, model: Model, what: str) -> NDArray[np.float64]:
    """One finite number for each input. Nothing that a detector returns is believed."""
    name = scorer.id.partition("@")[0]
    try:
        with torch.no_grad():
            given = scorer.detector.score(x, model.original)
        scores = np.asarray(given.detach().cpu() if isinstance(given, Tensor) else given, dtype=np.float64)
    except Exception as error:  # a detector is foreign code, as an attack is
        raise RunError(f"the detector {name} failed on {what}: {type(error).__name__}: {error}") from error
    if scores.shape != (len(x),):
        raise RunError(
            f"the detector {name} scored {len(x)} inputs ({what}) with shape {scores.shape}; one number each is needed"
        )
    if not np.isfinite(scores).all():
        wrong = scores[~np.isfinite(scores)]
        raise RunError(
            f"the detector {name} scored {what} with {wrong[0]}, {counted(len(wrong), 'time')} in {len(x)}; "
            "finite numbers are needed"
        )
    return scores
