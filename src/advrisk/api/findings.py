"""Everything a run answers, gathered for its report: what cannot be answered leaves the rest as it is."""

from typing import TYPE_CHECKING

from advrisk.api.part import asked_words, asks_for_damage
from advrisk.assess.context import Context, assessment_named
from advrisk.assess.findings import Findings
from advrisk.assess.protocol import Finding, ask
from advrisk.core.sections import Unanswered
from advrisk.study import assessments

if TYPE_CHECKING:
    from advrisk.api.run import Run


def run_findings(run: "Run", context: Context) -> Findings:
    """All assessments as the study asks for them."""
    status = context.status
    names = [*assessments.built_in, *(run.study.assess.brought if run.study else ())]
    found = {name: page_finding(context, name) for name in names}
    return Findings(
        answers={name: one for name, one in found.items() if one is not None},
        flags=context.flags,
        models=context.models,
        unfinished="" if status.done else status.so_far,
        scenarios_stated=context.scenarios_stated,
        by_damage=asks_for_damage(run),
        view=run.view,
        asked=asked_words(run.asked),
        arms=run.asked.get("arms"),
        stopping=run.stopping,
    )


def not_installed(name: str) -> Unanswered:
    """A study asks it, and the package that answers is not here."""
    return Unanswered(f"no installed package brings the assessment {name}", "install it")


def page_finding(context: Context, name: str) -> Finding | Unanswered | None:
    """The finding of a question as the page asks it; why there is none, or None where it is not asked."""
    if name not in assessments:
        return not_installed(name)
    options = assessment_named(name).asked(context.about(name))
    return options if isinstance(options, Unanswered) or options is None else ask(context, name, **options)
