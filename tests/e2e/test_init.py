"""`advrisk init --model … --data …`: from a module and an .npz file to a report."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import save_file
from sklearn.datasets import load_digits

from advrisk.parts.models.torch_module import build, load_weights

Advrisk = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def mine(nets: Path, tmp_path: Path) -> Path:
    """A module with a network for digits, its weights, and 60 digits as bytes."""
    (tmp_path / "digit_nets.py").write_text(
        "from advrisk.parts.models.small import SmallCnn\n\ndef reader():\n    return SmallCnn(size=8, width=8)\n"
    )
    module = build("advrisk.parts.models.small:SmallCnn", {"size": 8, "width": 8})
    load_weights(module, nets / "plain.safetensors", "plain")
    save_file(module.state_dict(), tmp_path / "reader.safetensors")
    digits = load_digits()
    images = np.round(digits.images[-60:] * 255 / 16).astype(np.uint8)
    np.savez(tmp_path / "mine.npz", x=images, y=digits.target[-60:])
    return tmp_path


def test_the_written_study_runs(mine: Path, advrisk: Advrisk) -> None:
    given = ("--model", "digit_nets:reader", "--data", "mine.npz", "--weights", "reader.safetensors")
    written = advrisk("init", *given)
    assert written.returncode == 0, written.stderr
    assert "mine.npz: 60 images of 1×8×8, 10 classes" in written.stdout
    assert "marked `# ?` need your answer" in written.stdout
    assert written.stdout.splitlines()[-1] == "Next: advrisk run study.yaml"
    done = advrisk("run", "study.yaml", "--json")
    assert done.returncode == 0, done.stderr
    assert [row["model"] for row in json.loads(done.stdout)["models"]] == ["reader"]
    assert (mine / "runs" / "reader" / "report.html").is_file()


def test_mistakes_write_nothing(mine: Path, advrisk: Advrisk) -> None:
    for words, message in (
        (("--model", "digit_nets:writer", "--data", "mine.npz"), "digit_nets has no 'writer'"),
        (("--model", "digit_nets:reader", "--data", "yours.npz"), "yours.npz: there is no such file"),
        (("--model", "digit_nets:reader"), "--model and --data go together"),
        (("--weights", "reader.safetensors"), "--model and --data go together"),
    ):
        done = advrisk("init", *words)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
        assert not (mine / "study.yaml").exists()


def test_a_doubtful_model_is_written_with_a_warning(mine: Path, advrisk: Advrisk) -> None:
    done = advrisk("init", "--model", "digit_nets:reader", "--data", "mine.npz")
    assert done.returncode == 0
    assert "clean samples are classified correctly" in done.stderr
    assert (mine / "study.yaml").is_file()
