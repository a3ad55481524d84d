"""A first study of a model and samples that exist: what they show is written down, what they do not show is named."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from advrisk.core.errors import AdvriskError, ModelError
from advrisk.core.extras import extras_named
from advrisk.core.names import counted
from advrisk.core.numbers import percent_text
from advrisk.study import Source, study_from

_MOST = 200  # samples that the first run attacks
_SIZES = ("2/255", "8/255")  # of images: hardly visible, and what most papers report
_TABLE_SIZES = (0.01, 0.05)  # of tables: shares of a feature's range
_OWN = ("id", "weight", "split")  # arrays with one entry per sample that a study needs not name
_UNSURE = "# ?"  # marks a line that the files cannot decide


@dataclass(frozen=True)
class StarterStudy:
    """The text of a study, what it rests on, and what is doubtful about the model (empty: nothing)."""

    text: str
    summary: str
    doubt: str

    @property
    def n_unsure(self) -> int:
        return self.text.count(_UNSURE) - 1  # the first line explains the mark


@dataclass(frozen=True)
class _Samples:
    """What a file of samples shows."""

    line: str  # of the study: its section `data`
    comments: tuple[str, ...]
    shape: tuple[int, ...]
    n: int
    n_classes: int
    span: float  # from the lowest to the highest value of a feature

    @property
    def is_image(self) -> bool:
        return len(self.shape) == 3

    def __str__(self) -> str:
        kind = "image" if self.is_image else "row"
        return f"{counted(self.n, kind)} of {'×'.join(map(str, self.shape))}, {self.n_classes} classes"


@extras_named("a study of your model")
def starter_study(path: Path, *, model: str, data: Path, weights: Path | None = None) -> StarterStudy:
    """Load the factory `model` (`module:name`) and the .npz file `data`; the study of both, to be written to `path`."""
    samples = _read_samples(data, path.parent)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", model.rpartition(":")[2]).strip("-._").lower() or "model"
    line = {"source": "torch", "factory": model} | ({"weights": _beside(weights, path.parent)} if weights else {})
    try:
        expected, doubt, n_outputs = _examine(path, _text(name, line, samples, "expect_accuracy: 0"), name)
    except AdvriskError as error:
        raise ModelError(str(error).removeprefix(f"{path}: models.{name}: ")) from None
    accuracy = f"expect_accuracy: {percent_text(expected, 1)}" if expected and not doubt else ""
    found = "its answers cannot be read" if expected is None else f"{percent_text(expected, 1)} correct"
    summary = f"{data}: {samples}; {model}: {n_outputs} classes, {found}"
    return StarterStudy(_text(name, line, samples, accuracy), summary, doubt)


def _examine(path: Path, text: str, name: str) -> tuple[float | None, str, int]:
    """Check a study as a run does: the model's accuracy on its samples, what is doubtful of it, and its classes."""
    from advrisk.run.checks.accuracy import Examination
    from advrisk.run.options import DEFAULTS
    from advrisk.run.planning import outline_study, refuse_impossible
    from advrisk.run.preparation import load_bench

    study = study_from(yaml.safe_load(text), Source(path))
    bench = load_bench(study, path.parent, DEFAULTS)
    refuse_impossible(outline_study(bench), bench)
    model = bench.material.models[name]
    spec = study.models[name].model_copy(update={"expect_accuracy": None})
    examined = Examination(bench, spec, model)
    answers = examined.answers
    accuracy = None if answers is None else answers.n_correct / answers.n
    return accuracy, examined.complaint() or examined.doubt(), model.n_classes


def _read_samples(data: Path, folder: Path) -> _Samples:
    from advrisk.parts.data.npz import npz, read_arrays

    arrays = read_arrays(data)
    settings, comments = _settings(arrays)
    dataset = npz(path=data, **settings)
    n_left = len(dataset.x) if dataset.split is None else int(np.isin(dataset.split, ("evaluate", "test")).sum())
    fields: dict[str, Any] = {"source": "npz", "path": _beside(data, folder), **settings}
    fields["evaluate"] = max(1, min(_MOST, n_left))
    further = [name for name, array in arrays.items() if array.shape == dataset.y.shape and name not in ("y", *_OWN)]
    if further:
        comments += [f"{_UNSURE} strata: [{', '.join(further)}]: compare the risk of groups of samples; which matter?"]
    if dataset.x.ndim == 2 and not {"immutable", "integer", "category"} & arrays.keys():
        comments += [
            f"{_UNSURE} arrays `immutable`, `integer` and `category` in the file say which columns may change, and how"
        ]
    span = float(np.median(np.broadcast_to(dataset.high, dataset.x.shape[1:]) - np.asarray(dataset.low)))
    shape = dataset.x.shape[1:]
    return _Samples(_flow(fields), tuple(comments), shape, len(dataset.x), dataset.n_classes, span)


