"""Running until enough is known: shards in growing rounds, a look after each, and an end once the targets are met.

Every model meets every arm on the same shards, so that whole samples accumulate, and models stay compared on the same
ones. Nothing here knows what a target is about: whoever looks is handed in.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from advrisk.assess.interim import Seen, look_level, shard_order
from advrisk.core.digest import digest
from advrisk.ledger import Ledger, Storage
from advrisk.ledger.stopping import Look, Stopping, asked_now, read_stopping, write_stopping
from advrisk.plan import Cell, Plan, Shard
from advrisk.risk.looks import look_places, look_share
from advrisk.run.bench import Workbench
from advrisk.run.crew import Crew, Unfinished, finished_cells
from advrisk.run.longest import expected_work
from advrisk.study import Target, asked_level, parse_target, target_kind

_PASSES = """
    SELECT model, arm, avg(n_forward + n_backward + n_judge)::DOUBLE AS passes FROM outcomes
    WHERE sample IN (SELECT sample FROM samples WHERE split = 'evaluate') GROUP BY ALL
"""


@dataclass(frozen=True)
class Ahead:
    """Looks that a run will take at most: after how many samples, at which level, and the shards up to the first."""

    n_samples: tuple[int, ...]
    levels: Mapping[str, float]  # target -> at the first look
    first: tuple[str, ...]


Looker = Callable[[Target, Ledger, float], Seen]  # the last is the share of the error that may be spent


@dataclass(frozen=True)
class Rounds:
    """What is to be run, until when, and who looks."""

    bench: Workbench
    plan: Plan
    finished: Set[str]  # cells
    targets: Sequence[Target]
    look: Looker | None
    max_passes: int | None
    retry_errors: bool = False

    def carry_out(self, crew: Crew) -> None:
        """Round after round, until the targets are met, or what may be spent is."""
        folder, state = self.bench.folder, self._begun()
        write_stopping(folder, state)
        shards = {shard.id: shard for shard in self.plan.shards}
        order = [shards[name] for name in state.order]
        done = 0
        for place in self._places_ahead(order):
            done = self._done(order, done, place, crew)
            if done < place:
                self._rest_where_spent(state, order[:done], crew)
                return
            looks = self._looks(state, done, self.targets)
            state = state.with_looks(*looks)
            write_stopping(folder, state)
            if looks and all(look.met for look in looks):
                self._rest(state, order[:done], crew)
                return
        self._watch(state, done)

    def ahead(self) -> Ahead:
        """What `carry_out` would do, for whoever wants to know before; nothing is written."""
        state, sizes = self._begun(), self._sizes
        shards = {shard.id: shard for shard in self.plan.shards}
        places = self._places_ahead([shards[name] for name in state.order])
        n_samples = tuple(sum(sizes[name] for name in state.order[:place]) for place in places)
        n_models = len(self.bench.material.models.keys() - self.bench.material.surrogates)
        study, levels = self.bench.study, {}
        for target in self.targets:
            known = state.look(target.text, places[0])
            share = known.share if known else _share(state, target, places[0], sizes)
            own = look_level(target, study, share, n_models=n_models)
            levels[target.text] = asked_level(target.text, study) if own is None else own
        return Ahead(n_samples, levels, state.order[: places[0]])

    def _places_ahead(self, order: Sequence[Shard]) -> list[int]:
        """Where to look: first at the last place that is finished already. Nobody looked at those before it."""
        places = look_places([len(shard.samples) for shard in order])
        n_whole = self._n_whole(order)
        begin = max((place for place in places if place <= n_whole), default=0)
        return [place for place in places if place >= begin]

    def _n_whole(self, order: Sequence[Shard]) -> int:
        """How many shards are finished before the first that is not."""
        finished = finished_cells(Ledger(Storage(self.bench.folder)))  # which a dry run may not find
        for number, shard in enumerate(order):
            if any(True for _ in Unfinished(replace(self.plan, shards=(shard,)), finished)):
                return number
        return len(order)

    def carry_out_all(self, cells: Iterable[Cell], crew: Crew) -> None:
        """Everything at once, beyond where the run rested; looks are remembered."""
        if read_stopping(self.bench.folder) is None:
            crew.carry_out(cells)
            return
        state = self._begun()
        write_stopping(self.bench.folder, state)
        crew.carry_out(cells)
        crew.publish()
        if self._is_whole(self.plan.shards):
            self._watch(state, len(state.order))

    def _begun(self) -> Stopping:
        """With earlier looks at the same question, if any; shards that were in order keep their places."""
        before = read_stopping(self.bench.folder)
        sizes = self._sizes
        order = shard_order(sizes, before.order if before else (), seed=self.bench.study.seed)
        planned = len(look_places([sizes[name] for name in order]))
        looks = (*before.looks, *before.earlier) if before else ()
        fresh = Stopping({}, order, sum(sizes.values()), planned, looks)
        return fresh.asking(questions_of(self.bench.folder, self.plan))

    @property
    def _sizes(self) -> dict[str, int]:
        return {shard.id: len(shard.samples) for shard in self.plan.shards}

    def _done(self, order: Sequence[Shard], done: int, place: int, crew: Crew) -> int:
        """How many shards are done once those up to a place are, or as many as may be."""
        while done < place and (fitting := self._fitting(order[done:place], crew)):
            shards = order[done : done + fitting]
            crew.carry_out(self._unfinished(shards))
            crew.publish()
            if crew.out_of_time and not self._is_whole(shards):
                break
            done += fitting
        return done

    def _unfinished(self, shards: Sequence[Shard]) -> Unfinished:
        return Unfinished(replace(self.plan, shards=tuple(shards)), self.finished, self.retry_errors)

    def _is_whole(self, shards: Sequence[Shard]) -> bool:
        finished = finished_cells(Ledger.open(self.bench.folder))
        return not len(Unfinished(replace(self.plan, shards=tuple(shards)), finished))

    def _fitting(self, shards: Sequence[Shard], crew: Crew) -> int:
        """How many of the next shards will probably not go beyond the passes that are left.

        A command that has done nothing yet begins one, whatever it may take: otherwise it would never go on.
        """
        if self.max_passes is None:
            return len(shards)
        spent, known = crew.progress.n_passes, self._measured()
        left = float(self.max_passes - spent)
        for number, shard in enumerate(shards):
            to_come = sum(self._expected(cell, known) for cell in self._unfinished([shard]))
            left -= to_come
            if to_come and not spent:
                return number + 1
            if left < 0:
                return number
        return len(shards)

    def _measured(self) -> dict[tuple[str, str], float]:
        """Passes of a sample by model and arm, in the mean of what was run."""
        rows = Ledger.open(self.bench.folder).query(_PASSES).to_pylist()
        return {(row["model"], row["arm"]): row["passes"] for row in rows}

    def _expected(self, cell: Cell, known: Mapping[tuple[str, str], float]) -> float:
        """Passes of a cell: as measured, or else at most."""
        if (per_sample := known.get((cell.model, cell.arm.id))) is None:
            return self._at_most(cell)
        return per_sample * len(cell.shard.samples)

    @cached_property
    def _at_most(self) -> Callable[[Cell], float]:
        return expected_work(self.bench)

    def _looks(self, state: Stopping, n_shards: int, targets: Sequence[Target]) -> list[Look]:
        if not targets or self.look is None:
            return []
        return taken_looks(state, n_shards, targets, folder=self.bench.folder, sizes=self._sizes, look=self.look)

    def _watch(self, state: Stopping, n_shards: int) -> Stopping:
        """Where a run ends, whoever reads it decides: that is a look at every decision that was looked at before."""
        known = {parse_target(look.target) for look in state.looks if look.decides} - set(self.targets)
        state = state.with_looks(*self._looks(state, n_shards, sorted(known, key=lambda one: one.text)))
        write_stopping(self.bench.folder, state)
        return state

    def _rest_where_spent(self, state: Stopping, shards: Sequence[Shard], crew: Crew) -> None:
        """Rest after whole shards where passes are spent; where time ran out, the run is merely not finished."""
        if self.max_passes is not None and not crew.is_late:
            crew.stop()
            if shards:
                state = state.with_looks(*self._looks(state, len(shards), self.targets))
                self._rest(replace(state, max_passes=self.max_passes), shards, crew)

    def _rest(self, state: Stopping, shards: Sequence[Shard], crew: Crew) -> None:
        state = self._watch(state, len(shards))
        if len(shards) == len(state.order):
            return  # nothing is left out
        n = sum(len(shard.samples) for shard in shards)
        write_stopping(self.bench.folder, replace(state, n_shards=len(shards), n_samples_run=n))
        crew.tell(replace(crew.progress, n_cells=crew.progress.n_done))


def taken_looks(
    state: Stopping, n_shards: int, targets: Sequence[Target], *, folder: Path, sizes: Mapping[str, int], look: Looker
) -> list[Look]:
    """Look at targets after the first so many shards; at decisions with a share of the error that is left."""
    shards = state.order[:n_shards]
    ledger = Ledger.open(folder).of_shards(shards).named()
    n_samples = sum(sizes[name] for name in shards)
    looks = []
    for target in targets:
        before = state.look(target.text, n_shards)
        share = before.share if before else _share(state, target, n_shards, sizes)
        seen = look(target, ledger, share)
        found = Look(target.text, target.decides, n_shards, n_samples, share, seen.level, seen.met, seen.said)
        question = state.questions.get(target_kind(target.text), "")
        plan = before.plan if before else state.plan
        looks.append(replace(found, question=question, shards=digest(list(shards)), plan=plan))
    return looks


def _share(state: Stopping, target: Target, n_shards: int, sizes: Mapping[str, int]) -> float:
    """Of the error that is allowed; all looks that are planned for these samples get as much, made or not."""
    if not target.decides:
        return 1.0
    places = {*look_places([sizes[name] for name in state.order]), n_shards}
    known = {place: state.look(target.text, place) for place in places}
    planned = [place for place, look in known.items() if look is None or look.plan == state.plan]
    return look_share(*state.spent(target.text), len(planned))


def questions_of(folder: Path, plan: Plan) -> dict[str, str]:
    """Names what each kind of target asks: of these models and arms, and of what the study says beside them."""
    recipes = digest(sorted([model, arm, recipe] for (model, arm), recipe in plan.recipes.items()))
    return {kind: f"{asked}-{recipes}" for kind, asked in asked_now(folder).items()}
