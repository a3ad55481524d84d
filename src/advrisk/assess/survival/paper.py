"""The figures of Meyers et al. that compare models: by the strength of a defence, by training time, and by cost.

The paper draws violins over repeated trainings; here every model is one mark with its interval.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from advrisk.assess.survival.assessment import SurvivalAssessment
from advrisk.assess.survival.models import ModelSurvival
from advrisk.assess.survival.money import ModelCost
from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.palette import (
    COLOURS,
    GRAY,
    SYMBOLS,
    Places,
    Plot,
    cycled,
    model_places,
    named,
    places_of,
    plain_label,
    wrapped_label,
)
from advrisk.core.sections import Figure, Group, Section, Text
from advrisk.risk.survival.strength import DEFENCE, UNDEFENDED, defence_strengths

_LABEL = 26
ACCURACY_BY_DEFENCE = "Clean accuracy by defence strength"  # Fig. 3, left
FAILURES_BY_DEFENCE = "Failures under attack by defence strength"  # Fig. 4, left
FAILURES_BY_TRAINING = "Failures under attack by training time"  # Fig. 4, right
CLEAN_COST = "Cost ratio of clean inputs"  # Fig. 5, left
COST_BY_DEFENCE = "Cost ratio by defence or model"  # Fig. 5, middle
COST_BY_ATTACK = "Cost ratio by attack"  # Fig. 5, right
_GROUPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "By the strength of a defence": (
        "Strength is the setting of a defence, from the least value in the study, 0, to the greatest, 1. Dotted lines "
        "are models without a defence. A larger setting is not always a stronger defence: of feature squeezing it "
        "means more bits. Bars are intervals. (Meyers et al., Fig. 3 and 4, left.)",
        (ACCURACY_BY_DEFENCE, FAILURES_BY_DEFENCE),
    ),
    "By training time": (
        "A mark low and to the left was cheap to train and fails seldom. (Meyers et al., Fig. 4, right.)",
        (FAILURES_BY_TRAINING,),
    ),
    "What failures cost": (
        "Training seconds for each sample over the mean seconds until a failure, on a log scale. Dotted lines are at 1 "
        "and at the factor from which a model is called cheap to break. (Meyers et al., Fig. 5.)",
        (CLEAN_COST, COST_BY_DEFENCE, COST_BY_ATTACK),
    ),
}


@dataclass(frozen=True)
class _Mark:
    x: float | str
    group: str
    model: str
    value: Estimate


def paper_sections(assessment: SurvivalAssessment, places: Places) -> Iterator[Section]:
    """A group for each kind of figure with data, and why others are missing."""
    figures = paper_figures(assessment, places)
    for title, (how, names) in _GROUPS.items():
        if drawn := [name for name in names if name in figures]:
            shown = (Figure(name, figures[name], f"{name}, a mark for each model.") for name in drawn)
            yield Group(title, (Text((how,), how=True), *shown))
    if why := why_no_strength(assessment):
        yield Text((why,))


def paper_figures(assessment: SurvivalAssessment, places: Places) -> dict[str, Plot]:
    """The figures with data."""
    figures: dict[str, Plot] = {}
    colours = places_of([one.model for one in assessment.models], places)
    unit = assessment.durations.one_unit
    strengths = _strengths(assessment)
    for name, number, title, share in (
        (ACCURACY_BY_DEFENCE, _accuracy, "clean accuracy", True),
        (FAILURES_BY_DEFENCE, _failures, f"failures per {unit}, attacked", False),
    ):
        marks = [
            _Mark(strengths[one.model], defence_of(one), one.model, value)
            for one in assessment.models
            if strengths and (value := number(one)) is not None
        ]
        if len({mark.group for mark in marks} - {UNDEFENDED}):
            figures[name] = _by_strength(marks, title, colours, share=share)
    trained = [
        _Mark(seconds, one.model, one.model, value)
        for one in assessment.models
        if (seconds := one.facts.training_seconds(assessment.durations.measure))
        and (value := _failures(one)) is not None
    ]
    if len(trained) > 1:
        figures[FAILURES_BY_TRAINING] = _by_training(trained, unit, colours)
    for name, marks in (
        (CLEAN_COST, _costs(assessment, lambda cost: cost.benign_rate)),
        (COST_BY_DEFENCE, _costs(assessment, lambda cost: cost.adversarial)),
        (COST_BY_ATTACK, _attack_costs(assessment)),
    ):
        if len(marks) > 1:
            figures[name] = _strips(marks, assessment.broken_factor, colours)
    return figures


def why_no_strength(assessment: SurvivalAssessment) -> str:
    """Why no figure shows the strength of defences; empty if one does."""
    try:
        defence_strengths(assessment.durations)
    except RiskError as error:
        return f"No figure shows the strength of a defence: {error}."
    return ""


def defence_of(one: ModelSurvival) -> str:
    """The name of a model's defence."""
    return str(one.facts.tags.get(DEFENCE, UNDEFENDED))


def _strengths(assessment: SurvivalAssessment) -> dict[str, float]:
    try:
        return defence_strengths(assessment.durations)
    except RiskError:
        return {}


def _accuracy(one: ModelSurvival) -> Estimate | None:
    return one.clean_accuracy


def _failures(one: ModelSurvival) -> Estimate | None:
    return None if one.adversarial is None else one.adversarial.estimate


