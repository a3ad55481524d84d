"""Whether there are enough samples: how damage, attack success rates and distances settle as samples are added."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from advrisk.assess.context import Context
from advrisk.assess.convergence.sections import sections
from advrisk.assess.damage.assessment import DamageAssessment, assessed_convergence
from advrisk.assess.protocol import Assessment
from advrisk.core.sections import Section
from advrisk.core.seeds import generator
from advrisk.risk.convergence import Convergence
from advrisk.study import assessments
from advrisk.study.assess import ConvergenceSpec


@assessments.register("convergence")
class Settling(Assessment):
    """How damage, attack success rates and distances settle as samples are added."""

    kind = Convergence

    def assess(self, context: Context, spec: ConvergenceSpec) -> Convergence:
        """Of damage as it is asked for."""
        rng = generator("convergence", context.seed)
        return assessed_convergence(context.result("damage"), points=spec.points, resamples=spec.resamples, rng=rng)

    def asked(self, context: Context) -> Mapping[str, Any] | None:
        """Wherever damage compares models."""
        found = context.attempt("damage")
        return {} if isinstance(found, DamageAssessment) and found.comparison else None

    def sections(self, result: Convergence, models: Sequence[str]) -> Iterable[Section]:
        """Damage first, then the other numbers."""
        return sections(result, models)
