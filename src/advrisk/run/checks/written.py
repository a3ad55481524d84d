"""What is wrong in a study as it is written: checked against the registries before data and models are loaded."""

from collections.abc import Callable
from typing import TypeVar

from advrisk.assess.protocol import check_assessments
from advrisk.core.mistakes import Mistakes
from advrisk.core.registries import Registries
from advrisk.plan import (
    ModelCard,
    expand_arms,
    expand_defences,
    expand_detectors,
    expand_measures,
    expand_searches,
    names_of,
)
from advrisk.run.checks.gate import refuse_gate
from advrisk.run.checks.scenarios import refuse_malformed_scenarios
from advrisk.run.loading import OBJECT
from advrisk.study import StudySpec

Expanded = TypeVar("Expanded")


def refuse_miswritten(study: StudySpec, registries: Registries) -> None:
    """Refuse all mistakes in names and settings, requirements and scenarios that need no data and no model."""
    mistakes = Mistakes()

    def checked(expand: Callable[[], Expanded]) -> Expanded | None:
        with mistakes.collect():
            return expand()
        return None

    checked(lambda: check_assessments(study))
    checked(lambda: _bind_sources(study, registries))
    checked(lambda: expand_measures(study, registries))
    checked(lambda: expand_searches(study, registries, [ModelCard("any", "", "gradients", 0)]))
    checked(lambda: refuse_malformed_scenarios(study))
    defended = checked(lambda: expand_defences(study, registries))
    detectors = checked(lambda: expand_detectors(study, registries))
    if defended is not None and detectors is not None:  # arms may name both
        arms = checked(lambda: expand_arms(study, registries, names_of(detectors)))
        if arms is not None:
            assessed = [name for name, spec in study.models.items() if not spec.surrogate]
            assessed += [one.name for one in defended if not one.surrogate]
            checked(lambda: refuse_gate(study, assessed, arms, detectors, refuses=True))
    mistakes.refuse()


def _bind_sources(study: StudySpec, registries: Registries) -> None:
    """The sources of data and models, with their settings."""
    mistakes = Mistakes()
    with mistakes.collect(), study.where.at(("data",)):
        registries.data.get(study.data.source).bind(study.data.params, folder=study.where.folder)
    for name, spec in study.models.items():
        if spec.source != OBJECT:
            with mistakes.collect(), study.where.at(("models", name)):
                registries.models.get(spec.source).bind(
                    spec.params, folder=study.where.folder, beside=type(spec).model_fields
                )
    mistakes.refuse()
