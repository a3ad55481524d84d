"""Letting detectors score inputs: the kept successes of every arm, and the clean inputs of every model.

Only what is not scored yet, so that a detector that is added later attacks nothing again; where inputs were not kept,
they are crafted again from the same seeds. Rows go to the table
`scores` under the cell they belong to. Samples to calibrate are in no cell; theirs stand under the recipe of the
model's clean arm.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from advrisk.core.errors import RunError
from advrisk.engine.threads import one_thread
from advrisk.ledger import Ledger, SegmentWriter, constant, table_from
from advrisk.ledger.inputs import cell_inputs, read_inputs
from advrisk.parts.detectors import Detector
from advrisk.plan import Plan
from advrisk.run.cell import craft_again
from advrisk.run.detectors.ready import checked_scores
from advrisk.run.options import Options
from advrisk.run.planning import splits
from advrisk.run.progress import Progress
from advrisk.run.workbench import Points, Workbench

_ROWS = 256  # scored at a time

# Rows that a detector has not scored: successes, and clean inputs, by cell.
_UNSCORED = """
    SELECT o.cell, any_value(o.model) AS model, any_value(o.arm) AS arm, any_value(o.kind) <> 'clean' AS perturbed,
           list(o.sample ORDER BY o.sample) AS samples
    FROM outcomes o
    JOIN arms a ON a.model = o.model AND a.arm = o.arm AND a.origin = 'study'
    JOIN samples m ON m.sample = o.sample AND m.split = 'evaluate'
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


def score_inputs(
    ledger: Ledger,
    bench: Workbench,
    plan: Plan,
    progress: Progress,
    options: Options,
    *,
    deadline: float,
    on_progress: Callable[[Progress], None],
) -> Progress:
    """Let detectors score the inputs that they have not; no batch begins after the deadline."""
    if not bench.detectors:
        return progress
    ledger = ledger.reopened()  # with what was published meanwhile
    batches = unscored(ledger, bench)
    progress = replace(progress, n_scored=0, n_to_score=sum(len(batch.samples) for batch in batches))
    on_progress(progress)
    with SegmentWriter(ledger, every_s=options.publish_every_s) as writer:
        for batch in batches:
            if time.monotonic() > deadline:
                break
            writer.add({"scores": scored(batch, bench, plan)})
            progress = replace(progress, n_scored=progress.n_scored + len(batch.samples))
            on_progress(progress)
    return progress


def unscored(ledger: Ledger, bench: Workbench) -> list[Batch]:
    """What is still to be scored, detector by detector, clean inputs first."""
    scorers = [Scorer(name, detector) for name, detector in bench.detectors.items()]
    return [
        batch for scorer in scorers for batch in (*_to_calibrate(ledger, bench, scorer), *_of_cells(ledger, scorer))
    ]


def scored(batch: Batch, bench: Workbench, plan: Plan) -> pa.Table:
    """The rows of a batch; the plan knows the cell of inputs that must be crafted again."""
    model, scorer = bench.material.models[batch.model], batch.scorer
    x = _inputs(batch, bench, plan)
    name = scorer.id.rpartition("@")[0]
    contained = bench.containment.around(f"the detector {name}", RunError)
    with contained, one_thread(), torch.random.fork_rng(devices=()):
        torch.manual_seed(int(batch.cell[:15], 16))  # of a model that answers at random
        parts = [
            checked_scores(name, scorer.detector, x[start : start + _ROWS].to(model.device), model, batch.what)
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
        done = set(row["scored"])
        if samples := tuple(name for name in wanted if name not in done):
            yield Batch(scorer, row["cell"], row["model"], "clean", perturbed=False, samples=samples)


def _inputs(batch: Batch, bench: Workbench, plan: Plan) -> Tensor:
    """Clean inputs from the data; perturbed ones as they were kept, or crafted again where they were not."""
    if not batch.perturbed:
        rows = [bench.material.rows[name] for name in batch.samples]
        return torch.from_numpy(bench.material.data.x[rows])
    points = _kept(batch, bench)
    if not points.keys() >= set(batch.samples):
        points = _crafted_again(batch, bench, plan)
    return torch.from_numpy(np.stack([points[name] for name in batch.samples]))


def is_kept(batch: Batch, bench: Workbench) -> bool:
    """Whether nothing must be crafted again for a batch to be scored."""
    return not batch.perturbed or _kept(batch, bench).keys() >= set(batch.samples)


def _kept(batch: Batch, bench: Workbench) -> Points:
    path = cell_inputs(bench.folder, batch.cell)
    return read_inputs(path) if path.is_file() else {}


def _crafted_again(batch: Batch, bench: Workbench, plan: Plan) -> Points:
    cell = plan.find(batch.cell, batch.model, batch.arm, batch.samples[0])
    points = craft_again(cell, bench) if cell else {}
    for name in batch.samples:
        if name not in points:
            raise RunError(
                f"{bench.folder}: the input that {batch.what} made of sample {name} was not kept, and crafted again it "
                f"is no success, so {batch.scorer.id} cannot score it; was it made on another machine? choose another "
                "folder"
            )
    return points
