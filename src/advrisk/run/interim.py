"""Interim analyses: shards run in growing rounds, targets are analysed after each, and a run stops once they are met.

Every model meets every arm on the same shards, so that whole samples accumulate, and models stay compared on the same
ones. What a target is about is not known here: the caller hands in the analysis.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from advrisk.assess.interim import InterimResult, look_level, shard_order
from advrisk.core.digest import digest
from advrisk.ledger import Ledger, Storage
from advrisk.ledger.stopping import Look, Stopping, asked_now, read_stopping, write_stopping
from advrisk.plan import Cell, Plan, Shard
from advrisk.risk.interim import alpha_share, interim_schedule
from advrisk.run.dispatch import Dispatcher
from advrisk.run.finished import Unfinished, finished_cells
from advrisk.run.scheduling import expected_work
from advrisk.run.workbench import Workbench
from advrisk.study import StoppingTarget, parse_target, target_kind, target_level

_PASSES = """
    SELECT model, arm, avg(n_forward + n_backward + n_judge)::DOUBLE AS passes FROM outcomes
    WHERE sample IN (SELECT sample FROM samples WHERE split = 'evaluate') GROUP BY ALL
"""

InterimAnalysis = Callable[
    [StoppingTarget, Ledger, float], InterimResult
]  # the last is the alpha that may be spent, as a share


@dataclass(frozen=True)
class Schedule:
    """Interim analyses ahead, at most: after how many samples, at which level, and the shards up to the first."""

    n_samples: tuple[int, ...]
    levels: Mapping[str, float]  # target -> at the first analysis
    first: tuple[str, ...]


@dataclass(frozen=True)
class Rounds:
    """What to run, until when, and how targets are analysed."""

    bench: Workbench
    plan: Plan
    finished: Set[str]  # cells
    targets: Sequence[StoppingTarget]
    analyse: InterimAnalysis | None
    max_passes: int | None
    retry_errors: bool = False

    def run_rounds(self, dispatcher: Dispatcher) -> None:
        """Run round after round until the targets are met, or time or passes are spent."""
        folder, state = self.bench.folder, self._state()
        write_stopping(folder, state)
        shards = {shard.id: shard for shard in self.plan.shards}
        order = [shards[name] for name in state.order]
        done = 0
        for end in self._ends_of_rounds(order):
            done = self._run_round(order, done, end, dispatcher)
            if done < end:
                self._stop_where_spent(state, order[:done], dispatcher)
                return
            analyses = self._analyses(state, done, self.targets)
            state = state.with_looks(*analyses)
            write_stopping(folder, state)
            if analyses and all(one.met for one in analyses):
                self._stop_early(state, order[:done], dispatcher)
                return
        self._final_analysis(state, done)

    def run_all(self, cells: Iterable[Cell], dispatcher: Dispatcher) -> None:
        """Run all cells at once, also beyond where an earlier run stopped early; its analyses are remembered."""
        if read_stopping(self.bench.folder) is None:
            dispatcher.dispatch(cells)
            return
        state = self._state()
        write_stopping(self.bench.folder, state)
        dispatcher.dispatch(cells)
        dispatcher.publish()
        if self._is_whole(self.plan.shards):
            self._final_analysis(state, len(state.order))

    def schedule(self) -> Schedule:
        """The interim analyses that `run_rounds` would take; nothing is written."""
        state, sizes = self._state(), self._sizes
        shards = {shard.id: shard for shard in self.plan.shards}
        ends = self._ends_of_rounds([shards[name] for name in state.order])
        n_samples = tuple(sum(sizes[name] for name in state.order[:end]) for end in ends)
        n_models = len(self.bench.material.models.keys() - self.bench.material.surrogates)
        study, levels = self.bench.study, {}
        for target in self.targets:
            before = state.look(target.text, ends[0])
            share = before.share if before else _alpha_share(state, target, ends[0], sizes)
            own = look_level(target, study, share, n_models=n_models)
            levels[target.text] = target_level(target.text, study) if own is None else own
        return Schedule(n_samples, levels, state.order[: ends[0]])

    def _state(self) -> Stopping:
        """With earlier analyses of the same question, if any; shards that were in order keep their positions."""
        before = read_stopping(self.bench.folder)
        sizes = self._sizes
        order = shard_order(sizes, before.order if before else (), seed=self.bench.study.seed)
        planned = len(interim_schedule([sizes[name] for name in order]))
        analyses = (*before.looks, *before.earlier) if before else ()
        fresh = Stopping({}, order, sum(sizes.values()), planned, analyses)
        return fresh.asking(questions_of(self.bench.folder, self.plan))

    def _ends_of_rounds(self, order: Sequence[Shard]) -> list[int]:
        """After how many shards to analyse, from the last round that is finished already."""
        ends = interim_schedule([len(shard.samples) for shard in order])
        n_whole = self._n_whole(order)
        first = max((end for end in ends if end <= n_whole), default=0)
        return [end for end in ends if end >= first]

    def _n_whole(self, order: Sequence[Shard]) -> int:
        """How many shards are finished before the first that is not."""
        finished = finished_cells(Ledger(Storage(self.bench.folder)))  # which a dry run may not find
        for number, shard in enumerate(order):
            if any(True for _ in Unfinished(replace(self.plan, shards=(shard,)), finished)):
                return number
        return len(order)

    def _run_round(self, order: Sequence[Shard], done: int, end: int, dispatcher: Dispatcher) -> int:
        """Run the shards up to `end`, or as many as time and passes allow; how many are done then."""
        while done < end and (fitting := self._n_fitting(order[done:end], dispatcher)):
            shards = order[done : done + fitting]
            dispatcher.dispatch(self._unfinished(shards))
            dispatcher.publish()
            if dispatcher.stopped and not self._is_whole(shards):
                break
            done += fitting
        return done

    @property
    def _sizes(self) -> dict[str, int]:
        return {shard.id: len(shard.samples) for shard in self.plan.shards}

    def _unfinished(self, shards: Sequence[Shard]) -> Unfinished:
        return Unfinished(replace(self.plan, shards=tuple(shards)), self.finished, self.retry_errors)

    def _is_whole(self, shards: Sequence[Shard]) -> bool:
        finished = finished_cells(Ledger.open(self.bench.folder))
        return not len(Unfinished(replace(self.plan, shards=tuple(shards)), finished))

    def _n_fitting(self, shards: Sequence[Shard], dispatcher: Dispatcher) -> int:
        """How many of the next shards will probably not exceed the passes that are left.

        A command that has done nothing yet begins one, whatever it may take: otherwise it would never advance.
        """
        if self.max_passes is None:
            return len(shards)
        spent, measured = dispatcher.progress.n_passes, self._measured_passes()
        left = float(self.max_passes - spent)
        for number, shard in enumerate(shards):
            to_come = sum(self._expected_passes(cell, measured) for cell in self._unfinished([shard]))
            left -= to_come
            if to_come and not spent:
                return number + 1
            if left < 0:
                return number
        return len(shards)

    def _measured_passes(self) -> dict[tuple[str, str], float]:
        """Mean passes per sample of what was run, by model and arm."""
        rows = Ledger.open(self.bench.folder).query(_PASSES).to_pylist()
        return {(row["model"], row["arm"]): row["passes"] for row in rows}

    def _expected_passes(self, cell: Cell, measured: Mapping[tuple[str, str], float]) -> float:
        """Passes of a cell: as measured, or else at most."""
        if (per_sample := measured.get((cell.model, cell.arm.id))) is None:
            return self._at_most(cell)
        return per_sample * len(cell.shard.samples)

    @cached_property
    def _at_most(self) -> Callable[[Cell], float]:
        return expected_work(self.bench)

    def _analyses(self, state: Stopping, n_shards: int, targets: Sequence[StoppingTarget]) -> list[Look]:
        if not targets or self.analyse is None:
            return []
        folder, sizes = self.bench.folder, self._sizes
        return analyse_targets(state, n_shards, targets, folder=folder, sizes=sizes, analyse=self.analyse)

    def _final_analysis(self, state: Stopping, n_shards: int) -> Stopping:
        """Analyse at the end every decision that was analysed before: its reader decides then."""
        decisions = {parse_target(one.target) for one in state.looks if one.decides} - set(self.targets)
        state = state.with_looks(*self._analyses(state, n_shards, sorted(decisions, key=lambda one: one.text)))
        write_stopping(self.bench.folder, state)
        return state

    def _stop_where_spent(self, state: Stopping, shards: Sequence[Shard], dispatcher: Dispatcher) -> None:
        """Stop after whole shards where passes are spent; where time ran out, the run is merely not finished."""
        if self.max_passes is not None and not dispatcher.past_deadline:
            dispatcher.stop()
            if shards:
                state = state.with_looks(*self._analyses(state, len(shards), self.targets))
                self._stop_early(replace(state, max_passes=self.max_passes), shards, dispatcher)

    def _stop_early(self, state: Stopping, shards: Sequence[Shard], dispatcher: Dispatcher) -> None:
        state = self._final_analysis(state, len(shards))
        if len(shards) == len(state.order):
            return  # nothing is left out
        n = sum(len(shard.samples) for shard in shards)
        write_stopping(self.bench.folder, replace(state, n_shards=len(shards), n_samples_run=n))
        dispatcher.expect_no_more()


def analyse_targets(
    state: Stopping,
    n_shards: int,
    targets: Sequence[StoppingTarget],
    *,
    folder: Path,
    sizes: Mapping[str, int],
    analyse: InterimAnalysis,
) -> list[Look]:
    """Analyse targets on the first so many shards; decisions with a share of the alpha that is left."""
    shards = state.order[:n_shards]
    ledger = Ledger.open(folder).of_shards(shards).named()
    n_samples = sum(sizes[name] for name in shards)
    analyses = []
    for target in targets:
        before = state.look(target.text, n_shards)
        share = before.share if before else _alpha_share(state, target, n_shards, sizes)
        seen = analyse(target, ledger, share)
        analysis = Look(target.text, target.decides, n_shards, n_samples, share, seen.level, seen.met, seen.said)
        question = state.questions.get(target_kind(target.text), "")
        plan = before.plan if before else state.plan
        analyses.append(replace(analysis, question=question, shards=digest(list(shards)), plan=plan))
    return analyses


def _alpha_share(state: Stopping, target: StoppingTarget, n_shards: int, sizes: Mapping[str, int]) -> float:
    """Alpha spending: every analysis planned for these samples gets the same share, taken or not."""
    if not target.decides:
        return 1.0
    ends = {*interim_schedule([sizes[name] for name in state.order]), n_shards}
    taken = {end: state.look(target.text, end) for end in ends}
    planned = [end for end, one in taken.items() if one is None or one.plan == state.plan]
    return alpha_share(*state.spent(target.text), len(planned))


def questions_of(folder: Path, plan: Plan) -> dict[str, str]:
    """Names what each kind of target asks: of these models and arms, and of what the study says beside them."""
    recipes = digest(sorted([model, arm, recipe] for (model, arm), recipe in plan.recipes.items()))
    return {kind: f"{asked}-{recipes}" for kind, asked in asked_now(folder).items()}
