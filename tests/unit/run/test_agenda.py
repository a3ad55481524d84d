"""In which order cells are handed out."""

from advrisk.plan import Cell, Shard
from advrisk.run.agenda import Agenda
from advrisk.run.executors import always
from advrisk.study import CLEAN


def cell(name: str, *needs: Cell) -> Cell:
    return Cell(name, "r", "plain", CLEAN, Shard("s", ("a",)), 0, needs)


def test_a_cell_waits_for_what_it_needs_and_others_pass_it() -> None:
    first, alone, later = cell("first"), cell("alone"), cell("later")
    moved = cell("moved", first)
    agenda = Agenda([first, moved, alone, later], always)
    assert agenda.next() == first
    assert agenda.next() == alone
    agenda.finished("first")
    assert agenda.next() == moved, "it has waited longest"
    assert agenda.next() == later
    assert agenda.next() is None


def test_nothing_is_handed_out_while_all_wait_and_nothing_is_lost() -> None:
    first = cell("first")
    moved = [cell(f"moved{number}", first) for number in range(3)]
    agenda = Agenda([first, *moved], always)
    assert agenda.next() == first
    assert agenda.next() is None
    agenda.finished("first")
    assert [agenda.next() for _ in range(4)] == [*moved, None]


def test_what_was_finished_in_an_earlier_run_is_not_waited_for() -> None:
    moved = cell("moved", cell("done before"))
    assert Agenda([moved], always).next() == moved


def test_nothing_is_begun_once_it_may_not_be_however_long_it_waited() -> None:
    first = cell("first")
    may = [True]
    agenda = Agenda([first, cell("moved", first)], lambda: may[0])
    assert agenda.next() == first
    assert agenda.next() is None
    agenda.finished("first")
    may[0] = False
    assert agenda.next() is None
    assert agenda.take(3) == ([], [])


def test_a_cell_that_needs_a_lost_one_is_told() -> None:
    first = cell("first")
    moved = cell("moved", first)
    agenda = Agenda([first, moved], always)
    assert agenda.take(2) == ([first], [])
    agenda.finished("first", lost=True)
    assert agenda.take(2) == ([], [(moved, first)])
