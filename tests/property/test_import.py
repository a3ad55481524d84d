"""Imported tables against a row-by-row reference: the same ledger, or a refusal of the same row."""

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from advrisk.core.errors import LedgerError
from advrisk.ledger import OUTCOMES, Ledger
from advrisk.ledger.exchange import source as reading
from advrisk.ledger.exchange.importing import import_outcomes

Row = dict[str, Any]
NORMS = ("l0", "l1", "l2", "linf")
KINDS = {
    **dict.fromkeys(("model", "sample", "arm", "norm", "outcome", "message"), pa.string()),
    **dict.fromkeys(("repeat", "label", "n_forward"), pa.int64()),
    **dict.fromkeys(("distance", "d_l2", "d_linf", "eps", "confidence", "weight"), pa.float64()),
}


class RefusedError(Exception):
    """The reference refuses this row, counted from 1."""


# The reference: one row after the other, as one would do it by hand.


def completed(row: Row, number: int, norm: str | None) -> Row:
    row = {name: value for name, value in row.items() if value is not None and value != ""}
    if "model" not in row or "sample" not in row or row.get("norm", "l2") not in NORMS:
        raise RefusedError(number)
    sizes = {name: row[f"d_{name}"] for name in NORMS if f"d_{name}" in row}
    measured = row.get("norm", norm)
    given = [row.get(name, 0) for name in ("repeat", "n_forward", "eps", "confidence", "distance")] + [*sizes.values()]
    if any(not value >= 0 for value in given) or row.get("confidence", 0) > 1 or math.isinf(row.get("eps", 0)):
        raise RefusedError(number)
    if not 0 < row.get("weight", 1) < math.inf or row.get("outcome", "success") not in OUTCOMES:
        raise RefusedError(number)
    if "distance" in row:
        if measured is None:
            raise RefusedError(number)
        sizes[measured] = row["distance"]
    finite = [size for size in sizes.values() if size < math.inf]
    outcome = row.get("outcome", "resisted" if not finite else "success" if max(finite) > 0 else "already_wrong")
    if outcome == "success" and not finite:
        raise RefusedError(number)
    row |= {f"d_{name}": sizes.get(name) if outcome == "success" else None for name in NORMS}
    row |= {"outcome": outcome, "norm": measured, "arm": row.get("arm", f"imported-{measured or 'attack'}")}
    return {"repeat": 0} | row


def reference(rows: list[Row], norm: str | None) -> list[Row]:
    columns = set(rows[0])
    measured = [name for name in NORMS if f"d_{name}" in columns]
    if norm is None and len(measured) == 1 and not {"distance", "norm"} & columns:
        norm = measured[0]
    done = [completed(row, number, norm) for number, row in enumerate(rows, start=1)]
    for key in (("model", "arm", "sample", "repeat"), ("sample", "label"), ("sample", "weight")):
        before: dict[Any, Any] = {}
        for number, row in enumerate(done, start=1):
            what, value = ("key", number) if len(key) == 4 else (None, row.get(key[1]))
            name = tuple(row[one] for one in key) if what else row["sample"]
            if value is not None and before.setdefault(name, value) != value:
                raise RefusedError(number)
    return done


# What is compared: everything that readers see, but for names that are made from the file.


def ledger_of(rows: list[Row]) -> dict[str, list[tuple[Any, ...]]]:
    arms = {(row["model"], row["arm"]): (row["norm"], row.get("eps")) for row in rows}
    cells: dict[tuple[str, str, int], list[Row]] = {}
    samples: dict[str, tuple[Any, Any]] = {}
    for row in rows:
        cells.setdefault((row["model"], row["arm"], row["repeat"]), []).append(row)
        label, weight = samples.get(row["sample"], (None, None))
        label, weight = row.get("label", label), row.get("weight", weight)
        samples[row["sample"]] = label, weight
    repeats = {pair: 1 + max(key[2] for key in cells if key[:2] == pair) for pair in arms}
    shown = ("model", "arm", "sample", "repeat", "norm", "eps", "outcome", "d_l2", "d_linf", "n_forward", "message")
    found = {
        "outcomes": [tuple(row.get(name) for name in shown) for row in rows],
        "arms": [(*pair, *values, repeats[pair]) for pair, values in arms.items()],
        "cells": [
            (*key, len(of), sum(row["outcome"] in ("error", "timeout") for row in of)) for key, of in cells.items()
        ],
        "samples": [(name, label, 1.0 if weight is None else weight) for name, (label, weight) in samples.items()],
        "models": [(model,) for model in {row["model"] for row in rows}],
    }
    return {name: sorted(told, key=repr) for name, told in found.items()}


QUERIES = {
    "outcomes": "SELECT model, arm, sample, repeat, norm, eps, outcome, d_l2, d_linf, n_forward, message FROM outcomes",
    "arms": "SELECT model, arm, norm, eps, repeats FROM arms",
    "cells": "SELECT model, arm, repeat, n_samples, n_errors FROM cells",
    "samples": "SELECT sample, label, weight FROM samples",
    "models": "SELECT model FROM models",
}


