"""Sizes as a study writes them, kept beside their numbers."""

from pathlib import Path
from typing import Any

import yaml

from advrisk.run.recording import write_study
from advrisk.study import as_written, load_study, plain_sizes, study_from, written_sizes

STUDY: dict[str, Any] = {
    "name": "s",
    "data": {"source": "digits", "evaluate": 4},
    "models": {"m": {"source": "torch", "factory": "a:b", "args": {"rate": "1/4"}}},
    "arms": [{"attack": "pgd", "norm": "linf", "eps": ["1/16", "51 / 255", 0.1]}, {"attack": "fgsm", "eps": "8/255"}],
    "assess": {"damage": {"thresholds": ["51/255"]}},
}


def test_only_sizes_that_are_written_as_fractions_are_kept() -> None:
    assert written_sizes(STUDY) == {1 / 16: "1/16", 51 / 255: "51/255", 8 / 255: "8/255"}
    assert written_sizes({"eps": ["much/more", "1/0", 3, None, True]}) == {}


def test_a_study_comes_back_as_it_was_written(tmp_path: Path) -> None:
    write_study(study_from(STUDY), tmp_path)
    content = yaml.safe_load((tmp_path / "study.yaml").read_text())
    assert content["arms"][0]["eps"] == ["1/16", "51/255", 0.1]
    assert content["assess"]["damage"]["thresholds"] == ["51/255"]
    again = load_study(tmp_path / "study.yaml")
    assert again.written == study_from(STUDY).written
    assert again.arms == study_from(STUDY).arms, "the numbers are the same to the last digit"


def test_sizes_are_numbers_where_studies_are_compared() -> None:
    numbers = plain_sizes(STUDY)
    assert numbers["arms"][0]["eps"] == [1 / 16, 51 / 255, 0.1]
    assert numbers["models"] == STUDY["models"], "what is no size stays as it is"
    assert as_written(numbers, written_sizes(STUDY))["arms"][1]["eps"] == "8/255"
