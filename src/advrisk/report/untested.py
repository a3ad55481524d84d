"""What a run does not tell: kinds of attacks, norms, corruptions and splits that are missing, and rows that failed.

Everything here is read off the ledger and the study. It names what is missing, so that nobody takes silence for safety.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from advrisk.assess.context import assessment_named
from advrisk.assess.damage.walk import detectors_of
from advrisk.assess.findings import Findings
from advrisk.core.flags import FLAGS, flagged_text
from advrisk.core.names import counted
from advrisk.core.numbers import size_text
from advrisk.core.sections import summary_of
from advrisk.core.traits import DETECTOR, TRANSFER, Norm
from advrisk.ledger import Ledger
from advrisk.study import StudySpec, assessments

FEW = 30  # samples of a class or stratum, below which its numbers say little
_NAMED = 5  # things that a sentence names
_CAUSES = {"images": ("sensor", "noise", "weather"), "tables": ("table",)}

_ARMS = """
    SELECT a.arm, any_value(a.kind) AS kind, any_value(a.family) AS family, any_value(a.norm) AS norm,
           max(a.eps) AS eps, any_value(a.cause) AS cause, any_value(a.params) AS params, min(a.repeats) AS repeats,
           coalesce(any_value(o.n), 0)::BIGINT AS n, any_value(o.n_forward) AS n_forward,
           any_value(o.n_backward) AS n_backward
    FROM arms a LEFT JOIN (
        SELECT arm, count(*) AS n, sum(n_forward) AS n_forward, sum(n_backward) AS n_backward FROM outcomes
        WHERE sample IN (SELECT sample FROM samples WHERE split = 'evaluate') GROUP BY arm
    ) o ON o.arm = a.arm
    WHERE a.origin IN ('study', 'import') AND a.kind <> 'clean'
    GROUP BY a.arm ORDER BY a.arm
"""
_FAILED = """
    SELECT model, arm, count(*) AS n FROM outcomes JOIN samples USING (sample)
    WHERE split = 'evaluate' AND outcome IN ('error', 'timeout') GROUP BY ALL ORDER BY n DESC, model, arm
"""
_CLASSES = "SELECT label, count(*) AS n FROM samples WHERE split = 'evaluate' GROUP BY ALL ORDER BY label"
_STRATA = "SELECT strata FROM samples WHERE split = 'evaluate' AND strata <> '{}'"


@dataclass(frozen=True)
class ArmFacts:
    """What is known of one arm of the study, over all models."""

    arm: str
    kind: str
    family: str | None
    norm: str | None
    eps: float | None
    cause: str | None
    params: Mapping[str, Any]
    repeats: int
    n: int  # rows
    n_forward: int | None  # None where nobody counted
    n_backward: int | None

    @property
    def transferred(self) -> bool:
        """Whether its points were crafted on another model."""
        return self.family == TRANSFER

    @property
    def adaptive(self) -> bool:
        """Whether it knows a detector."""
        return self.params.get(DETECTOR) is not None

    @property
    def at_random(self) -> bool:
        """Whether it begins at a random point, once."""
        return bool(self.params.get("random_start")) and self.params.get("restarts", 1) == 1 and self.repeats == 1


def not_tested(ledger: Ledger, study: StudySpec | None, found: Findings) -> list[str]:
    """Sentences on what is missing, the weightiest first; each is true of this very run."""
    arms = arm_facts(ledger)
    attacks = [arm for arm in arms if arm.kind == "attack"]
    return [
        *_on_rest(found),
        *_on_attacks(attacks, detectors=bool(detectors_of(ledger))),
        *_on_corruptions([arm for arm in arms if arm.kind == "corruption"], _shape(ledger)),
        *_on_deployment(study),
        *_on_questions(ledger, found),
        *_on_failed(ledger),
        *_on_flags(found.flags),
        *_on_few(ledger),
    ]


def _on_rest(found: Findings) -> list[str]:
    """Samples that a run which stopped early did not come to."""
    state = found.stopping
    if state is None or not state.rests:
        return []
    left = state.n_samples - state.n_samples_run
    return [
        f"{left:,} of the {state.n_samples:,} samples to evaluate, as the run stopped early: no number here knows them."
    ]


def arm_facts(ledger: Ledger) -> list[ArmFacts]:
    """The study's attacks and corruptions."""
    rows = ledger.query(_ARMS).to_pylist()
    return [ArmFacts(**row | {"params": _mapping(row["params"]), "repeats": row["repeats"] or 1}) for row in rows]


def _mapping(text: str | None) -> dict[str, Any]:
    found = json.loads(text) if text else {}
    return found if isinstance(found, dict) else {}


def _on_attacks(attacks: Sequence[ArmFacts], *, detectors: bool) -> list[str]:
    if not attacks:
        return ["No attack was run: nothing is said of anybody who changes inputs on purpose."]
    return [*_on_norms(attacks), *_on_kinds(attacks, detectors=detectors), *_on_draws(attacks)]


def _on_norms(attacks: Sequence[ArmFacts]) -> list[str]:
    largest: dict[str, float | None] = {}
    for arm in attacks:
        if arm.norm is not None:
            known = largest.get(arm.norm, 0.0)
            largest[arm.norm] = None if known is None or arm.eps is None else max(known, arm.eps)
    missing = [norm for norm in get_args(Norm) if norm not in largest]
    if not largest:
        return ["No attack has a norm: nothing is said of the smallest change that is needed."]
    told = ", ".join(
        f"in {norm} {'without a limit' if eps is None else f'up to {size_text(eps)}'}"
        for norm, eps in sorted(largest.items())
    )
    other = f"; none was in {_either(missing)}" if missing else ""
    return [f"Attacks were {told}{other}. Changes of another shape or size were not tried."]


