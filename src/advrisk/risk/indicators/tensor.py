"""The risk tensor: what every answer of one model costs, by loss, sample, arm and repeat.

It is filled once; scenarios are evaluated on it without asking the model again. Nothing here knows a ledger.
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
STRATUM = "stratum."  # before the name of a stratum, so that it may be called anything


@dataclass(frozen=True, eq=False)
class ArmValues:
    """One loss, arms x samples; nan where some repeat of the arm gave no verdict."""

    mean: Floats  # over repeats
    largest: Floats


@dataclass(frozen=True, eq=False)
class RiskTensor:
    """R[loss, sample, arm, repeat] of one model, as an `xarray.DataArray`.

    A value is nan where the arm has no such repeat, and where it gave no verdict; the coordinate `repeats` of the arm
    tells the two apart, and `failed` (sample x arm) says where that was an error or a timeout. Further coordinates: of
    a sample `label`, `weight` and its strata (`stratum.light`, …), of an arm `kind`, `family` and `cause` ("" where
    there is none), of a loss `low` and `high`, between which it lies.

    Of a model that answers at random a value is the mean over its draws; `early` (of all four dimensions) is the mean
    over the first part of them, and the attribute `early_share` says how large that part is.
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
        """A tensor of values (losses, samples, arms, repeats); the first and the last dimension may be left out.

        `kind` says of each arm whether it is `clean`, a `corruption` or an `attack`. Without `repeats` an arm has as
        many as have a value for some sample. `ranges` says between which numbers a loss lies; without it intervals
        rest on the spread alone. Of a model that answers at random, `values` are means over its draws, and `early`
        those over the first `early_share` of them. `unasked` names, by loss, attacks that did not ask what it needs.
        """
        from advrisk.risk.indicators.building import built

        return cls(
            built(
                values, arms=arms, kind=kind, losses=losses, samples=samples, label=label, weight=weight,
                strata=strata or {}, family=family, cause=cause, repeats=repeats, failed=failed, ranges=ranges or {},
                model=model, early=early, early_share=early_share, unasked=unasked or {},
            )
        )  # fmt: skip

    # What it holds

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
        """How many each arm has."""
        return np.asarray(self.data["repeats"].values, dtype=np.int64)

    @cached_property
    def label(self) -> Integers:
        return np.asarray(self.data["label"].values, dtype=np.int64)

    @cached_property
    def weight(self) -> Floats:
        return np.asarray(self.data["weight"].values, dtype=np.float64)

    @cached_property
    def strata(self) -> dict[str, Texts]:
        """Stratum -> its value for each sample; "" where it has none."""
        names = [str(name) for name in self.data.coords if str(name).startswith(STRATUM)]
        return {name.removeprefix(STRATUM): np.asarray(self.data[name].values, dtype=np.str_) for name in names}

    @cached_property
    def all_strata(self) -> dict[str, Texts]:
        """The strata, and the class as one more, unless the data have a stratum of that name."""
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
        """Loss -> attacks that left alone samples which the loss asks about."""
        held: dict[str, list[str]] = json.loads(str(self.data.attrs.get("unasked") or "{}"))
        return {loss: tuple(arms) for loss, arms in held.items()}

    def range_of(self, loss: str) -> tuple[float, float]:
        """Between which numbers a loss lies; infinite where nobody knows."""
        place = self.losses.index(self.named_loss(loss))
        return float(self.data["low"].values[place]), float(self.data["high"].values[place])

    def named_loss(self, loss: str | None) -> str:
        """The loss of that name; the only one, where none is named."""
        if loss is None:
            if len(self.losses) > 1:
                raise RiskError(f"this tensor holds several losses; name one of {', '.join(self.losses)}")
            return self.losses[0]
        if loss not in self.losses:
            raise RiskError(f"no loss {loss!r} in this tensor; {did_you_mean(loss, self.losses)}")
        return loss

    def by_arm(self, loss: str) -> ArmValues:
        """Mean and maximum over the repeats of each arm: computed once.

        Repeats are added one after another, so that arms with more of them, added later, change no bit of these.
        """
        if loss not in self._by_arm:
            values = self.data.sel(loss=self.named_loss(loss)).values  # (samples, arms, repeats)
            total = np.zeros((len(self.arms), len(self.samples)))
            largest = np.full(total.shape, -np.inf)
            for repeat in range(values.shape[2]):
                there = (repeat < self.repeats)[:, None]
                one = values[:, :, repeat].T
                total += np.where(there, one, 0.0)
                np.maximum(largest, np.where(there, one, -np.inf), out=largest)
            self._by_arm[loss] = ArmValues(total / self.repeats[:, None], largest)
        return self._by_arm[loss]

    def worst(self, loss: str, arms: Sequence[int]) -> Floats:
        """The largest loss of each sample over these arms and their repeats; of a random model, chosen fairly."""
        if not self.is_random:
            return np.asarray(self.by_arm(loss).largest[list(arms)].max(axis=0))
        one = self.data.sel(loss=self.named_loss(loss))
        share = float(self.data.attrs["early_share"])
        tries = [(arm, repeat) for arm in arms for repeat in range(int(self.repeats[arm]))]
        mean, early = (
            np.stack([values[:, arm, repeat] for arm, repeat in tries]) for values in (one.values, one["early"].values)
        )
        return worst(early, (mean - share * early) / (1 - share), share)

    # What can be done with it

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
        """The part with these losses, arms (names, or patterns with `*`) and samples; all conditions hold together."""
        arms = np.ones(len(self.arms), dtype=np.bool_)
        for name, of_arm, wanted in (
            ("arm", self.arms, arm), ("kind", self.kind, kind), ("family", self.family, family),
            ("cause", self.cause, cause),
        ):  # fmt: skip
            if wanted is not None:
                arms &= _chosen(name, of_arm, wanted)
        samples = self.in_strata(where or {})
        if sample is not None:
            samples &= _chosen("sample", self.samples, sample, patterns=False)
        data = self.data
        if loss is not None:
            data = data.isel(loss=_chosen("loss", self.losses, loss))
        if not arms.any() or not samples.any():
            missing = "samples" if arms.any() else "arms"
            raise RiskError(f"no {missing} are left: all conditions of a selection must hold together")
        return RiskTensor(data.isel(arm=arms, sample=samples))

    def in_strata(self, where: Mapping[str, object]) -> Flags:
        """Which samples have these values; several values of one stratum may be given as a list."""
        found = np.ones(len(self.samples), dtype=np.bool_)
        for name, values in where.items():
            if name not in self.all_strata:
                raise RiskError(f"the samples have no stratum {name!r}; {did_you_mean(name, self.all_strata)}")
            wanted = [str(value) for value in (values if isinstance(values, list | tuple) else [values])]
            known = sorted(set(self.all_strata[name].tolist()) - {""})
            for value in wanted:
                if value not in known:
                    raise RiskError(f"no sample has {name} = {value!r}; {did_you_mean(value, known)}")
            found &= np.isin(self.all_strata[name], wanted)
        return found

    def aggregate(self, over: str | Sequence[str], how: How = "mean") -> "DataArray":
        """Values without the dimensions named: repeats first, then arms, then samples.

        Where an arm gave no verdict there is none over its repeats either, nor over arms; samples without one are left
        out. The mean over samples is weighted; arms count alike, however many repeats they have. Of a model that
        answers at random, `max` is the largest of means over draws, and so too large on average; `worst` is not.
        """
        dims = list(one_or_many(over))
        if how not in ("mean", "max"):
            raise RiskError(f"values are aggregated by mean or max, found {how!r}")
        for name in dims:
            if name not in DIMS[1:]:
                raise RiskError(f"one can aggregate over sample, arm and repeat, found {name!r}")
        found = self.data
        there = self.data["repeat"] < self.data["repeats"]  # (repeat, arm)
        for name in ("repeat", "arm"):
            if name in dims:
                left_out = found.isnull() & (there if "repeat" in found.dims else True)
                skipped = found.max(name, skipna=True) if how == "max" else found.mean(name, skipna=True)
                found = skipped.where(~left_out.any(name))
                there = there.any(name) if "repeat" in found.dims else there
        if "sample" in dims:
            found = found.max("sample", skipna=True) if how == "max" else found.weighted(found["weight"]).mean("sample")
        return found

    def merge(self, other: "RiskTensor") -> "RiskTensor":
        """Both together: new losses, arms or samples join; where both know a value, it must be the same."""
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


def _chosen(what: str, known: Sequence[str], wanted: str | Sequence[str], *, patterns: bool = True) -> Flags:
    """Which of the known names are wanted; one that fits none is refused."""
    names = list(one_or_many(wanted))
    held = set(known)
    for name in names:
        if name not in held and not (patterns and any(matches(one, [name]) for one in held)):
            raise RiskError(f"no {what} {name!r} in this tensor; {did_you_mean(name, held - {''})}")
    exact = set(names)
    if patterns:
        exact |= {one for one in held if matches(one, names)}
    return np.array([one in exact for one in known], dtype=np.bool_)
