"""Every program of `studies/` is run by an ordinary test, on a run that is made up or tiny."""

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
START = 'if __name__ == "__main__":'
PROGRAMS = sorted(path.stem for path in (ROOT / "studies").glob("*.py") if START in path.read_text(encoding="utf-8"))


def called(tree: ast.Module) -> Iterator[str]:
    """Programs whose `main` is called in functions that are not marked as slow."""
    imported = {
        (alias.asname or alias.name): str(node.module).removeprefix("studies.")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name == "main"
    }
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        if any("mark.slow" in ast.unparse(decorator) for decorator in function.decorator_list):
            continue
        for call in (node.func for node in ast.walk(function) if isinstance(node, ast.Call)):
            if isinstance(call, ast.Attribute) and call.attr == "main" and isinstance(call.value, ast.Name):
                yield call.value.id
            elif isinstance(call, ast.Name) and call.id in imported:
                yield imported[call.id]


def test_there_are_programs() -> None:
    assert {"damage", "survival", "report_picture"} <= set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_run_by_an_ordinary_test(name: str) -> None:
    tests = [ast.parse(path.read_text(encoding="utf-8")) for path in Path(__file__).parent.glob("test_*.py")]
    assert name in {program for tree in tests for program in called(tree)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_takes_its_words_as_an_argument(name: str) -> None:
    main = importlib.import_module(f"studies.{name}").main
    assert next(iter(inspect.signature(main).parameters)) == "words"
    assert inspect.signature(main).return_annotation is int
