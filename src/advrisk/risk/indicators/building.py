"""Construction of risk tensors: from arrays, and by merging two tensors."""

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
    """Build the array with all its coordinates; refuse columns of the wrong length by name."""
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
    """Merge both arrays in the order of `a`, followed by what is new in `b`."""
    from xarray import DataArray

    if a.attrs.get("model") and b.attrs.get("model") and a.attrs["model"] != b.attrs["model"]:
        raise RiskError(
            f"one tensor is of {a.attrs['model']}, the other of {b.attrs['model']}: a tensor belongs to one model"
        )
    names = {dim: _union(a[dim].values, b[dim].values) for dim in DIMS[:3]}
    names["repeat"] = np.arange(max(a.sizes["repeat"], b.sizes["repeat"]))
    indices = {dim: {name: k for k, name in enumerate(column.tolist())} for dim, column in names.items()}
    values = np.full(tuple(len(names[dim]) for dim in DIMS), np.nan)
    early = values.copy()
    for one in (a, b):
        where = np.ix_(*([indices[dim][name] for name in one[dim].values.tolist()] for dim in DIMS))
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
    both = [json.loads(one.attrs.get("unasked") or "{}") for one in (a, b)]
    unasked = {loss: sorted({arm for one in both for arm in one.get(loss, ())}) for loss in {*both[0], *both[1]}}
    if unasked:
        attrs["unasked"] = json.dumps(unasked, sort_keys=True)
    return attrs


def _merged_facts(a: "DataArray", b: "DataArray", names: Mapping[str, Any]) -> dict[str, Any]:
    """Coordinates of losses, samples and arms, which must agree."""
    strata = dict.fromkeys(str(name) for one in (a, b) for name in one.coords if str(name).startswith(STRATUM))
    facts: dict[str, Any] = {}
    for dim, columns in (("loss", _OF_LOSS), ("sample", ("label", "weight", *strata)), ("arm", _OF_ARM)):
        for column in columns:
            facts[column] = (dim, _fact(a, b, dim, column, names[dim]))
    facts["repeats"] = ("arm", _most_repeats(a, b, names["arm"]))
    failed = np.zeros((len(names["sample"]), len(names["arm"])), dtype=np.bool_)
    for one in (a, b):
        indices = [_indices(one[dim].values, names[dim]) for dim in ("sample", "arm")]
        failed[np.ix_(*indices)] |= one["failed"].values.astype(np.bool_)
    return facts | {"failed": (("sample", "arm"), failed)}


def _fact(a: "DataArray", b: "DataArray", dim: str, column: str, names: Any) -> Any:
    values: dict[Any, Any] = {}
    for one in (a, b):
        if column not in one.coords:
            continue
        for name, value in zip(one[dim].values.tolist(), one[column].values.tolist(), strict=True):
            if name in values and values[name] != value:
                what = column.removeprefix(STRATUM)
                raise RiskError(f"{dim} {name}: its {what} is {values[name]!r} in one tensor, {value!r} in the other")
            values[name] = value
    missing = "" if column.startswith(STRATUM) else np.nan
    return np.array([values.get(name, missing) for name in names.tolist()])


def _most_repeats(a: "DataArray", b: "DataArray", names: Any) -> NDArray[np.int64]:
    most = np.zeros(len(names), dtype=np.int64)
    for one in (a, b):
        arms = _indices(one["arm"].values, names)
        most[arms] = np.maximum(most[arms], one["repeats"].values)
    return most


def _refuse_conflicts(old: Floats, new: "DataArray") -> None:
    differ = ~np.isnan(old) & ~np.isnan(new.values) & (old != new.values)
    if differ.any():
        where = np.argwhere(differ)[0]
        cell = ", ".join(f"{dim} {new[dim].values[k]}" for dim, k in zip(DIMS, where, strict=True))
        raise RiskError(
            f"{cell}: {old[tuple(where)]:g} in one tensor and {new.values[tuple(where)]:g} in the other, and "
            f"{int(differ.sum())} such in all; merge tensors of one model and the same answers"
        )


def _union(a: Any, b: Any) -> Any:
    return np.array(list(dict.fromkeys([*a.tolist(), *b.tolist()])))


def _indices(names: Any, among: Any) -> list[int]:
    index = {name: k for k, name in enumerate(among.tolist())}
    return [index[name] for name in names.tolist()]


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
    means = np.asarray(early, dtype=np.float64)
    if means.shape != array.shape or (np.isnan(means) != np.isnan(array)).any():
        raise RiskError(f"early: as many numbers as values are needed, nan in the same places, found {means.shape}")
    return means


