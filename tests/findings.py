"""Findings of made-up results, for tests of what is made of them."""

from typing import Any

from advrisk.assess.findings import Findings
from advrisk.assess.protocol import finding_of
from advrisk.core.sections import Unanswered
from advrisk.study import assessments


def findings_of(**given: Any) -> Findings:
    """Findings of the results given by question, or why there are none; what else is given stands beside them."""
    models = given.get("models", ())
    asked = {name: given.pop(name) for name in assessments.built_in if name in given}
    answers = {
        name: one if isinstance(one, Unanswered) else finding_of(name, one, models) for name, one in asked.items()
    }
    return Findings(answers=answers | given.pop("answers", {}), **given)
