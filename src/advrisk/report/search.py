"""Searches in words, for the terminal and the report."""

from collections.abc import Sequence
from typing import Any

from advrisk.core.names import counted
from advrisk.core.palette import Plot
from advrisk.ledger.searches import SearchRecord, fruitless_words
from advrisk.report.search_figures import setting_text, surface, trajectory

ON_SEARCHES = (
    "Failures are counted on the samples to tune on: a sample fails when it is right clean and wrong attacked. The "
    "worst settings were picked because they look worst here, so their share of failures is no estimate of a risk; "
    "that comes from samples that no search saw."
)


def search_words(one: SearchRecord) -> str:
    """What a search did and found, in a sentence or two."""
    n_rounds = f"{one.n_rounds_done} of {counted(one.n_rounds, 'round')}"
    done = "" if one.finished else f" It is not finished: {n_rounds}."
    tried = f"{counted(len(one.trials), 'setting')} tried by {one.method}"
    if waiting := sum(not trial.n and not trial.n_errors for trial in one.trials):
        tried += f", {waiting} of them not run yet"
    worst = one.worst
    if worst is None or not worst.n:
        return f"{tried}.{_on_errors(one)}{done}"
    found = f"the worst, {setting_text(worst)}, breaks {worst.failures} of {worst.n} samples"
    return f"{tried}; {found}.{_on_ties(one)}{_on_errors(one)}{done}"


def _on_ties(one: SearchRecord) -> str:
    """Settings that are as bad as the worst, and which of them is frozen."""
    if one.fruitless:
        told = fruitless_words([one])
        return f" {told[0].upper()}{told[1:]}"
    if one.n_worst < 2:
        return ""
    tied = f" {counted(one.n_worst - 1, 'other setting')} tried " + ("breaks" if one.n_worst == 2 else "break")
    return f"{tied} as large a share: of equals, those nearest to the attack's own default setting are frozen first."


def _on_errors(one: SearchRecord) -> str:
    """Flags the settings of which not everything is known."""
    flagged = sorted((trial for trial in one.trials if trial.n_errors), key=lambda trial: (-trial.n_errors, trial.arm))
    if not flagged:
        return ""
    most = f"most of them {setting_text(flagged[0])}, on {counted(flagged[0].n_errors, 'sample')}"
    return (
        f" {counted(len(flagged), 'setting')} ended on some samples with an error or a timeout, {most}: these count "
        "neither as broken nor as held here, and as broken in a certificate. Allow more time, or mend the attack."
    )


def search_content(searches: Sequence[SearchRecord]) -> dict[str, Any]:
    """What the template shows of searches; nothing where there are none."""
    figures: dict[str, Plot] = {}
    told = []
    for place, one in enumerate(searches):
        own = {f"search {place} {n}": figure for n, figure in enumerate([trajectory(one), *surface(one)])}
        figures |= own
        frozen = [trial for trial in one.trials if trial.frozen]
        told.append({"label": one.label, "words": search_words(one), "frozen": frozen, "figures": list(own)})
    return {
        "searches": told,
        "search_figures": figures,
        "on_searches": ON_SEARCHES,
        "setting_text": setting_text,
    }
