"""Risk tensors: selecting, merging, files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import xarray as xr

from advrisk.core.errors import RiskError
from advrisk.risk.indicators import RiskTensor


def tensor(**changes: Any) -> RiskTensor:
    """Three samples, four arms, two losses; one arm has two repeats, one verdict is missing."""
    values = np.full((2, 3, 4, 2), np.nan)
    values[..., 0] = np.arange(24).reshape(2, 3, 4) / 24
    values[:, :, 1, 1] = 0.5
    values[1, 2, 3, 0] = np.nan
    failed = np.zeros((3, 4), dtype=bool)
    failed[2, 3] = True
    fields: dict[str, Any] = {
        "losses": ["a", "b"],
        "samples": ["s/1", "s 2", "größe"],
        "arms": ["clean", "rain-1", "rain-2", "pgd"],
        "kind": ["clean", "corruption", "corruption", "attack"],
        "family": [None, "rain", "rain", "pgd"],
        "cause": [None, "weather", "weather", None],
        "label": [0, 2, 1],
        "weight": [1, 2, 0.5],
        "strata": {"light/of day": ["day", "", "night"], "kind": ["x", "y", "y"]},
        "failed": failed,
        "ranges": {"a": (0, 1)},
        "model": "net",
    }
    return RiskTensor.from_arrays(values, **(fields | changes))


def test_what_it_holds() -> None:
    found = tensor()
    assert found.model == "net"
    assert found.repeats.tolist() == [1, 2, 1, 1]
    assert found.range_of("a") == (0, 1)
    assert found.range_of("b") == (-np.inf, np.inf)
    assert found.strata["kind"].tolist() == ["x", "y", "y"]
    assert found.data.dims == ("loss", "sample", "arm", "repeat")
    with pytest.raises(RiskError, match="this tensor holds several losses; name one of a, b"):
        found.named_loss(None)


def test_select() -> None:
    found = tensor()
    assert found.select(arm="rain-*").arms == ("rain-1", "rain-2")
    assert found.select(cause="weather", arm=["rain-1", "pgd"]).arms == ("rain-1",)
    assert found.select(kind=["clean", "attack"]).arms == ("clean", "pgd")
    assert found.select(family="pgd", loss="b").losses == ("b",)
    assert found.select(where={"kind": "y", "light/of day": "night"}).samples == ("größe",)
    assert found.select(sample=["s 2"]).samples == ("s 2",)
    xr.testing.assert_identical(found.select().data, found.data)


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"arm": "rian-1"}, "no arm 'rian-1' in this tensor; did you mean 'rain-1'"),
        ({"kind": "atack"}, "no kind 'atack' in this tensor; did you mean 'attack'"),
        ({"sample": ["s*"]}, "no sample 's*' in this tensor"),
        ({"loss": "c"}, "no loss 'c' in this tensor"),
        ({"where": {"knd": "x"}}, "no stratum 'knd'; did you mean 'kind'"),
        ({"where": {"kind": "z"}}, "no sample has kind = 'z'"),
        ({"cause": "weather", "kind": "attack"}, "no arms are left"),
        ({"where": {"kind": "x", "light/of day": "night"}}, "no samples are left"),
    ],
)
def test_selections_that_are_wrong(asked: dict[str, Any], complaint: str) -> None:
    with pytest.raises(RiskError) as error:
        tensor().select(**asked)
    assert complaint in str(error.value)


def test_merging_puts_the_parts_together_again() -> None:
    whole = tensor()
    by_arm = whole.select(arm=["clean", "rain-1"]).merge(whole.select(arm=["clean", "rain-2", "pgd"]))
    xr.testing.assert_identical(by_arm.data, whole.data)
    by_loss = whole.select(loss="a").merge(whole.select(loss="b"))
    xr.testing.assert_identical(by_loss.data, whole.data)
    by_sample = whole.select(sample=["s/1"]).merge(whole.select(sample=["s 2", "größe"]))
    xr.testing.assert_identical(by_sample.data, whole.data)
    xr.testing.assert_identical(whole.merge(whole).data, whole.data)


def test_more_repeats_of_an_arm_may_come_later() -> None:
    few, more = tensor().data.values.copy(), tensor()
    few[:, :, 1, 1] = np.nan
    merged = tensor_of(few).merge(more)
    assert merged.repeats.tolist() == [1, 2, 1, 1]
    assert np.array_equal(merged.data.values, more.data.values, equal_nan=True)


def tensor_of(values: Any) -> RiskTensor:
    full = tensor()
    return RiskTensor.from_arrays(
        values, losses=full.losses, samples=full.samples, arms=full.arms, kind=full.kind,
        family=full.family, cause=full.cause, label=full.label, weight=full.weight,
        strata={name: column.tolist() for name, column in full.strata.items()}, ranges={"a": (0, 1)},
    )  # fmt: skip


def test_conflicts_are_refused_by_place() -> None:
    other = tensor().data.values.copy()
    other[1, 1, 2, 0] = 9
    with pytest.raises(
        RiskError, match=r"loss b, sample s 2, arm rain-2, repeat 0: 0.75 in one tensor and 9 in the other"
    ):
        tensor().merge(tensor_of(other))
    with pytest.raises(RiskError, match="one tensor is of net, the other of other"):
        tensor().merge(tensor(model="other"))
    with pytest.raises(RiskError, match=r"sample s/1: its label is 0 in one tensor, 1 in the other"):
        tensor().merge(tensor(label=[1, 2, 1]))
    with pytest.raises(RiskError, match="arm rain-1: its cause is 'weather' in one tensor, 'sensor' in the other"):
        tensor().merge(tensor(cause=[None, "sensor", "weather", None]))


@pytest.mark.parametrize(
    "found", [tensor(), tensor(strata={}, family=None, cause=None, model=""), tensor().select(sample=["größe"])]
)
def test_netcdf_holds_everything(found: RiskTensor, tmp_path: Path) -> None:
    stored = xr.load_dataset(found.to_netcdf(tmp_path / "tensor.nc"), engine="scipy")["risk"]
    called = {f"stratum.{own}": name for name, own in json.loads(stored.attrs["strata"]).items()}
    assert stored.dims == found.data.dims
    np.testing.assert_array_equal(stored.values, found.data.values)
    for name, labels in found.data.coords.items():
        read = stored[called.get(str(name), name)].values
        wanted = labels.values.astype(str) if labels.dtype.kind == "U" else labels.values
        np.testing.assert_array_equal(read.astype(wanted.dtype), wanted)
    assert stored.attrs.get("model", "") == found.model
    assert [path.name for path in tmp_path.iterdir()] == ["tensor.nc"]


@pytest.mark.parametrize(
    "found", [tensor(), tensor(strata={}, family=None, cause=None, model=""), tensor().select(sample=["größe"])]
)
def test_parquet_holds_everything(found: RiskTensor, tmp_path: Path) -> None:
    table = pq.read_table(found.to_parquet(tmp_path / "tensor.parquet"))
    assert json.loads(table.schema.metadata[b"advrisk.tensor"])["model"] == found.model
    cells = {tuple(row[dim] for dim in ("loss", "sample", "arm", "repeat")): row for row in table.to_pylist()}
    assert len(cells) == len(table) == len(found.losses) * len(found.samples) * found.repeats.sum()
    for place, row in cells.items():
        cell = found.data.sel(dict(zip(("loss", "sample", "arm", "repeat"), place, strict=True)))
        value = float(cell)
        assert row.pop("value") == (None if np.isnan(value) else value)
        assert row == {name: cell[name].item() for name in row}
    assert [path.name for path in tmp_path.iterdir()] == ["tensor.parquet"]


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(RiskError, match="cannot be written"):
        tensor().to_netcdf(tmp_path / "nowhere" / "x.nc")
    with pytest.raises(RiskError, match="cannot be written"):
        tensor().to_parquet(tmp_path / "nowhere" / "x.parquet")


def test_the_long_form_is_one_row_for_each_cell(tmp_path: Path) -> None:
    rows = pq.read_table(tensor().to_parquet(tmp_path / "t.parquet")).to_pylist()
    assert len(rows) == 2 * 3 * (1 + 2 + 1 + 1)
    found = [row for row in rows if (row["loss"], row["sample"], row["arm"]) == ("b", "größe", "pgd")]
    assert found[0]["value"] is None
    assert found[0]["failed"]
    assert found[0]["stratum.kind"] == "y"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"arms": ["clean", "a", "a", "b"]}, "arms: 'a' is listed 2 times"),
        ({"arms": ["clean", "a"]}, "arms: 2 names for 4"),
        ({"samples": ["a"]}, "samples: 1 names for 3"),
        (
            {"kind": ["clean", "corruption", "corruption", "atack"]},
            "arm pgd: its kind is 'atack'; did you mean 'attack'",
        ),
        ({"kind": ["clean"]}, "kind: 1 entries where 4 are needed"),
        ({"label": [0.5, 1, 2]}, "label: a whole number for each of 3 samples"),
        ({"weight": [1, -1, 1]}, "weights are finite, not negative"),
        ({"weight": [1, np.nan, 1]}, "weights are finite"),
        ({"weight": [0, 0, 0]}, "not all 0"),
        ({"weight": ["a", 1, 1]}, "weight: numbers are needed"),
        ({"weight": [1, 1]}, "weight: 3 numbers"),
        ({"strata": {"light": ["day"]}}, "strata.light: 1 entries where 3"),
        ({"repeats": [1, 1, 1, 1]}, "repeats: from 1 to 2, and no value beyond them"),
        ({"repeats": [1, 3, 1, 1]}, "repeats: from 1 to 2"),
        ({"repeats": [1.0, 2.0, 1.0, 1.0]}, "repeats: a whole number"),
        ({"failed": [True]}, "failed: 3 samples x 4 arms"),
        ({"ranges": {"c": (0, 1)}}, "ranges: no loss 'c'"),
        ({"ranges": {"a": (1, 0)}}, "cannot lie between"),
        ({"ranges": {"a": (0, 0.1)}}, "ranges: a lies in"),
    ],
)
def test_arrays_that_are_wrong(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(RiskError) as error:
        tensor(**changes)
    assert complaint in str(error.value)


def test_values_that_are_wrong() -> None:
    for values, complaint in (
        (np.zeros(3), "losses, samples, arms, repeats"),
        (np.zeros((0, 2)), "none of them empty"),
        ([["a", "b"]], "must be numbers"),
        ([[np.inf, 0.0]], "1 values are infinite"),
    ):
        with pytest.raises(RiskError, match=complaint):
            RiskTensor.from_arrays(values, arms=["clean", "x"], kind=["clean", "attack"])
    with pytest.raises(RiskError, match="a risk tensor has the dimensions loss, sample, arm, repeat, found arm"):
        RiskTensor(xr.DataArray(np.zeros(2), dims=("arm",)))


def test_dimensions_may_be_left_out() -> None:
    kinds = {"arms": ["clean", "x"], "kind": ["clean", "attack"]}
    assert RiskTensor.from_arrays(np.zeros((5, 2)), **kinds).data.shape == (1, 5, 2, 1)
    assert RiskTensor.from_arrays(np.zeros((5, 2, 3)), **kinds).data.shape == (1, 5, 2, 3)
    two = RiskTensor.from_arrays(np.zeros((2, 5, 2)), losses=["a", "b"], **kinds)
    assert two.data.shape == (2, 5, 2, 1)


def test_aggregates_that_are_wrong() -> None:
    with pytest.raises(RiskError, match="sample, arm and repeat, found 'loss'"):
        tensor().aggregate("loss")
    with pytest.raises(RiskError, match="mean or max, found 'sum'"):
        tensor().aggregate("arm", "sum")  # type: ignore[arg-type]


def test_aggregate_leaves_the_other_dimensions() -> None:
    found = tensor().aggregate("repeat")
    assert found.dims == ("loss", "sample", "arm")
    assert float(found.sel(loss="a", sample="s/1", arm="rain-1")) == pytest.approx((1 / 24 + 0.5) / 2)
    assert np.isnan(float(found.sel(loss="b", sample="größe", arm="pgd")))
    assert tensor().aggregate("arm", "max").dims == ("loss", "sample", "repeat")
    over_arms = tensor().aggregate("arm")
    assert float(over_arms.sel(loss="a", sample="s/1", repeat=1)) == 0.5, "only one arm has a second repeat"
