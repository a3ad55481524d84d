"""The JSON Schema of certificates, reports, study and recipe files, with the names of all parts registered here."""

from copy import deepcopy
from typing import Any

from advrisk.assess.certificate.document import CertificateDocument
from advrisk.core.registry import Registry
from advrisk.parts import REGISTRIES
from advrisk.report.record_schema import record_schema
from advrisk.risk.losses import losses
from advrisk.study import RecipeSpec, StudySpec, assessments

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(kind: str = "study") -> dict[str, Any]:
    """What an editor needs to complete and check a file."""
    if kind == "certificate":
        return {"$schema": _DIALECT, **CertificateDocument.model_json_schema()}
    if kind == "report":
        return {"$schema": _DIALECT, **record_schema()}
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
        for part in assessments.brought():
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
