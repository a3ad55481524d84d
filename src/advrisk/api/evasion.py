"""Fitting an evasion curve to answers, wherever they come from, and saying what is to be known of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from advrisk.answers.file import AnswerRows, read_answer_file
from advrisk.api.run import Run
from advrisk.assess.damage.answers import (
    FORCED_CHOICE_UNTESTED,
    MONOTONE_OPTION,
    NO_MONOTONE,
    shape_sentence,
    shape_warning,
    unlike_groups,
)
from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.names import counted
from advrisk.core.plain import InJson, plain_fields
from advrisk.core.sections import Column, Section, Table, Text
from advrisk.core.seeds import generator
from advrisk.core.traits import Norm
from advrisk.ledger.sync.files import output_file
from advrisk.ledger.sync.remote import local_path, url_of
from advrisk.risk.evasion import (
    BayesianEvasion,
    EvasionCurve,
    ShapeTest,
    curve_band,
    fit_bayesian,
    fit_logistic,
    fit_monotone,
    half_detected,
    shape_test,
    write_evasion,
)
from advrisk.study import CLEAN

Fit = Literal["bayesian", "logistic", "monotone"]
Scale = Literal["log", "linear"]

_SHOWN = 9  # sizes of the table


@dataclass(frozen=True, eq=False)
class FittedEvasion:
    """An evasion curve, and what the answers say of it."""

    curve: EvasionCurve
    norm: Norm | None
    n: int  # answers
    n_undetected: int
    asked: tuple[float, float]  # the least and the largest size
    half: Estimate | None  # the size of which half goes undetected
    values: tuple[tuple[float, Estimate], ...]  # Psi at some sizes
    notes: tuple[str, ...]
    shape: ShapeTest | None = None  # whether the answers have the shape that the fit assumes
    source: Path | None = None  # the file of the answers

    in_json: ClassVar[InJson] = dict.fromkeys(("curve", "source"))

    def write(self, path: str | Path) -> Path:
        """Write the curve to a file that a study or `--evasion` names; the answers' own file is not written over."""
        with output_file(path, keep=True) as target:
            if self.source is not None and target.resolve() == self.source.resolve():
                raise RiskError(f"{path}: holds the answers; write the curve to another file")
            write_evasion(target, self.curve, norm=self.norm, notes=self.notes)
        return target

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return plain_fields(self) | {"values": [{"size": size, **value.as_dict()} for size, value in self.values]}


def evasion_sections(found: FittedEvasion) -> Iterator[Section]:
    """The curve at some sizes, and what is to be known of it."""
    columns = (Column(f"size ({found.norm})" if found.norm else "size"), Column("goes undetected", "share"))
    yield Table("Evasion curve", columns, tuple((f"{size:.4g}", value) for size, value in found.values))
    sentences = [
        f"{counted(found.n, 'answer')} about sizes from {found.asked[0]:.4g} to {found.asked[1]:.4g}: "
        f"{found.n - found.n_undetected} detected, {found.n_undetected} not. Beyond these sizes the curve is a guess."
    ]
    if found.half is not None:
        low, high = found.half.low, found.half.high
        sentences.append(f"Half goes undetected at a size of {found.half.value:.4g} [{low:.4g}, {high:.4g}].")
    if found.shape is not None and shape_warning(found.shape) is None:
        sentences.append(shape_sentence(found.shape))
    yield Text((*sentences, *found.notes))


