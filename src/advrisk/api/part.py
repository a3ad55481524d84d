"""A part of a run, or the run asked something else than its study asks: the same answers, of that."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from advrisk.assess.damage.distances import chosen_arms
from advrisk.core.numbers import size_text
from advrisk.ledger.views import AnyWhere, View, restricted
from advrisk.study import DamageSpec

if TYPE_CHECKING:
    from advrisk.api.run import Run

ON_CERTIFICATES = (
    "a certificate holds for its frozen attacks on the whole calibration split, so a filter of samples does not apply"
)
_CHECKS = "`advrisk gate RUN` checks it"
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


def why_no_gate(run: "Run") -> str:
    """Why the study's requirements are not checked on what is asked; empty where they are."""
    own = run.study.assess.damage if run.study else DamageSpec()
    if run.view or ("arms" in run.asked and (states_scenarios(run) or not _same_arms(run, own.arms))):
        return f"it holds for all models, samples and attacks of the study, and this is a part; {_CHECKS}"
    if run.asked.get("norm", own.norm) != own.norm:
        return f"the study asks about {own.norm}, and this about {run.asked['norm']}; {_CHECKS}"
    return f"the study does not ask with this detector; {_CHECKS}" if "detector" in run.asked else ""


def _same_arms(run: "Run", own: Sequence[str] | None) -> bool:
    """Whether the attacks that were asked for are those of the study's own question."""
    asked, stated = ({row["arm"] for row in chosen_arms(run.ledger, one)} for one in (run.asked["arms"], own))
    return asked == stated


def states_scenarios(run: "Run") -> bool:
    """Whether the study describes deployments, which then lead."""
    return bool(run.study and run.study.scenarios)


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
