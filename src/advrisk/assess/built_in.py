"""The questions that advrisk answers itself: what each is called, and how its result is shown and measured."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from advrisk.assess.attacks import sections as attacks
from advrisk.assess.attacks.envelope import ArmComparison
from advrisk.assess.convergence import sections as convergence
from advrisk.assess.damage import sections as damage
from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.core.estimate import NamedEstimate
from advrisk.core.sections import Section
from advrisk.risk.convergence import Convergence


def _none(_: Any) -> Iterable[NamedEstimate]:
    return ()


@dataclass(frozen=True)
class Question:
    """How the result of a question is shown: `sections` takes it and the models of the run, in the order of colours."""

    title: str
    result: type
    sections: Callable[[Any, Sequence[str]], Iterable[Section]]
    quantities: Callable[[Any], Iterable[NamedEstimate]] = _none


# By name, in the order of the page.
QUESTIONS: Mapping[str, Question] = {
    "damage": Question(damage.TITLE, DamageAssessment, damage.sections, damage.quantities),
    "convergence": Question(convergence.TITLE, Convergence, convergence.sections),
    "attacks": Question(attacks.TITLE, ArmComparison, attacks.sections),
}
