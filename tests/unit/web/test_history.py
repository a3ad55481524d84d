"""The history in memory leads to the choices that all rows of the database lead to."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advrisk.answers import tables
from advrisk.answers.records import Labeller, Shown, TrialRow
from advrisk.answers.store import AnswerStore
from advrisk.assess.damage.answers import fit_answers
from advrisk.core.seeds import generator
from advrisk.risk.labelling import informative_sizes, next_size
from advrisk.web.history import TrialHistory
from advrisk.web.labelling import Labelling
from advrisk.web.stimuli import Pool
from advrisk.web.trials import Asking, is_catch, next_of_walk, next_shown

NEAR, ABOUT, TRIES, SHARED, RECENT = 0.10, 0.25, 6, 0.5, 12
NAMES = ("Ann", "Bob", "Cem")


# The choice by all rows, written down as plainly as can be


def rows_shown(store: AnswerStore, labeller: int | None = None) -> list[Shown]:
    table = tables.trials
    query = sa.select(*[table.c[field.name] for field in fields(Shown)]).where(~table.c.withdrawn).order_by(table.c.id)
    if labeller is not None:
        query = query.where(table.c.labeller == labeller)
    with store._reading() as connection:
        return [Shown(**row) for row in connection.execute(query).mappings()]


def chosen(pool: Pool, asking: Asking, curve, labeller: int, place: int, store: AnswerStore) -> Shown:
    own, others = rows_shown(store, labeller), rows_shown(store)
    rng = generator("label", pool.seed, labeller, place)
    if is_catch(asking.catch, pool.seed, labeller, place):
        shown = shared(0.0, own, others, rng)
        if shown is None:
            samples = sorted({example.sample for example in pool.examples})
            counts = Counter(one.sample for one in own)
            least = min(counts[sample] for sample in samples)
            shown = Shown(str(rng.choice([one for one in samples if counts[one] == least])), 0.0)
        shown = replace(shown, catch=True, model=None)
    else:
        shown = at_size(pool, next_size(curve, pool.sizes, rng), own, others, rng)
    return replace(shown, trials=asking.trials, changed_first=False)


def at_size(pool: Pool, size: float, own: Sequence[Shown], others: Sequence[Shown], rng) -> Shown:
    if one := shared(size, own, others, rng):
        return replace(one, catch=False)
    counts, recent = Counter(one.sample for one in own), {one.sample for one in own[-RECENT:]}
    seen = np.array([counts[one.sample] + 1000 * (one.sample in recent) for one in pool.examples])
    away = np.abs(pool.log_distances - np.log(size))
    shuffled = rng.permutation(np.flatnonzero((away <= ABOUT) & (seen <= seen.min() + 1)))
    for place in shuffled[np.argsort(seen[shuffled], kind="stable")][:TRIES]:
        one = pool.as_it_is(pool.examples[place])
        if abs(one.size - size) <= NEAR * size:
            return one
    least = np.flatnonzero(seen == seen.min())
    few = least[np.argsort(away[least], kind="stable")[:20]]
    return pool.scaled(pool.examples[int(rng.choice(few))], size)


def shared(size: float, own: Sequence[Shown], others: Sequence[Shown], rng) -> Shown | None:
    if rng.random() >= SHARED:
        return None
    mine, recent = {picture(one) for one in own}, {one.sample for one in own[-RECENT:]}
    fit = [
        one
        for one in others
        if abs(one.size - size) <= NEAR * size and one.sample not in recent and picture(one) not in mine
    ]
    return fit[int(rng.integers(len(fit)))] if fit else None


def picture(shown: Shown) -> tuple[str, str | None, float]:
    return shown.sample, shown.cell, shown.factor


# What people do


class Room:
    """Three labellers, and two processes that serve them."""

    def __init__(self, labelling: Labelling) -> None:
        self.labelling, self.n = labelling, 0
        self.other = AnswerStore.open(str(labelling.store._engine.url))
        mark = f"{time.monotonic_ns()}"  # the database outlives an example
        self.people = [labelling.store.invite(f"{name} {mark}", f"{name}{mark}".ljust(64, "x")) for name in NAMES]
        self.asking = Asking("yes-no")
        self.curve = fit_answers([], design="yes-no", plausible=labelling.pool.plausible, few=True)

    def do(self, what: str, who: Labeller, store: AnswerStore) -> None:
        held = store.open_trial(who.id)
        if what == "ask" and held is None:
            self.check(who)
            place = store.n_trials(who.id)
            self.n += 1
            shown = chosen(self.labelling.pool, self.asking, self.curve, who.id, place, store)
            store.put_trial(who.id, place, f"{who.name}-{self.n}", shown)
        elif what == "answer" and held is not None:
            store.put_seen(held.id)
            store.put_answer(who.id, held.nonce, "changed")
        elif what == "undo" and store.can_undo(who.id):
            self.n += 1
            store.undo(who.id, f"{who.name}-{self.n}")
        elif what == "withdraw" and held is not None:
            store.withdraw(held.id)

    def check(self, who: Labeller) -> None:
        """What is chosen by the history is what is chosen by all rows."""
        store, pool = self.labelling.store, self.labelling.pool
        seen, place = self.labelling.seen(who), store.n_trials(who.id)
        sizes = informative_sizes(self.curve, pool.sizes)
        by_rows = chosen(pool, self.asking, self.curve, who.id, place, store)
        by_history = next_shown(pool, self.asking, sizes, labeller=who.id, place=place, seen=seen)
        assert by_history == by_rows
        assert seen.n_answers == n_standing(store, who.id)


def n_standing(store: AnswerStore, labeller: int) -> int:
    trial, answer = tables.trials, tables.answers
    query = sa.select(sa.func.count()).select_from(trial).join(answer, answer.c.trial == trial.c.id)
    with store._reading() as connection:
        return connection.scalar(query.where(trial.c.labeller == labeller, answer.c.undone.is_(None)))


STEPS = st.tuples(
    st.sampled_from(["ask", "ask", "answer", "answer", "answer", "undo", "withdraw"]),
    st.integers(0, len(NAMES) - 1),
    st.booleans(),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None)
@given(steps=st.lists(STEPS, min_size=10, max_size=60))
def test_choices_are_those_by_all_rows_whatever_people_and_other_processes_do(
    labelling: Labelling, steps: list[tuple[str, int, bool]]
) -> None:
    room = Room(labelling)
    with room.other:
        for what, number, elsewhere in steps:
            room.do(what, room.people[number], room.other if elsewhere else labelling.store)
        for who in room.people:
            room.check(who)
            assert [one.shown for one in labelling.store.trials_from(who.id, 0) if one.state != "withdrawn"] == (
                rows_shown(labelling.store, who.id)
            )


def test_a_walk_counts_what_stands(labelling: Labelling) -> None:
    pool, store = labelling.pool, labelling.store
    asking = Asking("yes-no", "random", "hard", catch=0.0).checked(pool)
    store.settle(labelling.settings)
    ann = store.invite("Ann", "a" * 64)
    for n in range(5):
        shown = next_of_walk(pool, asking, labelling.seen(ann))
        assert shown is not None
        trial = store.put_trial(ann.id, n, f"n{n}", replace(shown, trials="random"))
        store.put_seen(trial.id)
        store.put_answer(ann.id, f"n{n}", "changed")
    seen = labelling.seen(ann)
    assert (seen.n_answers, seen.n_walked("hard"), seen.n_walked("plain"), len(seen.walked("hard"))) == (5, 5, 0, 5)
    store.undo(ann.id, "again")
    assert (labelling.seen(ann).n_walked("hard"), len(seen.walked("hard"))) == (4, 5)


def test_trials_that_are_read_out_of_order_are_chosen_from_in_their_order() -> None:
    """Where two processes write at once, a trial with a smaller number may be there later."""
    first, second = TrialHistory(), TrialHistory()
    rows = [TrialRow(n, n, 0, Shown(f"s{n}", 0.1), "stands") for n in range(1, 9)]
    for row in rows:
        first.put(row)
    for row in reversed(rows):
        second.put(row)
    found = [
        [history.of(99).shown(at) for at in history.of(99).of_others(0.1, within=0.01, recent=12)]
        for history in (first, second)
    ]
    assert found[0] == found[1] == [row.shown for row in rows]


def test_no_query_of_a_question_goes_through_all_trials_or_answers(labelling: Labelling) -> None:
    """Nor through all of one labeller: every table but that of labellers is searched by an index."""
    asked: list[tuple[str, object]] = []
    engine = labelling.store._engine
    ann = labelling.store.invite("Ann", "a" * 64)
    labelling.current_chooser()  # goes through all answers; on a server in the background

    def noted(_connection, _cursor, statement, given, _context, _many) -> None:
        asked.append((statement, given))

    sa.event.listen(engine, "before_cursor_execute", noted)
    for _ in range(3):
        trial = labelling.question(ann, Asking("yes-no"))
        assert trial is not None
        labelling.store.put_seen(trial.id)
        labelling.store.put_answer(ann.id, trial.nonce, "changed")
        labelling.store.can_undo(ann.id)
        labelling.store.labeller("a" * 64)
    sa.event.remove(engine, "before_cursor_execute", noted)
    with labelling.store._reading() as connection:
        plans = [
            f"{statement}: {row[3]}"
            for statement, given in asked
            if statement.startswith("SELECT")
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", given)
        ]
    assert len(plans) > 20
    assert not [plan for plan in plans if "SCAN advrisk_trials" in plan or "SCAN advrisk_answers" in plan]


@pytest.mark.parametrize("n", [400, 6400])
def test_a_question_reads_only_what_is_new(labelling: Labelling, n: int, tmp_path: Path) -> None:
    """However much was shown: a row for each labeller, and those of the labeller who went on."""
    store = labelling.store
    ann, bob = (store.invite(name, name.ljust(64, "x")) for name in ("Ann", "Bob"))
    values = {"cell": None, "factor": 1.0, "catch": False, "trials": "adaptive", "changed_first": False}
    with store._writing() as connection:
        connection.execute(
            tables.trials.insert(),
            [
                values | {"labeller": ann.id, "place": k, "nonce": f"n{k}", "sample": f"s{k % 40:02d}", "size": 0.1}
                | {"withdrawn": False, "again": False, "seen": 1.0}
                for k in range(n)
            ],
        )  # fmt: skip
        ids = connection.scalars(sa.select(tables.trials.c.id)).all()
        connection.execute(
            tables.answers.insert(),
            [{"trial": one, "said": "changed", "undetected": False, "time": 2.0} for one in ids],
        )
    assert labelling.seen(ann).n_answers == n
    read: list[int] = []
    whole = store.trials_from
    store.trials_from = lambda labeller, place: read.append(len(whole(labeller, place))) or whole(labeller, place)  # type: ignore[method-assign]
    for _ in range(3):
        trial = labelling.question(ann, Asking("yes-no"))
        assert trial is not None
        store.put_seen(trial.id)
        store.put_answer(ann.id, trial.nonce, "changed")
        assert labelling.question(bob, Asking("yes-no")) is not None
    assert max(read) <= 3
