"""All searches of a study side by side: propose, run the cells, count, and freeze the worst settings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from advrisk.ledger import Ledger
from advrisk.ledger.searches import Course, Round, read_course, write_course, write_current
from advrisk.plan import Cell, Plan, Search, Setting, Shard, search_recipe
from advrisk.plan.recipe import recipe_of
from advrisk.run.dispatch import Dispatcher
from advrisk.run.recording import record_arms
from advrisk.run.rows import CellResult
from advrisk.run.search.design import first_settings, grid_settings, random_settings
from advrisk.run.search.surrogate import beta_at, next_settings
from advrisk.run.workbench import Workbench
from advrisk.study import Arm

# Rows of cells as they were published last, whatever arms are recorded now.
_ROWS = """
    SELECT cell::VARCHAR AS cell, sample::VARCHAR AS sample, outcome::VARCHAR AS outcome, clean_prediction,
           criterion::VARCHAR AS criterion
    FROM all_outcomes WHERE sample IN (SELECT unnest($samples))
    QUALIFY row_number() OVER (PARTITION BY cell, sample ORDER BY filename DESC, file_row_number DESC) = 1
"""


@dataclass
class BrokenSamples:
    """Cell -> the samples that it broke, not wrong when clean and wrong under attack; and those it has no answer for.

    Where success is a wrong class, an attack succeeds against no sample that was wrong before. Elsewhere what the model
    said of the clean input decides.
    """

    labels: Mapping[str, int]  # of the samples to tune on
    broken: dict[str, frozenset[str]] = field(default_factory=dict)
    unanswered: dict[str, frozenset[str]] = field(
        default_factory=dict
    )  # an error or a timeout: it may have been broken

    @classmethod
    def of(cls, ledger: Ledger, labels: Mapping[str, int], finished: set[str]) -> "BrokenSamples":
        """What a ledger says of cells that need not be run again."""
        tally = cls(labels)
        table = ledger.query(_ROWS, {"samples": list(labels)})
        rows: dict[str, list[dict[str, object]]] = {}
        for row in table.to_pylist():
            if row["cell"] in finished:
                rows.setdefault(row["cell"], []).append(row)
        for cell, of_cell in rows.items():
            tally._take_in(cell, of_cell)
        return tally

    def add(self, result: CellResult) -> None:
        """Take in a cell that has just run."""
        table: pa.Table = result.tables["outcomes"].select(["sample", "outcome", "clean_prediction", "criterion"])
        self._take_in(result.cell, table.to_pylist())

    def _take_in(self, cell: str, rows: Sequence[Mapping[str, object]]) -> None:
        self.broken[cell] = frozenset(str(row["sample"]) for row in rows if self._is_broken(row))
        self.unanswered[cell] = frozenset(str(row["sample"]) for row in rows if row["outcome"] in ("error", "timeout"))

    def _is_broken(self, row: Mapping[str, object]) -> bool:
        right = row["criterion"] == "label" or row["clean_prediction"] == self.labels.get(str(row["sample"]))
        return row["outcome"] == "success" and right


def can_still_win(greatest: float, others: Sequence[float], *, freeze: int) -> bool:
    """Whether a setting can still be among the `freeze` worst.

    `greatest` is the largest share of failures that it can reach, `others` the least that each other setting can end
    with. It is out if `freeze` others end with more than it can reach; a tie is not lost.
    """
    if len(others) < freeze:
        return True
    return greatest >= sorted(others, reverse=True)[freeze - 1]


@dataclass(frozen=True)
class Searched:
    """The frozen arms of all searches, model by model, and every arm that any of them tried."""

    frozen: tuple[tuple[str, Arm], ...] = ()
    tried: frozenset[tuple[str, str]] = frozenset()  # model, arm
    recipes: dict[tuple[str, str], str] = field(default_factory=dict)


@dataclass
class _Trial:
    """A setting at work: how many samples it met so far, how many have an answer, and how many it broke."""

    setting: Setting
    arm: Arm
    failures: int = 0
    n: int = 0  # without those that ended with an error or a timeout: whether they break is not known
    met: int = 0
    dropped: bool = False

    @property
    def rate(self) -> float:
        """The share of samples that broke, as far as it is known."""
        return self.failures / self.n if self.n else 0.0

    def span(self, n_samples: int) -> tuple[float, float]:
        """The least and the greatest rate that it can have once it met all samples."""
        answered = self.n + n_samples - self.met
        if not answered:
            return 0.0, 0.0
        return self.failures / answered, (self.failures + n_samples - self.met) / answered


@dataclass
class _Way:
    """One search under way: what is written down, and its trials."""

    search: Search
    course: Course
    trials: list[_Trial] = field(default_factory=list)
    n_begun: int = 0  # rounds whose trials are there
    exhausted: bool = False  # the box holds no other setting

    @property
    def n_rounds(self) -> int:
        return self.search.rounds + (self.search.method == "gp-ucb")  # and the first design

    @property
    def n_left(self) -> int:
        return 0 if self.exhausted else max(0, self.n_rounds - self.n_begun)


def run_searches(
    bench: Workbench, plan: Plan, ledger: Ledger, dispatcher: Dispatcher, *, retry_errors: bool = False
) -> Searched | None:
    """Run every round of every search; None where time or passes ran out before the end."""
    ways = [_way(search, bench, plan) for search in plan.searches]
    write_current(bench.folder, [way.course.id for way in ways])
    if not ways:
        return Searched()
    finished = ledger.finished_cells(without_errors=retry_errors)
    data, rows = bench.material.data, bench.material.rows
    labels = {name: int(data.y[rows[name]]) for shard in plan.tune for name in shard.samples}
    tally = BrokenSamples.of(ledger, labels, finished)
    recipes: dict[tuple[str, str], str] = {}
    while begun := [way for way in ways if not dispatcher.stopped and _begin_round(way, bench)]:
        recipes |= _recorded(begun, bench, plan, ledger)
        phase = f"searching, round {max(way.n_begun for way in ways)} of {max(way.n_rounds for way in ways)}"
        dispatcher.report(
            replace(dispatcher.progress, rounds_left=1 + sum(way.n_left for way in ways))
        )  # this one, too
        for cells in _steps(begun, plan, recipes, tally):
            dispatcher.dispatch_more(cells, phase=phase, on_result=tally.add)
            if any(cell.id not in tally.broken for cell in cells):
                return None
    dispatcher.report(replace(dispatcher.progress, rounds_left=sum(way.n_left for way in ways)))
    if dispatcher.progress.rounds_left:
        return None
    frozen = [(way.search.model, trial.arm) for way in ways for trial in _freeze(way, bench.folder)]
    tried = frozenset((way.search.model, trial.arm.id) for way in ways for trial in way.trials)
    return Searched(tuple(frozen), tried, recipes)


def course_of(search: Search, bench: Workbench, plan: Plan) -> Course:
    """What names a search and says what it searches for; no round of it yet."""
    data, rows, material = bench.material.data, bench.material.rows, bench.material
    digest = material.models[search.model].digest
    recipe = search_recipe(bench.study, bench.registries, search, digest, material.space_digest)
    names = sorted(name for shard in plan.tune for name in shard.samples)
    name = search.identity(recipe, [[name, data.hash_of(rows[name])] for name in names])
    facts = {
        "model": search.model,
        "name": search.name,
        "norm": search.arm.norm,
        "eps": search.arm.eps,
        "method": search.method,
        "n_rounds": search.rounds,
        "freeze": search.freeze,
        "axes": [{"name": axis.name, "low": axis.low, "high": axis.high, "log": axis.log} for axis in search.axes],
    }
    return Course(name, facts)


def _way(search: Search, bench: Workbench, plan: Plan) -> _Way:
    course = course_of(search, bench, plan)
    held = read_course(bench.folder, course.id)
    return _Way(search, course if held is None else replace(course, rounds=held.rounds))


def _begin_round(way: _Way, bench: Workbench) -> bool:
    """Let the next round begin: as it is written down, or newly chosen and written down; False after the last."""
    if not way.n_left:
        return False
    if way.n_begun == len(way.course.rounds):
        made = _proposed(way, bench.study.seed)
        if not made.settings:
            way.exhausted = True
            return False
        arms = tuple(way.search.arm_at(setting, bench.registries).id for setting in made.settings)
        way.course = replace(way.course, rounds=(*way.course.rounds, replace(made, arms=arms)))
        write_course(bench.folder, way.course)
    settings = way.course.rounds[way.n_begun].settings
    way.trials += [_Trial(setting, way.search.arm_at(setting, bench.registries)) for setting in settings]
    way.n_begun += 1
    return True


def _proposed(way: _Way, seed: int) -> Round:
    search, n_round = way.search, way.n_begun
    if search.method == "gp-ucb":
        if n_round == 0:
            return Round("design", tuple(first_settings(search, seed)), ())
        tried = [trial for trial in way.trials if trial.n]
        settings, rates = [trial.setting for trial in tried], [trial.rate for trial in tried]
        chosen = next_settings(search, settings, rates, n_round=n_round, seed=seed)
        return Round("gp-ucb", tuple(chosen), (), beta_at(search.beta, n_round))
    every = grid_settings(search) if search.method == "grid" else random_settings(search, seed)
    return Round(search.method, tuple(every[n_round * search.batch : (n_round + 1) * search.batch]), ())


def _recorded(begun: Sequence[_Way], bench: Workbench, plan: Plan, ledger: Ledger) -> dict[tuple[str, str], str]:
    """The recipes of the arms of a round, which stand in the ledger from now on; arms of the study stand there."""
    pairs = [(way.search.model, trial.arm) for way in begun for trial in _of_round(way)]
    recipes = recipes_of(pairs, bench)
    new = [(model, arm) for model, arm in pairs if (model, arm.id) not in plan.recipes]
    record_arms(bench.study, ledger, new, recipes, origin="search", like=("frozen",))
    return recipes


def recipes_of(pairs: Sequence[tuple[str, Arm]], bench: Workbench) -> dict[tuple[str, str], str]:
    """Model and arm id -> the recipe of an arm that a search tries."""
    models, space = bench.material.models, bench.material.space_digest
    return {
        (model, arm.id): recipe_of(bench.study, bench.registries, models[model].digest, arm, space)
        for model, arm in pairs
    }


def tried_arms(bench: Workbench, plan: Plan) -> list[tuple[str, Arm]]:
    """Every model and arm that the searches of a plan tried, as far as it is written down in the run's folder."""
    found: dict[tuple[str, str], Arm] = {}
    for search in plan.searches:
        course = read_course(bench.folder, course_of(search, bench, plan).id)
        for setting in (one for made in (course.rounds if course else ()) for one in made.settings):
            arm = search.arm_at(setting, bench.registries)
            found[search.model, arm.id] = arm
    return [(model, arm) for (model, _), arm in found.items()]


