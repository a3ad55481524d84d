"""The columns of a file of outcomes: what each may hold, and what follows where something is left out.

Pieces of a file come in as they were read and go out as columns of `outcomes`, with `label` and `weight` of the sample
beside them, up to the first row that is at fault. Nothing here makes a Python object for each row.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc

from advrisk.core.errors import LedgerError
from advrisk.core.names import cut, did_you_mean
from advrisk.core.traits import Norm
from advrisk.ledger.exchange.source import NAMES
from advrisk.ledger.tables import OUTCOMES, TABLES, constant
from advrisk.ledger.validity import MAX_REPEATS
from advrisk.study import ArmKind

NORMS = get_args(Norm)
Columns = dict[str, pa.Array]
# What a file may hold beside the columns of `outcomes`: a distance in one norm, and what belongs to the sample.
_EXTRA = {"distance": pa.float64(), "label": pa.int32(), "weight": pa.float64()}
_KINDS = {field.name: field.type for field in TABLES["outcomes"]} | _EXTRA
_OURS = ("run", "cell")  # columns that an import writes anew
_WORDS: Mapping[str, Sequence[str]] = {"norm": NORMS, "kind": get_args(ArmKind), "outcome": OUTCOMES}
_NEEDED = ("model", "sample")
_WIDTH = 60  # of a value that a message shows
# Names stay as they are written: sample 007 is not sample 7.
NAMED = tuple(name for name, kind in _KINDS.items() if pa.types.is_dictionary(kind))
OTHERS = tuple(name for name in _KINDS if name not in NAMED)


@dataclass(frozen=True)
class Fault:
    """What is wrong with a row of a piece, counted from 0."""

    place: int
    what: str


@dataclass(frozen=True)
class _Domain:
    """What the values of a column are, and which of them count."""

    what: str
    holds: Callable[[pa.Array], pa.Array] = pc.is_valid


def _between(low: float, high: float, values: pa.Array) -> pa.Array:
    return pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))  # neither holds for NaN


_LARGEST = 1.7976931348623157e308
_SIZE = _Domain("a finite number of at least 0", partial(_between, 0, _LARGEST))
_DISTANCE = _Domain("a distance of at least 0, or empty", partial(_between, 0, float("inf")))
_SHARE = _Domain("a number from 0 to 1", partial(_between, 0, 1))
_COUNT = _Domain("a whole number of at least 0", partial(_between, 0, 2**63 - 1))
_DOMAINS = {
    "eps": _SIZE,
    "repeat": _Domain(f"a whole number from 0 to {MAX_REPEATS - 1}", partial(_between, 0, MAX_REPEATS - 1)),
    "weight": _Domain("a positive number", partial(_between, 5e-324, _LARGEST)),
    "confidence": _SHARE,
    "success_rate": _SHARE,
    "survives_8bit": _Domain("true or false"),
    "draws": _Domain("a list of whole numbers"),
    "first_s": _SIZE,
    "spent_s": _SIZE,
    **dict.fromkeys(("target", "clean_prediction", "prediction", "label"), _Domain("a whole number")),
    **dict.fromkeys(("distance", *(f"{side}_{norm}" for side in ("d", "near") for norm in NORMS)), _DISTANCE),
    **dict.fromkeys((name for name in OTHERS if name.startswith("n_")), _COUNT),
}


def default_norm(source: Path, columns: Sequence[str], norm: str | None) -> str | None:
    """The norm of rows that do not name theirs; a LedgerError where the columns are not those of outcomes."""
    for name in columns:
        if name not in _KINDS:
            raise LedgerError(f"{source}: unknown column {name!r}; {did_you_mean(name, _KINDS)}")
    for name in _NEEDED:
        if name not in columns:
            raise LedgerError(f"{source}: the column {name!r} is missing")
    measured = [name for name in NORMS if f"d_{name}" in columns]
    if not measured and "distance" not in columns:
        raise LedgerError(f"{source}: a column of distances is missing: d_linf, or distance with a norm")
    alone = len(measured) == 1 and not {"distance", "norm"} & set(columns)
    return measured[0] if norm is None and alone else norm


def read_piece(batch: pa.RecordBatch, norm: str | None) -> tuple[Columns, Fault | None]:
    """The rows as outcomes, with label and weight; up to the first one that is at fault."""
    read, faults = {}, []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name not in _OURS:
            read[name], fault = _read(name, column)
            faults += [fault] if fault else []
    n = min((fault.place for fault in faults), default=len(batch))
    columns, more = _completed({name: column.slice(0, n) for name, column in read.items()}, n, norm)
    return columns, min([*more, *faults], key=lambda fault: fault.place, default=None)


def _read(name: str, column: pa.Array) -> tuple[pa.Array, Fault | None]:
    return _read_names(name, column) if name in NAMED else _read_values(name, column)


def _read_names(name: str, column: pa.Array) -> tuple[pa.Array, Fault | None]:
    try:
        names = _as_names(column)
    except pa.ArrowException:
        return pa.nulls(len(column), NAMES), Fault(0, f"{name} must be text, found {column.type}")
    if name in _NEEDED and (place := _first(names.is_null())) is not None:
        return names, Fault(place, f"{name} is empty")
    if name in _WORDS:
        known = pc.is_in(names.dictionary, value_set=pa.array(_WORDS[name], pa.string())).take(names.indices)
        if (place := _first(pc.invert(known))) is not None:
            word = names[place].as_py()
            return names, Fault(place, f"{name} is {cut(repr(word), _WIDTH)}; {did_you_mean(word, _WORDS[name])}")
    return names, None


def _as_names(column: pa.Array) -> pa.DictionaryArray:
    """Text as a dictionary; numbers as Python writes them, and empty text as none."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    names = column.dictionary
    if _is_text(names.type) or pa.types.is_integer(names.type):
        names = names.cast(pa.string())
    else:
        names = pa.array([None if name is None else str(name) for name in names.to_pylist()], pa.string())
    encoded = pa.DictionaryArray.from_arrays(column.indices.cast(pa.int32()), names)
    if names.null_count or pc.any(pc.equal(names, "")).as_py():
        plain = encoded.dictionary_decode()
        encoded = pc.if_else(pc.equal(plain, ""), None, plain).dictionary_encode()
    return encoded


