"""The ledger against a plain list of what was appended: nothing lost, nothing twice, the latest counts."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from advrisk.ledger import OUTCOMES, TABLES, Ledger, SegmentWriter, table_from
from advrisk.ledger.maintenance.compacting import compact

Row = dict[str, Any]

# Values, whatever they are


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Anything a column of that type may hold, null included."""
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind):
        found: st.SearchStrategy[Any] = st.sampled_from(["pgd", "", "é\n'\"", "\x00", "🙂"]) | st.text(max_size=6)
    elif pa.types.is_float64(kind):
        found = st.floats() | st.sampled_from([0.0, -0.0, math.inf, math.nan, 5e-324])
    elif pa.types.is_float32(kind):
        found = st.floats(width=32)
    elif pa.types.is_boolean(kind):
        found = st.booleans()
    elif pa.types.is_integer(kind):
        most = 2 ** (kind.bit_width - 1)
        found = st.integers(-most, most - 1)
    else:
        found = st.lists(values(kind.value_type).filter(lambda value: value is not None), max_size=3)
    return st.none() | found


def rows_of(name: str) -> st.SearchStrategy[Row]:
    return st.fixed_dictionaries({field.name: values(field.type) for field in TABLES[name]})


def as_table(name: str, rows: list[Row]) -> pa.Table:
    return table_from(name, {column: [row[column] for row in rows] for column in TABLES[name].names})


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A new folder at every `next`."""
    return (tmp_path_factory.mktemp("ledger") for _ in iter(int, 1))


@pytest.fixture(scope="module", autouse=True)
def _any_value() -> Iterator[None]:
    """Rows need not mean anything here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("advrisk.ledger.ledger.refuse_invalid", lambda *_: None)
        yield


def pieces(items: list[Any], cuts: list[bool]) -> list[list[Any]]:
    """The items in order, cut before every item whose turn in `cuts` says so."""
    found: list[list[Any]] = []
    for item, cut in zip(items, cuts, strict=False):
        if cut or not found:
            found.append([])
        found[-1].append(item)
    return found


@settings(max_examples=10)
@pytest.mark.parametrize("name", sorted(TABLES))
@given(data=st.data())
def test_every_value_is_read_back_whatever_the_segments(
    folders: Iterator[Path], name: str, data: st.DataObject
) -> None:
    rows = data.draw(st.lists(rows_of(name), min_size=1, max_size=4))
    cuts = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    key = next(key for key in ("cell", "sample", "model", "question") if key in rows[0])
    for number, row in enumerate(rows):
        row[key] = f"{number:03d}"  # so that no row takes another's place
    ledger = Ledger.open(next(folders), create=True)
    for piece in pieces(rows, cuts):
        ledger.append({name: as_table(name, piece)})
    view = "all_cells" if name == "cells" else name  # a cell is current only if its arm says so; see below
    columns = ", ".join(TABLES[name].names)
    found = Ledger.open(ledger.path).query(f"SELECT {columns} FROM {view} AS rows ORDER BY rows.{key}")
    # As text, because NaN differs from itself and -0.0 equals 0.0.
    assert repr(found.to_pylist()) == repr([{column: row[column] for column in TABLES[name].names} for row in rows])


# Histories: cells are run, run again, and recipes change


@dataclass(frozen=True)
class Ran:
    """A cell was run: a shard of samples of one model, with one arm, by the recipe of that time."""

    model: str
    arm: str
    recipe: str
    shard: int
    repeat: int
    outcome: str
    distance: float

    @property
    def cell(self) -> str:
        return f"{self.model}/{self.arm}/{self.recipe}/{self.shard}/{self.repeat}"

    @property
    def samples(self) -> list[str]:
        return SHARDS[self.shard]

    @property
    def n_errors(self) -> int:
        return len(self.samples) if self.outcome in ("error", "timeout") else 0

    def outcomes(self) -> list[tuple[Any, ...]]:
        return [
            (self.model, self.arm, sample, self.repeat, self.cell, self.outcome, self.distance)
            for sample in self.samples
        ]

    def tables(self) -> dict[str, pa.Table]:
        n = len(self.samples)
        names = ("model", "arm", "sample", "repeat", "cell", "outcome", "d_linf")
        columns = dict(zip(names, zip(*self.outcomes(), strict=True), strict=True))
        row = {"cell": self.cell, "recipe": self.recipe, "model": self.model, "arm": self.arm, "repeat": self.repeat}
        row |= {"shard": str(self.shard), "n_samples": n, "n_errors": self.n_errors, "wall_s": self.distance}
        outputs = {"cell": [self.cell] * n, "sample": self.samples, "logits": [[self.distance]] * n}
        return {
            "outcomes": table_from("outcomes", columns),
            "cells": table_from("cells", {name: [value] for name, value in row.items()}),
            "outputs": table_from("outputs", outputs),
        }


@dataclass(frozen=True)
class Asked:
    """A study was written down: from now on this recipe stands for the arm against the model."""

    model: str
    arm: str
    recipe: str

    def tables(self) -> dict[str, pa.Table]:
        return {"arms": table_from("arms", {"model": [self.model], "arm": [self.arm], "recipe": [self.recipe]})}


Event = Ran | Asked

