"""Every long test is in one shard of `make slow`, and `make` knows all shards."""

import ast
import re
from collections import Counter
from pathlib import Path

from tests.shards import SLOW, shard_of

ROOT = Path(__file__).parents[2]


def has_long_test(path: Path) -> bool:
    """Whether `mark.slow` stands in its code, as a decorator or in a parameter."""
    text = path.read_text("utf-8")
    if "mark.slow" not in text:
        return False
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute) and node.attr == "slow")
    return any(ast.unparse(node).endswith("mark.slow") for node in nodes)


def test_every_file_with_a_long_test_is_in_exactly_one_shard() -> None:
    found = (path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py") if has_long_test(path))
    assert Counter(found) == Counter(file for files in SLOW.values() for file in files)


def test_a_file_is_found_in_its_shard_and_others_in_none() -> None:
    assert shard_of("tests/fuzz/test_fuzz.py") == "fuzz"
    assert shard_of("tests/property/test_damage.py") is None


def test_make_runs_every_shard() -> None:
    (shards,) = re.findall(r"^SLOW := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert shards.split() == list(SLOW)
