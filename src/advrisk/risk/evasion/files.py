"""Evasion curves as JSON files: a curve belongs to an application and can be used for other models.

A fitted curve is stored as its answers and settings, and fitted again on reading: fits are deterministic, and the file
shows the data behind the curve.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.core.files import regular
from advrisk.core.names import did_you_mean
from advrisk.risk.evasion.answers import Answers, numbered
from advrisk.risk.evasion.bayesian import BayesianEvasion, fit_bayesian
from advrisk.risk.evasion.curve import (
    AverageEvasion,
    Evasion,
    EvasionCurve,
    ThresholdEvasion,
    average_of,
    checked_distances,
    threshold,
)
from advrisk.risk.evasion.logistic import LogisticEvasion, fit_logistic
from advrisk.risk.evasion.monotone import MonotoneEvasion, fit_monotone

VERSION = 1

Fields = dict[str, Any]


def write_evasion(path: str | Path, evasion: Evasion, *, norm: str | None = None, notes: Sequence[str] = ()) -> None:
    """Write a curve with the norm of its sizes and notes on its use; replace an existing file atomically."""
    fields = {"advrisk": "evasion", "version": VERSION, "norm": norm, "notes": list(notes), **_fields(evasion)}
    target = Path(path)
    if target.is_dir() or not target.name:
        raise RiskError(f"{target}: is a folder; name the file to write the evasion curve to")
    part = target.with_name(f".{target.name}.part")
    try:
        part.write_text(_text(fields), encoding="utf-8")
        os.replace(part, target)
    except OSError as error:
        raise RiskError(f"{target}: the evasion curve cannot be written ({error.strerror})") from None


def read_evasion(path: str | Path, *, norm: str | None = None) -> EvasionCurve:
    """Read a curve; refuse one whose sizes are in another norm, or in an unstated one."""
    fields = _content(Path(path))
    fields.pop("notes", None)
    stored = fields.pop("norm", None)
    if norm is not None and stored is None:
        raise RiskError(
            f"{path}: found no norm of its sizes, and damage is in {norm}; fit the curve again with a norm "
            f'(`--norm`), or write `"norm": "{norm}"` into the file if that is so'
        )
    if norm is not None and stored != norm:
        raise RiskError(f"{path}: found sizes in {stored}, and damage is in {norm}; ask a detector in {norm}")
    kind = fields.pop("kind", None)
    if not isinstance(kind, str) or kind not in _READERS:
        raise RiskError(f"{path}: no evasion is of the kind {kind!r}; {did_you_mean(kind, _READERS)}")
    try:
        return _READERS[kind](fields)
    except KeyError as error:
        raise RiskError(f"{path}: {error.args[0]!r} is missing, which a curve of the kind {kind!r} needs") from None
    except (RiskError, TypeError, ValueError, OverflowError) as error:
        raise RiskError(f"{path}: {error}") from None


def evasion_notes(path: str | Path) -> tuple[str, ...]:
    """Notes on the use of a curve, such as a doubt whether it is valid for all models."""
    return tuple(_names(_content(Path(path)).get("notes"), "notes") or ())


def _text(fields: Fields) -> str:
    """JSON with one line for each field."""
    lines = [f" {json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in fields.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _fields(evasion: Evasion) -> Fields:
    match evasion:
        case ThresholdEvasion():
            return {"kind": "threshold", "tau": _finite_or_none(evasion.tau)}
        case AverageEvasion():
            distances = [_finite_or_none(distance) for distance in evasion.distances.tolist()]
            return {"kind": "average", "models": list(evasion.models), "distances": distances}
        case LogisticEvasion():
            return {"kind": "logistic", **_answer_fields(evasion.answers)}
        case MonotoneEvasion():
            return {"kind": "monotone", **_answer_fields(evasion.answers)}
        case BayesianEvasion():
            return {
                "kind": "bayesian",
                "scale": evasion.scale,
                "guess": evasion.guess,
                "lapse": evasion.lapse,
                "plausible": list(evasion.plausible),
                "forced_choice": evasion.forced_choice,
                **_answer_fields(evasion.answers),
                **_name_fields(evasion.answers),
            }
    raise RiskError(f"{type(evasion).__name__} cannot be written to a file; a function of your own stays in Python")


def _answer_fields(answers: Answers) -> Fields:
    return {"sizes": answers.sizes.tolist(), "undetected": answers.undetected.tolist()}


def _name_fields(answers: Answers) -> Fields:
    """Labellers as numbers, in order of first answer, since names of people are not written."""
    fields: Fields = {}
    if answers.labellers is not None:
        fields["labellers"] = [str(index + 1) for index in numbered(answers.labellers)[1].tolist()]
    if answers.images is not None:
        fields["images"] = list(answers.images)
    return fields


def _finite_or_none(size: float) -> float | None:
    return size if np.isfinite(size) else None


def _infinite_if_none(size: object) -> float:
    return np.inf if size is None else _number(size)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RiskError(f"a number is needed, found {value!r}")
    return float(value)


def _content(path: Path) -> Fields:
    try:
        fields = json.loads(regular(path).read_text(encoding="utf-8"), parse_constant=_no_constant)
    except OSError as error:
        raise RiskError(f"{path}: the evasion curve cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise RiskError(f"{path}: not a JSON file of an evasion curve ({error})") from None
    if not isinstance(fields, dict) or fields.pop("advrisk", None) != "evasion":
        raise RiskError(f'{path}: not an evasion curve; such a file says "advrisk": "evasion"')
    version = fields.pop("version", None)
    if version != VERSION:
        raise RiskError(f"{path}: found version {version!r} of the file, but this advrisk reads {VERSION}; update it")
    return fields


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"found {name}")


def _read_answers(fields: Fields) -> Fields:
    sizes = [_number(size) for size in _list(fields.pop("sizes"), "sizes")]
    return {"sizes": sizes, "undetected": [_flag(flag) for flag in _list(fields.pop("undetected"), "undetected")]}


def _list(value: object, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise RiskError(f"{name} must be a list, found {value!r}")
    return value


def _flag(value: object, name: str = "undetected") -> bool:
    if not isinstance(value, bool):
        raise RiskError(f"{name} must be true or false, found {value!r}")
    return value


def _names(value: object, name: str) -> list[str] | None:
    if value is None:
        return None
    wrong = next((entry for entry in _list(value, name) if not isinstance(entry, str)), None)
    if wrong is not None:
        raise RiskError(f"{name} must be texts, found {wrong!r}")
    return _list(value, name)


def _no_more(fields: Fields) -> None:
    if fields:
        raise RiskError(f"{', '.join(map(repr, sorted(fields)))} is not known in a file of this kind")


def _read_threshold(fields: Fields) -> EvasionCurve:
    tau = _infinite_if_none(fields.pop("tau"))
    _no_more(fields)
    return threshold(tau)


def _read_average(fields: Fields) -> EvasionCurve:
    models = tuple(str(model) for model in _list(fields.pop("models"), "models"))
    distances = [_infinite_if_none(distance) for distance in _list(fields.pop("distances"), "distances")]
    _no_more(fields)
    return average_of(models, checked_distances(distances, "distances"))


def _read_logistic(fields: Fields) -> EvasionCurve:
    answers = _read_answers(fields)
    _no_more(fields)
    return fit_logistic(**answers)


def _read_monotone(fields: Fields) -> EvasionCurve:
    answers = _read_answers(fields)
    _no_more(fields)
    return fit_monotone(**answers)


def _read_bayesian(fields: Fields) -> EvasionCurve:
    answers = _read_answers(fields)
    guess, lapse = (None if (rate := fields.pop(name, 0.0)) is None else _number(rate) for name in ("guess", "lapse"))
    scale, plausible = fields.pop("scale", "log"), fields.pop("plausible", None)
    forced_choice = _flag(fields.pop("forced_choice", False), "forced_choice")
    labellers, images = (_names(fields.pop(name, None), name) for name in ("labellers", "images"))
    _no_more(fields)
    if plausible is not None:
        plausible = tuple(_number(end) for end in _list(plausible, "plausible"))
    return fit_bayesian(
        **answers,
        scale=scale,
        guess=guess,
        lapse=lapse,
        plausible=plausible,
        forced_choice=forced_choice,
        labellers=labellers,
        images=images,
    )


_READERS: Mapping[str, Callable[[Fields], EvasionCurve]] = {
    "threshold": _read_threshold,
    "average": _read_average,
    "logistic": _read_logistic,
    "monotone": _read_monotone,
    "bayesian": _read_bayesian,
}
