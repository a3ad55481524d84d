"""A model in several precisions."""

from pathlib import Path

import pytest

from advrisk.core.errors import StudyError
from advrisk.study import StudySpec, load_study

STUDY = """\
name: grid
data: {source: digits, evaluate: 4}
models:
  plain:
    source: object
    precision: %s
  other: {source: object, precision: [float16]}
defences:
  squeezed: {of: [plain, other], name: feature-squeezing, bits: 4}
arms:
  - {attack: transfer, from: plain, arm: {attack: fgsm, norm: linf, eps: 0.1}}
"""


def load(folder: Path, precision: str) -> StudySpec:
    (folder / "study.yaml").write_text(STUDY % precision)
    return load_study(folder / "study.yaml")


def test_a_list_makes_one_model_each_and_its_name_means_all_of_them(tmp_path: Path) -> None:
    study = load(tmp_path, "[float32, int8]")
    assert {name: spec.precision for name, spec in study.models.items()} == {
        "plain-float32": "float32",
        "plain-int8": "int8",
        "other": "float16",
    }
    assert study.defences["squeezed"].of == ["plain-float32", "plain-int8", "other"]
    assert study.arms[0].surrogates == ["plain-float32", "plain-int8"]
    assert str(study.where.error(("models", "plain-int8", "precision"), "no")).startswith(f"{tmp_path}/study.yaml:6: ")


def test_one_precision_changes_no_name(tmp_path: Path) -> None:
    study = load(tmp_path, "int8")
    assert list(study.models) == ["plain", "other"]
    assert study.arms[0].surrogates == ["plain"]


@pytest.mark.parametrize(
    ("precision", "complaint"),
    [
        ("[float32, int7]", r"study.yaml:6: models.plain-int7.precision: found 'int7'"),
        ("[]", r"study.yaml:6: models.plain.precision: "),
        ("[float32, int8]\n  plain-int8: {source: object}", r"study.yaml:6: .*found another model 'plain-int8'"),
    ],
)
def test_what_is_unknown_is_refused_with_its_line(tmp_path: Path, precision: str, complaint: str) -> None:
    with pytest.raises(StudyError, match=complaint):
        load(tmp_path, precision)
