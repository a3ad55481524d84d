"""The JSON Schema of `report.json`: its frame and its numbers. What an answer holds in full is left open."""

from typing import Any, get_args

from advrisk.core.estimate import NUMBERS
from advrisk.core.tables import Columns
from advrisk.report.executive import LABELS
from advrisk.report.headline import Requirements
from advrisk.report.records import FLAGS, SCHEMA, SINGLE

_TYPES = {"text": "string", "number": "number", "count": "integer", "flag": "boolean"}
_TEXT, _TEXTS, _OBJECT = {"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "object"}
_NAME = {"type": ["string", "null"]}
_LIST = {"type": "array", "items": _OBJECT}


def record_schema() -> dict[str, Any]:
    """Every field of the record; each is there, `null` or empty where a run has nothing to say."""
    fields: dict[str, Any] = {
        "schema": {"const": SCHEMA},
        "run": _TEXT,
        "made_at": {"type": "string", "format": "date-time"},
        "filter": _filter(),
        "asked": {"type": "object", "additionalProperties": _TEXT},
        "headline": _TEXT,
        "ship": _NAME,
        "least_bad": _NAME,
        "decided": {"type": "boolean"},
        "requirements": {"enum": [*get_args(Requirements), None]},
        "headlines": _TEXTS,
        "executive": {"type": "object", "properties": dict.fromkeys(LABELS, _TEXTS), "required": list(LABELS)},
        "provenance": _provenance(),
        "numbers": _rows(NUMBERS, known=("quantity", "model", "value", "level", "n", "method")),
        **{name: {"type": ["object", "null"]} for name in SINGLE},
        "failures": _LIST,
        "searches": _LIST,
        "further": {"type": "object", "additionalProperties": _OBJECT},
        "arms": _LIST,
        "flags": _rows(FLAGS, known=("flag", "model", "arm", "n_flagged", "n_cells")),
        "unanswered": {"type": "object", "additionalProperties": _TEXT},
    }
    return {"title": "advrisk report", "type": "object", "properties": fields, "required": list(fields)}


def _filter() -> dict[str, Any]:
    """Which models and samples the record is about; `null` means all of them."""
    fields: dict[str, Any] = {
        "models": {"type": ["array", "null"], "items": _TEXT},
        "where": {"type": ["object", "null"], "additionalProperties": _TEXTS},
        "n_samples": {"type": ["integer", "null"]},
        "n_samples_of": {"type": ["integer", "null"]},
    }
    return {"type": "object", "properties": fields, "required": list(fields)}


def _provenance() -> dict[str, Any]:
    split = {"type": "object", "properties": {"n": {"type": "integer"}, "digest": _TEXT}, "required": ["n", "digest"]}
    model = {"type": "object", "properties": {"model": _TEXT, "digest": {"type": ["string", "null"]}}}
    fields = {
        "study": {"type": ["object", "null"]},
        "seed": {"type": ["integer", "null"]},
        "versions": _OBJECT,
        "models": {"type": "array", "items": model},
        "samples": {"type": "object", "additionalProperties": split},
        "work": _OBJECT,
        "commands": _OBJECT,
    }
    return {"type": "object", "properties": fields, "required": list(fields)}


def _rows(columns: Columns, *, known: tuple[str, ...]) -> dict[str, Any]:
    """Rows of these columns, of which all but the known ones may be `null`."""
    fields = {
        name: {"type": _TYPES[kind] if name in known else [_TYPES[kind], "null"]} for name, kind in columns.items()
    }
    return {"type": "array", "items": {"type": "object", "properties": fields, "required": list(columns)}}
