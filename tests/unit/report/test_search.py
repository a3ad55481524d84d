"""Figures and words of searches, from records made by hand."""

import json

from advrisk.ledger.searches import SearchRecord, Trial
from advrisk.report.search import search_content, search_words
from advrisk.report.search_figures import surface, trajectory

X, Y = ({"name": name, "low": 0.01, "high": 1.0, "log": log} for name, log in (("x", True), ("y", False)))


def trial(place: int, failures: int, n: int = 10, *, frozen: bool = False) -> Trial:
    setting = {"x": 0.02 * (place + 1), "y": 0.1 * (place + 1)}
    return Trial(place, "grid", f"a{place}", setting, failures, n, 0, frozen)


def record(*trials: Trial, axes: tuple[dict[str, object], ...] = (X, Y), finished: bool = True) -> SearchRecord:
    return SearchRecord("id", "plain", "nes-linf-1", "linf", 1.0, "grid", axes, 4, 1, 10, trials, finished)


def test_the_worst_so_far_counts_settings_that_met_all_samples() -> None:
    line, tried = trajectory(record(trial(0, 2), trial(1, 5, frozen=True), trial(2, 4, n=5), trial(3, 1)))["data"]
    assert line["y"] == [0.2, 0.5, 0.5, 0.5]
    assert tried["y"] == [0.2, 0.5, 0.8, 0.1]
    assert tried["marker"]["symbol"] == ["circle", "circle", "circle-open", "circle"]


def test_two_parameters_make_a_heat_map_and_others_partial_plots() -> None:
    (figure,) = surface(record(trial(0, 2), trial(1, 5)))
    heat, points = figure["data"]
    assert {cell for row in heat["z"] for cell in row} == {0.2, 0.5}, "each cell has the rate of the nearest setting"
    assert points["x"] == [0.02, 0.04]
    assert figure["layout"]["xaxis"]["type"] == "log"
    assert figure["layout"]["yaxis"]["type"] == "linear"
    (alone,) = surface(record(trial(0, 2), axes=(X,)))
    assert alone["data"][0]["y"] == [0.2]
    assert len(surface(record(trial(0, 2), axes=(X, Y, X)))) == 3


def test_a_search_that_has_just_begun_can_be_shown() -> None:
    empty = record(finished=False)
    content = search_content([empty])
    assert json.dumps(content["search_figures"])
    assert search_words(empty) == "0 settings tried by grid. It is not finished: 0 of 4 rounds."
    unseen = record(trial(0, 0, n=0), finished=False)
    assert "1 setting tried by grid, 1 of them not run yet." in search_words(unseen)
    assert unseen.trials[0].rate is None


def test_words_and_lines_name_the_worst() -> None:
    one = record(trial(0, 2), trial(1, 5, frozen=True), trial(2, 5))
    assert search_words(one) == (
        "3 settings tried by grid; the worst, x 0.04, y 0.2, breaks 5 of 10 samples. 1 other setting tried breaks as "
        "large a share: of equals, those nearest to the attack's own default setting are frozen first."
    )
    lines = one.rows()
    assert [line["failures"] for line in lines] == [2, 5, 5]
    assert [line["frozen"] for line in lines] == [False, True, False]


def test_of_equals_the_frozen_one_is_told_and_a_search_that_broke_nothing_says_so() -> None:
    one = record(trial(0, 0), trial(1, 0, frozen=True))
    assert one.worst is one.trials[1]
    assert "The search found nothing that breaks a sample on the 10 samples to tune" in search_words(one)
    assert "as large a share" not in search_words(record(trial(0, 2), trial(1, 5)))
