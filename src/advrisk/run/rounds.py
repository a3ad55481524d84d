"""Running until enough is known: shards in growing rounds, a look after each, and an end once the targets are met.

Every model meets every arm on the same shards, so that whole samples accumulate, and models stay compared on the same
ones. Nothing here knows what a target is about: whoever looks is handed in.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from advrisk.core.digest import digest
from advrisk.core.seeds import key
from advrisk.ledger import Ledger
from advrisk.ledger.stopping import Look, Stopping, read_stopping, write_stopping
from advrisk.plan import Cell, Plan, Shard
from advrisk.risk.looks import Seen, look_places, look_share
from advrisk.run.bench import Workbench
from advrisk.run.crew import Crew, Unfinished
from advrisk.run.longest import expected_work, longest_last_first
from advrisk.run.passes import is_counted, most_passes
from advrisk.study import StudySpec, Target

_PASSES = """
    SELECT model, arm, avg(n_forward + n_backward + n_judge)::DOUBLE AS passes FROM outcomes
    WHERE sample IN (SELECT sample FROM samples WHERE split = 'evaluate') GROUP BY ALL
"""


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
    workers: int
    retry_errors: bool = False

    def carry_out(self, crew: Crew) -> None:
        """Round after round, until the targets are met, or what may be spent is."""
        folder = self.bench.folder
        state = self._begun(folder)
        write_stopping(folder, state)
        shards = {shard.id: shard for shard in self.plan.shards}
        order = [shards[name] for name in state.order]
        places = look_places([len(shard.samples) for shard in order])
        done = 0
        for place in places:
            fitting = self._fitting(order[done:place], crew)
            crew.carry_out(self._cells(order[done : done + fitting]))
            crew.publish()
            if crew.out_of_time and not self._is_whole(order[done : done + fitting]):
                self._rest_where_spent(state, order[:done], crew)
                return
            done += fitting
            if done == place and self.targets:
                looks = self._looked(state, order[:done], places)
                state = state.with_looks(*looks)
                write_stopping(folder, state)
                if all(look.met for look in looks):
                    self._rest(state, order[:done], crew)
                    return
            if done < place:
                self._rest_where_spent(state, order[:done], crew)
                return

    def _begun(self, folder: Path) -> Stopping:
        """Earlier looks at the same question, or none; shards that were in order keep their places."""
        question, before = question_of(self.bench.study, self.plan), read_stopping(folder)
        known = [shard.id for shard in self.plan.shards]
        order = [name for name in (before.order if before else ()) if name in set(known)]
        fresh = sorted(set(known) - set(order), key=lambda name: key("round", self.bench.study.seed, name))
        sizes = {shard.id: len(shard.samples) for shard in self.plan.shards}
        order += fresh
        looks = before.looks if before and before.question == question else ()
        planned = len(look_places([sizes[name] for name in order]))
        return Stopping(question, tuple(order), sum(sizes.values()), planned, looks)

    def _cells(self, shards: Sequence[Shard]) -> Iterator[Cell]:
        """What is to be done there; nobody is to wait long for the last one of a round."""
        return longest_last_first(self._unfinished(shards), expected_work(self.bench), workers=self.workers)

    def _unfinished(self, shards: Sequence[Shard]) -> Unfinished:
        return Unfinished(replace(self.plan, shards=tuple(shards)), self.finished, self.retry_errors)

    def _is_whole(self, shards: Sequence[Shard]) -> bool:
        finished = Ledger.open(self.bench.folder).finished_cells()
        return not len(Unfinished(replace(self.plan, shards=tuple(shards)), finished))

    def _fitting(self, shards: Sequence[Shard], crew: Crew) -> int:
        """How many of the next shards will probably not go beyond the passes that are left.

        Where nothing was measured yet, one is begun whatever it may take at most.
        """
        if self.max_passes is None:
            return len(shards)
        left = float(self.max_passes - crew.progress.n_passes)
        known = self._measured()
        if not known and left > 0:
            return min(1, len(shards))
        for number, shard in enumerate(shards):
            left -= sum(self._expected(cell, known) for cell in self._unfinished([shard]))
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
            is_known = is_counted(cell.model, cell.arm, self.bench)
            per_sample = float(sum(most_passes(cell, self.bench))) if is_known else 0.0
        return per_sample * len(cell.shard.samples)

    def _looked(self, state: Stopping, shards: Sequence[Shard], places: Sequence[int]) -> list[Look]:
        """Look at every target; at decisions with a share of the error that is left."""
        assert self.look is not None  # where there are targets, somebody looks
        ledger = Ledger.open(self.bench.folder).of_shards(shard.id for shard in shards)
        n_samples, looks = sum(len(shard.samples) for shard in shards), []
        n_left = sum(place >= len(shards) for place in places)
        for target in self.targets:
            before = state.look(target.text, len(shards))
            share = before.share if before else look_share(state.spent(target.text), n_left) if target.decides else 1.0
            seen = self.look(target, ledger, share)
            looks.append(
                Look(target.text, target.decides, len(shards), n_samples, share, seen.level, seen.met, seen.said)
            )
        return looks

    def _rest_where_spent(self, state: Stopping, shards: Sequence[Shard], crew: Crew) -> None:
        """Rest after whole shards where passes are spent; where time ran out, the run is merely not finished."""
        if self.max_passes is not None and not crew.is_late:
            crew.stop()
            if shards:
                self._rest(replace(state, max_passes=self.max_passes), shards, crew)

    def _rest(self, state: Stopping, shards: Sequence[Shard], crew: Crew) -> None:
        if len(shards) == len(state.order):
            return  # nothing is left out
        n = sum(len(shard.samples) for shard in shards)
        write_stopping(self.bench.folder, replace(state, n_shards=len(shards), at=n))
        crew.tell(replace(crew.progress, n_cells=crew.progress.n_done))


def go_on(folder: Path) -> None:
    """A run without targets goes beyond where it rested; looks are remembered."""
    state = read_stopping(folder)
    if state is not None and state.rests:
        write_stopping(folder, replace(state, n_shards=0, at=0, max_passes=None))


def question_of(study: StudySpec, plan: Plan) -> str:
    """Names what is asked: another question has looks of its own."""
    recipes = sorted([model, arm, recipe] for (model, arm), recipe in plan.recipes.items())
    asked = study.assess.damage.model_dump(mode="json", exclude={"thresholds"})
    return digest([recipes, asked, list(study.gate)])