def _costs(assessment: SurvivalAssessment, ratio: Callable[[ModelCost], Estimate | None]) -> list[_Mark]:
    """One mark for each model, above its defence, or above its name if no model has one."""
    defended = any(defence_of(one) != UNDEFENDED for one in assessment.models)
    groups = {one.model: defence_of(one) if defended else one.model for one in assessment.models}
    return [
        _Mark(groups[one.model], one.model, one.model, value)
        for one in assessment.models
        if one.cost is not None and (value := ratio(one.cost)) is not None
    ]


def _attack_costs(assessment: SurvivalAssessment) -> list[_Mark]:
    return [
        _Mark(attack, one.model, one.model, value)
        for one in assessment.models
        if one.cost is not None
        for attack, value in one.cost.by_attack.items()
    ]


def _by_strength(marks: Sequence[_Mark], title: str, colours: Places, *, share: bool) -> Plot:
    """A line for each defence over its strength; undefended models are dotted lines."""
    lines: list[Plot] = []
    kinds = model_places({mark.group for mark in marks} - {UNDEFENDED})  # marks of defences, dots of models
    digits = ".1%" if share else ".3g"
    for kind, place in kinds.items():
        own = sorted((mark for mark in marks if mark.group == kind), key=lambda mark: (float(mark.x), mark.model))
        once = len({mark.x for mark in own}) == len(own)  # no line through several models of one strength
        lines.append(
            _marks(own, digits)
            | {
                "mode": "lines+markers" if once and len(own) > 1 else "markers",
                **named(kind, _LABEL),
                "x": [mark.x for mark in own],
                "line": {"color": cycled(COLOURS, place), "width": 1.5},
                "marker": {"size": 10, "color": cycled(COLOURS, place), "symbol": cycled(SYMBOLS, place)},
            }
        )
    for mark in (mark for mark in marks if mark.group == UNDEFENDED):
        lines.append(
            {
                "type": "scatter",
                "mode": "lines",
                **named(f"{mark.model}, undefended", _LABEL),
                "x": [0, 1],
                "y": [mark.value.value] * 2,
                "line": {"color": cycled(COLOURS, colours[mark.model]), "dash": "dot", "width": 2},
                "hovertemplate": f"{plain_label(mark.model)}, undefended: %{{y:{digits}}}<extra></extra>",
            }
        )
    axis = {"title": {"text": title}, **({"tickformat": ".0%"} if share else {"rangemode": "tozero"})}
    return {
        "data": lines,
        "layout": {
            "xaxis": {"title": {"text": "strength of the defence, least to greatest"}, "range": [-0.05, 1.05]},
            "yaxis": axis,
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
            "height": 400,
        },
    }


def _by_training(marks: Sequence[_Mark], unit: str, colours: Places) -> Plot:
    points = [
        _marks([mark], ".3g")
        | {
            "mode": "markers",
            **named(mark.model, _LABEL),
            "x": [mark.x],
            "marker": _dot(mark.model, colours),
        }
        for mark in marks
    ]
    return {
        "data": points,
        "layout": {
            "xaxis": {"title": {"text": "training, seconds"}, "type": "log"},
            "yaxis": {"title": {"text": f"failures per {unit}, attacked"}, "rangemode": "tozero"},
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
            "height": 400,
        },
    }


def _strips(marks: Sequence[_Mark], factor: float, colours: Places) -> Plot:
    """Marks above names, on a log scale, with lines at 1 and where a model is called broken."""
    names = sorted({str(mark.x) for mark in marks}, key=lambda name: (name != UNDEFENDED, name))
    points = []
    for model in dict.fromkeys(mark.model for mark in marks):
        own = [mark for mark in marks if mark.model == model]
        points.append(
            _marks(own, ".3g")
            | {
                "mode": "markers",
                **named(model, _LABEL),
                "x": [str(mark.x) for mark in own],
                "marker": _dot(model, colours),
            }
        )
    return {
        "data": points,
        "layout": {
            "xaxis": {
                "type": "category",
                "categoryarray": names,
                "categoryorder": "array",
                "tickvals": names,
                "ticktext": [wrapped_label(name) for name in names],
            },
            "yaxis": {"title": {"text": "training over breaking"}, "type": "log", "exponentformat": "power"},
            "shapes": [_line_at(1.0), _line_at(factor)],
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
            "scattermode": "group",
            "height": 400,
        },
    }


def _marks(marks: Iterable[_Mark], digits: str) -> Plot:
    own = list(marks)
    return {
        "type": "scatter",
        "y": [mark.value.value for mark in own],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [min(mark.value.high, 1e300) - mark.value.value for mark in own],
            "arrayminus": [mark.value.value - mark.value.low for mark in own],
            "thickness": 1.5,
            "width": 4,
        },
        "text": [plain_label(mark.model) for mark in own],
        "hovertemplate": f"%{{text}}: %{{y:{digits}}}<extra></extra>",
    }


def _dot(model: str, colours: Places) -> Plot:
    place = colours[model]
    return {"size": 10, "color": cycled(COLOURS, place), "symbol": cycled(SYMBOLS, place)}


def _line_at(height: float) -> Plot:
    ends = {"x0": 0, "x1": 1, "xref": "paper", "y0": height, "y1": height}
    return {"type": "line", **ends, "line": {"color": GRAY, "dash": "dot", "width": 1.5}}
