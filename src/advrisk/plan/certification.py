"""The cells on samples to calibrate: what a certificate is about, run once the list of attacks is frozen."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from advrisk.plan.cells import Plan
from advrisk.plan.certified import certified_arms
from advrisk.study import Arm, StudySpec

ModelArm = tuple[str, Arm]  # of a model and an arm


def calibrate_plan(
    study: StudySpec, plan: Plan, frozen: Sequence[ModelArm] = (), recipes: Mapping[tuple[str, str], str] | None = None
) -> Plan:
    """The clean arm, the study's own certified attacks and the `frozen` ones, on the samples to calibrate.

    `recipes` are those of the frozen arms. Empty where the study asks for no certificate.
    """
    if study.assess.certificate is None:
        return replace(plan, assessed=(), crafting=(), shards=())
    own = {arm.id for arm in certified_arms(study, [arm for _, arm in plan.assessed])}
    asked = [(model, arm) for model, arm in plan.assessed if arm.kind == "clean" or arm.id in own]
    held = {(model, arm.id) for model, arm in asked}
    asked += [(model, arm) for model, arm in frozen if (model, arm.id) not in held]
    known = {**plan.recipes, **(recipes or {})}
    return replace(plan, assessed=tuple(asked), crafting=_crafting(asked), shards=plan.calibrate, recipes=known)


def _crafting(asked: Sequence[ModelArm]) -> tuple[ModelArm, ...]:
    """What must be crafted on other models first, and is not asked for anyway."""
    held = {(model, arm.id) for model, arm in asked}
    pairs = {
        (arm.surrogate, arm.crafted_by.id): (arm.surrogate, arm.crafted_by)
        for _, arm in asked
        if arm.crafted_by and arm.surrogate and (arm.surrogate, arm.crafted_by.id) not in held
    }
    return tuple(pairs.values())
