"""What is said of a survival law: which family was taken, and what "broken" means."""

from advrisk.risk.survival.choice import FamilyChoice

ON_BROKEN = (
    "A model is called broken where training on one sample took at least {factor:g} times as long as breaking one "
    "does, also if the fitted law is followed beyond where attacks gave up, and both intervals say so."
)


def choice_text(found: FamilyChoice) -> str:
    """By how much a family is ahead, and whether that decides."""
    by = f"ahead of {found.runner_up} by {found.margin.value:.3g} (standard error {found.standard_error:.2g})"
    verdict = found.family if found.decided else f"undecided; {found.family}"
    return f"{verdict}: {by} in log-likelihood of what was held out"
