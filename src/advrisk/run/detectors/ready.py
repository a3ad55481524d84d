"""Detectors that are ready to score: those of the study, with what they learned, and those handed over as objects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from torch import Tensor

from advrisk.core.containment import exits_as_errors
from advrisk.core.digest import digest, digest_array
from advrisk.core.errors import AdvriskError, RunError
from advrisk.core.names import counted, did_you_mean
from advrisk.core.registries import Registries
from advrisk.engine import Model, Suspicion
from advrisk.ledger.inputs import detector_state
from advrisk.ledger.known_detectors import nameable, read_known_detectors
from advrisk.parts.detectors import Detector, LearningDetector, State
from advrisk.plan import ConfiguredDetector, detector_id, names_of
from advrisk.run.tensors import write_tensors
from advrisk.study import StudySpec

N_FIXED_INPUTS = 8
_CONTENT = "content"  # what a state file says of its own tensors


class Scores(Protocol):
    """Any object of a user's that scores inputs: an array in, one number for each row out."""

    def score(self, x: NDArray[np.float32], /) -> Any: ...


@dataclass(frozen=True)
class HandedOver:
    """A user's object as a detector; it is given plain arrays and does not see the model."""

    owner: Scores

    def score(self, x: Tensor, model: Model) -> Tensor:  # noqa: ARG002
        scores = np.asarray(self.owner.score(x.detach().cpu().numpy().copy()))
        if scores.dtype == object or scores.dtype.kind in "US":
            raise TypeError(f"score(x) must give numbers, found {scores.dtype}")
        return torch.as_tensor(scores)


@dataclass(frozen=True)
class Learned:
    """A detector with what it learned of each model, which is read when it is first asked."""

    id: str
    detector: LearningDetector
    folder: Path
    _states: dict[str, State] = field(default_factory=dict)

    def score(self, x: Tensor, model: Model) -> Tensor:
        if model.name not in self._states:
            state, _ = read_state(detector_state(self.folder, self.id, model.name))
            self._states[model.name] = {name: tensor.to(model.device) for name, tensor in state.items()}
        return self.detector.score(x, model, self._states[model.name])


@dataclass(frozen=True)
class Unlearned:
    """A detector that has yet to learn, and cannot be asked."""

    name: str

    def score(self, x: Tensor, model: Model) -> Tensor:  # noqa: ARG002
        raise RunError(f"{self.name} has yet to learn of {model.name}")


def ready_detector(one: ConfiguredDetector, study: StudySpec, registries: Registries, folder: Path) -> Detector:
    """A detector of a study; what it learned lies in the run's folder."""
    part = registries.detectors.get(one.name)
    try:
        with exits_as_errors(f"the detector {one.name}", RunError):
            made = part.function(**one.params)
    except AdvriskError as error:
        raise study.where.error(one.loc, str(error)) from None
    if part.traits.learns:
        _refuse_too_few(one, made, study)
        return Learned(one.id, made, folder)
    ready: Detector = made
    return ready


def _refuse_too_few(one: ConfiguredDetector, made: LearningDetector, study: StudySpec) -> None:
    """Before anything is crafted, where a detector says (`fewest`) how many clean inputs it must have."""
    fewest, n_train = getattr(made, "fewest", 0), study.data.train
    if 0 < n_train < fewest:
        raise study.where.error(
            one.loc,
            f"{one.name} with these settings learns from at least {fewest} samples of the split `train`, found "
            f"{n_train}; set more aside, or choose other settings",
        )


def known_suspicion(full: str, detector: Detector, registries: Registries) -> Suspicion:
    """A detector, by its full name, as an attack that knows it sees it; torch cannot follow an object's score."""
    readable = full.rpartition("@")[0]
    if isinstance(detector, HandedOver):
        return Suspicion(readable, detector.score)
    traits = registries.detectors.get(readable.partition(",")[0]).traits
    return Suspicion(readable, detector.score, differentiable=traits.differentiable)


def python_detectors(
    objects: Mapping[str, Scores], x: NDArray[np.float32], model: Model
) -> list[tuple[ConfiguredDetector, HandedOver]]:
    """Detectors from Python objects; their digests are their scores of fixed inputs, as their code has none."""
    if not isinstance(objects, Mapping):
        raise RunError(f"detectors must be a mapping of names to objects, found {type(objects).__name__}")
    return [_python_detector(name, owner, x[:N_FIXED_INPUTS], model) for name, owner in objects.items()]


