"""Figures and words of searches, from records made by hand."""

import io
import json

import pytest
from rich.console import Console

from advrisk.assess.search.figures import surface, trajectory
from advrisk.assess.search.question import search_words, sections
from advrisk.core.sections import Figure, Group, Table, every, headline_of, without_twins
from advrisk.ledger.searches import SearchRecord, Trial
from advrisk.render.terminal import print_sections

X, Y = ({"name": name, "low": 0.01, "high": 1.0, "log": log} for name, log in (("x", True), ("y", False)))


def trial(place: int, failures: int, n: int = 10, *, frozen: bool = False) -> Trial:
    setting = {"x": 0.02 * (place + 1), "y": 0.1 * (place + 1)}
    return Trial(place, "grid", f"a{place}", setting, failures, n, 0, frozen)


def record(
    *trials: Trial, axes: tuple[dict[str, object], ...] = (X, Y), finished: bool = True, model: str = "plain"
) -> SearchRecord:
    return SearchRecord("id", model, "nes-linf-1", "linf", 1.0, "grid", axes, 4, 1, 10, trials, finished)


def terminal(*found: SearchRecord, width: int = 100, details: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_sections(sections(found), console, details=details)
    return console.file.getvalue()  # type: ignore[attr-defined]


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_worst_so_far_counts_settings_that_met_all_samples() -> None:
    line, tried = trajectory(record(trial(0, 2), trial(1, 5, frozen=True), trial(2, 4, n=5), trial(3, 1)))["data"]
    assert line["y"] == [0.2, 0.5, 0.5, 0.5]
    assert tried["y"] == [0.2, 0.5, 0.8, 0.1]
    assert tried["marker"]["symbol"] == ["circle", "circle", "circle-open", "circle"]


def test_two_parameters_make_a_heat_map_and_others_partial_plots() -> None:
    ((name, figure),) = surface(record(trial(0, 2), trial(1, 5))).items()
    assert name == "x and y"
    heat, points = figure["data"]
    assert {cell for row in heat["z"] for cell in row} == {0.2, 0.5}, "each cell has the rate of the nearest setting"
    assert points["x"] == [0.02, 0.04]
    assert figure["layout"]["xaxis"]["type"] == "log"
    assert figure["layout"]["yaxis"]["type"] == "linear"
    alone = surface(record(trial(0, 2), axes=(X,)))
    assert alone["x"]["data"][0]["y"] == [0.2]
    three = Trial(0, "grid", "a", {"x": 0.1, "y": 0.2, "z": 0.3}, 2, 10, 0, False)
    partial = surface(record(three, axes=(X, Y, X | {"name": "z"})))
    assert {name: plot["data"][0]["x"] for name, plot in partial.items()} == {"x": [0.1], "y": [0.2], "z": [0.3]}


def test_a_search_that_has_just_begun_can_be_shown() -> None:
    empty = record(finished=False)
    figures = [one for one in every(tuple(sections([empty]))) if isinstance(one, Figure)]
    assert json.dumps([one.spec for one in figures])
    assert search_words(empty) == ["0 settings tried by grid.", "Not finished: 0 of 4 rounds."]
    unseen = record(trial(0, 0, n=0), finished=False)
    assert search_words(unseen)[0] == "1 setting tried by grid, 1 of them not run yet."
    assert unseen.trials[0].rate is None
    assert "not run yet" in terminal(unseen)


def test_words_and_lines_name_the_worst() -> None:
    one = record(trial(0, 2), trial(1, 5, frozen=True), trial(2, 5))
    assert search_words(one) == [
        "3 settings tried by grid; the worst, x 0.04, y 0.2, breaks 5 of 10 samples.",
        "1 other setting tried breaks as large a share: of equals, those nearest to the attack's own default setting "
        "are frozen first.",
    ]
    assert headline_of(tuple(sections([one]))) == f"{one.label}: {search_words(one)[0]}"
    lines = one.rows()
    assert [line["failures"] for line in lines] == [2, 5, 5]
    assert [line["frozen"] for line in lines] == [False, True, False]


def test_of_equals_the_frozen_one_is_told_and_a_search_that_broke_nothing_says_so() -> None:
    one = record(trial(0, 0), trial(1, 0, frozen=True))
    assert one.worst is one.trials[1]
    assert "The search found nothing that breaks a sample on the 10 samples to tune" in search_words(one)[1]
    assert len(search_words(record(trial(0, 2), trial(1, 5)))) == 1, "no other breaks as large a share"


def test_the_worst_settings_are_shown_first_and_with_them_what_is_frozen() -> None:
    one = record(*(trial(place, 30 - place, n=40) for place in range(25)), trial(25, 1, frozen=True))
    first, others = (held for held in every(tuple(sections([one]))) if isinstance(held, Table))
    assert [row[1] for row in first.rows] == [*range(30, 20, -1), 1]
    assert first.notes[0].startswith("The worst 11 of 26 settings")
    assert [row[1] for row in others.rows] == [*range(20, 5, -1)]
    assert "All other settings" not in terminal(one)
    assert "All other settings" in terminal(one, details=True)


def test_a_column_of_errors_is_there_where_there_are_some() -> None:
    assert "errors" not in terminal(record(trial(0, 2)))
    lost = Trial(1, "grid", "a1", {"x": 1.0, "y": 1.0}, 0, 0, 9, False)
    said = flat(terminal(record(trial(0, 2), lost)))
    assert "errors" in said
    assert "1 setting ended on some samples with an error or a timeout, most of them x 1, y 1, on 9 samples" in said


def test_of_several_searches_the_worst_of_each_stands_above_and_each_is_folded_away() -> None:
    found = record(trial(0, 2), trial(1, 5, frozen=True)), record(trial(0, 3), finished=False, model="net-1")
    shown = tuple(sections(found))
    assert headline_of(shown) == (
        "2 searches tried 3 settings; the worst, x 0.04, y 0.2 of nes-linf-1, breaks 5 of 10 samples of plain."
    )
    overview = next(one for one in shown if isinstance(one, Table))
    assert [row[:4] for row in overview.rows] == [
        ("nes-linf-1", "plain", 2, "x 0.04, y 0.2"),
        ("nes-linf-1", "net-1", 1, "x 0.02, y 0.1"),
    ]
    assert [one.folded for one in shown if isinstance(one, Group)] == [True, True]
    assert f"· {found[1].label}: Not finished: 1 of 4 rounds." in flat(terminal(*found))
    assert without_twins(shown) == tuple(shown)
    alike = record(trial(0, 1), model="net_1"), record(trial(0, 1), model="net-1")
    assert without_twins(sections(alike)) == tuple(sections(alike))


def test_searches_that_broke_nothing_have_no_worst_setting() -> None:
    shown = tuple(sections((record(trial(0, 0)), record(trial(0, 0), model="hard"))))
    assert headline_of(shown) == "2 searches tried 2 settings; none breaks a sample."


@pytest.mark.parametrize("details", [False, True])
@pytest.mark.parametrize("width", [50, 60, 100])
def test_everything_fits_the_terminal(width: int, details: bool) -> None:
    one = record(*(trial(place, place) for place in range(10)), model="m\x1b[31m <b>x</b>")
    for found in ((one,), (one, one)):
        said = terminal(*found, width=width, details=details)
        assert max(map(len, said.splitlines())) <= width
        assert "\x1b" not in said
        assert "no estimate of a risk" in flat(said)
        assert "Filled points" not in said, "a terminal shows no figures"