def _share(early_share: float) -> float:
    if not 0 < early_share < 1:
        raise RiskError(f"early_share lies between 0 and 1, both excluded, found {early_share}")
    return float(early_share)


def _names(what: str, names: Any, n: int) -> NDArray[np.str_]:
    texts = [str(name) for name in names]
    if len(texts) != n:
        raise RiskError(f"{what}: {len(texts)} names for {n} of the values")
    twice = [name for name in dict.fromkeys(texts) if texts.count(name) > 1] if len(set(texts)) < n else []
    if twice:
        raise RiskError(f"{what}: {twice[0]!r} is listed {texts.count(twice[0])} times")
    return np.array(texts, dtype=np.str_)


def _texts(what: str, column: Any, n: int) -> NDArray[np.str_]:
    texts = ["" if value is None else str(value) for value in column]
    if len(texts) != n:
        raise RiskError(f"{what}: {len(texts)} entries where {n} are needed")
    return np.array(texts, dtype=np.str_)


def _check_kinds(kind: Sequence[str], arms: Any) -> None:
    for arm, one in zip(arms, kind, strict=False):
        if one not in KINDS:
            raise RiskError(f"arm {arm}: its kind is {one!r}; {did_you_mean(one, KINDS)}")


def _labels(label: ArrayLike | None, n: int) -> NDArray[np.int64]:
    labels = np.full(n, -1) if label is None else np.asarray(label)
    if labels.shape != (n,) or not np.issubdtype(labels.dtype, np.integer):
        raise RiskError(f"label: a whole number for each of {n} samples is needed, found {labels.dtype} {labels.shape}")
    return labels.astype(np.int64)


def _weights(weight: ArrayLike | None, n: int) -> Floats:
    try:
        weights = np.ones(n) if weight is None else np.array(weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RiskError(f"weight: numbers are needed ({error})") from None
    if weights.shape != (n,):
        raise RiskError(f"weight: {n} numbers are needed, found {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.sum() > 0:
        raise RiskError("weight: weights are finite, not negative, and not all 0")
    return weights


def _repeats(array: Floats, repeats: ArrayLike | None) -> NDArray[np.int64]:
    n_arms, n_repeats = array.shape[2:]
    has_value = np.asarray(~np.isnan(array).all(axis=(0, 1)))  # (arms, repeats)
    last = np.where(has_value.any(axis=1), n_repeats - has_value[:, ::-1].argmax(axis=1), 1)
    if repeats is None:
        return last.astype(np.int64)
    counts = np.asarray(repeats)
    if counts.shape != (n_arms,) or not np.issubdtype(counts.dtype, np.integer):
        raise RiskError(
            f"repeats: a whole number for each of {n_arms} arms is needed, found {counts.dtype} {counts.shape}"
        )
    if (counts < 1).any() or (counts > n_repeats).any() or (counts < last)[has_value.any(axis=1)].any():
        raise RiskError(f"repeats: from 1 to {n_repeats}, and no value beyond them, found {counts.tolist()}")
    return counts.astype(np.int64)


def _failed(failed: ArrayLike | None, shape: tuple[int, int]) -> NDArray[np.bool_]:
    flags = np.zeros(shape, dtype=np.bool_) if failed is None else np.asarray(failed, dtype=np.bool_)
    if flags.shape != shape:
        raise RiskError(f"failed: {shape[0]} samples x {shape[1]} arms are needed, found {flags.shape}")
    return flags


def _ranges(array: Floats, losses: Any, ranges: Mapping[str, tuple[float, float]]) -> tuple[Floats, Floats]:
    low, high = np.full(len(losses), -np.inf), np.full(len(losses), np.inf)
    for name, (least, most) in ranges.items():
        if name not in losses:
            raise RiskError(f"ranges: no loss {name!r} in this tensor; {did_you_mean(name, losses.tolist())}")
        index = losses.tolist().index(name)
        if not least < most:
            raise RiskError(f"ranges: {name} cannot lie between {least} and {most}")
        of_loss = array[index][~np.isnan(array[index])]
        if of_loss.size and not least <= of_loss.min() <= of_loss.max() <= most:
            raise RiskError(
                f"ranges: {name} lies in [{of_loss.min():g}, {of_loss.max():g}], not in [{least:g}, {most:g}]"
            )
        low[index], high[index] = least, most
    return low, high
