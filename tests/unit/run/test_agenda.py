"""In which order cells are handed out."""

import time

from advrisk.plan import Cell, Shard
from advrisk.run.agenda import Agenda
from advrisk.study import CLEAN

NEVER = float("inf")


def cell(name: str, *needs: Cell) -> Cell:
    return Cell(name, "r", "plain", CLEAN, Shard("s", ("a",)), 0, needs)


def test_a_cell_waits_for_what_it_needs_and_others_pass_it() -> None:
    first, alone, later = cell("first"), cell("alone"), cell("later")
    moved = cell("moved", first)
    agenda = Agenda([first, moved, alone, later], NEVER)
    assert agenda.next() == first
    assert agenda.next() == alone
    agenda.finished("first")
    assert agenda.next() == moved, "it has waited longest"
    assert agenda.next() == later
    assert agenda.next() is None


def test_nothing_is_handed_out_while_all_wait_and_nothing_is_lost() -> None:
    first = cell("first")
    moved = [cell(f"moved{number}", first) for number in range(3)]
    agenda = Agenda([first, *moved], NEVER)
    assert agenda.next() == first
    assert agenda.next() is None
    agenda.finished("first")
    assert [agenda.next() for _ in range(4)] == [*moved, None]


def test_what_was_finished_in_an_earlier_run_is_not_waited_for() -> None:
    moved = cell("moved", cell("done before"))
    assert Agenda([moved], NEVER).next() == moved


def test_nothing_is_begun_after_the_deadline_however_long_it_waited() -> None:
    first = cell("first")
    agenda = Agenda([first, cell("moved", first)], time.monotonic() + 0.05)
    assert agenda.next() == first
    assert agenda.next() is None
    agenda.finished("first")
    time.sleep(0.06)
    assert agenda.next() is None


def test_a_cell_that_needs_a_lost_one_is_told() -> None:
    first = cell("first")
    moved = cell("moved", first)
    agenda = Agenda([first, moved], NEVER)
    assert agenda.lost_need(moved) is None
    agenda.finished("first", lost=True)
    assert agenda.lost_need(moved) == first
