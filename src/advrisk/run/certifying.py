"""Towards a certificate: freeze the list of attacks, then hold it once against the samples to calibrate."""

from collections.abc import Sequence

from advrisk.ledger import Ledger
from advrisk.ledger.frozen import FrozenList, frozen_list, write_frozen
from advrisk.plan import Plan, calibrate_plan
from advrisk.run.bench import Workbench
from advrisk.run.crew import Crew, unfinished_cells
from advrisk.run.question import splits


def certify(bench: Workbench, plan: Plan, ledger: Ledger, crew: Crew, *, retry_errors: bool) -> None:
    """Freeze what is to be certified, and carry out its cells; nothing where no certificate is asked for."""
    if bench.study.assess.certificate is None or crew.out_of_time:
        return
    wanted = calibrate_plan(bench.study, plan)
    write_frozen(bench.folder, ledger, listed(bench, wanted))
    missing = unfinished_cells(wanted, ledger, retry_errors=retry_errors)
    crew.carry_out_more(missing, phase="calibrating", n_skipped=wanted.n_cells - len(missing))


def listed(bench: Workbench, wanted: Plan, searched: Sequence[tuple[str, str]] = ()) -> list[FrozenList]:
    """What a plan on samples to calibrate attacks, by model, norm and eps; `searched` are models and arm ids."""
    recipes: dict[tuple[str, str, float], dict[str, str]] = {}
    for model, arm in wanted.assessed:
        if arm.norm is not None and arm.eps is not None:
            recipes.setdefault((model, arm.norm, arm.eps), {})[arm.id] = wanted.recipes[model, arm.id]
    data, rows = bench.material.data, bench.material.rows
    names = [name for name, split in splits(bench.study, bench).items() if split == "calibrate"]
    samples = [(name, data.hash_of(rows[name])) for name in names]
    return [
        frozen_list(key, arms, [arm for arm in arms if (key[0], arm) in searched], samples)
        for key, arms in sorted(recipes.items())
    ]