def _python_detector(
    name: str, owner: Scores, x: NDArray[np.float32], model: Model
) -> tuple[ConfiguredDetector, HandedOver]:
    if not isinstance(name, str) or not nameable(name):
        raise RunError(f"a detector needs a name without '@', ',' and slashes, found {name!r}")
    if not callable(getattr(owner, "score", None)):
        raise RunError(f"the detector {name!r} is {type(owner).__name__}, which has no method score(x)")
    detector = HandedOver(owner)
    inputs = torch.from_numpy(x)
    first, again = (checked_scores(name, detector, inputs, model, "fixed inputs") for _ in range(2))
    if not np.array_equal(first, again):
        raise RunError(f"the detector {name!r} scores the same inputs differently each time; give it a seed of its own")
    alone = [checked_scores(name, detector, row[None], model, "a fixed input")[0] for row in inputs]
    if not np.allclose(first, alone, rtol=1e-3, atol=1e-6 * float(np.abs(first).max(initial=0.0))):
        raise RunError(f"the detector {name!r} scores an input differently beside others; each must count by itself")
    full = detector_id(name, [name, *map(_digits, first.tolist())])
    return ConfiguredDetector(full, name, {}, ("detectors",), from_python=True), detector


def _digits(score: float) -> str:
    """Six digits, however small the number is; a zero has no sign."""
    return f"{score or 0.0:.6g}"


def refuse_unnamed(study: StudySpec, detectors: Sequence[ConfiguredDetector]) -> None:
    """The detector that damage is asked with must be among those that score."""
    asked = study.assess.damage.detector
    names = names_of(detectors)
    if asked is not None and len(names.get(asked.name, ())) > 1:
        several = "; ".join(one.readable for one in detectors if one.name == asked.name)
        message = f"{asked.name!r} may mean several detectors of this study: {several}"
        raise study.where.error(("assess", "damage", "detector", "name"), message)
    if asked is not None and asked.name not in names:
        hint = did_you_mean(asked.name, names) if names else f"add `detectors: [{asked.name}]` to the study"
        message = f"no detector of this study is called {asked.name!r}; {hint}"
        raise study.where.error(("assess", "damage", "detector", "name"), message)


def refuse_undetected(study: StudySpec, detectors: Sequence[ConfiguredDetector], folder: Path) -> None:
    """A question about detectors where there is none; scores that were imported before may be asked about."""
    imported = read_known_detectors(folder)
    if "detection" in study.assess.model_fields_set and not detectors and not (imported and imported.imported):
        raise study.where.error(
            ("assess", "detection"),
            "asks about detectors, and the study has none; add `detectors: [confidence]`, say, or remove this (where "
            "scores are imported later, add it after that: what is assessed runs nothing again)",
        )


def checked_scores(name: str, detector: Detector, x: Tensor, model: Model, what: str) -> NDArray[np.float64]:
    """One finite number for each input. Nothing that a detector returns is believed."""
    try:
        with torch.no_grad(), exits_as_errors(f"the detector {name}", RunError):
            given = detector.score(x, model.original)
        scores = np.asarray(given.detach().cpu() if isinstance(given, Tensor) else given)
        if np.iscomplexobj(scores):
            raise TypeError("scores must be real numbers, found complex ones")
        scores = scores.astype(np.float64)
    except Exception as error:  # a detector is foreign code, as an attack is
        raise RunError(f"the detector {name} failed on {what}: {type(error).__name__}: {error}") from error
    if scores.shape != (len(x),):
        raise RunError(
            f"the detector {name} scored {len(x)} inputs ({what}) with shape {scores.shape}; one number each is needed"
        )
    if not np.isfinite(scores).all():
        wrong = scores[~np.isfinite(scores)]
        raise RunError(
            f"the detector {name} scored {what} with {wrong[0]}, {counted(len(wrong), 'time')} in {len(x)}; "
            "finite numbers are needed"
        )
    return scores


def write_state(target: Path, state: State, note: Mapping[str, str]) -> None:
    """Store what was learned; the file appears in full or not at all."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        plain = {name: tensor.cpu() for name, tensor in state.items()}
        write_tensors(target, plain, {**note, _CONTENT: _content(plain)})
    except (OSError, SafetensorError) as error:
        raise RunError(f"{target}: what a detector learned could not be stored: {error}") from None


def read_state(path: Path) -> tuple[State, dict[str, str]]:
    """What a detector learned, and how."""
    try:
        with safe_open(path, framework="pt") as file:
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            note = dict(file.metadata() or {})
    except (SafetensorError, OSError) as error:
        raise RunError(f"{path}: cannot be read: {error}; delete it, and the detector will learn again") from None
    if note.get(_CONTENT) != _content(state):
        raise RunError(f"{path}: was changed since it was written; delete it, and the detector will learn again")
    return state, note


def _content(state: State) -> str:
    """Names what was learned, to the last bit."""
    return digest([[name, digest_array(state[name].numpy())] for name in sorted(state)])
