"""`advrisk show search RUN`: sections, CSV, JSON; and what is refused."""

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


def test_details_show_each_of_several_searches(capsys: pytest.CaptureFixture[str]) -> None:
    both = SimpleNamespace(searches=lambda: [ONE, replace(ONE, model="hard")], study=None)
    show_searches(both, None)
    assert "x 0.25" not in capsys.readouterr().out
    show_searches(both, None, details=True)
    assert "x 0.25" in capsys.readouterr().out
