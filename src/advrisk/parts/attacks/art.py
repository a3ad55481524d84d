"""Any evasion attack of the Adversarial Robustness Toolbox (ART) as an arm."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

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
    parameters_of,
)
from advrisk.parts.attacks.registry import attacks

Factory = TypeVar("Factory", bound=Callable[..., Any])

_PACKAGE = "adversarial-robustness-toolbox"
_ORDER: dict[Norm, float] = {"l1": 1, "l2": 2, "linf": np.inf}
_NORMS: dict[Any, Norm] = {1: "l1", 2: "l2", np.inf: "linf", "inf": "linf"}

# ART's requirements of an estimator say too little: attacks need gradients, except for these.
_FROM_SCORES = {"PixelAttack", "SimBA", "SquareAttack", "ThresholdAttack", "VirtualAdversarialMethod", "ZooAttack"}
_FROM_LABELS = {"BoundaryAttack", "GeoDA", "HopSkipJump", "SignOPTAttack", "SpatialTransformation"}
_WANT_PROBABILITIES = {"SimBA", "VirtualAdversarialMethod"}  # where others want logits
_TARGETED = {
    "LowProFool",
    "SaliencyMapMethod",
    "TargetedUniversalPerturbation",
}  # these take classes as targets only
_UNTARGETED = {"SignOPTAttack"}  # with a target it also needs inputs of that class
_STATED: dict[str, Norm] = {
    "CarliniL0Method": "l0",
    "CarliniL2Method": "l2",
    "CarliniLInfMethod": "linf",
    "VirtualAdversarialMethod": "l2",
}
_UNFED = {"LowProFool": "the importance of each feature", "OverTheAirFlickeringPyTorch": "videos"}


def register(
    name: str, *, norm: Norm, needs: Capability = "gradients", use_when: str = "", version: int = 1
) -> Callable[[Factory], Factory]:
    """Register a function that makes an attack of ART from a classifier, so that a study can name it.

    A study can set its keyword-only arguments. The arm's eps, and whether the study has a target, are set on
    an attack with such parameters.
    """

    def add(make: Factory) -> Factory:
        def resolve(params: Mapping[str, Any], norm: Norm | None, _: float | None) -> Resolved:
            attack = made(name, lambda: make(_stand_in(), **params))
            check_norm(type(attack).__name__, _norm_of(attack), norm)
            return _resolved(type(attack).__name__, params, needs, targets="targeted" in attack.attack_params)

        @functools.wraps(make)
        def attack(probe: Probe, **params: Any) -> None:
            _run(probe, lambda classifier: _configured(make(classifier, **params), probe))

        traits = borrowed_traits(norm, use_when=use_when or "an attack made with ART", resolve=resolve)
        attacks.register(name, traits=traits, version=version)(attack)
        return make

    return add


def _resolve(params: Mapping[str, Any], norm: Norm | None, eps: float | None) -> Resolved:
    kind = _kind(params["method"])
    check_norm(params["method"], _norm_of(_made(params, _stand_in(), norm, eps, targeted=False)), norm)
    name = kind.__name__
    needs: Capability = "labels" if name in _FROM_LABELS else "scores" if name in _FROM_SCORES else "gradients"
    complete = {**params, "version": installed_version(_PACKAGE, params["version"])}
    return _resolved(name, complete, needs, targets="targeted" in parameters_of(kind))


def _resolved(name: str, params: Mapping[str, Any], needs: Capability, *, targets: bool) -> Resolved:
    targets = (targets or name in _TARGETED) and name not in _UNTARGETED
    return Resolved(params, needs, away=name not in _TARGETED, towards=targets)


@attacks.register(
    "art",
    traits=borrowed_traits(
        *("linf", "l2", "l1", "l0"),
        use_when="you want an attack that only ART has, or to compare with a result of ART",
        resolve=_resolve,
    ),
)
def art(probe: Probe, *, method: str, settings: Mapping[str, Any] | None = None, version: str | None = None) -> None:
    """An attack of ART (Nicolae et al. 2018), by the name of its class in `art.attacks.evasion`.

    `settings` are the arguments of that class. The arm's norm and eps, and whether the study has a target, become its
    `norm`, `eps` and `targeted`, where it has them. Successes of an attack without eps beyond the arm.s do not count.
    The installed version is recorded; give `version` to insist on one.
    """
    installed_version(_PACKAGE, version)
    params = {"method": method, "settings": settings}
    targeted = probe.goal.target is not None
    _run(
        probe,
        lambda classifier: _made(params, classifier, probe.norm, probe.task.eps, targeted=targeted),
        probabilities=_kind(method).__name__ in _WANT_PROBABILITIES,
    )


def _kind(name: str) -> Any:
    base = library("art.attacks.attack", extra="art").EvasionAttack
    return attack_class(library("art.attacks.evasion", extra="art"), base, name)


def _made(params: Mapping[str, Any], classifier: Any, norm: Norm | None, eps: float | None, *, targeted: bool) -> Any:
    """The attack that an arm names, against this classifier."""
    kind = _kind(params["method"])
    check_fed(kind.__name__, _UNFED)
    parameters = parameters_of(kind)
    if "norm" in parameters and norm not in _ORDER:
        raise StudyError(f"{kind.__name__} has no norm {norm}; ART has {', '.join(_ORDER)}")
    if "eps" in parameters and eps is None:
        raise StudyError(f"{kind.__name__} attacks within a fixed size: it needs eps")
    ours = {next(iter(parameters)): classifier, "norm": _ORDER.get(norm or "linf"), "eps": eps, "targeted": targeted}
    ours["parallel_pool_size"] = 0  # passes of parallel copies would not be counted
    settings = checked_settings(kind, params["settings"] or {}, ours)
    if "verbose" in parameters:
        settings.setdefault("verbose", False)  # its progress bars would overwrite ours
    return made(kind.__name__, lambda: kind(**settings))


def _configured(attack: Any, probe: Probe) -> Any:
    """A registered attack, configured as the arm demands."""
    targeted = probe.goal.target is not None
    if type(attack).__name__ in _TARGETED and not targeted:
        raise StudyError(f"{type(attack).__name__} can only aim at a target")
    if "targeted" in attack.attack_params:
        attack.set_params(targeted=targeted)
    elif targeted and type(attack).__name__ not in _TARGETED:
        raise StudyError(f"{type(attack).__name__} cannot aim at a target")
    if "eps" in attack.attack_params and probe.task.eps is not None:
        attack.set_params(eps=probe.task.eps)
    check_norm(type(attack).__name__, _norm_of(attack), probe.norm)
    return attack


def _run(probe: Probe, make: Callable[[Any], Any], *, probabilities: bool = False) -> None:
    counted = Counted(probe)
    attack = make(_classifier(counted, probe, probabilities=probabilities))

    def points(units: Tensor, goal: Goal) -> Tensor:
        classes = goal.reference if goal.target is None else goal.target
        wanted = np.eye(probe.model.n_classes, dtype=np.float32)[classes.cpu().numpy()]
        return torch.as_tensor(attack.generate(units.cpu().numpy(), wanted)).to(units.device)

    limited = "eps" in attack.attack_params and probe.task.eps is not None
    attack_with(probe, counted, points, within_eps=limited)


def _classifier(counted: Counted, probe: Probe, *, probabilities: bool) -> Any:
    module = nn.Sequential(counted, nn.Softmax(1)) if probabilities else counted
    shape = tuple(probe.x0.shape[1:])
    bounds = tuple(_bound(bound, shape) for bound in counted.bounds)
    return _wrapped(module, shape, probe.model.n_classes, bounds, probe.x0.device.type)


def _bound(of: Tensor, shape: tuple[int, ...]) -> Any:
    """One number where all features have the same bound."""
    return float(of) if of.numel() == 1 else of.expand(shape).cpu().numpy()


def _stand_in() -> Any:
    """A classifier to try settings on, before any model is asked: each of 64 pixels is a class of its own."""
    return _wrapped(nn.Flatten(), (1, 8, 8), 64, (0.0, 1.0), "cpu")


def _wrapped(module: nn.Module, shape: tuple[int, ...], classes: int, bounds: Any, device: str) -> Any:
    wrapper = library("art.estimators.classification", extra="art").PyTorchClassifier
    device_type = "cpu" if device == "cpu" else "gpu"
    return wrapper(module, nn.CrossEntropyLoss(), shape, classes, clip_values=bounds, device_type=device_type)


def _norm_of(attack: Any) -> Norm | None:
    """The norm that an attack states, if it does."""
    return _STATED.get(type(attack).__name__) or _NORMS.get(getattr(attack, "norm", None))