def _of_round(way: _Way) -> list[_Trial]:
    return way.trials[-len(way.course.rounds[way.n_begun - 1].settings) :]


def _steps(
    begun: Sequence[_Way], plan: Plan, recipes: dict[tuple[str, str], str], tally: BrokenSamples
) -> Iterator[list[Cell]]:
    """Cells to run together: of a search that races shard by shard, of others all at once. What is there is counted."""
    tune = sorted(plan.tune, key=lambda shard: shard.id)  # the order in which they were cut is not known later
    for place, shard in enumerate(tune):
        met: list[tuple[_Trial, Shard, list[Cell]]] = []
        for way in begun:
            shards = [shard] if way.search.race else tune if place == 0 else []
            for trial in _of_round(way):
                if not trial.dropped:
                    met += [(trial, one, _cells(way, trial, one, plan, recipes)) for one in shards]
        yield list({cell.id: cell for _, _, cells in met for cell in cells if cell.id not in tally.broken}.values())
        for trial, one, cells in met:
            broken = frozenset().union(*(tally.broken[cell.id] for cell in cells))
            unanswered = frozenset().union(*(tally.unanswered[cell.id] for cell in cells)) - broken
            trial.failures += len(broken)
            trial.n += len(one.samples) - len(unanswered)
            trial.met += len(one.samples)
        for way in begun:
            if way.search.race:
                _drop(way, sum(len(other.samples) for other in tune))


