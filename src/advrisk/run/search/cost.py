"""What searches would still run, for a dry run: how many settings is known, which ones is not."""

from collections.abc import Sequence
from dataclasses import replace

from advrisk.ledger import Ledger
from advrisk.ledger.searches import read_course
from advrisk.plan import Cell, Plan, Search, Shard, calibrate_plan
from advrisk.plan.recipe import recipe_of
from advrisk.run.search.design import first_settings, grid_settings
from advrisk.run.search.loop import course_of
from advrisk.run.workbench import Workbench
from advrisk.study import Arm


def cells_to_come(
    bench: Workbench, plan: Plan, ledger: Ledger, *, retry_errors: bool = False
) -> tuple[list[Cell], int]:
    """Cells on samples to tune and to calibrate that are still to be run at most, and how many are done.

    Those of a search stand for each other: the attack at the far end of its box, under the name of the search.
    """
    finished = ledger.finished_cells(without_errors=retry_errors)
    wanted = calibrate_plan(bench.study, plan)
    own = list(wanted.cells())
    missing = [cell for cell in own if cell.id not in finished]
    n_done = len(own) - len(missing)
    for search in plan.searches:
        held = read_course(bench.folder, course_of(search, bench, plan).id)
        tried = [] if held is None else [setting for one in held.rounds for setting in one.settings]
        left = max(0, n_settings(search, bench.study.seed) - len(tried))
        stand_in = _stand_in(search, bench)
        missing += _copies(search, stand_in, plan.tune, left, bench, plan)
        n_done += len(tried) * len(plan.tune) * search.arm.repeats
        if bench.study.assess.certificate is not None:
            n_frozen = 0 if held is not None and held.frozen and not left else search.freeze
            missing += _copies(search, stand_in, plan.calibrate, n_frozen, bench, plan)
    return missing, n_done


def n_settings(search: Search, seed: int) -> int:
    """How many settings a search tries at most."""
    if search.method == "grid":
        return len(grid_settings(search))
    first = len(first_settings(search, seed)) if search.method == "gp-ucb" else 0
    return first + search.rounds * search.batch


def _stand_in(search: Search, bench: Workbench) -> Arm:
    """The attack at the far end of its box, where more steps are most steps."""
    arm = search.arm_at(search.setting([1.0] * len(search.axes)), bench.registries)
    return replace(arm, id=f"{search.name} over {', '.join(axis.name for axis in search.axes)}")


def _copies(search: Search, arm: Arm, shards: Sequence[Shard], n: int, bench: Workbench, plan: Plan) -> list[Cell]:
    material = bench.material
    digest = material.models[search.model].digest
    recipes = {(search.model, arm.id): recipe_of(bench.study, bench.registries, digest, arm, material.space_digest)}
    alone = replace(plan, assessed=((search.model, arm),), crafting=(), shards=tuple(shards), recipes=recipes)
    return n * list(alone.cells())
