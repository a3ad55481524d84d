"""Measures: numbers about a model at clean inputs, such as CLEVER, taken once the cells are done.

Only missing measures are taken, at samples whose clean cell is finished. Rows go to the table `measures` under that
cell. A measure that fails at a sample gets a row without a number, so that all others continue, now and in later runs.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import torch

from advrisk.core.seeds import key
from advrisk.engine import Noise
from advrisk.engine.threads import one_thread
from advrisk.ledger import Ledger, SegmentWriter, constant, table_from
from advrisk.plan import Cell, ConfiguredMeasure, Plan, expand_measures
from advrisk.run.options import Options
from advrisk.run.progress import Progress
from advrisk.run.workbench import Workbench

# A model that answered no number cannot be measured.
_ANSWERED = "SELECT cell, sample FROM outcomes WHERE kind = 'clean' AND outcome NOT IN ('error', 'timeout')"
_TRIED = "SELECT cell, sample FROM measures WHERE measure = $measure"
_FAILED = f"{_TRIED} GROUP BY ALL HAVING count(value) = 0"  # also at the last try


@dataclass(frozen=True)
class Gap:
    """Clean inputs of one cell without a measure."""

    measure: ConfiguredMeasure
    cell: str
    model: str
    samples: tuple[str, ...]


def take_measures(
    ledger: Ledger,
    bench: Workbench,
    plan: Plan,
    progress: Progress,
    options: Options,
    *,
    deadline: float,
    on_progress: Callable[[Progress], None],
) -> Progress:
    """Take the study's missing measures; none begins after the deadline. Failures are recorded."""
    if not bench.study.measures:
        return progress
    ledger = ledger.reopened()  # with what was published meanwhile
    gaps = unmeasured(ledger, bench, plan, retry_errors=options.retry_errors)
    n_failed = 0 if options.retry_errors else failed_measures(ledger, bench, plan)
    progress = replace(progress, n_to_measure=sum(len(gap.samples) for gap in gaps), n_unmeasured=n_failed)
    on_progress(progress)
    with SegmentWriter(ledger, every_s=options.publish_every_s) as writer:
        for gap in gaps:
            for table, trouble in measured(gap, bench, deadline=deadline):
                writer.add({"measures": table})
                progress = progress.after_measure(trouble)
                on_progress(progress)
    return progress


def unmeasured(
    ledger: Ledger, bench: Workbench, plan: Plan, *, answered_only: bool = True, retry_errors: bool = False
) -> list[Gap]:
    """The missing measures, measure by measure, shard by shard; by default where the clean cell is done.

    With `retry_errors`, failed measures count as missing.
    """
    gaps = []
    configured = expand_measures(bench.study, bench.registries)
    answered = _pairs(ledger, _ANSWERED) if configured and answered_only else None
    for one in configured:
        tried = _pairs(ledger, _TRIED, measure=one.id)
        if retry_errors:
            tried -= _pairs(ledger, _FAILED, measure=one.id)
        for cell, pairs in _wanted(one, plan):
            if left := [pair for pair in pairs if pair not in tried and (answered is None or pair in answered)]:
                gaps.append(Gap(one, cell.id, cell.model, tuple(name for _, name in left)))
    return gaps


def failed_measures(ledger: Ledger, bench: Workbench, plan: Plan) -> int:
    """The number of inputs at which a measure of the study failed."""
    n_failed = 0
    for one in expand_measures(bench.study, bench.registries):
        failed = _pairs(ledger, _FAILED, measure=one.id)
        n_failed += sum(pair in failed for _, pairs in _wanted(one, plan) for pair in pairs)
    return n_failed


def _wanted(measure: ConfiguredMeasure, plan: Plan) -> Iterator[tuple[Cell, list[tuple[str, str]]]]:
    """The clean cells, each with the inputs for which the study has this measure."""
    evaluated = [name for shard in plan.shards for name in shard.samples]
    wanted = set(evaluated[: measure.samples])
    for cell in plan.cells():
        if cell.arm.kind == "clean":
            yield cell, [(cell.id, name) for name in cell.shard.samples if name in wanted]


def _pairs(ledger: Ledger, sql: str, **parameters: str) -> set[tuple[str, str]]:
    """The cells and samples of a query."""
    table = ledger.query(sql, parameters)
    return set(zip(table["cell"].to_pylist(), table["sample"].to_pylist(), strict=True))


def measured(gap: Gap, bench: Workbench, *, deadline: float = math.inf) -> Iterator[tuple[pa.Table, str]]:
    """A row for each sample, and the reason for a missing number or ""; none begins after the deadline."""
    with one_thread():
        for sample in gap.samples:
            if time.monotonic() > deadline:
                return
            names = {"cell": constant(gap.cell, 1), "measure": constant(gap.measure.id, 1), "sample": [sample]}
            value, trouble = _value(gap, sample, bench)
            yield table_from("measures", names | {"value": [value]}), trouble


def _value(gap: Gap, sample: str, bench: Workbench) -> tuple[float | None, str]:
    """One finite number, or None and the reason; the result of a measure is checked."""
    model, row = bench.material.models[gap.model], bench.material.rows[sample]
    x = torch.from_numpy(bench.material.data.x[row : row + 1]).to(model.device)
    label = int(bench.material.data.y[row])
    seed = key("measure", bench.study.seed, gap.measure.id, sample)
    noise = Noise([seed], device=model.device)
    part = bench.registries.measures.get(gap.measure.name)
    what = f"the measure {gap.measure.readable} of {gap.model} at sample {sample}"
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed % 2**63)  # of a model that answers at random
        try:
            with bench.containment.around(gap.model):
                number = part.function(x, label, model.original, bench.material.space, noise, **gap.measure.params)
            value = float(number)
        except Exception as error:  # measures and models are foreign code
            return None, f"{what} failed: {type(error).__name__}: {error}"
    if not math.isfinite(value):
        return None, f"{what} is {value}; a finite number is needed"
    return value, ""


def measure_passes(gaps: Sequence[Gap], bench: Workbench) -> dict[str, tuple[int, int]]:
    """Forward and backward passes of measures, by readable name, for those with a known number."""
    totals: dict[str, tuple[int, int]] = {}
    for gap in gaps:
        passes = bench.registries.measures.get(gap.measure.name).traits.passes
        if passes is not None:
            forward, backward = passes(gap.measure.params, bench.material.models[gap.model].n_classes)
            so_far, n = totals.get(gap.measure.readable, (0, 0)), len(gap.samples)
            totals[gap.measure.readable] = so_far[0] + n * forward, so_far[1] + n * backward
    return totals
