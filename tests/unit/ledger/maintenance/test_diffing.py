"""What differs between two ledgers is named; what only says when or where is not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from advrisk.core.plain import plain_fields
from advrisk.ledger import Ledger, table_from
from advrisk.ledger.maintenance.compacting import compact
from advrisk.ledger.maintenance.diffing import TableDiff, diff_ledgers

Tables = dict[str, Any]


@pytest.fixture
def make(tmp_path: Path, cell: Callable[..., Tables], arms: Callable[..., Tables]) -> Callable[..., Path]:
    """A ledger of two cells; what is given is changed."""

    def ledger(name: str, *, changed: Tables | None = None, models: Tables | None = None, split: bool = False) -> Path:
        made = Ledger.open(tmp_path / name, create=True)
        samples = {
            "samples": table_from("samples", {"sample": ["s1", "s2"], "hash": ["h1", "h2"], "shard": [name] * 2})
        }
        model = table_from("models", {"model": ["plain"], "digest": ["d"], "train_s": [1.0]} | (models or {}))
        tables = [cell("c1"), (cell("c2", repeat=1) | (changed or {})), {"models": model}]
        tables += [arms(("plain", "push", "r1")) | samples]
        for one in reversed(tables) if split else tables:
            made.append(one)
        return tmp_path / name

    return ledger


def with_column(table: pa.Table, name: str, values: list[Any]) -> pa.Table:
    place = table.schema.get_field_index(name)
    return table.set_column(place, table.schema.field(place), pa.array(values, table.schema.field(place).type))


def only(found: Any) -> TableDiff:
    (part,) = found.tables
    return part


def test_order_segments_shards_and_times_are_no_difference(
    make: Callable[..., Path], cell: Callable[..., Tables]
) -> None:
    timed = cell("c2", repeat=1)
    timed["outcomes"] = with_column(timed["outcomes"], "first_s", [1.0, 2.0])
    timed["cells"] = with_column(timed["cells"], "wall_s", [9.0])
    one, other = make("one"), make("other", changed=timed, split=True, models={"train_s": [7.0]})
    compact(one)
    assert diff_ledgers(one, other).equal
    found = diff_ledgers(one, other, times=True)
    assert {part.table: dict(part.columns) for part in found.tables} == {
        "models": {"train_s": 1},
        "cells": {"wall_s": 1},
        "outcomes": {"first_s": 2},
    }


def test_one_value_of_one_row_is_found(make: Callable[..., Path], cell: Callable[..., Tables]) -> None:
    changed = cell("c2", repeat=1)
    changed["outcomes"] = with_column(changed["outcomes"], "d_linf", [0.1, 0.1 + 1e-15])
    part = only(diff_ledgers(make("one"), make("other", changed=changed)))
    assert (part.table, part.differ.n, part.only_one.n, part.only_other.n) == ("outcomes", 1, 0, 0)
    assert part.differ.examples == ({"model": "plain", "arm": "push", "sample": "s2", "repeat": 1},)
    assert dict(part.columns) == {"d_linf": 1}


def test_an_answer_that_differs_is_found(make: Callable[..., Path], cell: Callable[..., Tables]) -> None:
    changed = cell("c2", repeat=1)
    changed["outputs"] = with_column(changed["outputs"], "logits", [[1.0, 2.0], [1.0, 3.0]])
    part = only(diff_ledgers(make("one"), make("other", changed=changed)))
    assert (part.table, part.differ.n, dict(part.columns)) == ("outputs", 1, {"logits": 1})


def test_nan_is_the_same_as_nan(
    make: Callable[..., Path], cell: Callable[..., Tables], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("advrisk.ledger.ledger.refuse_invalid", lambda *_: None)  # readers refuse such a distance
    changed = cell("c2", repeat=1, d_linf=float("nan"))
    one, other = make("one", changed=changed), make("other", changed=changed)
    Ledger.open(other).append(cell("c3", repeat=2, d_linf=float("nan")))
    assert [part.differ.n for part in diff_ledgers(one, other).tables] == [0, 0, 0]


def test_cells_and_rows_in_one_only(make: Callable[..., Path], cell: Callable[..., Tables]) -> None:
    one, other = make("one"), make("other")
    Ledger.open(other).append(cell("c3", repeat=2))
    found = {part.table: part for part in diff_ledgers(one, other).tables}
    assert {name: (part.only_one.n, part.only_other.n) for name, part in found.items()} == {
        "cells": (0, 1),
        "outcomes": (0, 2),
        "outputs": (0, 2),
    }
    assert found["cells"].only_other.shown == "model plain, arm push, repeat 2, cell c3"
    back = {part.table: part.only_one.n for part in diff_ledgers(other, one).tables}
    assert back == {"cells": 1, "outcomes": 2, "outputs": 2}


def test_models_that_differ(make: Callable[..., Path]) -> None:
    part = only(diff_ledgers(make("one"), make("other", models={"digest": ["another"]})))
    assert (part.table, part.differ.examples, dict(part.columns)) == ("models", ({"model": "plain"},), {"digest": 1})


def test_for_machines(make: Callable[..., Path]) -> None:
    found = plain_fields(diff_ledgers(make("one"), make("other", models={"digest": ["another"]})))
    assert found["equal"] is False
    assert found["tables"][0]["differ"]["n"] == 1


@pytest.mark.parametrize("n", [2, 3])
def test_rows_that_stand_there_several_times_are_counted(
    make: Callable[..., Path], cell: Callable[..., Tables], n: int
) -> None:
    """Doubled within a cell, as an import may bring them; the values of all are the same."""
    changed = cell("c2", repeat=1)
    doubled = changed | {"outcomes": pa.concat_tables([changed["outcomes"], *[changed["outcomes"].slice(1)] * (n - 1)])}
    one, other = make("one", changed=doubled), make("other")
    part = only(diff_ledgers(one, other))
    assert (part.table, part.equal, part.more_one.n, part.more_other.n, part.differ.n) == ("outcomes", False, 1, 0, 0)
    assert part.more_one.shown == "model plain, arm push, sample s2, repeat 1"
    assert only(diff_ledgers(other, one)).more_other.n == 1
    assert diff_ledgers(one, one).equal


def test_different_rows_doubled_are_different(make: Callable[..., Path], cell: Callable[..., Tables]) -> None:
    """Each pair cancels out where rows are put together by an exclusive or."""
    rows = [cell("c2", ["s1"], repeat=1, d_linf=size)["outcomes"] for size in (0.1, 0.2)]
    sides = [
        make(name, changed={"outcomes": pa.concat_tables([one, one])}) for name, one in zip("ab", rows, strict=True)
    ]
    part = only(diff_ledgers(*sides))
    assert (part.table, part.differ.n, dict(part.columns)) == ("outcomes", 1, {"d_linf": 1})
