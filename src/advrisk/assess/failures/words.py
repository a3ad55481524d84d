"""Failure modes in words: how much a branch matters, and what became of a sample."""

from advrisk.assess.failures.modes import Failure, FailureMode, FailureModes
from advrisk.assess.indicators.words import loss_interval
from advrisk.core.labels import NUMBERED, Labels
from advrisk.core.names import counted
from advrisk.core.numbers import percent_text
from advrisk.risk.indicators.tensor import CLEAN

_NEARLY = 0.995


def headline(found: FailureModes) -> str:
    """What hurts the model with the least risk most."""
    if not found.modes:
        return f"No branch of the scenario {found.scenario} has a loss."
    mode = found.modes[0]
    hurt = f"{mode.n_hurt} of {counted(mode.n, 'sample')} fail there"
    if mode.share is None:
        return f"In the scenario {found.scenario}, {mode.model} is hurt most by {branch_name(mode)}: {hurt}."
    share = percent_text(mode.share)
    return (
        f"In the scenario {found.scenario}, {share} of the risk of {mode.model} comes from {branch_name(mode)}: {hurt}."
    )


def branch_name(mode: FailureMode) -> str:
    """`wet.rain`, or what is said of no branch at all."""
    return "clean inputs" if mode.path == CLEAN else mode.path


def heading(mode: FailureMode, found: FailureModes) -> str:
    """`wet.rain: 40 % of the risk`."""
    risk = loss_interval(mode.value, found.bounds)
    if mode.share is None:
        return f"{branch_name(mode)}: mean loss {risk}"
    return f"{branch_name(mode)}: {percent_text(mode.share)} of the risk, mean loss {risk}"


def explanation(mode: FailureMode) -> str:
    """How many samples it concerns."""
    told = f"{mode.n_hurt} of {counted(mode.n, 'sample')} have a loss here"
    if mode.path == CLEAN or mode.path.endswith(f".{CLEAN}"):
        return f"{told}, though nothing was done to them."
    return f"{told}, {mode.n_made_worse} of them a larger one than without it; these come first."


def caption(failure: Failure, labels: Labels = NUMBERED) -> str:
    """`7 read as 1, 98 %`, or `cat read as dog, 98 %`."""
    label = "" if failure.label is None else f"{labels.class_name(failure.label)} "
    if failure.outcome == "rejected":
        return f"{label}refused"
    read = "something else" if failure.prediction is None else labels.class_name(failure.prediction)
    said = f"{label}read as {read}"
    if failure.label is not None and failure.prediction == failure.label:
        said = f"{label}read correctly"
    return said if failure.confidence is None else f"{said}, {_sure(failure.confidence)}"


def _sure(confidence: float) -> str:
    """Never 100 % where it was not."""
    return "> 99 %" if _NEARLY < confidence < 1 else percent_text(confidence)
