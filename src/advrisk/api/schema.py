"""The JSON Schema of certificates, reports, study and recipe files, with the names of all parts registered here."""

from copy import deepcopy
from typing import Any, get_args

from advrisk.assess.certificate.document import CertificateDocument
from advrisk.assess.selection.headline import Requirements
from advrisk.core.estimate import NUMBERS
from advrisk.core.registry import Registry
from advrisk.core.tables import Columns
from advrisk.report.executive import LABELS
from advrisk.report.records import FLAGS, SCHEMA, SINGLE
from advrisk.risk.losses import losses
from advrisk.study import RecipeSpec, StudySpec, assessments

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = {"text": "string", "number": "number", "count": "integer", "flag": "boolean"}
_TEXT, _TEXTS, _OBJECT = {"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "object"}
_NAME = {"type": ["string", "null"]}
_LIST = {"type": "array", "items": _OBJECT}


def json_schema(kind: str = "study") -> dict[str, Any]:
    """What an editor needs to complete and check a file."""
    if kind == "certificate":
        return {"$schema": _DIALECT, **CertificateDocument.model_json_schema()}
    if kind == "report":
        return {"$schema": _DIALECT, **record_schema()}
    from advrisk.parts import REGISTRIES  # imports torch

    schema = (StudySpec if kind == "study" else RecipeSpec).model_json_schema()
    schema["$schema"] = _DIALECT
    parts = schema["$defs"]
    if kind == "study":
        _offer(parts["DataSpec"], "source", REGISTRIES.data)
        _offer(parts["ModelSpec"], "source", REGISTRIES.models, extra=("object",))
        _offer(parts["DefenceSpec"], "name", REGISTRIES.defences)
        _offer(parts["ArmEntry"], "attack", REGISTRIES.attacks)
        _offer(parts["ArmEntry"], "corruption", REGISTRIES.corruptions)
        _offer(parts["ArmEntry"], "preset", REGISTRIES.presets)
        _offer(parts["ArmEntry"], "objective", REGISTRIES.objectives)
        _offer(parts["SearchEntry"], "attack", REGISTRIES.attacks)
        _offer(parts["SearchEntry"], "objective", REGISTRIES.objectives)
        for part in assessments.from_packages():
            parts["AssessSpec"]["properties"][part.name] = part.traits.spec.model_json_schema()
        named: dict[str, Registry[Any]] = {"detectors": REGISTRIES.detectors, "losses": losses}
        named["measures"] = REGISTRIES.measures
        for section, registry in named.items():
            schema["properties"][section]["items"] = _named(schema["properties"][section]["items"], registry)
    else:
        _offer(parts["TrainingSource"], "source", REGISTRIES.data)
        _offer(parts["TrainedModel"], "method", REGISTRIES.training)
    return schema


def _named(item: dict[str, Any], registry: Registry[Any]) -> dict[str, Any]:
    """A name, or a mapping that says which of the registered parts in the one key that it must have."""
    _, *mappings = deepcopy(item)["anyOf"]
    for mapping in mappings:
        _offer(mapping, mapping["required"][0], registry)
    return {"anyOf": [mappings[0]["properties"]["name"], *mappings]}


def _offer(model: dict[str, Any], field: str, registry: Registry[Any], *, extra: tuple[str, ...] = ()) -> None:
    """Offer the registered names for a field, and their parameters beside it."""
    names = [*(part.name for part in registry), *extra]
    plain = {"enum": names}
    listed = model["properties"][field].get("anyOf")
    model["properties"][field] = {"anyOf": [plain, {"type": "array", "items": plain}]} if listed else plain
    for part in registry:
        for parameter in part.parameters.values():
            known = model["properties"].setdefault(parameter.name, {"description": ""})
            if "description" in known:
                known["description"] = f"{known['description']} {part.name}: {parameter.describe()}.".strip()


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
