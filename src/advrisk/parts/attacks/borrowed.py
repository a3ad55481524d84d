"""Attacks of other libraries: functions that their adapters share.

Such an attack gets all samples of a shard and a module that counts its passes (`engine.counted`); it returns one point
per sample. It draws from the global generators, which are seeded for it and restored afterwards.
"""

import functools
import inspect
import operator
import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from torch import Tensor

from advrisk.core.errors import RegistryError, StudyError
from advrisk.core.extras import needs_extra
from advrisk.core.names import did_you_mean
from advrisk.core.registry import REQUIRED, as_type
from advrisk.core.traits import AttackTraits, Norm, Resolved
from advrisk.engine import Goal, OutOfTimeError, Probe
from advrisk.engine.counted import Counted
from advrisk.engine.norms import NORMS

BorrowedAttack = Callable[[Tensor, Goal], Tensor]  # inputs in units of the scale, and goals -> points
Resolve = Callable[[Mapping[str, Any], Norm | None, float | None], Resolved]

_PLAIN = {"int": int, "float": float, "bool": bool, "str": str, "None": type(None)}


def borrowed_traits(*norms: Norm, use_when: str, resolve: Resolve) -> AttackTraits:
    """The traits of every attack of another library; `resolve` determines its needs."""
    for norm in norms:
        if norm not in NORMS:
            raise RegistryError(f"unknown norm {norm!r}; {did_you_mean(norm, NORMS)}")
    return AttackTraits(
        needs="labels",
        norms=norms,
        passes=None,
        use_when=use_when,
        keep="last",
        within_eps=False,
        needs_eps=False,
        random=True,
        accounting="batch",
        resolve=resolve,
    )


def attack_with(probe: Probe, counted: Counted, attack: BorrowedAttack, *, within_eps: bool) -> None:
    """Attack all active samples at once; if the library throws, one by one, so that one failure costs one sample.

    With immutable features, samples are attacked one by one: only then can these features stay fixed at every point.
    `within_eps`: the attack keeps to eps, so a point beyond eps by rounding is projected. Without it, a point beyond
    eps is no success.
    """
    try:
        rows = probe.active()
        batches = [rows] if probe.space.immutable is None else torch.split(rows, 1)
        for batch in batches:
            results = _points(probe, counted, attack, batch)
            if results:
                some, x = (torch.cat(part) for part in zip(*results, strict=True))
                x = probe.project(x, some) if within_eps else probe.space.project(x, probe.x0[some])
                probe.forward(x, some, gradient=False)
    finally:
        probe.count_together(counted.n_forward, counted.n_backward)


def _points(probe: Probe, counted: Counted, attack: BorrowedAttack, rows: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Rows and their points; a sample that the library cannot attack ends with an error."""
    try:
        return [(rows, _attacked(probe, counted, attack, rows))]
    except OutOfTimeError:
        raise
    except Exception as error:  # whatever a library may throw
        if len(rows) == 1:
            probe.fail(int(rows), f"{type(error).__name__}: {error}")
            return []
    return [result for row in torch.split(rows, 1) for result in _points(probe, counted, attack, row)]


def _attacked(probe: Probe, counted: Counted, attack: BorrowedAttack, rows: Tensor) -> Tensor:
    x0 = probe.x0[rows]
    counted.clean, units = x0, counted.units(x0)
    with seeded(probe.noise.seed(rows), x0.device), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the judge checks the result
        points = attack(units.clone(), probe.goal.of(rows)).detach()
    if points.shape != x0.shape:
        raise ValueError(f"the attack returned shape {tuple(points.shape)}; expected {tuple(x0.shape)}")
    return torch.where(points == units, x0, counted.inputs(points))


class _SeededState(np.random.RandomState):
    def __init__(self, seed: Any = None) -> None:
        super().__init__(np.random.randint(2**32, dtype=np.uint64) if seed is None else seed)


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the global generators, and restore them afterwards.

    Some attacks of ART create a `numpy.random.RandomState` from the computer's entropy; within this context, one that
    is created without a seed draws its seed from the global generator.
    """
    python, numpy, fresh = random.getstate(), np.random.get_state(), np.random.RandomState
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else ()):
        torch.manual_seed(seed % 2**63)
        np.random.seed(seed % 2**32)
        random.seed(seed)
        np.random.RandomState = _SeededState  # type: ignore[misc]
        try:
            yield
        finally:
            np.random.RandomState = fresh  # type: ignore[misc]
            np.random.set_state(numpy)
            random.setstate(python)


