"""The risk tensor: the loss of every answer of one model, by loss, sample, arm and repeat.

Scenarios are evaluated on it without querying the model again. Nothing here knows a ledger.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advrisk.core.errors import RiskError
from advrisk.core.names import did_you_mean, matches, one_or_many
from advrisk.risk.indicators.draws import worst

if TYPE_CHECKING:
    from xarray import DataArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]
Texts = NDArray[np.str_]
How = Literal["mean", "max"]

DIMS = ("loss", "sample", "arm", "repeat")
KINDS = ("clean", "corruption", "attack")
CLEAN = "clean"
STRATUM = "stratum."  # prefix of strata, whose names are arbitrary


@dataclass(frozen=True, eq=False)
class ArmValues:
    """One loss, arms x samples; nan where some repeat of the arm gave no verdict."""

    mean: Floats  # over repeats
    largest: Floats


@dataclass(frozen=True, eq=False)
class RiskTensor:
    """R[loss, sample, arm, repeat] of one model, as an `xarray.DataArray`.

    A value is nan where the arm has no such repeat, and where it gave no verdict. The coordinate `repeats` of the arm
    distinguishes the two, and `failed` (sample x arm) marks errors and timeouts. Further coordinates: `label`, `weight`
    and strata (`stratum.light`, …) of a sample; `kind`, `family` and `cause` of an arm ("" for none); the bounds `low`
    and `high` of a loss.

    For a random model, a value is the mean over its draws; `early` (four dimensions) is the mean over the first part of
    them, and the attribute `early_share` is the size of that part.
    """

    data: "DataArray"
    _by_arm: dict[str, ArmValues] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.data.dims != DIMS:
            raise RiskError(
                f"a risk tensor has the dimensions {', '.join(DIMS)}, found {', '.join(map(str, self.data.dims))}"
            )

    @classmethod
    def from_arrays(
        cls,
        values: ArrayLike,
        *,
        arms: Sequence[str],
        kind: Sequence[str],
        losses: Sequence[str] = ("loss",),
        samples: Sequence[str] | None = None,
        label: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        strata: Mapping[str, Sequence[object]] | None = None,
        family: Sequence[str | None] | None = None,
        cause: Sequence[str | None] | None = None,
        repeats: ArrayLike | None = None,
        failed: ArrayLike | None = None,
        ranges: Mapping[str, tuple[float, float]] | None = None,
        model: str = "",
        early: ArrayLike | None = None,
        early_share: float = 0.0,
        unasked: Mapping[str, Sequence[str]] | None = None,
    ) -> "RiskTensor":
        """Build a tensor from values (losses, samples, arms, repeats); the first and last dimension are optional.

        `kind` is `clean`, `corruption` or `attack` for each arm. Without `repeats`, an arm has as many as have a value
        for some sample. `ranges` gives the bounds of losses; without them, intervals use the spread alone. For a random
        model, `values` are means over its draws, and `early` means over the first `early_share` of them. `unasked`
        lists, by loss, attacks that skipped samples which the loss needs.
        """
        from advrisk.risk.indicators.building import built

        return cls(
            built(
                values, arms=arms, kind=kind, losses=losses, samples=samples, label=label, weight=weight,
                strata=strata or {}, family=family, cause=cause, repeats=repeats, failed=failed, ranges=ranges or {},
                model=model, early=early, early_share=early_share, unasked=unasked or {},
            )
        )  # fmt: skip

    # Coordinates

    @property
    def model(self) -> str:
        """The model whose answers these are."""
        return str(self.data.attrs.get("model", ""))

    @cached_property
    def losses(self) -> tuple[str, ...]:
        return tuple(map(str, self.data["loss"].values))

    @cached_property
    def samples(self) -> tuple[str, ...]:
        return tuple(map(str, self.data["sample"].values))

    @cached_property
    def arms(self) -> tuple[str, ...]:
        return tuple(map(str, self.data["arm"].values))

    @cached_property
    def kind(self) -> tuple[str, ...]:
        return tuple(map(str, self.data["kind"].values))

    @cached_property
    def family(self) -> tuple[str, ...]:
        return tuple(map(str, self.data["family"].values))

    @cached_property
    def cause(self) -> tuple[str, ...]:
        return tuple(map(str, self.data["cause"].values))

    @cached_property
    def repeats(self) -> Integers:
        """Number of repeats of each arm."""
        return np.asarray(self.data["repeats"].values, dtype=np.int64)

    @cached_property
    def label(self) -> Integers:
        return np.asarray(self.data["label"].values, dtype=np.int64)

    @cached_property
    def weight(self) -> Floats:
        return np.asarray(self.data["weight"].values, dtype=np.float64)

    @cached_property
    def strata(self) -> dict[str, Texts]:
        """Stratum -> its value for each sample, "" for none."""
        names = [str(name) for name in self.data.coords if str(name).startswith(STRATUM)]
        return {name.removeprefix(STRATUM): np.asarray(self.data[name].values, dtype=np.str_) for name in names}

    @cached_property
    def all_strata(self) -> dict[str, Texts]:
        """The strata and the class, unless the data have a stratum named `class`."""
        if "class" in self.strata or (self.label < 0).all():
            return self.strata
        classes = np.array([str(label) if label >= 0 else "" for label in self.label.tolist()], dtype=np.str_)
        return {**self.strata, "class": classes}

    @cached_property
    def failed(self) -> Flags:
        """Where an arm ended with an error or a timeout, (samples, arms)."""
        return np.asarray(self.data["failed"].values, dtype=np.bool_)

    @property
    def is_random(self) -> bool:
        """Whether the values are means over draws of a model that answers at random."""
        return "early" in self.data.coords

    @cached_property
    def unasked(self) -> dict[str, tuple[str, ...]]:
        """Loss -> attacks that skipped samples which the loss needs."""
        stored: dict[str, list[str]] = json.loads(str(self.data.attrs.get("unasked") or "{}"))
        return {loss: tuple(arms) for loss, arms in stored.items()}

    def range_of(self, loss: str) -> tuple[float, float]:
        """Bounds of a loss, infinite if unknown."""
        index = self.losses.index(self.named_loss(loss))
        return float(self.data["low"].values[index]), float(self.data["high"].values[index])

    def named_loss(self, loss: str | None) -> str:
        """The loss of that name; by default the only one."""
        if loss is None:
            if len(self.losses) > 1:
                raise RiskError(f"this tensor holds several losses; name one of {', '.join(self.losses)}")
            return self.losses[0]
        if loss not in self.losses:
            raise RiskError(f"no loss {loss!r} in this tensor; {did_you_mean(loss, self.losses)}")
        return loss

    def by_arm(self, loss: str) -> ArmValues:
        """Cached mean and maximum over the repeats of each arm.

        Repeats are summed in order, so the results stay bit-equal when arms with more repeats are added.
        """
        if loss not in self._by_arm:
            values = self.data.sel(loss=self.named_loss(loss)).values  # (samples, arms, repeats)
            total = np.zeros((len(self.arms), len(self.samples)))
            largest = np.full(total.shape, -np.inf)
            for repeat in range(values.shape[2]):
                exists = (repeat < self.repeats)[:, None]
                one = values[:, :, repeat].T
                total += np.where(exists, one, 0.0)
                np.maximum(largest, np.where(exists, one, -np.inf), out=largest)
            self._by_arm[loss] = ArmValues(total / self.repeats[:, None], largest)
        return self._by_arm[loss]

    def worst(self, loss: str, arms: Sequence[int]) -> Floats:
        """The largest loss of each sample over these arms and their repeats; cross-fitted for a random model."""
        if not self.is_random:
            return np.asarray(self.by_arm(loss).largest[list(arms)].max(axis=0))
        one = self.data.sel(loss=self.named_loss(loss))
        share = float(self.data.attrs["early_share"])
        tries = [(arm, repeat) for arm in arms for repeat in range(int(self.repeats[arm]))]
        mean, early = (
            np.stack([values[:, arm, repeat] for arm, repeat in tries]) for values in (one.values, one["early"].values)
        )
        return worst(early, (mean - share * early) / (1 - share), share)

    # Selection, aggregation, merging

    def select(
        self,
        *,
        loss: str | Sequence[str] | None = None,
        arm: str | Sequence[str] | None = None,
        kind: str | Sequence[str] | None = None,
        family: str | Sequence[str] | None = None,
        cause: str | Sequence[str] | None = None,
        sample: Sequence[str] | None = None,
        where: Mapping[str, object] | None = None,
    ) -> "RiskTensor":
        """Select losses, arms (names, or patterns with `*`) and samples that meet all conditions."""
        arms = np.ones(len(self.arms), dtype=np.bool_)
        for name, of_arm, patterns in (
            ("arm", self.arms, arm), ("kind", self.kind, kind), ("family", self.family, family),
            ("cause", self.cause, cause),
        ):  # fmt: skip
            if patterns is not None:
                arms &= _chosen(name, of_arm, patterns)
        samples = self.in_strata(where or {})
        if sample is not None:
            samples &= _chosen("sample", self.samples, sample, patterns=False)
        data = self.data
        if loss is not None:
            data = data.isel(loss=_chosen("loss", self.losses, loss))
        if not arms.any() or not samples.any():
            missing = "samples" if arms.any() else "arms"
            raise RiskError(f"no {missing} are left: a selection must meet all conditions at once")
        return RiskTensor(data.isel(arm=arms, sample=samples))

    def in_strata(self, where: Mapping[str, object]) -> Flags:
        """Which samples have these values; a list allows several values of one stratum."""
        mask = np.ones(len(self.samples), dtype=np.bool_)
        for name, values in where.items():
            if name not in self.all_strata:
                raise RiskError(f"the samples have no stratum {name!r}; {did_you_mean(name, self.all_strata)}")
            allowed = [str(value) for value in (values if isinstance(values, list | tuple) else [values])]
            existing = sorted(set(self.all_strata[name].tolist()) - {""})
            for value in allowed:
                if value not in existing:
                    raise RiskError(f"no sample has {name} = {value!r}; {did_you_mean(value, existing)}")
            mask &= np.isin(self.all_strata[name], allowed)
        return mask

    def aggregate(self, over: str | Sequence[str], how: How = "mean") -> "DataArray":
        """Aggregate over the named dimensions: repeats first, then arms, then samples.

        A missing verdict of an arm propagates over its repeats and over arms; samples without a verdict are left out.
        The mean over samples is weighted; arms have equal weight, whatever their repeats. For a random model, `max` is
        the largest of means over draws and biased upwards; `worst` is not.
        """
        dims = list(one_or_many(over))
        if how not in ("mean", "max"):
            raise RiskError(f"values are aggregated by mean or max, found {how!r}")
        for name in dims:
            if name not in DIMS[1:]:
                raise RiskError(f"one can aggregate over sample, arm and repeat, found {name!r}")
        data = self.data
        exists = self.data["repeat"] < self.data["repeats"]  # (repeat, arm)
        for name in ("repeat", "arm"):
            if name in dims:
                missing = data.isnull() & (exists if "repeat" in data.dims else True)
                skipped = data.max(name, skipna=True) if how == "max" else data.mean(name, skipna=True)
                data = skipped.where(~missing.any(name))
                exists = exists.any(name) if "repeat" in data.dims else exists
        if "sample" in dims:
            data = data.max("sample", skipna=True) if how == "max" else data.weighted(data["weight"]).mean("sample")
        return data

    def merge(self, other: "RiskTensor") -> "RiskTensor":
        """Merge two tensors with different losses, arms or samples; common values must agree."""
        from advrisk.risk.indicators.building import merged

        return RiskTensor(merged(self.data, other.data))

    # Files

    def to_netcdf(self, path: str | Path) -> Path:
        """Write a NetCDF file (version 3), which xarray and many other programs read."""
        from advrisk.risk.indicators.files import write_netcdf

        return write_netcdf(self.data, _local(path))

    def to_parquet(self, path: str | Path) -> Path:
        """Write a Parquet file in long form: one row for each loss, sample, arm and repeat."""
        from advrisk.risk.indicators.files import write_parquet

        return write_parquet(self, _local(path))


def _local(path: str | Path) -> Path:
    if "://" in str(path):
        raise RiskError(f"{path}: a tensor is written to a local file; `advrisk export RUN --table risk` takes a URL")
    return Path(path)


def _chosen(what: str, column: Sequence[str], selected: str | Sequence[str], *, patterns: bool = True) -> Flags:
    """Mask of the entries of a column that match a selected name; a name without a match is refused."""
    names = list(one_or_many(selected))
    existing = set(column)
    for name in names:
        if name not in existing and not (patterns and any(matches(one, [name]) for one in existing)):
            raise RiskError(f"no {what} {name!r} in this tensor; {did_you_mean(name, existing - {''})}")
    exact = set(names)
    if patterns:
        exact |= {one for one in existing if matches(one, names)}
    return np.array([one in exact for one in column], dtype=np.bool_)
