"""Risk tensors as files: NetCDF for labelled arrays, Parquet in long form for tables."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.core.files import whole_file
from advrisk.risk.indicators.tensor import DIMS, STRATUM, RiskTensor

if TYPE_CHECKING:
    from xarray import DataArray

_VALUE = "risk"
_META = b"advrisk.tensor"
_ATTRS = ("early_share", "unasked")
_NETCDF_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*")


def write_netcdf(data: "DataArray", path: Path) -> Path:
    """Write NetCDF with its labels, so that `xarray.open_dataarray(path).sel(loss="misclassified")` works.

    NetCDF 3 restricts names: a stratum with another name is numbered, and an attribute maps the number to the name.
    """
    strata = [str(name) for name in data.coords if str(name).startswith(STRATUM)]
    names = {name: f"stratum_{number}" for number, name in enumerate(strata) if not _NETCDF_NAME.fullmatch(name)}
    called = {new: old.removeprefix(STRATUM) for old, new in names.items()}
    plain = data.rename(names).assign_attrs(strata=json.dumps(called))
    plain = plain.assign_coords(failed=(("sample", "arm"), plain["failed"].values.astype(np.int8)))
    content = bytes(plain.to_dataset(name=_VALUE).to_netcdf(engine="scipy"))
    _write(path, content)
    return path


def write_parquet(tensor: RiskTensor, path: Path) -> Path:
    """Write Parquet with one row for each loss, sample, arm and repeat of the arm; null without a verdict."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = tensor.data
    loss, sample, arm, repeat = (axis.ravel().astype(np.int32) for axis in np.indices(data.shape))
    exists = repeat < tensor.repeats[arm]
    loss, sample, arm, repeat = loss[exists], sample[exists], arm[exists], repeat[exists]
    values = data.values.ravel()[exists]
    indices = {"loss": loss, "sample": sample, "arm": arm}

    def column(name: str, dim: str) -> Any:
        content = pa.array(data[name].values.tolist())
        return pa.DictionaryArray.from_arrays(pa.array(indices[dim]), content)

    columns = {dim: column(dim, dim) for dim in DIMS[:3]}
    columns |= {"repeat": pa.array(repeat), "value": pa.array(values, from_pandas=True)}
    columns |= {name: pa.array(data[name].values[loss]) for name in ("low", "high")}
    columns |= {name: pa.array(data[name].values[sample]) for name in ("label", "weight")}
    columns |= {f"{STRATUM}{name}": column(f"{STRATUM}{name}", "sample") for name in tensor.strata}
    columns |= {name: column(name, "arm") for name in ("kind", "family", "cause")}
    columns |= {"repeats": pa.array(tensor.repeats[arm]), "failed": pa.array(tensor.failed[sample, arm])}
    if tensor.is_random:
        columns["early"] = pa.array(data["early"].values.ravel()[exists], from_pandas=True)
    metadata = {"model": tensor.model, **{name: data.attrs[name] for name in _ATTRS if name in data.attrs}}
    table = pa.table(columns).replace_schema_metadata({_META: json.dumps(metadata).encode()})
    try:
        with whole_file(path) as unfinished:
            pq.write_table(table, unfinished)
    except OSError as error:
        raise RiskError(f"{path}: cannot be written: {error.strerror or error}") from None
    return path


def _write(path: Path, content: bytes) -> None:
    try:
        with whole_file(path) as unfinished:
            unfinished.write_bytes(content)
    except OSError as error:
        raise RiskError(f"{path}: cannot be written: {error.strerror or error}") from None
