"""The runs behind a certificate: search, freeze the list of attacks, then run it once on the calibration split."""

from collections.abc import Collection, Set
from itertools import groupby

from advrisk.assess.certificate.deciding import is_decided
from advrisk.assess.certificate.records import BETTING
from advrisk.assess.certificate.settled import question_settings, stated_question
from advrisk.ledger import Ledger
from advrisk.ledger.frozen import FrozenQuestion, frozen_list, frozen_question, refuse_lost, write_frozen
from advrisk.plan import Cell, Plan, calibrate_plan
from advrisk.run.dispatch import Dispatcher
from advrisk.run.finished import unfinished_cells
from advrisk.run.planning import splits
from advrisk.run.recording import settle_searched_arms
from advrisk.run.search import run_searches
from advrisk.run.workbench import Workbench
from advrisk.study import CertificateSpec


def certify(bench: Workbench, plan: Plan, ledger: Ledger, dispatcher: Dispatcher, *, retry_errors: bool) -> None:
    """Search for the worst settings, freeze what is to be certified, and run its cells.

    Each only if the study asks for it, and nothing once time or passes have run out.
    """
    if dispatcher.stopped:
        return
    searched = run_searches(bench, plan, ledger, dispatcher, retry_errors=retry_errors)
    if searched is None:
        return
    frozen = {(model, arm.id) for model, arm in searched.frozen}
    settle_searched_arms(ledger.reopened(), frozen, searched.tried)
    spec = bench.study.assess.certificate
    if spec is None:
        return
    wanted = calibrate_plan(bench.study, plan, searched.frozen, searched.recipes)
    refuse_lost(ledger.reopened())
    write_frozen(ledger.reopened(), settled(bench, wanted, frozen))
    missing = unfinished_cells(wanted, ledger, retry_errors=retry_errors)
    n_skipped = wanted.n_cells - len(missing)
    dispatcher.expect(missing.by_kind, n_cells=len(missing), n_skipped=n_skipped, phase="calibrating")
    _run_calibration(bench, missing, dispatcher, spec)


def _run_calibration(bench: Workbench, cells: Collection[Cell], dispatcher: Dispatcher, spec: CertificateSpec) -> None:
    """Run every cell; under betting shard by shard, in the order of the analyses, until every list is decided."""
    if spec.method != BETTING:
        dispatcher.dispatch(cells)
        return
    for _, of_shard in groupby(cells, key=lambda cell: cell.shard.id):
        dispatcher.publish()
        if is_decided(Ledger.open(bench.folder).named(), spec):
            dispatcher.expect_no_more()
            return
        dispatcher.dispatch(list(of_shard))
        if dispatcher.stopped:
            return


def settled(bench: Workbench, wanted: Plan, searched: Set[tuple[str, str]] = frozenset()) -> FrozenQuestion:
    """The frozen question of a certificate: settings, attacks and calibration samples; `searched`: models, arm ids."""
    recipes: dict[tuple[str, str, float], dict[str, str]] = {}
    tries = {arm.id: arm.repeats for _, arm in wanted.assessed}
    for model, arm in wanted.assessed:
        if arm.norm is not None and arm.eps is not None:
            recipes.setdefault((model, arm.norm, arm.eps), {})[arm.id] = wanted.recipes[model, arm.id]
    data, rows = bench.material.data, bench.material.rows
    names = [name for name, split in splits(bench.study, bench).items() if split == "calibrate"]
    samples = [(name, data.hash_of(rows[name])) for name in names]
    lists = [
        frozen_list(key, arms, [arm for arm in arms if (key[0], arm) in searched], samples, tries)
        for key, arms in sorted(recipes.items())
    ]
    beside = {wanted.recipes[model, arm.id] for model, arm in (*wanted.assessed, *wanted.crafting)}
    settings, stated = question_settings(bench.study), stated_question(bench.study)
    return frozen_question(lists, samples, settings, stated=stated, recipes=sorted(beside))
