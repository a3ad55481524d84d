"""Names of cells in little memory are a set like any other."""

import numpy as np
import pyarrow as pa
import pytest

from advrisk.core.digest import digest
from advrisk.run import finished
from advrisk.run.finished import CellNames


def names(n: int) -> list[str]:
    return [digest(number) for number in range(n)]


def column(*chunks: list[str]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks], pa.string())


def test_it_holds_what_it_was_given_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finished._parts, "__defaults__", (64,))
    every = names(1000)
    held = CellNames(column(every[:300], [], every[300:700], every[:10]))
    assert len(held) == 700
    assert all(name in held for name in every[:700])
    assert not any(name in held for name in every[700:])
    assert set(held) == set(every[:700])
    assert held == set(every[:700])


@pytest.mark.parametrize("name", ["00" * 16, "ff" * 16, "ab" + "00" * 15, "00" * 15 + "01", "0a" * 15 + "00"])
def test_zeros_at_either_end_are_digits_like_others(name: str) -> None:
    held = CellNames(column([name, "12" * 16]))
    assert name in held
    assert set(held) == {name, "12" * 16}
    assert ("00" * 16 in held) == (name == "00" * 16)


def test_names_that_are_no_digests_are_told_apart_to_the_letter() -> None:
    others = ["c1", "", "AB" * 16, "ab " * 10 + "ab", "ab" * 15, "ab" * 17, "é" * 32, "cell-recipe-hardened-pgd-linf-0"]
    held = CellNames(column([*others, "ab" * 16]))
    assert set(held) == {*others, "ab" * 16}
    assert all(name in held for name in others)
    assert "ab" * 14 not in held
    assert "Ab" * 16 not in held
    assert 7 not in held
    assert None not in held


def test_nothing_is_in_nothing() -> None:
    assert len(CellNames(column())) == 0
    assert "ab" * 16 not in CellNames(column([]))


def test_a_name_takes_sixteen_bytes() -> None:
    rng = np.random.default_rng(0)
    held = CellNames(column([row.tobytes().hex() for row in rng.integers(0, 256, (5000, 16), np.uint8)]))
    assert held._sorted.nbytes == 16 * 5000
