"""Whatever a file holds: a study, or a StudyError that names the file. Never anything else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from advrisk.core.errors import StudyError
from advrisk.study import StudySpec, load_study, study_from

GOOD = """\
name: signs
seed: 7
data: {source: digits, evaluate: 100, order: file}
models:
  plain: &m {source: torch, tags: {depth: 8}}
  other: {<<: *m, source: onnx}
success: label
shard: 16
arms:
  - {attack: [pgd, bim], norm: linf, eps: [8/255, 0.1], steps: 10}
  - {corruption: fog, level: [1, 3], repeats: 2}
assess: {damage: {norm: l2, level: 0.9, thresholds: [1/4]}}
"""

# What YAML gives a meaning of its own, and what our fields look at.
TOKENS = [
    *("{", "}", "[", "]", ":", ": ", ", ", "- ", "? ", "\n", "\n  ", "  ", "#", "---\n", "...\n", "%", "@", "`", "\t"),
    *(
        "&m ",
        "*m",
        "<<: *m",
        "!!int ",
        "!!bool ",
        "!!set ",
        "!!binary ",
        "!!timestamp ",
        "!x ",
        "!!python/name:os ",
        "=",
    ),
    *("null", "~", "true", "on", "0b_", "0x_", "0o7", "1e400", ".inf", ".nan", "-.inf", "1:30", "2024-13-45", "12_3"),
    *("''", '"', '"\\ud800"', '"\\0"', "|\n", ">\n", "8/0", "-1", "1.5", "9" * 400, "é", "\x85", "\u2028", "\ufeff"),
    *("all", "seed", "gate: 1\n", "success: {target: 1}\n", "eps: ", "attack: ", "arms: ", "models: ", "7: "),
]

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates() | st.binary(max_size=3)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | SCALARS, inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["name", "seed", "device", "data", "models", "success", "arms", "keep_inputs", "shard", "max_cell_s", "assess"]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "study.yaml"


def answer(read: Callable[[Any], StudySpec], content: Any) -> StudySpec | str:
    """The study, or what the StudyError says; any other exception fails the test."""
    try:
        return read(content)
    except StudyError as error:
        return str(error)


def check(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    said = answer(load_study, file)
    assert isinstance(said, StudySpec) or said.startswith(f"{file}:")


def test_the_study_to_be_spoilt_is_good(file: Path) -> None:
    file.write_text(GOOD)
    assert load_study(file).models["other"].source == "onnx"


@given(content=st.binary(max_size=60))
def test_any_bytes(file: Path, content: bytes) -> None:
    check(file, content)


@given(text=st.text(max_size=60) | st.lists(st.sampled_from(TOKENS), max_size=12).map("".join))
@example("? [a]\n: b")
@example("a: !!bool {=: x}")
@example("=: 1")
def test_any_text(file: Path, text: str) -> None:
    check(file, text.encode())


@settings(max_examples=400)
@given(start=st.integers(0, len(GOOD)), length=st.integers(0, 25), put=st.lists(st.sampled_from(TOKENS), max_size=3))
def test_a_good_study_with_a_piece_replaced(file: Path, start: int, length: int, put: list[str]) -> None:
    check(file, (GOOD[:start] + "".join(put) + GOOD[start + length :]).encode())


def places(value: Any, loc: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [loc, *(place for key, child in children for place in places(child, (*loc, key)))]


def spoilt(value: Any, loc: tuple[Any, ...], put: Any) -> Any:
    """A copy with another value at one place."""
    if not loc:
        return put
    if isinstance(value, dict):
        return {key: spoilt(child, loc[1:], put) if key == loc[0] else child for key, child in value.items()}
    return [spoilt(child, loc[1:], put) if key == loc[0] else child for key, child in enumerate(value)]


CONTENT = yaml.safe_load(GOOD)


@settings(max_examples=300)
@given(loc=st.sampled_from([place for place in places(CONTENT) if place]), put=VALUES)
def test_any_value_in_any_place(loc: tuple[Any, ...], put: Any) -> None:
    said = answer(study_from, spoilt(CONTENT, loc, put))
    assert isinstance(said, StudySpec) or said.startswith("<study>: ")


@given(content=st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=4) | SCALARS, VALUES, max_size=6))
def test_any_mapping(content: dict[Any, Any]) -> None:
    with pytest.raises(StudyError, match=r"^<study>: "):
        study_from(content)
