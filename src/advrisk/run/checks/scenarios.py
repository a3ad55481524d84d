"""Losses and scenarios of a study, checked before anything runs: a refusal must not come after all the work."""

from collections.abc import Sequence

import numpy as np

from advrisk.core.errors import AdvriskError, StudyError
from advrisk.core.mistakes import Mistakes
from advrisk.core.registries import Registries
from advrisk.core.traits import gives
from advrisk.parts.data import Dataset
from advrisk.plan import ModelCard, entry_for
from advrisk.risk.indicators import MissingArmsError, RiskTensor, Scenario, scenario_risk
from advrisk.risk.losses import bound_losses
from advrisk.study import Arm, Loc, StudySpec


def refuse_losses(study: StudySpec, models: Sequence[ModelCard], arms: Sequence[Arm]) -> None:
    """Losses that are unknown, that lack something, that need more than a model says, or than attacks ask."""
    if not study.losses:
        return
    mistakes = Mistakes()
    for place in range(len(study.losses)):
        with mistakes.collect(), study.where.at(("losses", place)):
            _check_loss(study, place, models)
            _refuse_unasked(study, place, arms)
    mistakes.refuse()
    with study.where.at(("losses",)):
        bound_losses(study.loss_entries(), folder=study.where.folder)


def _check_loss(study: StudySpec, place: int, models: Sequence[ModelCard]) -> None:
    for model in models:
        if model.surrogate:
            continue
        entry = study.loss_entries()[place]
        (loss,) = bound_losses([entry], folder=study.where.folder, n_classes=model.n_classes)
        if not gives(model.capability, loss.needs):
            raise AdvriskError(
                f"{loss.label} needs {loss.needs} of a model, but {model.name} gives {model.capability} only"
            )


def _refuse_unasked(study: StudySpec, place: int, arms: Sequence[Arm]) -> None:
    """A loss that asks whether the answer changed, where attacks leave alone what is wrong already."""
    (loss,) = bound_losses([study.loss_entries()[place]], folder=study.where.folder)
    attacks = [arm.id for arm in arms if arm.kind == "attack"]
    if not loss.of_change or study.criterion == "prediction" or not attacks:
        return
    success = "`success: label`" if study.criterion == "label" else "a target (`success`)"
    raise AdvriskError(
        f"{loss.label} asks whether the answer stays as it was, but with {success} an attack such as {attacks[0]} "
        "leaves alone every sample that is wrong already, and would count it as unchanged; write "
        "`success: prediction`, or leave out the loss or the attacks"
    )


def refuse_scenarios(
    study: StudySpec, arms: Sequence[Arm], data: Dataset, rows: Sequence[int], registries: Registries
) -> None:
    """Scenarios that are no trees of likelihoods, or speak of arms or strata that the study does not have."""
    if not study.scenarios:
        return
    nothing, mistakes = _empty_tensor(arms, data, rows), Mistakes()
    for name, tree in study.scenarios.items():
        try:
            scenario_risk(nothing, Scenario.from_mapping(name, tree)).total()
        except MissingArmsError as error:
            entries = [entry for name in error.names if (entry := entry_for(name, registries))]
            remedy = f"; add to `arms`: {' and '.join(entry for entry, _ in entries)}" if entries else ""
            mistakes.add(_complaint(study, f"{error}{remedy}"))
        except AdvriskError as error:
            mistakes.add(_complaint(study, str(error)))
    mistakes.refuse()


def refuse_malformed_scenarios(study: StudySpec) -> None:
    """Scenarios that are no trees of likelihoods, whatever arms and samples there are."""
    mistakes = Mistakes()
    for name, tree in study.scenarios.items():
        try:
            Scenario.from_mapping(name, tree)
        except AdvriskError as error:
            mistakes.add(_complaint(study, str(error)))
    mistakes.refuse()


def _empty_tensor(arms: Sequence[Arm], data: Dataset, rows: Sequence[int]) -> RiskTensor:
    """A tensor without losses in it, of these arms and samples."""
    index = np.asarray(rows, dtype=np.int64)
    return RiskTensor.from_arrays(
        np.zeros((len(index), len(arms))),
        arms=[arm.shown for arm in arms],
        kind=[arm.kind for arm in arms],
        family=[arm.family for arm in arms],
        cause=[arm.cause for arm in arms],
        samples=[data.ids[row] for row in rows],
        label=data.y[index],
        weight=None if data.weights is None else data.weights[index],
        strata={name: [str(values[row]) for row in rows] for name, values in data.strata.items()},
    )


def _complaint(study: StudySpec, message: str) -> StudyError:
    """With the line of the field that it begins with: its path is written with dots, and names may hold dots, too."""
    written = {".".join(map(str, loc)): loc for loc in study.where.lines if loc[:1] == ("scenarios",)}
    named = f"scenarios.{message}"
    loc: Loc = max((loc for path, loc in written.items() if named.startswith(path)), key=len, default=("scenarios",))
    return study.where.error_at(loc, named)
