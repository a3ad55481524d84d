"""Models that neither draw nor refuse have the cells that they had before there were defences."""

import json
from pathlib import Path

from tests.golden.make_cells import STUDY, cells


def test_names_outcomes_and_passes_are_what_they_were() -> None:
    expected = json.loads((Path(__file__).parent / "cells.json").read_text())
    found = cells(STUDY)
    assert found.keys() == expected.keys()
    assert found == expected
