"""A risk tensor as a file of this machine, or at a URL."""

from pathlib import Path

from advrisk.ledger.sync.files import output_file
from advrisk.risk.indicators import RiskTensor


def write_tensor(tensor: RiskTensor, place: str | Path) -> Path:
    """NetCDF where the name ends in `.nc`, Parquet otherwise; of a URL, the copy that was put there."""
    with output_file(place, keep=True) as path:
        return tensor.to_netcdf(path) if path.suffix == ".nc" else tensor.to_parquet(path)
