"""Models that neither draw nor refuse have the cells that they had before there were defences."""

import json
from pathlib import Path

import pytest

from advrisk.run.executors import choice
from tests.golden.make_cells import STUDY, cells


def test_names_outcomes_and_passes_are_what_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "worker_count", lambda *_: 0)  # in this process, which is quicker
    expected = json.loads((Path(__file__).parent / "cells.json").read_text())
    found = cells(STUDY)
    assert found.keys() == expected.keys()
    assert found == expected
