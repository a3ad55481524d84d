"""Risk tensors as files: NetCDF for programs that know labelled arrays, Parquet in long form for all others."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.core.files import regular, whole_file
from advrisk.risk.indicators.tensor import DIMS, STRATUM, RiskTensor

if TYPE_CHECKING:
    from xarray import DataArray

_TEXTS = ("loss", "sample", "arm", "kind", "family", "cause")
_VALUE = "risk"
_META = b"advrisk.tensor"
_ATTRS = ("early_share", "unasked")
_NETCDF_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*")


def write_netcdf(data: "DataArray", path: Path) -> Path:
    """Labels are written as they are, so that `xarray.open_dataarray(path).sel(loss="misclassified")` works.

    NetCDF 3 does not know every name: a stratum that cannot be called so there is numbered, and an attribute names it.
    """
    strata = [str(name) for name in data.coords if str(name).startswith(STRATUM)]
    names = {name: f"stratum_{place}" for place, name in enumerate(strata) if not _NETCDF_NAME.fullmatch(name)}
    called = {new: old.removeprefix(STRATUM) for old, new in names.items()}
    plain = data.rename(names).assign_attrs(strata=json.dumps(called))
    plain = plain.assign_coords(failed=(("sample", "arm"), plain["failed"].values.astype(np.int8)))
    content = bytes(plain.to_dataset(name=_VALUE).to_netcdf(engine="scipy"))
    _write(path, content)
    return path


def read_netcdf(path: Path) -> "DataArray":
    """What `write_netcdf` wrote."""
    from io import BytesIO

    import xarray

    try:
        with xarray.open_dataset(BytesIO(_read(path)), engine="scipy") as file:
            stored = file.load()[_VALUE]
        called = json.loads(stored.attrs["strata"])
        data = stored.transpose(*DIMS).rename({name: f"{STRATUM}{own}" for name, own in called.items()})
        for name in (*_TEXTS, *(str(one) for one in data.coords if str(one).startswith(STRATUM))):
            texts = np.array([str(text) for text in data[name].values.tolist()], dtype=np.str_)
            data = data.assign_coords({name: (data[name].dims, texts)})
        for name, kind in (("repeat", np.int64), ("repeats", np.int64), ("label", np.int64), ("failed", np.bool_)):
            data = data.assign_coords({name: (data[name].dims, data[name].values.astype(kind))})
    except (KeyError, ValueError, TypeError):
        raise RiskError(f"{path}: is no risk tensor that `to_netcdf` wrote") from None
    data.name = _VALUE
    data.attrs = {"model": str(stored.attrs.get("model", ""))}
    data.attrs |= {name: stored.attrs[name] for name in _ATTRS if name in stored.attrs}
    return data


def write_parquet(tensor: RiskTensor, path: Path) -> Path:
    """One row for each loss, sample, arm and repeat that the arm has; null where there was no verdict."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = tensor.data
    loss, sample, arm, repeat = (place.ravel().astype(np.int32) for place in np.indices(data.shape))
    there = repeat < tensor.repeats[arm]
    loss, sample, arm, repeat = loss[there], sample[there], arm[there], repeat[there]
    values = data.values.ravel()[there]
    place = {"loss": loss, "sample": sample, "arm": arm}

    def column(name: str, dim: str) -> Any:
        content = pa.array(data[name].values.tolist())
        return pa.DictionaryArray.from_arrays(pa.array(place[dim]), content)

    columns = {dim: column(dim, dim) for dim in DIMS[:3]}
    columns |= {"repeat": pa.array(repeat), "value": pa.array(values, from_pandas=True)}
    columns |= {name: pa.array(data[name].values[loss]) for name in ("low", "high")}
    columns |= {name: pa.array(data[name].values[sample]) for name in ("label", "weight")}
    columns |= {f"{STRATUM}{name}": column(f"{STRATUM}{name}", "sample") for name in tensor.strata}
    columns |= {name: column(name, "arm") for name in ("kind", "family", "cause")}
    columns |= {"repeats": pa.array(tensor.repeats[arm]), "failed": pa.array(tensor.failed[sample, arm])}
    if tensor.is_random:
        columns["early"] = pa.array(data["early"].values.ravel()[there], from_pandas=True)
    known = {"model": tensor.model, **{name: data.attrs[name] for name in _ATTRS if name in data.attrs}}
    table = pa.table(columns).replace_schema_metadata({_META: json.dumps(known).encode()})
    try:
        with whole_file(path) as unfinished:
            pq.write_table(table, unfinished)
    except OSError as error:
        raise RiskError(f"{path}: cannot be written: {error.strerror or error}") from None
    return path


