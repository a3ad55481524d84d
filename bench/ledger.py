"""Appending outcome rows, and reducing ten million of them to the smallest distance per model and sample."""

import shutil
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from advrisk.assess.damage.distances import smallest_distances
from advrisk.ledger import TABLES, Ledger, constant, table_from
from advrisk.ledger.verified import refuse_altered, whole_segments
from bench.timing import best_of, processor_s

SHARD = 64


@dataclass(frozen=True)
class Grid:
    """How many rows: models x arms x samples."""

    models: int = 10
    arms: int = 100
    samples: int = 10_000

    @property
    def rows(self) -> int:
        return self.models * self.arms * self.samples

    @property
    def shards(self) -> int:
        return -(-self.samples // SHARD)


TINY = Grid(models=2, arms=3, samples=100)


def main(*, tiny: bool = False) -> None:
    """Print rows per second against a bare Parquet writer, and seconds against a bare group-by."""
    grid = TINY if tiny else Grid()
    folder = Path(tempfile.mkdtemp(prefix="advrisk-bench-"))
    try:
        ledger = Ledger.open(folder, create=True)
        ledger.append(question(grid))
        ours, bare = 0.0, 0.0
        for model in range(grid.models):
            table = outcomes(grid, model)
            tables = {"outcomes": table, "cells": cells(grid, model)}
            ours += best_of(1, partial(ledger.append, tables))
            bare += best_of(1, partial(pq.write_table, table, folder / "bare.parquet"))
        rows = grid.rows
        print(
            f"append, durable     {rows / ours / 1e6:6.2f} M rows/s; pyarrow's default writer without fsync: "
            f"{rows / bare / 1e6:.2f} M rows/s; ratio {bare / ours:.2f}"
        )
        verified = processor_s(lambda: refuse_altered(whole_segments(ledger.path), list(TABLES)))
        print(f"verify              {verified:6.3f} CPU s: all digests, once per process")
        began = time.perf_counter()
        reopened = Ledger.open(folder)
        reopened.query("SELECT 1")
        opened_s = time.perf_counter() - began
        sql = "SELECT model, sample, min(d_linf) FROM {} WHERE outcome = 'success' GROUP BY ALL"
        view = best_of(3, lambda: reopened.query(sql.format("outcomes")))
        files = f"read_parquet('{folder}/ledger/segments/*/outcomes.parquet')"
        group_by = best_of(3, lambda: duckdb.sql(sql.format(files)).to_arrow_table())
        whole = best_of(2, lambda: smallest_distances(reopened, norm="linf"))
        print(f"open                {opened_s:6.3f} s")
        print(
            f"d_A of {rows / 1e6:g} M rows    {view:6.3f} s by the ledger; bare group-by {group_by:.3f} s; "
            f"ratio {view / group_by:.2f}; limit 0.5 s"
        )
        print(f"  with samples joined, failures counted and arrays made: {whole:.3f} s")
    finally:
        shutil.rmtree(folder)


def _sample(number: int) -> str:
    return f"mnist/{number:06d}"


def _arm(number: int) -> str:
    return f"pgd-linf-0.{number:03d}-ace"


def question(grid: Grid) -> dict[str, pa.Table]:
    """Samples and arms."""
    n = grid.samples
    samples = {"sample": [_sample(k) for k in range(n)], "split": ["evaluate"] * n}
    samples |= {"weight": np.ones(n), "shard": [str(k // SHARD) for k in range(n)]}
    pairs = [(f"model-{m}", _arm(a)) for m in range(grid.models) for a in range(grid.arms)]
    arms = {"model": [m for m, _ in pairs], "arm": [a for _, a in pairs], "recipe": ["r"] * len(pairs)}
    arms |= {"origin": ["study"] * len(pairs), "kind": ["attack"] * len(pairs), "norm": ["linf"] * len(pairs)}
    arms |= {"repeats": np.ones(len(pairs), np.int32)}
    return {"samples": table_from("samples", samples), "arms": table_from("arms", arms)}


def _cell(model: int, arm: int, shard: int) -> str:
    return f"{model:04x}{arm:08x}{shard:020x}"


def cells(grid: Grid, model: int) -> pa.Table:
    """Those of one model."""
    names = [(_cell(model, a, s), _arm(a)) for a in range(grid.arms) for s in range(grid.shards)]
    columns = {"cell": [c for c, _ in names], "arm": [a for _, a in names], "recipe": ["r"] * len(names)}
    return table_from("cells", columns | {"model": [f"model-{model}"] * len(names)})


def outcomes(grid: Grid, model: int) -> pa.Table:
    """A row of one model for each arm and sample."""
    rng = np.random.default_rng(model)
    n, shards = grid.arms * grid.samples, grid.shards
    sample = np.tile(np.arange(grid.samples, dtype=np.int32), grid.arms)
    arm = np.repeat(np.arange(grid.arms, dtype=np.int32), grid.samples)
    cells = pa.array([_cell(model, a, s) for a in range(grid.arms) for s in range(shards)])
    dictionary = pa.DictionaryArray.from_arrays
    columns = {
        "run": constant("bench", n),
        "cell": dictionary(pa.array(arm * shards + sample // SHARD), cells),
        "model": constant(f"model-{model}", n),
        "sample": dictionary(pa.array(sample), pa.array([_sample(i) for i in range(grid.samples)])),
        "arm": dictionary(pa.array(arm), pa.array([_arm(i) for i in range(grid.arms)])),
        "kind": constant("attack", n),
        "family": constant("pgd", n),
        "norm": constant("linf", n),
        "eps": np.full(n, 0.1),
        "objective": constant("ace", n),
        "repeat": np.zeros(n, np.int32),
        "criterion": constant("label", n),
        "clean_prediction": sample % 10,
        "prediction": rng.integers(0, 10, n, dtype=np.int32),
        "confidence": rng.random(n, dtype=np.float32),
        "outcome": dictionary(pa.array(rng.integers(0, 2, n, dtype=np.int32)), pa.array(["success", "resisted"])),
        "survives_8bit": rng.random(n) < 0.9,
        "success_rate": np.ones(n, np.float32),
        **{f"d_{norm}": rng.random(n) for norm in ("l0", "l1", "l2", "linf")},
        **{name: rng.integers(1, 41, n) for name in ("n_forward", "n_backward", "n_forward_first", "n_backward_first")},
        "n_judge": np.full(n, 2),
        "n_rejected": np.zeros(n, np.int64),
        "first_s": rng.random(n),
    }
    return table_from("outcomes", columns)


if __name__ == "__main__":
    main()
