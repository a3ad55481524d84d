"""What can be named in a study, described for people and editors."""

from dataclasses import fields
from typing import Any

from advrisk.assess import built_in as _registered  # noqa: F401
from advrisk.core.registries import Registries
from advrisk.core.registry import REQUIRED, Parameter, Part, Registry
from advrisk.core.traits import (
    DETECTOR,
    AttackTraits,
    CorruptionTraits,
    DefenceTraits,
    DetectorTraits,
    LossTraits,
    MeasureTraits,
    ObjectiveTraits,
    TrainingTraits,
)
from advrisk.risk.losses import losses
from advrisk.study import AssessmentTraits, assessments

_WITHOUT_TORCH: dict[str, Registry[Any]] = {losses.kind: losses, assessments.kind: assessments}


def describe_parts(kind: str | None = None, name: str | None = None) -> dict[str, list[dict[str, Any]]]:
    """Kind -> its registered parts with parameters and defaults; all kinds if none is named, one part if it is."""
    if kind and name:
        return {kind: [_describe(_registry(kind).get(name))]}
    kinds = [kind] if kind else sorted([*(field.name for field in fields(Registries)), *_WITHOUT_TORCH])
    return {name: [_describe(part) for part in _registry(name)] for name in kinds}


def _registry(kind: str) -> Registry[Any]:
    """That of parts which need torch, or of those that do not."""
    if kind in _WITHOUT_TORCH:
        return _WITHOUT_TORCH[kind]
    from advrisk.parts import REGISTRIES

    return REGISTRIES.of_kind(kind)


def _describe(part: Part[Any]) -> dict[str, Any]:
    traits = part.traits
    facts = []
    if isinstance(traits, AttackTraits):
        facts = _facts_of_attack(traits)
    if isinstance(traits, ObjectiveTraits):
        facts = ["can be climbed towards a target" if traits.targeted else "not for targets"]
        facts += ["needs logits"] if traits.logits else []
        if traits.classes != (2, 2):
            facts.append(f"needs {traits.classes[0]} classes or more, {traits.classes[1]} with a target")
    if isinstance(traits, CorruptionTraits):
        facts = _facts_of_corruption(traits)
    if isinstance(traits, LossTraits | MeasureTraits):
        facts = [f"needs {traits.needs}"]
    if isinstance(traits, AssessmentTraits):
        facts = [f"can be required: {name}, {one.meaning}" for name, one in traits.required.items()]
    if isinstance(traits, DetectorTraits):
        facts = _facts_of_detector(traits)
    if isinstance(traits, DefenceTraits):
        facts = _facts_of_defence(traits)
    if isinstance(traits, TrainingTraits):
        facts = ["for inputs within [0, 1]"] if traits.perturbs else []
        facts += [f"needs {traits.classes} classes or more"] if traits.classes > 2 else []
    return {
        "name": part.name,
        "summary": part.summary,
        "use_when": traits.use_when,
        "version": part.version,
        "facts": facts,
        "parameters": [
            {
                "name": parameter.name,
                "required": parameter.required,
                "default": None if parameter.required else parameter.default,
                "shown": parameter.describe() + (" (required)" if parameter.required else ""),
            }
            for parameter in _parameters(part)
        ],
    }


def _parameters(part: Part[Any]) -> list[Parameter]:
    """Keyword-only arguments of a function; of an assessment, the fields of its spec."""
    if not isinstance(part.traits, AssessmentTraits):
        return list(part.parameters.values())
    return [
        Parameter(name, one.annotation, REQUIRED if one.is_required() else one.get_default(call_default_factory=True))
        for name, one in part.traits.spec.model_fields.items()
    ]


def _facts_of_attack(traits: AttackTraits) -> list[str]:
    if traits.accounting == "none":
        return [
            f"needs {traits.needs}; of the surrogate, what the arm needs",
            "norm, eps and all else belong into `arm`",
        ]
    norms = f"norms {', '.join(traits.norms)}" if traits.norms else "no norm, no eps"
    needs = traits.needs if traits.resolve is None else "what the attack needs"
    facts = [f"needs {needs}; {norms}; keep: {traits.keep}"]
    facts += ["for images only"] if traits.images else []
    facts += [f"needs `{DETECTOR}`, one of the study's detectors"] if traits.watches else []
    facts += [f"objective: {traits.objective}"] if traits.objective else []
    if traits.accounting == "batch":
        facts += ["passes are counted for a batch as a whole; eps is needed if the attack needs it"]
    elif traits.norms and not traits.needs_eps:
        facts += ["looks for the smallest perturbation; eps is not needed"]
    ranges = [f"{name} {box.low:g} to {box.high:g}{' × eps' if box.of_eps else ''}" for name, box in traits.box.items()]
    return facts + ([f"a search varies {', '.join(ranges)}"] if ranges else [])


def _facts_of_corruption(traits: CorruptionTraits) -> list[str]:
    facts = [f"cause: {traits.cause}" + ("" if traits.inputs == "any" else f"; for {traits.inputs} only")]
    facts += [
        f"level 1 to {len(values)}: {name} {', '.join(map(str, values))}" for name, values in traits.levels.items()
    ]
    return facts


def _facts_of_defence(traits: DefenceTraits) -> list[str]:
    facts = [f"needs {traits.needs}" + ("; for images only" if traits.images else "")]
    facts += ["answers at random"] if traits.random else []
    facts += ["may refuse to answer"] if traits.rejects else []
    facts += [f"{name} studied: {', '.join(map(str, values))}" for name, values in traits.levels.items()]
    return facts


def _facts_of_detector(traits: DetectorTraits) -> list[str]:
    facts = [f"needs {traits.needs}"] + (["for images only"] if traits.images else [])
    if traits.inside:
        facts.append("needs a torch module with hidden layers" + (" and dropout" if traits.dropout else ""))
    if traits.learns == "clean":
        facts.append("learns from clean inputs of the split `train`")
    if traits.learns == "attacks":
        facts.append(
            "learns from the split `train` and attacks on it; `arms` names these (default: pgd, linf, 0.03125)"
        )
    return facts
