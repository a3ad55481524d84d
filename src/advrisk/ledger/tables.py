"""The ledger's tables as data: one schema each, and its version.

`SCHEMA_VERSION` rises when a column is added or changes meaning; `ledger.ledger` keeps old versions readable.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa

from advrisk.core.errors import LedgerError
from advrisk.core.names import did_you_mean

SCHEMA_VERSION = 7
VERSION_KEY = b"advrisk.schema"
STAMPED_KEY = b"advrisk.stamped"  # in every file of a segment that has a `segment.json`

Outcome = Literal["success", "resisted", "already_wrong", "rejected", "error", "timeout"]
OUTCOMES: tuple[Outcome, ...] = ("success", "resisted", "already_wrong", "rejected", "error", "timeout")

_name = pa.dictionary(pa.int32(), pa.string())  # few distinct values: ids, kinds, families

TABLES: dict[str, pa.Schema] = {
    # What one arm did to one sample of one model.
    "outcomes": pa.schema(
        {
            "run": _name,
            "cell": _name,
            "model": _name,
            "sample": _name,
            "arm": _name,
            "kind": _name,
            "family": _name,
            "norm": _name,
            "eps": pa.float64(),
            "objective": _name,
            "repeat": pa.int32(),
            "criterion": _name,
            "target": pa.int32(),
            "clean_prediction": pa.int32(),
            "prediction": pa.int32(),
            "confidence": pa.float32(),
            "outcome": _name,
            "survives_8bit": pa.bool_(),
            "success_rate": pa.float32(),
            "draws": pa.list_(pa.int32()),  # of a random model: the class of each of the judge's draws, -1 if refused
            "d_l0": pa.float64(),
            "d_l1": pa.float64(),
            "d_l2": pa.float64(),
            "d_linf": pa.float64(),
            "near_l0": pa.float64(),  # of the nearest success between the kept point and the clean input, as the judge
            "near_l1": pa.float64(),  # measured it; null in rows of schema versions before 6 and in imported ones
            "near_l2": pa.float64(),
            "near_linf": pa.float64(),
            "n_forward": pa.int64(),
            "n_backward": pa.int64(),
            "n_judge": pa.int64(),
            "n_rejected": pa.int64(),
            "n_confirm": pa.int64(),  # of n_forward, those that only confirmed a success; not in what follows
            "n_forward_first": pa.int64(),
            "n_backward_first": pa.int64(),
            "n_forward_before": pa.int64(),  # up to the query before the one that succeeded first
            "n_backward_before": pa.int64(),
            "first_s": pa.float64(),
            "spent_s": pa.float64(),  # of all passes, as first_s is of those up to the first success
            "message": _name,
        }
    ),
    # What the model answered at the kept point: losses come from here.
    # `classes` is null when all classes are there, else it names those whose logits are. `draws` holds, of a model that
    # answers at random, the log-probabilities of these classes, draw by draw.
    "outputs": pa.schema(
        {
            "cell": _name,
            "sample": _name,
            "logits": pa.list_(pa.float32()),
            "classes": pa.list_(pa.int32()),
            "draws": pa.list_(pa.float32()),
        }
    ),
    # How likely a detector finds it that an input was tampered with. Samples to calibrate are in no cell: theirs stand
    # under the recipe of the model's clean arm.
    "scores": pa.schema({"cell": _name, "sample": _name, "detector": _name, "score": pa.float64()}),
    # Numbers about a model at a clean input that are no outcomes, such as CLEVER. `cell` is that of the clean arm.
    "measures": pa.schema({"cell": _name, "sample": _name, "measure": _name, "value": pa.float64()}),
    # A finished cell. `recipe` names everything that decided it, but for the samples.
    "cells": pa.schema(
        {
            "cell": pa.string(),
            "recipe": _name,
            "run": _name,
            "model": _name,
            "arm": _name,
            "repeat": pa.int32(),
            "shard": _name,
            "n_samples": pa.int32(),
            "n_errors": pa.int32(),
            "accounting": _name,
            "wall_s": pa.float64(),
            "process_s": pa.float64(),
            "inference_s": pa.float64(),  # of the clean arm: seconds of a clean pass, for each sample of the shard
            "flags": pa.list_(pa.string()),
            "zero_gradients": pa.float64(),  # shares, see `engine.trust`; null where nothing can be said
            "not_increasing": pa.float64(),
            "still_gaining": pa.float64(),
            "no_start": pa.float64(),
            "version": _name,
            "torch": _name,  # its version, which ran the cell
        }
    ),
    # Which recipe stands for an arm against a model now: the latest row counts.
    "arms": pa.schema(
        {
            "model": pa.string(),
            "arm": pa.string(),
            "name": pa.string(),  # what the study calls it, see `ledger.naming`; null: nothing else than `arm`
            "recipe": pa.string(),
            "origin": pa.string(),  # study | surrogate | search | import | dropped
            "kind": pa.string(),
            "family": pa.string(),
            "cause": pa.string(),  # of a corruption: sensor, noise, weather, table, …
            "norm": pa.string(),
            "eps": pa.float64(),
            "objective": pa.string(),
            "keep": pa.string(),
            "max_queries": pa.int64(),
            "version": pa.int32(),  # of the part
            "repeats": pa.int32(),
            "params": pa.string(),  # JSON
            "seed": pa.int64(),
        }
    ),
    "models": pa.schema(
        {
            "model": pa.string(),
            "digest": pa.string(),
            "capability": pa.string(),
            "n_classes": pa.int32(),
            "input_shape": pa.list_(pa.int32()),
            "random": pa.bool_(),
            "train_s": pa.float64(),
            "train_process_s": pa.float64(),  # null in ledgers before version 6, as is the cost
            "train_samples": pa.int64(),
            "train_cost": pa.float64(),  # as the study states it, in any unit
            "tags": pa.string(),  # JSON
            "source_digest": pa.string(),  # of the Python files that make it; null where there are none
        }
    ),
    "samples": pa.schema(
        {
            "sample": pa.string(),
            "hash": pa.string(),
            "label": pa.int32(),
            "split": pa.string(),
            "weight": pa.float64(),
            "strata": pa.string(),  # JSON
            "shard": pa.string(),
            "place": pa.int32(),  # its position in the shard
        }
    ),
    # What was to be certified, each time that it was frozen, see `ledger.frozen`.
    "questions": pa.schema({"question": pa.string(), "previous": pa.string(), "content": pa.string()}),  # JSON
}

# Of several rows with the same key in these tables, the latest counts.
KEYS: dict[str, tuple[str, ...]] = {"arms": ("model", "arm"), "models": ("model",), "samples": ("sample",)}


def table_from(name: str, columns: Mapping[str, Sequence[Any] | Any]) -> pa.Table:
    """A table of that name from columns; what is not given is null."""
    if name not in TABLES:
        raise LedgerError(f"there is no table called {name!r}; {did_you_mean(name, TABLES)}")
    schema = TABLES[name]
    for column in columns:
        if column not in schema.names:
            raise LedgerError(f"{name} has no column {column!r}; {did_you_mean(column, schema.names)}")
    n = len(next(iter(columns.values()), ()))
    arrays = [_column(name, columns.get(field.name), field, n) for field in schema]
    return pa.table(arrays, schema=schema)


def _column(table: str, values: Any, field: pa.Field, n: int) -> pa.Array:
    try:
        column = _converted(values, field, n)
    except (pa.ArrowException, OverflowError) as error:
        raise LedgerError(f"{table}.{field.name}: {error}") from None
    if len(column) != n:
        raise LedgerError(f"{table}.{field.name}: {len(column)} values, but the first column has {n}")
    return column


def _converted(values: Any, field: pa.Field, n: int) -> pa.Array:
    if values is None:
        return pa.nulls(n, field.type)
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values if values.type == field.type else values.cast(field.type)
    if pa.types.is_dictionary(field.type):
        return pa.array(values, pa.string()).dictionary_encode()
    if pa.types.is_integer(field.type):
        return pa.array(values).cast(field.type)  # given the type at once, pyarrow makes 2 of 2.5
    return pa.array(values, field.type)


def constant(value: str | None, n: int) -> pa.Array:
    """A column that says the same thing n times, at the cost of saying it once."""
    if value is None:
        return pa.nulls(n, _name)
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), n), pa.array([value]))
