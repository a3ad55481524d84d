"""Before finished cells are reused: does each model still answer the study's own samples as recorded?

The digest holds weights, printed architecture and answers to 8 fixed inputs. A forward that changed elsewhere, on dark
images say, has the same one. So a model that the ledger holds finished cells of is asked about their clean inputs.
"""

from collections.abc import Iterator, Sequence, Set

from advrisk.core.errors import AdvriskError, StudyError
from advrisk.core.names import counted
from advrisk.engine import Model
from advrisk.ledger import Ledger
from advrisk.plan import Plan
from advrisk.run.identity.asking import ask_again
from advrisk.run.identity.comparing import AnswerComparison
from advrisk.run.identity.recorded import RecordedShard, recorded_shards
from advrisk.run.workbench import Workbench

MOST_SAMPLES = 1000
MOST_QUERIED = 200  # of a model that may charge for queries
_REMEDY = (
    "cells of two models must not mix: undo the change, give the changed model another name, or choose another folder "
    "(--out)"
)


def refuse_changed_models(bench: Workbench, plan: Plan, ledger: Ledger) -> tuple[str, ...]:
    """Refuse models that answer otherwise than their finished cells say; returns notes on source files that changed.

    Whole shards are asked about, in the order of their content hashes, until `MOST_SAMPLES` are reached; all of them
    where the source files of a model changed.
    """
    known = {row["model"]: row for row in ledger.query("SELECT model, digest, source_digest FROM models").to_pylist()}
    finished = set(ledger.query("SELECT DISTINCT recipe::VARCHAR AS recipe FROM all_cells")["recipe"].to_pylist())
    refused, notes = [], []
    for name, model in bench.material.models.items():
        shards = _finished(name, plan, ledger, finished)
        if not shards:
            continue
        before = known.get(name, {})
        is_edited = before.get("digest") == model.digest and _is_edited(before.get("source_digest"), model)
        asked = list(_some(shards, model, every=is_edited))
        with bench.containment.around(name):
            found = ask_again(model, asked, ledger, bench.material, seed=bench.study.seed)
        if found.differs:
            refused.append(_error(bench, name, f"{_otherwise(found, edited=is_edited)}; {_REMEDY}"))
        elif is_edited:
            notes.append(str(_error(bench, name, _edited(found))))
    if refused:
        raise StudyError("\n".join(map(str, refused)))
    return tuple(notes)


def _finished(name: str, plan: Plan, ledger: Ledger, recipes: Set[str]) -> list[RecordedShard]:
    """The shards with finished cells that the plan would reuse: clean ones, or of a surrogate those of an attack."""
    arms = sorted((arm for model, arm in plan.attempts if model == name), key=lambda arm: arm.kind != "clean")
    reused = next((plan.recipes[name, arm.id] for arm in arms if plan.recipes[name, arm.id] in recipes), None)
    return [] if reused is None else recorded_shards(ledger, reused)


def _some(shards: Sequence[RecordedShard], model: Model, *, every: bool) -> Iterator[RecordedShard]:
    is_cheap = model.capability == "gradients"
    left = MOST_SAMPLES if is_cheap else MOST_QUERIED
    for shard in shards:
        if left > 0 or (every and is_cheap):
            yield shard
        left -= len(shard.samples)


def _is_edited(before: str | None, model: Model) -> bool:
    return before is not None and model.source_digest is not None and before != model.source_digest


def _otherwise(found: AnswerComparison, *, edited: bool) -> str:
    source = "its source files changed since" if edited else "though weights, layers and source files are the same"
    return (
        f"answers {counted(len(found.others), 'clean sample')} of {found.n} otherwise than its finished cells say "
        f"({source}); {found.shown}"
    )


def _edited(found: AnswerComparison) -> str:
    if not found.n:
        return "its source files changed since its cells were finished, and no answers could be compared"
    return (
        f"its source files changed since its cells were finished; its answers to {counted(found.n, 'clean sample')} "
        "are the same, so the cells stand"
    )


def _error(bench: Workbench, name: str, message: str) -> AdvriskError:
    if name in bench.study.models:
        return bench.study.where.error(("models", name), message)
    return bench.study.where.error(("defences",), f"{name} {message}")