def fit_evasion(
    source: str | Path | AnswerRows,
    *,
    detector: Mapping[str, Any] | None = None,
    fit: Fit = "bayesian",
    norm: Norm | None = None,
    scale: Scale = "log",
    guess: float | None = None,
    lapse: float | None = None,
    forced_choice: bool = False,
    level: float = 0.95,
) -> FittedEvasion:
    """Fit an evasion curve to a detector's answers: from a CSV or Parquet file, of a run, or at hand.

    Columns of a file: `size`, `undetected`, and if known `model`, `arm`, `labeller`, `image`. Of a run:
    what `detector` says (as in `Run.damage`) of clean inputs and nearest successes. `guess` and `lapse`
    are the rates of false alarms and of lapses; they are learned unless given. `scale`, the rates and
    `forced_choice` belong to the Bayesian fit. Whether answers have the shape that the fit assumes, and
    whether they differ between models or arms, is tested; a warning is kept with the curve.
    """
    answers, norm = _answers(source, detector, norm)
    settings = {"scale": scale, "guess": guess, "lapse": lapse, "forced_choice": forced_choice}
    curve = _fitted(answers, fit, settings)
    rng = generator("evasion", 0)
    notes = [curve.note] if isinstance(curve, BayesianEvasion) and curve.note else []
    shape = shape_test(curve)
    doubt = shape_warning(shape, NO_MONOTONE if forced_choice else MONOTONE_OPTION)
    notes += [doubt] if doubt else []
    notes += _rising(answers) + ([FORCED_CHOICE_UNTESTED] if forced_choice else _doubts(answers, rng))
    return FittedEvasion(
        curve=curve,
        norm=norm,
        n=len(answers.sizes),
        n_undetected=sum(answers.undetected),
        asked=(min(answers.sizes), max(answers.sizes)),
        half=half_detected(curve, level),
        values=_values(curve, answers, level),
        notes=tuple(notes),
        shape=shape,
        source=None if isinstance(source, AnswerRows) else Path(source),
    )


def _answers(
    source: str | Path | AnswerRows, detector: Mapping[str, Any] | None, norm: Norm | None
) -> tuple[AnswerRows, Norm | None]:
    """The answers, and the norm that their sizes are in."""
    if not isinstance(source, AnswerRows) and (url_of(source) or local_path(source).is_dir()):
        run = Run.open(source)
        if detector is None:
            raise RiskError(
                f"{source}: whose answers? Name a detector that has scored this run (`--detector`); for those of "
                f"people: advrisk label {source} --fit FILE"
            )
        return run.detector_answers(detector, norm=norm)
    if detector is not None:
        raise RiskError(f"{detector['name']} is a detector of a run: give the run's folder, not {source}")
    return source if isinstance(source, AnswerRows) else read_answer_file(Path(source)), norm


def _fitted(answers: AnswerRows, fit: Fit, settings: Mapping[str, Any]) -> EvasionCurve:
    if fit == "bayesian":
        if settings["forced_choice"]:
            settings = {**settings, "guess": settings["guess"] or 0.0}  # both pictures are there: no false alarm
        return fit_bayesian(
            answers.sizes, answers.undetected, labellers=answers.labeller, images=answers.image, **settings
        )
    given = [name for name, value in settings.items() if value not in (None, False, "log")]
    if given:
        raise RiskError(f"found {given[0]}, which belongs to the Bayesian fit; the {fit} one knows no such thing")
    return (fit_logistic if fit == "logistic" else fit_monotone)(answers.sizes, answers.undetected)


def _rising(answers: AnswerRows) -> list[str]:
    """A warning where larger perturbations went undetected rather than smaller ones."""
    sizes, undetected = np.array(answers.sizes), np.array(answers.undetected)
    if undetected.all() or not undetected.any() or sizes[undetected].mean() <= sizes[~undetected].mean():
        return []
    return [
        "Perturbations that went undetected were larger on average than those that were detected, but a curve can only "
        "fall: are the answers the wrong way round?"
    ]


def _doubts(answers: AnswerRows, rng: np.random.Generator) -> list[str]:
    """Warnings where one curve for all models, or for all arms, is doubtful."""
    groups: dict[str, Sequence[str | None]] = {}
    if answers.model is not None:
        groups["model"] = answers.model
    if answers.arm is not None:
        groups["arm"] = [None if arm == CLEAN.id else arm for arm in answers.arm]
    return unlike_groups(answers.sizes, answers.undetected, groups, rng=rng)


def _values(curve: EvasionCurve, answers: AnswerRows, level: float) -> tuple[tuple[float, Estimate], ...]:
    """Psi at 0 and at sizes spread over those that were asked about."""
    positive = [size for size in answers.sizes if size > 0]
    sizes = np.array([0.0, *np.geomspace(min(positive), max(positive), _SHOWN - 1)]) if positive else np.zeros(1)
    low, high = curve_band(curve, sizes, level)
    found = zip(curve(sizes).tolist(), low.tolist(), high.tolist(), strict=True)
    estimates = [Estimate(*value, level, len(answers.sizes), "draws") for value in found]
    return tuple(zip(sizes.tolist(), estimates, strict=True))