def answers(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    ledger = Ledger.open(folder)
    told = {name: [tuple(row.values()) for row in ledger.query(sql).to_pylist()] for name, sql in QUERIES.items()}
    return {name: sorted(rows, key=repr) for name, rows in told.items()}


MODELS, ARMS = ("a", "é\n'\"", "true"), (None, "pgd", "x,y")
SAMPLES = ("007", "7", "NA", "null", "ß\t;", "1e3")
LABELS = dict(zip(SAMPLES, (3, 3, 0, None, -1, 7), strict=True))
WEIGHTS = dict(zip(SAMPLES, (2.5, 1.0, None, 0.5, 2.5, 1e-9), strict=True))
DISTANCES = st.sampled_from([None, 0.0, 0.25, 0.5, 1e-300, math.inf])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "norm": st.sampled_from(["l2", "linf"]),
    "outcome": st.sampled_from([None, *OUTCOMES[1:]]),
    "eps": st.sampled_from([None, 0.5, 8.0]),
    "confidence": st.sampled_from([None, 0.5, 1.0]),
    "n_forward": st.sampled_from([None, 0, 12]),
    "message": st.sampled_from([None, "it broke", 'so "it" said', "\n"]),
}
FLAWS: dict[str, list[Any]] = {
    "model": [None],
    "sample": [None, SAMPLES[0]],
    **{name: [-0.5, math.nan, -math.inf] for name in ("distance", "d_l2", "d_linf")},
    "norm": ["l7", None],
    "outcome": ["won", "success"],
    "eps": [-1.0, math.nan, math.inf],
    "confidence": [7.5, -0.5, math.nan],
    "n_forward": [-12],
    "repeat": [-1, 0],
    "label": [5],
    "weight": [0.0, -1.0, math.inf, 3.0],
}


@st.composite
def tables(draw: st.DrawFn) -> list[Row]:
    """Rows without a fault; and in half of the tables, one value of another kind."""
    columns = draw(st.lists(st.sampled_from(sorted(VALUES)), unique=True, max_size=4))
    measured = draw(st.sampled_from([("d_l2",), ("d_linf",), ("d_l2", "d_linf"), ("distance", "norm")]))
    keys = st.tuples(st.sampled_from(MODELS), st.sampled_from(ARMS), st.sampled_from(SAMPLES), st.integers(0, 2))
    values = st.fixed_dictionaries(dict.fromkeys(measured, DISTANCES) | {name: VALUES[name] for name in columns})
    if "norm" in measured:
        values = values.flatmap(lambda row: VALUES["norm"].map(lambda norm: row | {"norm": norm}))
    own = draw(st.lists(st.sampled_from(["arm", "label", "weight"]), unique=True))
    rows = []
    for model, arm, sample, repeat in draw(st.lists(keys, min_size=1, max_size=12, unique=True)):
        known = {"arm": arm, "label": LABELS[sample], "weight": WEIGHTS[sample]}
        row = {"model": model, "sample": sample, "repeat": repeat} | {name: known[name] for name in own}
        rows.append(row | draw(values))
    if draw(st.booleans()):
        name = draw(st.sampled_from(sorted(FLAWS.keys() & rows[0].keys())))
        rows[draw(st.integers(0, len(rows) - 1))][name] = draw(st.sampled_from(FLAWS[name]))
    return rows


def written(rows: list[Row], path: Path) -> Path:
    names = list(rows[0])
    if path.suffix == ".parquet":
        pq.write_table(pa.table({name: pa.array([row[name] for row in rows], KINDS[name]) for name in names}), path)
        return path
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([["" if row[name] is None else row[name] for name in names] for row in rows])
    return path


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A new folder at every `next`."""
    return (tmp_path_factory.mktemp("import") for _ in iter(int, 1))


GOOD = [{"model": model, "sample": sample, "d_l2": 0.5, "label": 3} for model in "ab" for sample in ("007", "x,y")]


@settings(max_examples=60, deadline=None)
@given(rows=tables(), norm=st.sampled_from([None, "linf"]), suffix=st.sampled_from([".csv", ".parquet"]))
@example(GOOD, None, ".csv")
@example([*GOOD, GOOD[1]], None, ".parquet")
@example([*GOOD, GOOD[1] | {"model": "c", "label": 4}], None, ".csv")
def test_a_table_gives_what_its_rows_give_one_by_one_however_it_is_cut(
    folders: Iterator[Path], rows: list[Row], norm: str | None, suffix: str
) -> None:
    folder = next(folders)
    path = written(rows, folder / f"theirs{suffix}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_PIECE_ROWS", 2)
        patch.setattr(reading, "_PIECE_BYTES", 160)
        try:
            expected = ledger_of(reference(rows, norm))
        except RefusedError as refused:
            with pytest.raises(LedgerError, match=rf"theirs{suffix}, row {refused.args[0]}: "):
                import_outcomes(path, folder / "run", norm=norm)
            assert not list((folder / "run").rglob("*.parquet"))
        else:
            assert import_outcomes(path, folder / "run", norm=norm) == len(rows)
            assert answers(folder / "run") == expected
            assert len(list((folder / "run" / "ledger" / "segments").iterdir())) == 1