def read_parquet(path: Path) -> RiskTensor:
    """What `write_parquet` wrote, or any table with its columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
        known = json.loads((table.schema.metadata or {}).get(_META, b"{}"))
        columns = {name: _plain(table[name]) for name in table.column_names}
        places = {dim: np.unique(columns[dim], return_index=True, return_inverse=True) for dim in DIMS[:3]}
        order = {dim: np.argsort(first) for dim, (_, first, _) in places.items()}
        rank = {dim: np.argsort(one)[places[dim][2].reshape(-1)] for dim, one in order.items()}
        first = {dim: places[dim][1][order[dim]] for dim in DIMS[:3]}
        repeat = columns["repeat"].astype(np.int64)
        shape = (*(len(first[dim]) for dim in DIMS[:3]), int(columns["repeats"].max()))
        values = np.full(shape, np.nan)
        values[rank["loss"], rank["sample"], rank["arm"], repeat] = columns["value"]
        early = None
        if "early" in columns:
            early = np.full(shape, np.nan)
            early[rank["loss"], rank["sample"], rank["arm"], repeat] = columns["early"]
        failed = np.zeros(shape[1:3], dtype=np.bool_)
        failed[rank["sample"], rank["arm"]] = columns["failed"]
    except FileNotFoundError:
        raise RiskError(f"{path}: cannot be read: there is no such file") from None
    except (OSError, pa.ArrowException, KeyError, ValueError, IndexError):
        raise RiskError(f"{path}: is no risk tensor that `to_parquet` wrote") from None
    of_sample, of_arm, of_loss = first["sample"], first["arm"], first["loss"]
    names = columns["loss"][of_loss].tolist()
    low, high = (columns[name][of_loss].tolist() for name in ("low", "high"))
    return RiskTensor.from_arrays(
        values,
        losses=names,
        samples=columns["sample"][of_sample].tolist(),
        arms=columns["arm"][of_arm].tolist(),
        kind=columns["kind"][of_arm].tolist(),
        family=columns["family"][of_arm].tolist(),
        cause=columns["cause"][of_arm].tolist(),
        label=columns["label"][of_sample].astype(np.int64),
        weight=columns["weight"][of_sample],
        strata={
            name.removeprefix(STRATUM): column[of_sample].tolist()
            for name, column in columns.items()
            if name.startswith(STRATUM)
        },
        repeats=columns["repeats"][of_arm].astype(np.int64),
        failed=failed,
        ranges=dict(zip(names, zip(low, high, strict=True), strict=True)),
        model=known.get("model", ""),
        early=early,
        early_share=known.get("early_share", 0.0),
        unasked=json.loads(known.get("unasked") or "{}"),
    )


def _plain(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.to_numpy(zero_copy_only=False)


def _write(path: Path, content: bytes) -> None:
    try:
        with whole_file(path) as unfinished:
            unfinished.write_bytes(content)
    except OSError as error:
        raise RiskError(f"{path}: cannot be written: {error.strerror or error}") from None


def _read(path: Path) -> bytes:
    try:
        return regular(path).read_bytes()
    except OSError as error:
        raise RiskError(f"{path}: cannot be read: {error.strerror or error}") from None