def _settings(arrays: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The settings that the arrays need, and comments on those that are guessed."""
    settings: dict[str, Any] = {}
    x, comments = arrays.get("x"), []
    if x is None:
        return {}, []
    if x.ndim == 4 and (x.shape[1] in (1, 3)) == (x.shape[3] in (1, 3)):
        settings["layout"] = "nhwc" if x.shape[3] < x.shape[1] else "nchw"
        comments.append(f"{_UNSURE} layout: guessed from the shape {x.shape}")
    if x.dtype != np.uint8 and x.dtype.kind in "fiu" and not {"low", "high"} <= arrays.keys():
        low, high = _range(x)
        settings["bounds"] = _likely_bounds(low, high)
        comments.append(f"{_UNSURE} bounds: x lies in [{low:.6g}, {high:.6g}]; what else could an input be?")
    return settings, comments


def _range(x: Any) -> tuple[float, float]:
    finite = x[np.isfinite(x)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def _likely_bounds(low: float, high: float) -> list[int] | list[float]:
    """The usual range of inputs that holds these values; their own range where none does."""
    for usual in ([0, 1], [-1, 1], [0, 255]):
        if usual[0] <= low and high <= usual[1]:
            return usual
    return [low, high] if low < high else [low, low + 1]


def _beside(file: Path, folder: Path) -> str:
    """A path as the study writes it: against the folder of the study, if it lies inside."""
    whole, home = file.expanduser().resolve(), folder.resolve()
    return os.path.relpath(whole, home) if whole.is_relative_to(home) else str(whole)


def _flow(fields: Mapping[str, Any]) -> str:
    """A mapping of YAML on one line."""
    return yaml.safe_dump(
        dict(fields), default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True
    ).strip()


def _text(name: str, model: Mapping[str, Any], samples: _Samples, accuracy: str) -> str:
    """The study with its comments."""
    small, large = _sizes(samples)
    entry = _flow(model).removesuffix("}") + (f", {accuracy}" if accuracy else "") + "}"
    comments = "".join(f"  {one}\n" for one in samples.comments)
    expectation = (
        "as measured here; better: as measured on your own test samples"
        if accuracy
        else "expect_accuracy: the share of clean samples that it should classify correctly"
    )
    weights = (
        ""
        if "weights" in model
        else f"  {_UNSURE} weights: FILE: none are loaded but those that the factory loads itself\n"
    )
    return f"""\
# A study of your model; `{_UNSURE}` marks what advrisk cannot know. See also: advrisk list, advrisk schema
name: {name}
seed: 7                      # the same seed gives the same rows

# {samples}
data: {samples.line}
{comments}
models:
  {name}: {entry}
  {_UNSURE} {expectation}
{weights}  {_UNSURE} mean: [0.5], std: [0.25]: how inputs are normalised, where the module does not do so itself
  # A second model is compared with the first on the same samples:
  # candidate: {entry}

success: label               # an attack succeeds if the label is lost (or: prediction)

arms:                        # lists expand to a grid; `advrisk list attacks`
  - {{preset: minimal-distance, norm: linf}}   # the nearest input that breaks each sample
  - {{corruption: gaussian-noise, sigma: 0.1, repeats: 2}}   # sigma: a share of the range of a feature

assess:
  {_UNSURE} thresholds: which changes of an input are small where you deploy the model?
  damage: {{norm: linf, thresholds: [{small}, {large}]}}
"""


def _sizes(samples: _Samples) -> tuple[str, str]:
    """Two sizes of perturbations for the range of the inputs, as a study writes them."""
    if not samples.is_image:
        return f"{_TABLE_SIZES[0] * samples.span:.2g}", f"{_TABLE_SIZES[1] * samples.span:.2g}"
    if samples.span == 1:
        return _SIZES
    return f"{2 * samples.span / 255:.4g}", f"{8 * samples.span / 255:.4g}"
