"""`advrisk show search RUN`: a table, CSV, JSON; and what is refused."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from advrisk.cli.search import show_searches
from advrisk.core.errors import RiskError
from advrisk.ledger.searches import SearchRecord, Trial

AXES = ({"name": "x", "low": 0.0, "high": 1.0, "log": False},)
TRIALS = tuple(Trial(place, "random", f"a{place}", {"x": place / 4}, place, 9, 0, place == 3) for place in range(4))
ONE = SearchRecord("id", "plain", "nes-linf-1", "linf", 1.0, "random", AXES, 4, 1, 9, TRIALS, True)
RUN = SimpleNamespace(searches=lambda: [ONE], study=None)


def test_the_worst_settings_come_first(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    show_searches(RUN, None, out_csv=tmp_path / "all.csv", as_json=False)
    shown = capsys.readouterr().out
    assert "nes-linf-1 over x against plain" in shown
    assert shown.index("x 0.75") < shown.index("x 0.25")
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 5


def test_machines_get_every_trial(capsys: pytest.CaptureFixture[str]) -> None:
    show_searches(RUN, ["plain"], out_csv=None, as_json=True)
    (found,) = json.loads(capsys.readouterr().out)
    assert [trial["failures"] for trial in found["trials"]] == [0, 1, 2, 3]
    assert found["label"] == ONE.label


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(RiskError, match="no search was made against a model called 'plan'; did you mean 'plain'"):
        show_searches(RUN, ["plan"], out_csv=None, as_json=False)
    with pytest.raises(RiskError, match="this run holds no search"):
        show_searches(SimpleNamespace(searches=list, study=None), None, out_csv=None, as_json=False)
    study = SimpleNamespace(search=[{}])
    with pytest.raises(RiskError, match="the folder `search` of the run is gone; run the same study again"):
        show_searches(SimpleNamespace(searches=list, study=study), None, out_csv=None, as_json=False)


def test_it_says_how_many_are_shown_and_what_is_not_run_yet(capsys: pytest.CaptureFixture[str]) -> None:
    many = [Trial(place, "random", f"a{place:02}", {"x": place / 30}, 1, 9, 0, False) for place in range(25)]
    waiting = Trial(3, "random", "z", {"x": 0.9}, 0, 0, 0, False)
    few = replace(ONE, trials=(*TRIALS, waiting), finished=False)
    runs = SimpleNamespace(searches=lambda: [replace(ONE, trials=tuple(many)), few], study=None)
    show_searches(runs, None, out_csv=None, as_json=False)
    shown = " ".join(capsys.readouterr().out.split())
    assert "The worst 10 of 25 settings" in shown
    assert "not run yet" in shown


def test_errors_stand_in_a_column_where_there_are_some(capsys: pytest.CaptureFixture[str]) -> None:
    show_searches(RUN, None, out_csv=None, as_json=False)
    assert "errors" not in capsys.readouterr().out
    lost = Trial(4, "random", "a4", {"x": 1.0}, 0, 0, 9, False)
    some = SimpleNamespace(searches=lambda: [replace(ONE, trials=(*TRIALS, lost))], study=None)
    show_searches(some, None, out_csv=None, as_json=False)
    shown = capsys.readouterr().out
    assert "errors" in shown
    assert "1 setting ended on some samples with an error or a timeout" in " ".join(shown.split())
    assert shown.rindex("x 1") > shown.index("x 0 ")
