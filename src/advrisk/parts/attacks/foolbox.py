"""Any attack of Foolbox as an arm."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from advrisk.core.errors import StudyError
from advrisk.core.traits import Capability, Norm, Resolved
from advrisk.engine import Goal, Probe
from advrisk.engine.counted import Counted
from advrisk.parts.attacks.borrowed import (
    attack_class,
    attack_with,
    borrowed_traits,
    check_fed,
    check_norm,
    checked_settings,
    installed_version,
    library,
    made,
)
from advrisk.parts.attacks.registry import attacks

Factory = TypeVar("Factory", bound=Callable[..., Any])

_NORMS: dict[float, Norm] = {0: "l0", 1: "l1", 2: "l2", float("inf"): "linf"}

# Foolbox does not state what an attack needs of a model: gradients, except for these.
_FROM_SCORES = {"GenAttack"}
_FROM_LABELS = {
    "BaseAdditiveNoiseAttack",
    "BaseRepeatedAdditiveNoiseAttack",
    "BinarizationRefinementAttack",
    "BinarySearchContrastReductionAttack",
    "BoundaryAttack",
    "DatasetAttack",
    "GaussianBlurAttack",
    "HopSkipJumpAttack",
    "InversionAttack",
    "L2ContrastReductionAttack",
    "LinearSearchBlendedUniformNoiseAttack",
    "LinearSearchContrastReductionAttack",
    "PointwiseAttack",
    "SaltAndPepperNoiseAttack",
    "SpatialAttack",
}
_UNTARGETED = {
    "L1FastGradientAttack",
    "L2FastGradientAttack",
    "LinfFastGradientAttack",
    "NewtonFoolAttack",
    "VirtualAdversarialAttack",
}
_TARGETED = {"GenAttack"}
_UNFED = {"BinarizationRefinementAttack": "points to begin from", "DatasetAttack": "a data set"}


def register(
    name: str, *, norm: Norm, needs: Capability | None = None, use_when: str = "", version: int = 1
) -> Callable[[Factory], Factory]:
    """Register a function that makes a Foolbox attack, so that a study can name it.

    A study can set its keyword-only arguments. `needs` is what the attack needs of a model: by default gradients, or
    less for those attacks of Foolbox that need less.
    """

    def add(make: Factory) -> Factory:
        def resolve(params: Mapping[str, Any], norm: Norm | None, eps: float | None) -> Resolved:
            resolved = _resolved(made(name, lambda: make(**params)), params, norm, eps)
            return resolved if needs is None else replace(resolved, needs=needs)

        @functools.wraps(make)
        def attack(probe: Probe, **params: Any) -> None:
            _run(probe, make(**params))

        traits = borrowed_traits(norm, use_when=use_when or "an attack made with Foolbox", resolve=resolve)
        attacks.register(name, traits=traits, version=version)(attack)
        return make

    return add


def _resolve(params: Mapping[str, Any], norm: Norm | None, eps: float | None) -> Resolved:
    attack = _named(params["method"], params["settings"], norm)
    return _resolved(attack, {**params, "version": installed_version("foolbox", params["version"])}, norm, eps)


@attacks.register(
    "foolbox",
    traits=borrowed_traits(
        *("linf", "l2", "l1", "l0"),
        use_when="you want an attack that only Foolbox has, or to compare with a result of Foolbox",
        resolve=_resolve,
    ),
)
def foolbox(
    probe: Probe, *, method: str, settings: Mapping[str, Any] | None = None, version: str | None = None
) -> None:
    """An attack of Foolbox (Rauber et al. 2020), by the name of its class in `foolbox.attacks`.

    `settings` are the arguments of that class; lengths among them are shares of the range that inputs have, as Foolbox
    is shown inputs from 0 to 1. The arm's norm must be the class's own, or becomes its `distance` or
    `constraint`. An attack at a fixed size gets eps. One that looks for the smallest perturbation does not stop at eps,
    and successes beyond eps do not count. The installed version is recorded; give `version` to insist on one.
    """
    attack = _named(method, settings, probe.norm)
    installed_version("foolbox", version)
    _run(probe, attack)


def _named(name: str, settings: Mapping[str, Any] | None, norm: Norm | None) -> Any:
    """The attack of that name; its distance is the arm's, where it can be chosen."""
    module = library("foolbox", extra="foolbox")
    kind = attack_class(module.attacks, module.attacks.Attack, name)
    check_fed(kind.__name__, _UNFED)
    ours = {"distance": getattr(module.distances, norm), "constraint": norm} if norm else {}
    chosen = checked_settings(kind, settings or {}, ours)
    return made(name, lambda: kind(**chosen))


def _resolved(attack: Any, params: Mapping[str, Any], norm: Norm | None, eps: float | None) -> Resolved:
    """Check an attack against an arm; return what it needs."""
    name = type(attack).__name__
    check_norm(name, _norm_of(attack), norm)
    if _is_limited(attack) and eps is None:
        raise StudyError(f"{name} attacks within a fixed size: it needs eps")
    kinds = {kind.__name__ for kind in type(_inner(attack)).__mro__}
    needs: Capability = "labels" if kinds & _FROM_LABELS else "scores" if kinds & _FROM_SCORES else "gradients"
    return Resolved(params, needs, away=not kinds & _TARGETED, towards=not kinds & _UNTARGETED)


def _run(probe: Probe, attack: Any) -> None:
    check_norm(type(attack).__name__, _norm_of(attack), probe.norm)
    limited, counted = _is_limited(attack), Counted(probe)
    low, high = float(counted.bounds[0].min()), float(counted.bounds[1].max())
    span = high - low
    eps = None if not limited else probe.eps if probe.norm == "l0" else probe.eps / span
    wrapper = library("foolbox", extra="foolbox").PyTorchModel
    model = wrapper(counted, bounds=(low, high), device=probe.x0.device).transform_bounds((0, 1))

    def points(units: Tensor, goal: Goal) -> Tensor:
        shares = ((units - low) / span).clamp(0, 1)  # some attacks take every input to lie in [0, 1]
        _, clipped, _ = attack(model, shares, _criterion(goal), epsilons=eps)
        return torch.where(clipped == shares, units, clipped * span + low)

    attack_with(probe, counted, points, within_eps=limited)


def _criterion(goal: Goal) -> Any:
    criteria = library("foolbox.criteria", extra="foolbox")
    if goal.target is None:
        return criteria.Misclassification(goal.reference)
    return criteria.TargetedMisclassification(goal.target)


def _inner(attack: Any) -> Any:
    """What `attack.repeat(…)` wraps."""
    repeated = library("foolbox.attacks.base", extra="foolbox").Repeated
    return _inner(attack.attack) if isinstance(attack, repeated) else attack


def _is_limited(attack: Any) -> bool:
    return isinstance(_inner(attack), library("foolbox.attacks.base", extra="foolbox").FixedEpsilonAttack)


def _norm_of(attack: Any) -> Norm | None:
    """The norm that an attack states, if it does."""
    try:
        return _NORMS.get(attack.distance.p)
    except (AttributeError, ValueError):  # the attack has no distance, or none is set yet
        return None
