"""The study as it is written beside the ledger."""

from pathlib import Path

import pytest

from advrisk.ledger.layout import STUDY_FILE
from advrisk.run.recording import refuse_another_study, write_study
from advrisk.study import load_study

STUDY = """\
name: toy
data: {source: digits, evaluate: 6}
models: {linear: {source: object}}
success: SUCCESS
arms:
  - {attack: pgd, norm: linf, eps: 1/10, objective: ace}
"""
TARGETS = ["3", "next", "least-likely", "{0: 3, 1: 2, 2: 0}"]


@pytest.mark.parametrize("success", ["label", "prediction", *(f"{{target: {target}}}" for target in TARGETS)])
def test_a_study_is_written_as_it_can_be_read_again(tmp_path: Path, success: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(STUDY.replace("SUCCESS", success))
    study = load_study(file)
    write_study(study, tmp_path)
    again = load_study(tmp_path / STUDY_FILE)
    assert again.model_dump() == study.model_dump()
    assert (again.success, again.criterion) == (study.success, study.criterion)
    refuse_another_study(study, tmp_path)
