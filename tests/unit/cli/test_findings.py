"""`advrisk show`: each finding asks the run for its own thing, with the options that belong to it."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from advrisk.cli.findings import show_damage, show_rows
from advrisk.cli.tables import arm_table, model_table
from advrisk.ledger.views import ALL

ASKED = {"norm": "l2", "arms": ["pgd*"], "thresholds": [0.1], "evasion": None, "detector": None}
PAID = {"cost": 3.0, "answers": "sqlite:///a.db"}
SHOWN = {"out_csv": None, "as_json": True}


class Recorder:
    """Stands in for a run: answers every question with the question."""

    view = ALL

    def part(self, **given: Any) -> "Part":
        return Part(given)

    def __getattr__(self, name: str) -> Any:
        def answer(**given: Any) -> Any:
            told = {"asked": name, "given": given}
            return told if name in ("arms", "models") else SimpleNamespace(as_dict=lambda: told, rows=list, columns={})

        return answer


class Part:
    """The run with other options: it is asked which model it names, and for the damage behind that."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.told = {"asked": "damage", "given": given}

    def select(self) -> Any:
        found = SimpleNamespace(rows=list, columns={})
        return SimpleNamespace(damage=found, as_dict=lambda: self.told, headlines=())


@pytest.mark.parametrize(
    ("what", "show", "given"),
    [
        ("damage", lambda run: show_damage(run, ASKED, **PAID, **SHOWN), ASKED | PAID),
        ("arms", lambda run: show_rows(run, run.arms(arms=["pgd*"]), arm_table, as_json=True), {"arms": ["pgd*"]}),
        ("models", lambda run: show_rows(run, run.models(), model_table, as_json=True), {}),
    ],
)
def test_each_word_asks_for_its_own_thing(
    capsys: pytest.CaptureFixture[str], what: str, show: Callable[[Any], None], given: dict[str, Any]
) -> None:
    show(Recorder())
    assert json.loads(capsys.readouterr().out) == {"asked": what, "given": given}
