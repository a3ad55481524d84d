"""Attacks of other libraries: what their adapters share.

Such an attack is handed all samples of a shard and a module that counts what it is asked (`engine.counted`); it gives
back one point for each sample. It draws from the global generators, which are seeded for it and put back afterwards.
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
    """What is true of every attack of another library; what it needs, `resolve` says."""
    for norm in norms:
        if norm not in NORMS:
            raise RegistryError(f"no norm is called {norm!r}; {did_you_mean(norm, NORMS)}")
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
    """Attack all active samples at once; if the library throws, each by itself, so that one does not cost the others.

    Where features may not change, samples are attacked one by one: only then are they held at every point.
    `within_eps` says that the attack keeps to eps, so that what exceeds it by rounding is put back. Elsewhere a point
    beyond eps is no success.
    """
    try:
        rows = probe.active()
        batches = [rows] if probe.space.immutable is None else torch.split(rows, 1)
        for batch in batches:
            found = _points(probe, counted, attack, batch)
            if found:
                some, x = (torch.cat(part) for part in zip(*found, strict=True))
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
    return [found for row in torch.split(rows, 1) for found in _points(probe, counted, attack, row)]


def _attacked(probe: Probe, counted: Counted, attack: BorrowedAttack, rows: Tensor) -> Tensor:
    x0 = probe.x0[rows]
    counted.clean, units = x0, counted.units(x0)
    with seeded(probe.noise.seed(rows), x0.device), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what came of it, the judge will tell
        found = attack(units.clone(), probe.goal.of(rows)).detach()
    if found.shape != x0.shape:
        raise ValueError(f"the attack gave back shape {tuple(found.shape)}, {tuple(x0.shape)} was expected")
    return torch.where(found == units, x0, counted.inputs(found))


class _SeededState(np.random.RandomState):
    def __init__(self, seed: Any = None) -> None:
        super().__init__(np.random.randint(2**32, dtype=np.uint64) if seed is None else seed)


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the global generators, and put them back afterwards.

    Some attacks of ART make a `numpy.random.RandomState` of their own from the computer's entropy; in here, one that is
    made without a seed draws it from the global generator.
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
        with warnings.catch_warnings():  # about things that only the library's authors can change
            warnings.simplefilter("ignore")
            return import_module(module)
    except ImportError as error:
        raise StudyError(f"{needs_extra('this', extra, extra)} ({error})") from None


def installed_version(package: str, wanted: str | None) -> str:
    """The version of a library, which is part of an arm: another one may give other rows."""
    found = version(package)
    if wanted not in (None, found):
        raise StudyError(
            f"version {wanted} of {package} is asked for, but {found} is installed; install it or say {found}"
        )
    return found


def attack_class(module: Any, base: type, name: str) -> Any:
    """The class of that name among the attacks of a module."""
    known = {
        key: value
        for key, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, base) and not inspect.isabstract(value)
    }
    if name not in known:
        raise StudyError(f"{module.__name__} has no attack {name!r}; {did_you_mean(name, known)}")
    return known[name]


def parameters_of(kind: type) -> dict[str, inspect.Parameter]:
    """The arguments that a class is made from."""
    every = inspect.signature(kind).parameters
    return {name: each for name, each in every.items() if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)}


def checked_settings(kind: type, given: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """The settings to make a class from: those given, checked against its signature, and what the arm itself says."""
    known = parameters_of(kind)
    settings = {}
    for name, value in given.items():
        if name in ours:
            raise StudyError(f"{kind.__name__}.{name} follows from the study; remove it from the settings")
        if name not in known:
            raise StudyError(f"{kind.__name__} has no setting {name!r}; {did_you_mean(name, known.keys() - ours)}")
        try:
            settings[name] = as_type(value, _hint(known[name].annotation))
        except (ValueError, TypeError) as error:
            raise StudyError(f"{kind.__name__}.{name}: {error}") from None
    for name, each in known.items():
        if each.default is REQUIRED and name not in settings and name not in ours:
            raise StudyError(f"{kind.__name__} needs {name}; write it as settings: {{{name}: …}}")
    return settings | {name: value for name, value in ours.items() if name in known}


def _hint(annotation: Any) -> Any:
    """A type to check a value against; of one that is written as text, what a study file can hold."""
    if not isinstance(annotation, str):
        return Any if annotation is REQUIRED else annotation
    plain = [_PLAIN[name] for part in annotation.split("|") if (name := part.strip()) in _PLAIN]
    return Any if plain in ([], [type(None)]) else functools.reduce(operator.or_, plain)


def made(what: str, make: Callable[[], Any]) -> Any:
    """An attack object, or a StudyError with what its library says against it."""
    try:
        return make()
    except StudyError:
        raise
    except Exception as error:  # whatever a library may throw
        raise StudyError(f"{what} cannot be made from these settings: {type(error).__name__}: {error}") from None


def check_fed(name: str, unfed: Mapping[str, str]) -> None:
    """An attack that needs more than a model and samples cannot be named in a study."""
    if name in unfed:
        raise StudyError(f"{name} needs {unfed[name]}, which a study cannot give; make it in Python instead")


def check_norm(what: str, own: Norm | None, norm: Norm | None) -> None:
    """An attack that states a norm must be asked for in it."""
    if own is not None and norm is not None and own != norm:
        raise StudyError(f"{what} works in {own}, not in {norm}; say norm: {own}, or choose another attack")