def _cells(way: _Way, trial: _Trial, shard: Shard, plan: Plan, recipes: dict[tuple[str, str], str]) -> list[Cell]:
    """One for each repeat."""
    alone = replace(plan, assessed=((way.search.model, trial.arm),), crafting=(), shards=(shard,), recipes=recipes)
    return [replace(cell, keeps_inputs=False) for cell in alone.cells()]


def _drop(way: _Way, n_samples: int) -> None:
    """Drop the settings of this round that cannot become one of the worst any more."""
    for trial in _of_round(way):
        others = [other.span(n_samples)[0] for other in way.trials if other is not trial]
        if not trial.dropped and not can_still_win(trial.span(n_samples)[1], others, freeze=way.search.freeze):
            trial.dropped = True


def _freeze(way: _Way, folder: Path) -> list[_Trial]:
    """The worst settings of a search, of equals those nearest to the attack's own, then by name; written down."""
    whole = [trial for trial in way.trials if not trial.dropped]

    def order(trial: _Trial) -> tuple[float, float, str]:
        return -trial.rate, round(way.search.from_usual(trial.setting), 9), trial.arm.id

    worst = sorted(whole, key=order)[: way.search.freeze]
    rounds = way.course.rounds[: way.n_begun]
    way.course = replace(way.course, frozen=tuple(trial.arm.id for trial in worst), rounds=rounds)
    write_course(folder, way.course)
    return worst
