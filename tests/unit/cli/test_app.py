"""`advrisk run` reads the study file once."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import advrisk.study
from advrisk.cli.app import app

STUDY = {
    "name": "small",
    "data": {"source": "digits", "evaluate": 4},
    "models": {
        "net": {
            "source": "torch",
            "factory": "advrisk.parts.models.small:SmallCnn",
            "args": {"size": 8},
            "expect_accuracy": 0,
        }
    },
    "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.1}],
}


def test_a_study_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, read, load = tmp_path / "study.yaml", [], advrisk.study.load_study
    file.write_text(yaml.safe_dump(STUDY))

    def loaded(path: Any, **given: Any) -> Any:
        read.append(path)
        return load(path, **given)

    monkeypatch.setattr(advrisk.study, "load_study", loaded)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["run", str(file), "--dry-run"], catch_exceptions=False)
    assert done.exit_code == 0
    assert read == [file]
