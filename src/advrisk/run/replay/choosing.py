"""Which rows are replayed: those of a few samples, drawn at random, and the cells that give them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from advrisk.core.errors import RunError
from advrisk.core.flags import CUT_SHORT
from advrisk.core.names import counted
from advrisk.core.seeds import generator
from advrisk.ledger import Ledger
from advrisk.plan import Cell, Plan, Shard
from advrisk.run.search.loop import recipes_of, tried_arms
from advrisk.run.workbench import Workbench

Row = Mapping[str, Any]  # of `outcomes`, with what else is recorded of it

_ELIGIBLE = """
    SELECT DISTINCT o.sample::VARCHAR AS sample FROM outcomes o JOIN samples s USING (sample)
    WHERE ($model IS NULL OR o.model = $model) AND ($split IS NULL OR s.split = $split) ORDER BY 1
"""
_ROWS = f"""
    SELECT o.*, a.origin, u.logits, u.classes,
           coalesce(list_contains(c.flags, '{CUT_SHORT}'), false) AS cut_short
    FROM outcomes o
    LEFT JOIN arms a ON a.model = o.model AND a.arm = o.arm
    LEFT JOIN cells c ON c.cell = o.cell
    LEFT JOIN outputs u ON u.cell = o.cell AND u.sample = o.sample
    WHERE list_contains($samples, o.sample) AND ($model IS NULL OR o.model = $model)
    ORDER BY o.kind <> 'clean', o.model, o.arm, o.repeat, o.sample
"""


@dataclass(frozen=True)
class Scope:
    """What is replayed: the whole run, or of one model the samples of one split."""

    model: str | None = None
    split: str | None = None


EVERYTHING = Scope()


@dataclass(frozen=True)
class Drawn:
    """The samples that were drawn, of how many, and all that is recorded of them."""

    samples: tuple[str, ...]
    n_eligible: int
    rows: tuple[Row, ...]


def draw_samples(ledger: Ledger, k: int, seed: int, scope: Scope) -> Drawn:
    """Draw `k` samples that have rows, or all if there are fewer."""
    if k < 1:
        raise RunError(f"replay: found {k} samples; draw at least one")
    of_scope = {"model": scope.model, "split": scope.split}
    names = ledger.query(_ELIGIBLE, of_scope)["sample"].to_pylist()
    if not names:
        raise RunError(f"{ledger.path.parent}: holds no rows to replay")
    places = generator("replay", str(seed)).permutation(len(names))[:k]
    chosen = tuple(sorted(names[place] for place in places))
    rows = ledger.query(_ROWS, {"samples": list(chosen), "model": scope.model}).to_pylist()
    return Drawn(chosen, len(names), tuple(rows))


def cells_by_name(bench: Workbench, plan: Plan, samples: Iterable[str]) -> dict[str, Cell]:
    """Every cell that the study gives for the shards of these samples: of its arms, and of those that searches tried.

    Samples to tune or calibrate are in cells of the same names as in the run.
    """
    wanted = set(samples)
    shards = [shard for shard in plan.all_shards if wanted & set(shard.samples)]
    tried = [pair for pair in tried_arms(bench, plan) if (pair[0], pair[1].id) not in plan.recipes]
    recipes = {**plan.recipes, **recipes_of(tried, bench)}
    whole = replace(plan, assessed=(*plan.assessed, *tried), shards=tuple(shards), recipes=recipes)
    return {cell.id: cell for cell in whole.cells()}


def part_of(cell: Cell, samples: Sequence[str]) -> Cell:
    """The same cell, with its seeds, for some of its samples; so are the cells that it needs."""
    shard = Shard(f"{cell.shard.id}, {counted(len(samples), 'sample')}", tuple(samples))
    return replace(cell, shard=shard, needs=tuple(part_of(need, samples) for need in cell.needs))
