"""What the answers say so far: progress, agreement, the curve, and the damage of each model under it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from advrisk.answers.records import Answer, Labeller, LabellingSettings
from advrisk.assess.damage.answers import agreement, fit_answers, group_warnings, shape_doubts
from advrisk.assess.damage.people import damage_by_people
from advrisk.core.estimate import Estimate
from advrisk.core.plain import InJson, plain_fields
from advrisk.risk.absolute import compare_damage
from advrisk.risk.evasion import BayesianEvasion, EvasionCurve, ShapeTest, curve_band, half_detected
from advrisk.risk.labelling import Agreement
from advrisk.web.stimuli import Pool

LEVEL = 0.95
_BAND_SIZES = 80


@dataclass(frozen=True)
class LabellerProgress:
    """What one labeller did."""

    name: str
    n_answers: int
    n_catch: int
    n_catch_right: int
    median_s: float | None


@dataclass(frozen=True, eq=False)
class CurveBand:
    """The curve with its pointwise interval."""

    sizes: list[float]
    middle: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True, eq=False)
class LabellingSummary:
    """A snapshot. Until the curve is `fitted` it is the prior's, and no numbers are drawn from it."""

    settings: LabellingSettings
    answers: Sequence[Answer]
    labellers: tuple[LabellerProgress, ...]
    agreement: Agreement
    curve: BayesianEvasion
    half: Estimate | None
    band: CurveBand
    damage: Mapping[str, Estimate]
    clean_error: Mapping[str, float]
    extrapolated: Mapping[str, float]
    monte_carlo: Mapping[str, Estimate]
    shape: ShapeTest | None  # whether the answers have the shape of the curve
    warnings: tuple[str, ...]

    in_json: ClassVar[InJson] = {
        **dict.fromkeys(("settings", "answers", "curve", "band")),
        **{f"settings.{name}": name for name in ("norm", "design", "seconds")},
        **{name: name for name in ("n_answers", "fitted")},
        "half": "half_size",
        "clean_error": "clean_error_part",
    }

    @property
    def n_answers(self) -> int:
        return len(self.answers)

    @property
    def fitted(self) -> bool:
        """Whether the answers, and not the prior alone, say where detection sets in."""
        return tell_of_detection(self.answers)

    def state(self) -> dict[str, Any]:
        """What the operator's page shows, as plain data."""
        return plain_fields(self) | {"figure": self.figure()}

    def figure(self) -> dict[str, Any]:
        """What the page draws: the curve, and each answer as a mark."""
        marks = [[answer.size, int(answer.undetected)] for answer in self.answers]
        return {**vars(self.band), "marks": marks, "norm": self.settings.norm, "design": self.settings.design}


def tell_of_detection(answers: Sequence[Answer]) -> bool:
    """Whether some changes were noticed and some not."""
    return len({answer.undetected for answer in answers if answer.size > 0}) == 2


def summarise(
    pool: Pool,
    settings: LabellingSettings,
    answers: Sequence[Answer],
    labellers: Sequence[Labeller],
) -> LabellingSummary:
    """Fit the curve and everything that follows from it."""
    curve = fit_answers(answers, design=settings.design, plausible=pool.plausible, few=True)
    models = pool.distances.by_model
    fitted = tell_of_detection(answers)
    compared = compare_damage(models, curve, level=LEVEL, rng=np.random.default_rng(0)) if fitted else None
    shape, doubts = shape_doubts(curve) if fitted else (None, [])
    arms = _nearest_arms(pool)
    walks = damage_by_people(answers, pool.distances.samples, models, seed=pool.seed, nearest_arms=arms)
    return LabellingSummary(
        settings=settings,
        answers=answers,
        labellers=tuple(_progress(labeller.name, answers) for labeller in labellers),
        agreement=agreement(answers),
        curve=curve,
        half=half_detected(curve, LEVEL) if fitted else None,
        band=_band(curve, pool, answers),
        damage=compared.estimates if compared else {},
        clean_error=compared.clean_error if compared else {},
        extrapolated=compared.extrapolated if compared else {},
        monte_carlo={model: walk.estimate(level=LEVEL) for model, walk in walks.items() if walk.samples},
        shape=shape,
        warnings=(*([curve.note] if curve.note else []), *doubts, *group_warnings(answers)),
    )


def _nearest_arms(pool: Pool) -> dict[str, list[str]]:
    """Model -> the arm of each sample's nearest success; "" where there is none."""
    samples = pool.distances.samples
    return {
        model: [pool.nearest[model, sample].arm if (model, sample) in pool.nearest else "" for sample in samples]
        for model in pool.distances.by_model
    }


def _progress(name: str, answers: Sequence[Answer]) -> LabellerProgress:
    own = [answer for answer in answers if answer.labeller == name]
    catch = [answer for answer in own if answer.catch]
    times = [answer.seconds for answer in own if answer.seconds is not None]
    return LabellerProgress(
        name=name,
        n_answers=len(own),
        n_catch=len(catch),
        n_catch_right=sum(_right(answer) for answer in catch),
        median_s=float(np.median(times)) if times else None,
    )


def _right(answer: Answer) -> bool:
    """Unchanged pictures are to be called so; in a forced choice the easy change is to be found."""
    return not answer.undetected if answer.design == "forced-choice" else answer.undetected


def _band(curve: EvasionCurve, pool: Pool, answers: Sequence[Answer]) -> CurveBand:
    asked = [answer.size for answer in answers if answer.size > 0]
    low, high = min([pool.plausible[0], *asked]), max([pool.plausible[1], *asked])
    sizes = np.geomspace(low, high, _BAND_SIZES)
    ends = curve_band(curve, sizes, LEVEL)
    rounded = [[_short(value) for value in row] for row in (sizes, curve(sizes), ends[0], ends[1])]
    return CurveBand(*rounded)


def _short(value: float) -> float:
    """Six digits are enough for a drawing."""
    return float(f"{value:.6g}") if math.isfinite(value) else value