def _on_kinds(attacks: Sequence[ArmFacts], *, detectors: bool) -> list[str]:
    run = [arm for arm in attacks if arm.n]
    uncounted = [arm.arm for arm in run if arm.n_backward is None]
    told = []
    if unrun := [arm.arm for arm in attacks if not arm.n]:
        told.append(f"Attacks that have not run yet: {_some(unrun)}.")
    if uncounted:
        told.append(f"What some attacks saw of the models is not known, as nobody counted passes: {_some(uncounted)}.")
    if len(uncounted) == len(run):
        return told
    there = {
        "white-box (with gradients)": any(arm.n_backward and not arm.transferred for arm in run),
        "black-box (without gradients)": any(
            arm.n_forward and not arm.n_backward and not arm.transferred for arm in run
        ),
        "transfer (crafted on another model)": any(arm.transferred for arm in run),
    }
    if detectors:
        there["adaptive (one that knows a detector)"] = any(arm.adaptive for arm in run)
    missing = [kind for kind, found in there.items() if not found]
    beside = ", unless those are such" if uncounted else ""
    return [*told, f"Kinds of attack that are missing: {', '.join(missing)}{beside}."] if missing else told


def _on_draws(attacks: Sequence[ArmFacts]) -> list[str]:
    once = [arm for arm in attacks if arm.at_random]
    if not once:
        return []
    families = _some(dict.fromkeys(arm.family or arm.arm for arm in once))
    return [
        f"Of {counted(len(attacks), 'attack')}, {len(once)} began at one random point for each sample ({families}); "
        "another draw may break more."
    ]


def _on_corruptions(corruptions: Sequence[ArmFacts], kind: str) -> list[str]:
    known = _CAUSES.get(kind, ())
    if not corruptions:
        causes = f" ({_either(known)})" if known else ""
        return [f"No corruption was run{causes}: nothing is said of inputs that go bad by themselves."]
    missing = [cause for cause in known if cause not in {arm.cause for arm in corruptions}]
    families = list(dict.fromkeys(arm.family or arm.arm for arm in corruptions))
    return [f"Corruptions were {_some(families)} only; none of {_either(missing)}."] if missing else []


def _shape(ledger: Ledger) -> str:
    """What inputs are: `images`, `tables`, or unknown."""
    shapes = {len(row["input_shape"] or ()) for row in ledger.query("SELECT input_shape FROM models").to_pylist()}
    return "images" if shapes == {3} else "tables" if shapes == {1} else ""


def _on_deployment(study: StudySpec | None) -> list[str]:
    if study is not None and study.scenarios:
        return []
    return ["No scenario was stated: nothing is said of how often any of this happens where the model will work."]


def _on_questions(ledger: Ledger, found: Findings) -> list[str]:
    """What answers leave out, and what is not known without those that are missing."""
    left_out = [text for one in found.answered for text in summary_of(one.sections, "untested")]
    names = {one.name for one in found.answered}
    missing = [
        assessment_named(name).missing(ledger, found.why_not(name).rstrip("."))
        for name in assessments.built_in
        if name not in names
    ]
    return [*left_out, *filter(None, missing)]


def _on_failed(ledger: Ledger) -> list[str]:
    rows = ledger.query(_FAILED).to_pylist()
    if not rows:
        return []
    total = sum(row["n"] for row in rows)
    names = [f"{row['arm']} against {row['model']}: {row['n']:,}" for row in rows[:3]]
    more = f"; {len(rows) - 3} more" if len(rows) > 3 else ""
    return [f"{total:,} rows ended in an error or a timeout, and say nothing ({'; '.join(names)}{more})."]


def _on_flags(flags: Sequence[Mapping[str, Any]]) -> list[str]:
    """One sentence for each flag: which attacks may be blind."""
    by_flag: dict[str, list[Mapping[str, Any]]] = {}
    for row in flags:
        by_flag.setdefault(str(row["flag"]), []).append(row)
    told = []
    for flag, rows in by_flag.items():
        pairs = _some([f"{row['arm']} against {row['model']}" for row in rows], 2)
        told.append(f"{flag}: {FLAGS.get(flag, 'do not trust it')} ({flagged_text(rows)}: {pairs}).")
    return told


def _on_few(ledger: Ledger) -> list[str]:
    few = [f"class {row['label']} ({row['n']})" for row in ledger.query(_CLASSES).to_pylist() if row["n"] < FEW]
    counts = Counter(
        (str(name), str(value))
        for row in ledger.query(_STRATA).to_pylist()
        for name, value in _mapping(row["strata"]).items()
    )
    few += [f"{name} = {value} ({n})" for (name, value), n in sorted(counts.items()) if n < FEW]
    return [f"Fewer than {FEW} samples, so that little can be said of them: {_some(few)}."] if few else []


def _some(names: Iterable[str], most: int = _NAMED) -> str:
    """A few names, and how many more there are."""
    every = list(names)
    more = [f"{len(every) - most} more"] if len(every) > most else []
    return ", ".join(every[:most] + more)


def _either(names: Sequence[str]) -> str:
    """`l0, l1 or l2`."""
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else list(names))
