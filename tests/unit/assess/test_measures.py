"""Measures of a run."""

from pathlib import Path

from advrisk.assess.measures import read_measures
from advrisk.ledger import Ledger


def test_nothing_measured_is_nothing_read(tmp_path: Path) -> None:
    assert read_measures(Ledger.open(tmp_path, create=True)) == {}
