"""Which attacks earn their passes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from advrisk.assess.attacks.envelope import ArmComparison, arm_optimality
from advrisk.assess.attacks.sections import sections
from advrisk.assess.context import Context
from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.protocol import Assessment
from advrisk.core.sections import Section
from advrisk.study import assessments
from advrisk.study.assess import AttacksSpec


@assessments.register("attacks")
class Attacks(Assessment):
    """Each arm against the smallest distances that all arms found together."""

    kind = ArmComparison

    def assess(self, context: Context, spec: AttacksSpec) -> ArmComparison:
        """In the norm and of the arms of damage, where no others are asked for."""
        return arm_optimality(context.ledger, norm=spec.norm or context.norm, arms=spec.arms or context.arms)

    def asked(self, context: Context) -> Mapping[str, Any] | None:
        """Wherever damage has an answer."""
        return {} if isinstance(context.attempt("damage"), DamageAssessment) else None

    def sections(self, result: ArmComparison, models: Sequence[str]) -> Iterable[Section]:
        """Every arm, the most useful first."""
        return sections(result, models)
