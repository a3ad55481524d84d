"""The cells of a certificate: on the calibration split, run once the list of attacks is frozen."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from advrisk.plan.cells import Plan
from advrisk.plan.certified import certified_arms
from advrisk.study import Arm, StudySpec

ModelArm = tuple[str, Arm]  # of a model and an arm


def calibrate_plan(
    study: StudySpec, plan: Plan, frozen: Sequence[ModelArm] = (), recipes: Mapping[tuple[str, str], str] | None = None
) -> Plan:
    """The clean arm, the study's own certified attacks and the `frozen` ones, on the calibration split.

    `recipes` are those of the frozen arms. Empty if the study has no certificate.
    """
    if study.assess.certificate is None:
        return replace(plan, assessed=(), crafting=(), shards=())
    own = {arm.id for arm in certified_arms(study, [arm for _, arm in plan.assessed])}
    assessed = [(model, arm) for model, arm in plan.assessed if arm.kind == "clean" or arm.id in own]
    listed = {(model, arm.id) for model, arm in assessed}
    assessed += [(model, arm) for model, arm in frozen if (model, arm.id) not in listed]
    recipes = {**plan.recipes, **(recipes or {})}
    crafting = _crafting(assessed)
    return replace(plan, assessed=tuple(assessed), crafting=crafting, shards=plan.calibrate, recipes=recipes)


def _crafting(assessed: Sequence[ModelArm]) -> tuple[ModelArm, ...]:
    """Attacks on surrogates that craft points to transfer and are not assessed themselves."""
    listed = {(model, arm.id) for model, arm in assessed}
    pairs = {
        (arm.surrogate, arm.crafted_by.id): (arm.surrogate, arm.crafted_by)
        for _, arm in assessed
        if arm.crafted_by and arm.surrogate and (arm.surrogate, arm.crafted_by.id) not in listed
    }
    return tuple(pairs.values())
