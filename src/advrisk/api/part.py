"""A part of a run, or the run asked something else than its study asks: the same answers, of that."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from advrisk.assess.damage.distances import chosen_arms
from advrisk.core.numbers import size_text
from advrisk.ledger.views import AnyWhere, View, restricted

if TYPE_CHECKING:
    from advrisk.api.run import Run

_OF_DAMAGE = ("evasion", "detector", "cost")  # who gives one of these asks for damage
_WORDS = {
    "norm": "Norm asked for",
    "arms": "Attacks asked for",
    "thresholds": "Sizes asked for",
    "evasion": "Evasion asked for",
    "detector": "Detector asked for",
    "cost": "Cost of one damage asked for",
}


def part_of(
    run: "Run",
    *,
    models: Sequence[str] | str | None = None,
    where: AnyWhere | None = None,
    asked: Mapping[str, Any] | None = None,
) -> "Run":
    """The run with these models and samples only, asked with these options; the run itself if nothing is given."""
    given = {name: value for name, value in (asked or {}).items() if value is not None}
    if models is None and where is None and not given:
        return run
    if given.get("arms"):
        chosen_arms(run.ledger, given["arms"])  # a name that no arm has is a mistake, not a question without an answer
    ledger, view = run.ledger, run.view
    if models is not None or where is not None:
        ledger, view = restricted(run.ledger, models, where)
        view = _within(run.view, view)
    part = type(run)(run.folder, ledger, run.study, run.url)
    part.stopping, part.decision_level = run.stopping, run.decision_level
    part.view, part.asked, part.whole = view, {**run.asked, **given}, run.whole or run
    return part


def _within(outer: View, inner: View) -> View:
    """A part of a part."""
    return View(
        models=outer.models if inner.models is None else inner.models,
        where={**outer.where, **inner.where},
        n_models=outer.n_models or inner.n_models,
        n_samples=inner.n_samples if inner.where else outer.n_samples,
        n_samples_of=outer.n_samples_of or inner.n_samples_of,
    )


def asked_words(asked: Mapping[str, Any]) -> dict[str, str]:
    """What was asked in place of the study's question, for people."""
    return {_WORDS[name]: _text(name, value) for name, value in asked.items() if name in _WORDS}


def asks_for_damage(run: "Run") -> bool:
    """Whether something was asked that only damage answers, which then leads."""
    return any(name in run.asked for name in _OF_DAMAGE)


def _text(name: str, value: Any) -> str:
    if name == "thresholds":
        return ", ".join(size_text(size) for size in value)
    if name == "detector":
        limit = f"threshold {value['threshold']}" if value.get("threshold") is not None else "false alarms "
        return f"{value['name']}, {limit}{'' if value.get('false_alarms') is None else value['false_alarms']}"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:,.10g}" if isinstance(value, float | int) else str(value)
