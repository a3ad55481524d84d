"""A part of a ledger: readers see no other models and no other samples to evaluate, whatever they ask."""

import json
from pathlib import Path
from typing import Any

import pytest

from advrisk.core.errors import RiskError, StudyError
from advrisk.ledger import Ledger
from advrisk.ledger.tables import table_from
from advrisk.ledger.views import parse_where, restricted


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """Two models and a surrogate, under one attack and clean; eight samples of two classes at two sites, two tuned."""
    sites = ["a", "a", "b", "b", "a", "b", "a", "a"]
    samples = [
        {"sample": f"s{n}", "label": n % 2, "split": "evaluate" if n < 6 else "tune", "shard": "one", "weight": 1.0,
         "strata": json.dumps({"site": sites[n]})}
        for n in range(8)
    ]  # fmt: skip
    arms, cells, outcomes, outputs = [], [], [], []
    for model in ("plain", "hard", "copy"):
        origin = "surrogate" if model == "copy" else "study"
        for arm, kind in (("clean", "clean"), ("pgd", "attack")):
            named = {"model": model, "arm": arm, "recipe": f"r-{model}-{arm}"}
            arms.append(named | {"origin": origin, "kind": kind, "repeats": 1})
            cells.append(named | {"cell": f"{model}-{arm}", "repeat": 0, "shard": "one"})
            for row in samples:
                place = {"cell": f"{model}-{arm}", "sample": row["sample"]}
                outcomes.append(place | {"model": model, "arm": arm, "outcome": "success", "kind": kind})
                outputs.append(place | {"logits": [0.0]})
    models = [{"model": name} for name in ("plain", "hard", "copy")]
    tables = {"samples": samples, "arms": arms, "cells": cells, "outcomes": outcomes, "models": models}
    held = Ledger.open(tmp_path_factory.mktemp("run"), create=True)
    held.append({name: _table(name, rows) for name, rows in (tables | {"outputs": outputs}).items()})
    return Ledger.open(held.path)


def _table(name: str, rows: list[dict[str, Any]]) -> Any:
    return table_from(name, {column: [row[column] for row in rows] for column in rows[0]})


def seen(held: Ledger, table: str, column: str, where: str = "true") -> set[str]:
    return set(held.query(f"SELECT DISTINCT {column}::VARCHAR AS x FROM {table} WHERE {where}")["x"].to_pylist())


def test_every_table_shows_the_chosen_samples_only(ledger: Ledger) -> None:
    part, view = restricted(ledger, where="site=a")
    wanted = {"s0", "s1", "s4"}
    assert seen(part, "samples", "sample", "split = 'evaluate'") == wanted
    for table in ("outcomes", "outputs"):
        assert seen(part, table, "sample") == wanted | {"s6", "s7"}, "the tuning split stays as it is"
    assert (view.n_samples, view.n_samples_of) == (3, 6)
    assert view.sentences() == ["Only samples with site = a: 3 of 6 samples."]
    assert seen(ledger, "outcomes", "sample") == {f"s{n}" for n in range(8)}, "the ledger itself shows all"


def test_every_table_shows_the_chosen_models_and_surrogates_only(ledger: Ledger) -> None:
    part, view = restricted(ledger, ["hard"])
    for table in ("outcomes", "cells", "models"):
        assert seen(part, table, "model") == {"hard", "copy"}
    assert seen(part, "outputs", "split_part(cell::VARCHAR, '-', 1)") == {"hard", "copy"}
    assert view.as_dict()["models"] == ["hard"]
    assert view.sentences()[0].startswith("Only hard: 1 of 2 models. ")


def test_what_leaves_nothing_out_is_no_part(ledger: Ledger) -> None:
    for given in ({"models": ["plain", "hard"]}, {"where": "class=0,class=1"}, {"where": {"site": ["a", "b"]}}):
        part, view = restricted(ledger, **given)
        assert not view
        assert seen(part, "models", "model") == seen(ledger, "models", "model")
        assert seen(part, "samples", "sample") == seen(ledger, "samples", "sample")


def test_class_is_the_label_and_conditions_are_met_together(ledger: Ledger) -> None:
    part, _ = restricted(ledger, where="class=0,site=a")
    assert seen(part, "samples", "sample", "split = 'evaluate'") == {"s0", "s4"}
    either, _ = restricted(ledger, where={"class": [0, 1], "site": "b"})
    assert seen(either, "samples", "sample", "split = 'evaluate'") == {"s2", "s3", "s5"}
    both, _ = restricted(restricted(ledger, where="site=a")[0], where="class=1")
    assert seen(both, "samples", "sample", "split = 'evaluate'") == {"s1"}, "a part of a part"


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"where": "sit=a"}, "samples have no stratum 'sit'; did you mean 'site'?"),
        ({"where": "site=c"}, "no sample has site = 'c'; known: a, b"),
        ({"where": "class=11"}, "no sample has class = '11'; did you mean '1'?"),
        ({"models": ["hrad"]}, "no model called 'hrad' in this run; did you mean 'hard'?"),
        ({"models": ["copy"]}, "no model called 'copy' in this run; known: hard, plain"),
    ],
)
def test_what_the_run_does_not_hold_is_refused_with_the_nearest(
    ledger: Ledger, given: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(RiskError) as raised:
        restricted(ledger, **given)
    assert str(raised.value) == complaint


def test_a_filter_that_leaves_nothing_is_refused(ledger: Ledger) -> None:
    part, _ = restricted(ledger, where="class=0")
    assert seen(part, "samples", "sample", "split = 'evaluate'") == {"s0", "s2", "s4"}
    only_b = ledger.restricted(samples=["s1", "s2"])  # class 1 at a, class 0 at b
    with pytest.raises(RiskError, match="no sample has class = 0, site = a at the same time"):
        restricted(only_b, where="class=0,site=a")


def test_filters_as_they_are_written() -> None:
    assert parse_where("class=3, 5 ,site=a") == {"class": ("3", "5"), "site": ("a",)}
    assert parse_where(["class=3", "class=3,site=a"]) == {"class": ("3",), "site": ("a",)}
    assert parse_where({"class": 3, "site": ["a", "b,c"]}) == {"class": ("3",), "site": ("a", "b,c")}
    for wrong in ("class", "=3", "class=", "", ",class=3"):
        with pytest.raises(StudyError, match="STRATUM=VALUE"):
            parse_where(wrong)
    with pytest.raises(StudyError, match="is empty"):
        parse_where({})


def test_a_stratum_named_class_wins_over_the_label(tmp_path: Path) -> None:
    held = Ledger.open(tmp_path, create=True)
    rows = [
        {"sample": f"s{n}", "label": n, "split": "evaluate", "strata": json.dumps({"class": name})}
        for n, name in enumerate(("stop-sign", "yield-sign"))
    ]
    held.append({"samples": _table("samples", rows)})
    part, _ = restricted(Ledger.open(tmp_path), where="class=stop-sign")
    assert seen(part, "samples", "sample", "split = 'evaluate'") == {"s0"}
    with pytest.raises(RiskError, match="did you mean 'stop-sign'"):
        restricted(Ledger.open(tmp_path), where="class=stop-sgin")
