"""Making risk tensors: from arrays, and from two of them."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advrisk.core.errors import RiskError
from advrisk.core.names import did_you_mean
from advrisk.risk.indicators.tensor import DIMS, KINDS, STRATUM, Floats

if TYPE_CHECKING:
    from xarray import DataArray

_OF_ARM, _OF_LOSS = ("kind", "family", "cause"), ("low", "high")


def built(
    values: ArrayLike,
    *,
    arms: Sequence[str],
    kind: Sequence[str],
    losses: Sequence[str],
    samples: Sequence[str] | None,
    label: ArrayLike | None,
    weight: ArrayLike | None,
    strata: Mapping[str, Sequence[object]],
    family: Sequence[str | None] | None,
    cause: Sequence[str | None] | None,
    repeats: ArrayLike | None,
    failed: ArrayLike | None,
    ranges: Mapping[str, tuple[float, float]],
    model: str,
    early: ArrayLike | None,
    early_share: float,
    unasked: Mapping[str, Sequence[str]],
) -> "DataArray":
    """The array with all its coordinates; what does not fit is refused by name."""
    from xarray import DataArray

    array = _four_dimensions(values, losses, arms)
    n_losses, n, n_arms, n_repeats = array.shape
    names = {
        "loss": _names("losses", losses, n_losses),
        "sample": _names("samples", range(n) if samples is None else samples, n),
        "arm": _names("arms", arms, n_arms),
    }
    _check_kinds(kind, names["arm"])
    counts = _repeats(array, repeats)
    bounds = _ranges(array, names["loss"], ranges)
    coords: dict[str, Any] = {
        **{name: (name, column) for name, column in names.items()},
        "repeat": ("repeat", np.arange(n_repeats)),
        "low": ("loss", bounds[0]),
        "high": ("loss", bounds[1]),
        "label": ("sample", _labels(label, n)),
        "weight": ("sample", _weights(weight, n)),
        **{f"{STRATUM}{name}": ("sample", _texts(f"strata.{name}", column, n)) for name, column in strata.items()},
        "kind": ("arm", _texts("kind", kind, n_arms)),
        "family": ("arm", _texts("family", family or [None] * n_arms, n_arms)),
        "cause": ("arm", _texts("cause", cause or [None] * n_arms, n_arms)),
        "repeats": ("arm", counts),
        "failed": (("sample", "arm"), _failed(failed, (n, n_arms))),
    }
    attrs: dict[str, Any] = {"model": model}
    if early is not None:
        coords["early"], attrs["early_share"] = (DIMS, _early(early, array)), _share(early_share)
    if unasked:
        attrs["unasked"] = json.dumps({loss: sorted(arms) for loss, arms in sorted(unasked.items())})
    return DataArray(array, coords=coords, dims=DIMS, name="risk", attrs=attrs)


def merged(a: "DataArray", b: "DataArray") -> "DataArray":
    """Both arrays in one; the order of `a` stays, and what is new comes after it."""
    from xarray import DataArray

    if a.attrs.get("model") and b.attrs.get("model") and a.attrs["model"] != b.attrs["model"]:
        raise RiskError(
            f"one tensor is of {a.attrs['model']}, the other of {b.attrs['model']}: a tensor belongs to one model"
        )
    names = {dim: _union(a[dim].values, b[dim].values) for dim in DIMS[:3]}
    names["repeat"] = np.arange(max(a.sizes["repeat"], b.sizes["repeat"]))
    place = {dim: {name: k for k, name in enumerate(column.tolist())} for dim, column in names.items()}
    values = np.full(tuple(len(names[dim]) for dim in DIMS), np.nan)
    early = values.copy()
    for one in (a, b):
        where = np.ix_(*([place[dim][name] for name in one[dim].values.tolist()] for dim in DIMS))
        _refuse_conflicts(values[where], one)
        first = one["early"] if "early" in one.coords else one
        early[where] = np.where(np.isnan(values[where]), first.values, early[where])
        values[where] = np.where(np.isnan(values[where]), one.values, values[where])
    coords: dict[str, Any] = {dim: (dim, column) for dim, column in names.items()}
    coords |= _merged_facts(a, b, names)
    if "early" in a.coords or "early" in b.coords:
        coords["early"] = (DIMS, early)
    return DataArray(values, coords=coords, dims=DIMS, name="risk", attrs=_merged_attrs(a, b))


def _merged_attrs(a: "DataArray", b: "DataArray") -> dict[str, Any]:
    attrs: dict[str, Any] = {**b.attrs, **a.attrs}
    shares = {one.attrs["early_share"] for one in (a, b) if "early_share" in one.attrs}
    if len(shares) > 1:
        raise RiskError("the two tensors are means over different numbers of draws; read both from the same run")
    held = [json.loads(one.attrs.get("unasked") or "{}") for one in (a, b)]
    unasked = {loss: sorted({arm for one in held for arm in one.get(loss, ())}) for loss in {*held[0], *held[1]}}
    if unasked:
        attrs["unasked"] = json.dumps(unasked, sort_keys=True)
    return attrs


def _merged_facts(a: "DataArray", b: "DataArray", names: Mapping[str, Any]) -> dict[str, Any]:
    """Coordinates of losses, samples and arms: both must say the same."""
    strata = dict.fromkeys(str(name) for one in (a, b) for name in one.coords if str(name).startswith(STRATUM))
    facts: dict[str, Any] = {}
    for dim, columns in (("loss", _OF_LOSS), ("sample", ("label", "weight", *strata)), ("arm", _OF_ARM)):
        for column in columns:
            facts[column] = (dim, _fact(a, b, dim, column, names[dim]))
    facts["repeats"] = ("arm", _most_repeats(a, b, names["arm"]))
    failed = np.zeros((len(names["sample"]), len(names["arm"])), dtype=np.bool_)
    for one in (a, b):
        place = [_places(one[dim].values, names[dim]) for dim in ("sample", "arm")]
        failed[np.ix_(*place)] |= one["failed"].values.astype(np.bool_)
    return facts | {"failed": (("sample", "arm"), failed)}


def _fact(a: "DataArray", b: "DataArray", dim: str, column: str, names: Any) -> Any:
    found: dict[Any, Any] = {}
    for one in (a, b):
        if column not in one.coords:
            continue
        for name, value in zip(one[dim].values.tolist(), one[column].values.tolist(), strict=True):
            if name in found and found[name] != value:
                what = column.removeprefix(STRATUM)
                raise RiskError(f"{dim} {name}: its {what} is {found[name]!r} in one tensor, {value!r} in the other")
            found[name] = value
    missing = "" if column.startswith(STRATUM) else np.nan
    return np.array([found.get(name, missing) for name in names.tolist()])


def _most_repeats(a: "DataArray", b: "DataArray", names: Any) -> NDArray[np.int64]:
    most = np.zeros(len(names), dtype=np.int64)
    for one in (a, b):
        place = _places(one["arm"].values, names)
        most[place] = np.maximum(most[place], one["repeats"].values)
    return most


def _refuse_conflicts(known: Floats, new: "DataArray") -> None:
    differ = ~np.isnan(known) & ~np.isnan(new.values) & (known != new.values)
    if differ.any():
        where = np.argwhere(differ)[0]
        place = ", ".join(f"{dim} {new[dim].values[k]}" for dim, k in zip(DIMS, where, strict=True))
        raise RiskError(
            f"{place}: {known[tuple(where)]:g} in one tensor and {new.values[tuple(where)]:g} in the other, and "
            f"{int(differ.sum())} such in all; merge tensors of one model and the same answers"
        )


def _union(a: Any, b: Any) -> Any:
    return np.array(list(dict.fromkeys([*a.tolist(), *b.tolist()])))


def _places(names: Any, among: Any) -> list[int]:
    place = {name: k for k, name in enumerate(among.tolist())}
    return [place[name] for name in names.tolist()]


# Checks


def _four_dimensions(values: ArrayLike, losses: Sequence[str], arms: Sequence[str]) -> Floats:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RiskError(f"the values of a risk tensor must be numbers ({error})") from None
    shape = array.shape
    if array.ndim == 2:
        array = array[None, :, :, None]
    elif array.ndim == 3 and shape[2] == len(arms) and shape[0] == len(losses) and shape[1] != len(arms):
        array = array[..., None]
    elif array.ndim == 3:
        array = array[None]
    if array.ndim != 4 or 0 in array.shape:
        raise RiskError(f"values must be (losses, samples, arms, repeats), none of them empty, found {shape}")
    if np.isinf(array).any():
        raise RiskError(f"{int(np.isinf(array).sum())} values are infinite; a loss is a number, or nan for no verdict")
    return array


def _early(early: ArrayLike, array: Floats) -> Floats:
    found = np.asarray(early, dtype=np.float64)
    if found.shape != array.shape or (np.isnan(found) != np.isnan(array)).any():
        raise RiskError(f"early: as many numbers as values are needed, nan in the same places, found {found.shape}")
    return found


def _share(early_share: float) -> float:
    if not 0 < early_share < 1:
        raise RiskError(f"early_share lies between 0 and 1, both excluded, found {early_share}")
    return float(early_share)


def _names(what: str, names: Any, n: int) -> NDArray[np.str_]:
    found = [str(name) for name in names]
    if len(found) != n:
        raise RiskError(f"{what}: {len(found)} names for {n} of the values")
    twice = [name for name in dict.fromkeys(found) if found.count(name) > 1] if len(set(found)) < n else []
    if twice:
        raise RiskError(f"{what}: {twice[0]!r} stands there {found.count(twice[0])} times")
    return np.array(found, dtype=np.str_)


def _texts(what: str, column: Any, n: int) -> NDArray[np.str_]:
    found = ["" if value is None else str(value) for value in column]
    if len(found) != n:
        raise RiskError(f"{what}: {len(found)} entries where {n} are needed")
    return np.array(found, dtype=np.str_)


def _check_kinds(kind: Sequence[str], arms: Any) -> None:
    for arm, one in zip(arms, kind, strict=False):
        if one not in KINDS:
            raise RiskError(f"arm {arm}: its kind is {one!r}; {did_you_mean(one, KINDS)}")


def _labels(label: ArrayLike | None, n: int) -> NDArray[np.int64]:
    found = np.full(n, -1) if label is None else np.asarray(label)
    if found.shape != (n,) or not np.issubdtype(found.dtype, np.integer):
        raise RiskError(f"label: a whole number for each of {n} samples is needed, found {found.dtype} {found.shape}")
    return found.astype(np.int64)


def _weights(weight: ArrayLike | None, n: int) -> Floats:
    try:
        found = np.ones(n) if weight is None else np.array(weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RiskError(f"weight: numbers are needed ({error})") from None
    if found.shape != (n,):
        raise RiskError(f"weight: {n} numbers are needed, found {found.shape}")
    if not np.isfinite(found).all() or (found < 0).any() or not found.sum() > 0:
        raise RiskError("weight: weights are finite, not negative, and not all 0")
    return found


def _repeats(array: Floats, repeats: ArrayLike | None) -> NDArray[np.int64]:
    n_arms, n_repeats = array.shape[2:]
    told = np.asarray(~np.isnan(array).all(axis=(0, 1)))  # (arms, repeats)
    last = np.where(told.any(axis=1), n_repeats - told[:, ::-1].argmax(axis=1), 1)
    if repeats is None:
        return last.astype(np.int64)
    found = np.asarray(repeats)
    if found.shape != (n_arms,) or not np.issubdtype(found.dtype, np.integer):
        raise RiskError(
            f"repeats: a whole number for each of {n_arms} arms is needed, found {found.dtype} {found.shape}"
        )
    if (found < 1).any() or (found > n_repeats).any() or (found < last)[told.any(axis=1)].any():
        raise RiskError(f"repeats: from 1 to {n_repeats}, and no value beyond them, found {found.tolist()}")
    return found.astype(np.int64)


def _failed(failed: ArrayLike | None, shape: tuple[int, int]) -> NDArray[np.bool_]:
    found = np.zeros(shape, dtype=np.bool_) if failed is None else np.asarray(failed, dtype=np.bool_)
    if found.shape != shape:
        raise RiskError(f"failed: {shape[0]} samples x {shape[1]} arms are needed, found {found.shape}")
    return found


def _ranges(array: Floats, losses: Any, ranges: Mapping[str, tuple[float, float]]) -> tuple[Floats, Floats]:
    low, high = np.full(len(losses), -np.inf), np.full(len(losses), np.inf)
    for name, (least, most) in ranges.items():
        if name not in losses:
            raise RiskError(f"ranges: no loss {name!r} in this tensor; {did_you_mean(name, losses.tolist())}")
        place = losses.tolist().index(name)
        if not least < most:
            raise RiskError(f"ranges: {name} cannot lie between {least} and {most}")
        of_loss = array[place][~np.isnan(array[place])]
        if of_loss.size and not least <= of_loss.min() <= of_loss.max() <= most:
            raise RiskError(
                f"ranges: {name} lies in [{of_loss.min():g}, {of_loss.max():g}], not in [{least:g}, {most:g}]"
            )
        low[place], high[place] = least, most
    return low, high
