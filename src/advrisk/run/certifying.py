"""Towards a certificate: search, freeze the list of attacks, then hold it once against the samples to calibrate."""

from collections.abc import Collection, Set
from dataclasses import replace
from itertools import groupby

from advrisk.assess.certificate.deciding import is_decided
from advrisk.assess.certificate.records import BETTING
from advrisk.ledger import Ledger
from advrisk.ledger.frozen import FrozenQuestion, frozen_list, frozen_question, refuse_lost, write_frozen
from advrisk.plan import Cell, Plan, calibrate_plan
from advrisk.run.bench import Workbench
from advrisk.run.crew import Crew, unfinished_cells
from advrisk.run.question import settle_searched_arms, splits
from advrisk.run.search import carry_out_searches
from advrisk.study import CertificateSpec


def certify(bench: Workbench, plan: Plan, ledger: Ledger, crew: Crew, *, retry_errors: bool) -> None:
    """Search for the worst settings, freeze what is to be certified, and carry out its cells.

    Each only if the study asks for it, and nothing once time has run out.
    """
    if crew.out_of_time:
        return
    found = carry_out_searches(bench, plan, ledger, crew, retry_errors=retry_errors)
    if found is None:
        return
    frozen = {(model, arm.id) for model, arm in found.frozen}
    settle_searched_arms(ledger.reopened(), frozen, found.tried)
    asked = bench.study.assess.certificate
    if asked is None:
        return
    wanted = calibrate_plan(bench.study, plan, found.frozen, found.recipes)
    refuse_lost(Ledger.open(bench.folder))
    write_frozen(bench.folder, ledger, settled(bench, wanted, asked, frozen))
    missing = unfinished_cells(wanted, ledger, retry_errors=retry_errors)
    crew.tell(crew.progress.with_work(len(missing), wanted.n_cells - len(missing), "calibrating"))
    _carry_out(bench, missing, crew, asked)


def _carry_out(bench: Workbench, cells: Collection[Cell], crew: Crew, asked: CertificateSpec) -> None:
    """Every cell; by bets shard by shard, in the order of looks, until every list is decided."""
    if asked.method != BETTING:
        crew.carry_out(cells)
        return
    left = len(cells)
    for _, of_shard in groupby(cells, key=lambda cell: cell.shard.id):
        crew.publish()
        if is_decided(Ledger.open(bench.folder).named(), asked, seed=bench.study.seed):
            crew.tell(replace(crew.progress, n_cells=crew.progress.n_cells - left))
            return
        now = list(of_shard)
        crew.carry_out(now)
        left -= len(now)
        if crew.out_of_time:
            return


def settled(
    bench: Workbench, wanted: Plan, asked: CertificateSpec, searched: Set[tuple[str, str]] = frozenset()
) -> FrozenQuestion:
    """What is asked, and what a plan on samples to calibrate attacks; `searched` are models and arm ids."""
    recipes: dict[tuple[str, str, float], dict[str, str]] = {}
    for model, arm in wanted.assessed:
        if arm.norm is not None and arm.eps is not None:
            recipes.setdefault((model, arm.norm, arm.eps), {})[arm.id] = wanted.recipes[model, arm.id]
    data, rows = bench.material.data, bench.material.rows
    names = [name for name, split in splits(bench.study, bench).items() if split == "calibrate"]
    samples = [(name, data.hash_of(rows[name])) for name in names]
    lists = [
        frozen_list(key, arms, [arm for arm in arms if (key[0], arm) in searched], samples)
        for key, arms in sorted(recipes.items())
    ]
    return frozen_question(
        lists, samples, alpha=asked.alpha, zeta=asked.zeta, method=asked.method, population=asked.population
    )