def library(module: str, *, extra: str) -> Any:
    """A module of an optional library."""
    try:
        with warnings.catch_warnings():  # only the library's authors can act on them
            warnings.simplefilter("ignore")
            return import_module(module)
    except ImportError as error:
        raise StudyError(f"{needs_extra('this', extra, extra)} ({error})") from None


def installed_version(package: str, wanted: str | None) -> str:
    """The version of a library, which is part of an arm: another version may give other rows."""
    installed = version(package)
    if wanted not in (None, installed):
        raise StudyError(
            f"the study asks for version {wanted} of {package}, but {installed} is installed; install {wanted} or "
            f"write version: {installed}"
        )
    return installed


def attack_class(module: Any, base: type, name: str) -> Any:
    """The class of that name among the attacks of a module."""
    classes = {
        key: value
        for key, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, base) and not inspect.isabstract(value)
    }
    if name not in classes:
        raise StudyError(f"{module.__name__} has no attack {name!r}; {did_you_mean(name, classes)}")
    return classes[name]


def parameters_of(kind: type) -> dict[str, inspect.Parameter]:
    """The named parameters of a class."""
    parameters = inspect.signature(kind).parameters
    return {name: one for name, one in parameters.items() if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)}


def checked_settings(kind: type, settings: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a class: settings of the study, checked against its signature, and those that the arm sets."""
    parameters = parameters_of(kind)
    arguments = {}
    for name, value in settings.items():
        if name in ours:
            raise StudyError(f"{kind.__name__}.{name} follows from the study; remove it from the settings")
        if name not in parameters:
            raise StudyError(f"{kind.__name__} has no setting {name!r}; {did_you_mean(name, parameters.keys() - ours)}")
        try:
            arguments[name] = as_type(value, _hint(parameters[name].annotation))
        except (ValueError, TypeError) as error:
            raise StudyError(f"{kind.__name__}.{name}: {error}") from None
    for name, parameter in parameters.items():
        if parameter.default is REQUIRED and name not in arguments and name not in ours:
            raise StudyError(f"{kind.__name__} needs {name}; write it as settings: {{{name}: …}}")
    return arguments | {name: value for name, value in ours.items() if name in parameters}


def _hint(annotation: Any) -> Any:
    """A type to check a value against; of an annotation written as text, the types that a study file can hold."""
    if not isinstance(annotation, str):
        return Any if annotation is REQUIRED else annotation
    plain = [_PLAIN[name] for part in annotation.split("|") if (name := part.strip()) in _PLAIN]
    return Any if plain in ([], [type(None)]) else functools.reduce(operator.or_, plain)


def made(what: str, make: Callable[[], Any]) -> Any:
    """An attack object, or a StudyError with its library's message."""
    try:
        return make()
    except StudyError:
        raise
    except Exception as error:  # whatever a library may throw
        raise StudyError(f"{what} cannot be made from these settings: {type(error).__name__}: {error}") from None


def check_fed(name: str, unfed: Mapping[str, str]) -> None:
    """Refuse an attack that needs more than a model and samples: a study cannot name it."""
    if name in unfed:
        raise StudyError(f"{name} needs {unfed[name]}, which a study cannot give; make it in Python instead")


def check_norm(what: str, own: Norm | None, norm: Norm | None) -> None:
    """Refuse an arm whose norm is not the attack's own."""
    if own is not None and norm is not None and own != norm:
        raise StudyError(f"{what} works in {own}, not in {norm}; write norm: {own}, or choose another attack")
