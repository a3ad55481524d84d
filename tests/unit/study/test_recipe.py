"""A training recipe: read and refused as a study is."""

from pathlib import Path

import pytest

from advrisk.core.errors import StudyError
from advrisk.study import load_recipe

GOOD = """\
name: four
seed: 3
data: {source: digits, size: 8}
models:
  plain:
    factory: mynets:Plain
    method: plain
    epochs: 5
  hardened:
    factory: mynets:Plain
    args: {width: 16}
    method: pgd
    epochs: 10
    batch: 32
    learning_rate: 1/100
    eps: 8/255
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "recipe.yaml"


def test_a_recipe_is_understood(file: Path) -> None:
    file.write_text(GOOD)
    recipe = load_recipe(file)
    plain, hardened = recipe.models.values()
    assert (recipe.name, recipe.seed, recipe.data.source, recipe.data.params) == ("four", 3, "digits", {"size": 8})
    assert (plain.epochs, plain.batch, plain.learning_rate, plain.weight_decay) == (5, 64, 0.001, 0.0)
    assert (hardened.args, hardened.batch, hardened.learning_rate) == ({"width": 16}, 32, 0.01)
    assert hardened.params == {"eps": "8/255"}, "the method's own parameters are left to its signature"
    assert recipe.where.path == file
    assert str(recipe.where.error(("models", "hardened", "eps"), "x")) == f"{file}:16: models.hardened.eps: x"


@pytest.mark.parametrize(
    ("right", "wrong", "complaint"),
    [
        ("seed: 3", "sed: 3", "2: sed: unknown key; did you mean 'seed'?"),
        ("seed: 3", "seed: true", "2: seed: input should be a valid integer, found True"),
        ("source: digits, ", "", "3: data.source: is missing"),
        ("    epochs: 5\n", "", "5: models.plain.epochs: is missing"),
        ("epochs: 5", "epochs: 0", "8: models.plain.epochs: input should be greater than 0, found 0"),
        ("batch: 32", "batch: 3.5", "14: models.hardened.batch: input should be a valid integer, found 3.5"),
        ("1/100", "0/100", "15: models.hardened.learning_rate: input should be greater than 0, found '0/100'"),
        ("1/100", "1/0", "15: models.hardened.learning_rate: '1/0' divides by zero"),
        ("args: {width: 16}", "args: 16", "11: models.hardened.args: must be a mapping, found 16"),
        ("  plain:\n", "  pl ain:\n", "5: models.pl ain: must consist of letters"),
    ],
)
def test_a_mistake_is_refused_by_file_line_and_field(file: Path, right: str, wrong: str, complaint: str) -> None:
    assert GOOD.count(right) == 1
    file.write_text(GOOD.replace(right, wrong))
    with pytest.raises(StudyError) as caught:
        load_recipe(file)
    assert str(caught.value).startswith(f"{file}:{complaint}")
    assert len(str(caught.value).splitlines()) == 1


def test_a_recipe_trains_something(file: Path) -> None:
    file.write_text("name: none\ndata: {source: digits}\nmodels: {}\n")
    with pytest.raises(
        StudyError, match=r"recipe\.yaml:3: models: found an empty list or mapping; add at least one entry"
    ):
        load_recipe(file)