def _read_values(name: str, column: pa.Array) -> tuple[pa.Array, Fault | None]:
    values, n = _converted(column, _KINDS[name])
    wrong = pc.and_(values.is_valid(), pc.invert(_DOMAINS[name].holds(values)))
    place = _first(wrong)
    if place is None and n == len(column):
        return values, None
    place = n if place is None else place
    return values, Fault(place, f"{name} must be {_DOMAINS[name].what}, found {_shown(column[place].as_py())}")


def _converted(column: pa.Array, kind: pa.DataType) -> tuple[pa.Array, int]:
    """The values in that type, up to the first one that is none, and how many these are."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_boolean(kind) and not pa.types.is_nested(column.type):
        column = column.cast(pa.string())  # as a number, 7 would be true
    if _is_text(column.type):
        column = pc.utf8_trim_whitespace(column.cast(pa.string()))
        column = pc.if_else(pc.equal(column, ""), None, column)
    if (values := _cast(column, kind)) is not None:
        return values, len(column)
    if pa.types.is_integer(kind) and (floats := _converted(column, pa.float64()))[1]:
        return _whole(*floats, kind)  # 3.0 is 3: with a gap, others write whole numbers like that
    n = _n_convertible(column, kind)
    values = _cast(column.slice(0, n), kind)
    return pa.nulls(n, kind) if values is None else values, n


def _whole(floats: pa.Array, n: int, kind: pa.DataType) -> tuple[pa.Array, int]:
    limit = 2.0 ** (kind.bit_width - 1)
    fits = pc.and_(pc.equal(floats, pc.round(floats)), _between(-limit, limit - 1, floats))
    place = _first(pc.invert(fits))
    n = n if place is None else place
    return floats.slice(0, n).cast(kind), n


def _n_convertible(column: pa.Array, kind: pa.DataType) -> int:
    """How many values from the first on can be converted, by bisection; it is known that not all can."""
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _cast(column.slice(0, middle), kind) is None else (middle, high)
    first = _first(column.is_valid())
    return low if first is None else max(low, first)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array | None:
    if column.null_count == len(column):
        return pa.nulls(len(column), kind)
    try:
        return column.cast(kind)
    except pa.ArrowException:
        return None


def _completed(given: Columns, n: int, norm: str | None) -> tuple[Columns, list[Fault]]:
    """All columns of outcomes but those of cells, and where a row contradicts itself."""
    measured = _filled(given.get("norm"), norm, n)
    sizes = {name: given.get(f"d_{name}", pa.nulls(n, pa.float64())) for name in NORMS}
    faults = []
    if "distance" in given:
        faults += _fault(
            pc.and_(given["distance"].is_valid(), measured.is_null()),
            "a distance in which norm? Name it in a column `norm`, or with --norm: l0, l1, l2 or linf",
        )
        for name in NORMS:
            here = pc.and_(given["distance"].is_valid(), _is(measured, name))
            sizes[name] = pc.if_else(here, given["distance"], sizes[name])
    finite = [pc.fill_null(pc.is_finite(size), False) for size in sizes.values()]
    positive = [pc.and_kleene(here, pc.greater(size, 0)) for here, size in zip(finite, sizes.values(), strict=True)]
    any_finite, any_positive = reduce(pc.or_, finite), reduce(pc.or_, positive)
    outcome = _or_else(
        given.get("outcome"),
        lambda: pc.if_else(any_positive, "success", pc.if_else(any_finite, "already_wrong", "resisted")),
    )
    success = _is(outcome, "success")
    faults += _fault(pc.and_(success, pc.invert(any_finite)), "a success without a distance; give one, or `resisted`")
    columns = {name: pa.nulls(n, kind) for name, kind in _KINDS.items() if name not in _OURS} | given
    del columns["distance"]
    columns |= {f"d_{name}": pc.if_else(success, size, None) for name, size in sizes.items()}
    columns |= {"norm": measured, "outcome": outcome, "repeat": pc.fill_null(columns["repeat"], 0)}
    columns |= {name: _filled(given.get(name), word, n) for name, word in _DEFAULTS.items()}
    columns["arm"] = _or_else(given.get("arm"), lambda: _default_arms(measured))
    return columns, faults


_DEFAULTS = {"kind": "attack", "family": "imported", "criterion": "label"}


def _default_arms(measured: pa.DictionaryArray) -> pa.Array:
    words = pc.fill_null(measured.dictionary_decode().cast(pa.string()), "attack")
    return pc.binary_join_element_wise("imported", words, "-")


def _filled(names: pa.DictionaryArray | None, word: str | None, n: int) -> pa.DictionaryArray:
    """The names, with this word where there is none."""
    if names is None:
        return constant(word, n)
    return names if word is None else _or_else(names, lambda: pa.repeat(word, n))


def _or_else(names: pa.DictionaryArray | None, other: Callable[[], pa.Array]) -> pa.DictionaryArray:
    if names is not None and not names.null_count:
        return names
    words = other().cast(pa.string())
    return (words if names is None else pc.coalesce(names.dictionary_decode(), words)).dictionary_encode()


def _is(names: pa.DictionaryArray, word: str) -> pa.Array:
    return pc.fill_null(pc.equal(names.dictionary, word).take(names.indices), False)


def _fault(wrong: pa.Array, what: str) -> list[Fault]:
    place = _first(wrong)
    return [] if place is None else [Fault(place, what)]


def _first(flags: pa.Array) -> int | None:
    """The place of the first true one."""
    place = pc.index(flags, pa.scalar(True)).as_py()
    return None if place < 0 else int(place)


def _is_text(kind: pa.DataType) -> bool:
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    binary = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    return any(one(kind) for one in (*texts, *binary))


def _shown(value: Any) -> str:
    """A value as the file has it: 7.5, and 'seven' in quotes."""
    try:
        return str(float(value)) and str(value).strip()
    except (ValueError, TypeError):
        return cut(repr(value), _WIDTH)
