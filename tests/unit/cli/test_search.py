"""`advrisk show search RUN`: sections, CSV, JSON; and what is refused."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from advrisk.assess.context import Context
from advrisk.assess.search import question
from advrisk.cli.lines import show_finding
from advrisk.cli.options import Output
from advrisk.core.errors import RiskError
from advrisk.ledger.searches import SearchRecord, Trial
from advrisk.ledger.views import ALL

AXES = ({"name": "x", "low": 0.0, "high": 1.0, "log": False},)
TRIALS = tuple(Trial(place, "random", f"a{place}", {"x": place / 4}, place, 9, 0, place == 3) for place in range(4))
ONE = SearchRecord("id", "plain", "nes-linf-1", "linf", 1.0, "random", AXES, 4, 1, 9, TRIALS, True)
RUN: Any = SimpleNamespace(view=ALL, status=lambda: SimpleNamespace(done=True))


def asked(monkeypatch: pytest.MonkeyPatch, *found: SearchRecord, study: Any = None, **given: Any) -> Any:
    """The answer of a run that holds these searches."""
    monkeypatch.setattr(question, "read_searches", lambda ledger: list(found))
    spec = question.SearchesSpec(**given)
    return question.Searches().assess(Context(ledger=SimpleNamespace(), study=study), spec)  # type: ignore[arg-type]


def test_the_worst_settings_come_first(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    show_finding(RUN, "search", (ONE,), Output(out_csv=str(tmp_path / "all.csv")))
    shown = capsys.readouterr().out
    assert "nes-linf-1 over x against plain" in shown
    assert shown.index("x 0.75") < shown.index("x 0.25")
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 5


def test_machines_get_every_trial(capsys: pytest.CaptureFixture[str]) -> None:
    show_finding(RUN, "search", (ONE,), Output(as_json=True))
    (found,) = json.loads(capsys.readouterr().out)
    assert [trial["failures"] for trial in found["trials"]] == [0, 1, 2, 3]
    assert found["label"] == ONE.label


def test_only_the_models_that_are_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    both = ONE, replace(ONE, model="hard")
    assert asked(monkeypatch, *both) == both
    assert asked(monkeypatch, *both, models=["hard"]) == both[1:]


def test_what_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RiskError, match="no search was made against a model called 'plan'; did you mean 'plain'"):
        asked(monkeypatch, ONE, models=["plan"])
    assert str(asked(monkeypatch)).startswith("this run holds no search; add a section `search`")
    lost = str(asked(monkeypatch, study=SimpleNamespace(search=[{}])))
    assert lost.endswith("the folder `search` of the run is gone; run the same study again")


def test_details_show_each_of_several_searches(capsys: pytest.CaptureFixture[str]) -> None:
    both = (ONE, replace(ONE, model="hard"))
    show_finding(RUN, "search", both, Output())
    assert "x 0.25" not in capsys.readouterr().out
    show_finding(RUN, "search", both, Output(details=True))
    assert "x 0.25" in capsys.readouterr().out
