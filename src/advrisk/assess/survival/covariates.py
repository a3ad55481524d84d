"""Covariates that may explain durations: properties that precede the attack.

Of the arm (its size, norm, attack, strength, objective), of the model (its name, tags, options, training, seconds of a
clean pass, clean accuracy) and of the sample (its class and strata). Covariates that come from the attack's outcome
are refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advrisk.core.errors import RiskError
from advrisk.core.names import counted, did_you_mean
from advrisk.risk.survival.durations import Durations, RowValues
from advrisk.risk.survival.strength import (
    ATTACK_STRENGTH,
    DEFENCE,
    DEFENCE_STRENGTH,
    UNDEFENDED,
    attack_strengths,
    defence_strengths,
)

OF_ARM = ("eps", "norm", "attack", ATTACK_STRENGTH, "objective", "arm")
OF_MODEL = (
    "model",
    "train_s",
    "train_process_s",
    "train_samples",
    "train_s_per_sample",
    "train_cost",
    "inference_s",
    "clean_accuracy",
    DEFENCE_STRENGTH,
)
CLASS = "class"
# Default values of tags for models without them; also their reference levels.
PLAIN_LEVELS = {DEFENCE: UNDEFENDED, "precision": "float32"}
_TAGS, _STRATA = "tags.", "strata."

# Names of an attack's outcome in ledgers and papers.
_OUTCOMES = frozenset(
    {
        "outcome",
        "prediction",
        "confidence",
        "survives_8bit",
        "success",
        "success_rate",
        "message",
        "target",
        "duration",
        "event",
        "lower",
        "d_l0",
        "d_l1",
        "d_l2",
        "d_linf",
        "near_l0",
        "near_l1",
        "near_l2",
        "near_linf",
        "distance",
        "n_forward",
        "n_backward",
        "n_judge",
        "n_rejected",
        "n_confirm",
        "n_forward_first",
        "n_backward_first",
        "n_forward_before",
        "n_backward_before",
        "first_s",
        "spent_s",
        "wall_s",
        "process_s",
        "failures",
        "n_failures",
        "failure_rate",
        "adversarial_failures",
        "adversarial_accuracy",
        "adv_accuracy",
        "f_adv",
        "adv_failure_rate",
        "accuracy_adv",
    }
)


def with_covariates(durations: Durations, names: Sequence[str]) -> tuple[Durations, list[str]]:
    """The durations with a column for each covariate, and notes on rows that lack a value.

    With the covariate eps, rows of arms without an eps are left out and counted. A model or sample that lacks a value
    is an error.
    """
    for name in names:
        refuse_outcome(name)
    if len(set(names)) < len(names):
        raise RiskError(f"a covariate is named twice: {', '.join(names)}")
    notes: list[str] = []
    kept = durations
    if "eps" in names:
        sized = {arm for arm, row in durations.arms.items() if row["eps"] is not None}
        rows = np.array([arm in sized for arm in durations.columns["arm"]], dtype=np.bool_)
        if not rows.any():
            raise RiskError("eps is a covariate, but no arm that can be fitted has one; leave it out")
        if not rows.all():
            without = ", ".join(sorted(set(durations.arms) - sized))
            notes.append(
                f"Left out of the fit, as they have no eps: {counted(int((~rows).sum()), 'row')} of {without}."
            )
        kept = durations.of_arms(sorted(sized))
        if len(norms := sorted({str(durations.arms[arm]["norm"]) for arm in sized})) > 1:
            notes.append(f"eps is one covariate here, though it is measured in {' and '.join(norms)}: name one norm.")
    columns = {**kept.columns, **{name: _column(kept, name) for name in names}}
    return replace(kept, columns=columns), notes


def default_covariates(durations: Durations) -> list[str]:
    """The covariates that vary and are identifiable: of eps, the model, the attack, its norm and objective."""
    sizes = {row["eps"] for row in durations.arms.values() if row["eps"] is not None}
    names = ["eps"] if len(sizes) > 1 else []
    arms = [row for row in durations.arms.values() if not names or row["eps"] is not None]
    cells = [(model, row) for model in durations.models for row in arms]
    design = [np.ones((len(cells), 1)), *_coded([row["eps"] for _, row in cells] if names else [])]
    for name, field in (("model", "model"), ("attack", "family"), ("norm", "norm"), ("objective", "objective")):
        values = [model if name == "model" else row[field] for model, row in cells]
        if None in values or len(set(values)) == 1:
            continue
        wider = np.hstack([*design, *(added := _coded(values))])
        if np.linalg.matrix_rank(wider) == wider.shape[1]:
            names, design = [*names, name], [*design, *added]
    return names


def _coded(values: Sequence[Any]) -> list[NDArray[np.float64]]:
    """Design columns: one for numbers, one for each level but the first for text; none without values."""
    if not values or isinstance(values[0], float):
        return [np.array(values, dtype=np.float64)[:, None]] if values else []
    return [np.array([[value == level] for value in values], dtype=np.float64) for level in sorted(set(values))[1:]]


def default_reference(
    durations: Durations, names: Sequence[str], stated: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """The stated reference levels, with the undefended model for `defence`, and notes on unused ones."""
    available = available_covariates(durations)
    for name in stated:
        if name not in names and name not in available:
            raise RiskError(f"reference names {name!r}, which is not a covariate; {did_you_mean(name, available)}")
    reference = {name: str(level) for name, level in stated.items() if name in names}
    unused = [name for name in stated if name not in names]
    for name in names:
        plain = PLAIN_LEVELS.get(name.removeprefix(_TAGS))
        if plain is not None and name not in reference and plain in durations.columns[name].tolist():
            reference[name] = plain
    return reference, [f"{name} is not a covariate of this fit, so its reference is unused." for name in unused]


def of_model(durations: Durations, model: str, names: Sequence[str]) -> dict[str, Any]:
    """The values of the covariates that are properties of the model."""
    rows = durations.of_model(model)
    tags = {tag for facts in durations.facts.values() for tag in facts.tags}
    own = [name for name in names if name in OF_MODEL or name.removeprefix(_TAGS) in tags - set(OF_ARM)]
    return {name: durations.columns[name][rows][0] for name in own if rows.any()}


def available_covariates(durations: Durations) -> list[str]:
    """Every name that a fit may use."""
    tags = [tag for facts in durations.facts.values() for tag in facts.tags]
    strata = [name for sample in durations.samples.values() for name in sample]
    return list(dict.fromkeys([*OF_ARM, *OF_MODEL, CLASS, *tags, *strata]))


def refuse_outcome(name: str) -> None:
    """Refuse a covariate that comes from the outcome: it would explain durations by themselves."""
    if name.lower().replace("-", "_") in _OUTCOMES:
        raise RiskError(
            f"{name} is not a covariate: it comes from the outcome of the attack, so it would explain durations by "
            "themselves; name a property that precedes the attack, such as eps, model, a tag or a stratum"
        )


def _column(durations: Durations, name: str) -> RowValues:
    """The value of one covariate for each row."""
    if name in OF_ARM:
        return _of_arm(durations, name)
    if name in OF_MODEL:
        return _of_model(durations, name)
    if not name.startswith(_STRATA) and any(name.removeprefix(_TAGS) in one.tags for one in durations.facts.values()):
        return _values_by_key(durations.columns["model"], _tags(durations, name.removeprefix(_TAGS)), name)
    own = name.removeprefix(_STRATA)
    if any(own in sample for sample in durations.samples.values()):
        values = {sample: strata.get(own) for sample, strata in durations.samples.items()}
        values = {sample: None if value is None else str(value) for sample, value in values.items()}
        return _values_by_key(durations.columns["sample"], values, name)
    raise RiskError(f"no covariate is called {name!r}; {did_you_mean(name, available_covariates(durations))}")


def _of_arm(durations: Durations, name: str) -> RowValues:
    if name == "arm":
        return durations.columns["arm"]
    if name == ATTACK_STRENGTH:
        return _values_by_key(durations.columns["arm"], attack_strengths(durations), name)
    field = "family" if name == "attack" else name
    return _values_by_key(durations.columns["arm"], {arm: row[field] for arm, row in durations.arms.items()}, name)


def _of_model(durations: Durations, name: str) -> RowValues:
    if name == "model":
        return durations.columns["model"]
    if name == DEFENCE_STRENGTH:
        return _values_by_key(durations.columns["model"], defence_strengths(durations), name)
    values = {model: getattr(facts, name) for model, facts in durations.facts.items()}
    remedy = {
        "inference_s": "run the clean arm again with this version",
        "clean_accuracy": "let the clean arm run",
        "train_cost": "state `train_cost` of the model in the study",
    }.get(
        name,
        f"state `{name.removesuffix('_per_sample')}` of the model in the study, train it with `advrisk train`, which "
        "keeps that beside the weights, or leave this covariate out",
    )
    return _values_by_key(durations.columns["model"], values, name, remedy)


def _tags(durations: Durations, tag: str) -> Mapping[str, Any]:
    """A tag of every model: numbers if all are, else text. A model without a defence has the defence `none`."""
    absent = PLAIN_LEVELS.get(tag)
    values = {model: facts.tags.get(tag, absent) for model, facts in durations.facts.items()}
    if all(isinstance(value, bool | int | float) for value in values.values() if value is not None):
        return values
    return {model: None if value is None else str(value) for model, value in values.items()}


def _values_by_key(column: RowValues, values: Mapping[str, Any], name: str, remedy: str = "") -> RowValues:
    present = dict.fromkeys(column.tolist())
    if without := [key for key in present if values.get(key) is None]:
        advice = remedy or "give it one, or leave this covariate out"
        some = f"{', '.join(without[:5])}{' …' if len(without) > 5 else ''} {'has' if len(without) == 1 else 'have'}"
        raise RiskError(f"{name} is a covariate, but {some} none; {advice}")
    numeric = all(isinstance(values[key], bool | int | float) for key in present)
    column_values = [float(values[key]) if numeric else str(values[key]) for key in column.tolist()]
    return np.array(column_values, dtype=np.float64 if numeric else object)