SHARDS = [["s1", "s2"], ["s3"], ["s4", "s5", "s6"]]
MODEL, ARM, RECIPE = st.sampled_from("ab"), st.sampled_from(["push", "walk"]), st.sampled_from(["r1", "r2"])
RAN = st.builds(
    Ran,
    MODEL,
    ARM,
    RECIPE,
    shard=st.integers(0, 2),
    repeat=st.integers(0, 1),
    outcome=st.sampled_from(OUTCOMES),
    distance=st.integers(0, 9).map(float),
)
HISTORIES = st.lists(RAN | RAN | st.builds(Asked, MODEL, ARM, RECIPE), max_size=14)
CUTS = st.lists(st.booleans(), min_size=14, max_size=14)


def segments(history: list[Event], cuts: list[bool]) -> list[list[Event]]:
    """The history cut into segments: anywhere, but a segment holds a cell once, as a run's does."""
    found: list[list[Event]] = []
    for piece in pieces(history, cuts):
        found.append([])
        for event in piece:
            if isinstance(event, Ran) and any(isinstance(old, Ran) and old.cell == event.cell for old in found[-1]):
                found.append([])
            found[-1].append(event)
    return found


def write(folder: Path, history: list[Event], cuts: list[bool]) -> Ledger:
    ledger = Ledger.open(folder, create=True)
    for segment in segments(history, cuts):
        with SegmentWriter(ledger, every_s=math.inf) as writer:
            for event in segment:
                writer.add(event.tables())
    return Ledger.open(folder)


def current(history: list[Event]) -> dict[str, Ran]:
    """Cell -> its latest run, for the cells whose recipe stands for their arm at the end."""
    recipes = {(event.model, event.arm): event.recipe for event in history if isinstance(event, Asked)}
    latest = {event.cell: event for event in history if isinstance(event, Ran)}
    return {cell: ran for cell, ran in latest.items() if recipes.get((ran.model, ran.arm)) == ran.recipe}


def answers(ledger: Ledger) -> dict[str, list[tuple[Any, ...]]]:
    queries = {
        "outcomes": "SELECT model, arm, sample, repeat, cell, outcome, d_linf FROM outcomes ORDER BY ALL",
        "cells": "SELECT cell, n_errors, wall_s FROM cells ORDER BY ALL",
        "outputs": "SELECT cell, sample, logits[1] FROM outputs ORDER BY ALL",
        "arms": "SELECT model, arm, recipe FROM arms ORDER BY ALL",
    }
    return {name: [tuple(row.values()) for row in ledger.query(sql).to_pylist()] for name, sql in queries.items()}


def expected(history: list[Event]) -> dict[str, list[tuple[Any, ...]]]:
    runs = current(history).values()
    recipes = {(event.model, event.arm): event.recipe for event in history if isinstance(event, Asked)}
    return {
        "outcomes": sorted(row for ran in runs for row in ran.outcomes()),
        "cells": sorted((ran.cell, ran.n_errors, ran.distance) for ran in runs),
        "outputs": sorted((ran.cell, sample, ran.distance) for ran in runs for sample in ran.samples),
        "arms": sorted((*pair, recipe) for pair, recipe in recipes.items()),
    }


AGAIN = [
    Asked("a", "push", "r1"),
    *(Ran("a", "push", "r1", 0, 0, outcome, d) for outcome, d in [("error", 1.0), ("success", 2.0)]),
]
CHANGED = [*AGAIN, Asked("a", "push", "r2"), Ran("a", "push", "r2", 0, 0, "resisted", 3.0)]


@settings(max_examples=40)
@given(history=HISTORIES, cuts=CUTS)
@example(AGAIN, [True] * 14)
@example(CHANGED, [False] * 14)
@example([*CHANGED, Asked("a", "push", "r1")], [True] * 14)
def test_however_it_was_cut_readers_see_the_latest_run_of_the_current_recipe(
    folders: Iterator[Path], history: list[Event], cuts: list[bool]
) -> None:
    ledger = write(next(folders), history, cuts)
    assert answers(ledger) == expected(history)
    keys = [row[:4] for row in answers(ledger)["outcomes"]]
    assert len(set(keys)) == len(keys), "one row per (model, arm, sample, repeat)"
    latest = {event.cell: event for event in history if isinstance(event, Ran)}
    assert ledger.finished_cells() == set(latest), "whatever their recipe"
    assert ledger.finished_cells(without_errors=True) == {cell for cell, ran in latest.items() if not ran.n_errors}


@settings(max_examples=8)
@given(history=HISTORIES, cuts=CUTS, largest_kb=st.sampled_from([20, 40, 1000]))
@example([*CHANGED, Asked("a", "push", "r1")], [True] * 14, 1000)
def test_compacted_or_not_readers_see_the_same(
    folders: Iterator[Path], history: list[Event], cuts: list[bool], largest_kb: int
) -> None:
    folder = next(folders)
    before = write(folder, history, cuts)
    done = compact(folder, largest_mb=largest_kb / 1024)
    assert done.n_after <= max(done.n_before, 1)
    for ledger in (Ledger.open(folder), before):  # one that is opened now, and one that was before
        assert answers(ledger) == expected(history)
        assert ledger.finished_cells() == {event.cell for event in history if isinstance(event, Ran)}
