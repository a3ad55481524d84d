"""Which inputs fail where a scenario hurts most."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from advrisk.assess.context import Context
from advrisk.assess.failures.exhibits import with_exhibits
from advrisk.assess.failures.modes import Exhibit, Failure, FailureMode, FailureModes, failure_modes
from advrisk.assess.failures.words import branch_name, caption, explanation, heading, headline
from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.indicators.question import named_losses, stated_losses
from advrisk.assess.indicators.words import loss_kind
from advrisk.assess.protocol import Assessment
from advrisk.core.labels import Labels
from advrisk.core.sections import (
    Cell,
    Column,
    Group,
    Headline,
    Picture,
    Pictures,
    Section,
    Table,
    Text,
    Value,
)
from advrisk.ledger import Ledger
from advrisk.ledger.layout import read_labels
from advrisk.risk.indicators.tensor import CLEAN
from advrisk.study import assessments
from advrisk.study.options import FailuresOptions

MAX_MODELS = 6  # whose failures the report shows, least risk first
SHOWN = 6  # samples of each branch in the report
_HOW = (
    "Inputs that models misclassify under the branches that contribute most to their risk. How to read this: left the "
    "clean input, right what became of it; below, its class, what it was read as and how sure the model was, then the "
    "arm that did it.",
    f"At most {MAX_MODELS} models are shown, least risk first. `advrisk show failures RUN --model MODEL --out "
    "sheet.png` makes a sheet of any other.",
)
_NOT_KEPT = (
    "Pictures are missing where the perturbed input was not kept: `keep_inputs: successful` keeps those that are "
    "misclassified, `keep_inputs: all` every one."
)
Exhibits = Mapping[Failure, Exhibit] | None


@assessments.register("failures")
class Failures(Assessment):
    """For each model the branches that contribute most to its risk, and the samples that each of them hurts most."""

    kind = FailureModes
    several = True

    def assess(self, context: Context, spec: FailuresOptions) -> tuple[FailureModes, ...]:
        """Of one scenario under one loss, by default the first of each; or of every one, for the page."""
        found = self._risks(context, spec)
        if spec.every:
            shown = [(one, [row.model for row in one.models[:MAX_MODELS]]) for one in found.results]
        else:
            shown = [(found.results[0], [] if spec.model is None else [spec.model])]
        modes = (
            failure_modes(context.ledger, one, found.tensors or {}, models=models, n=spec.samples)
            for one, models in shown
        )
        labels = read_labels(context.folder)
        return tuple(replace(one, labels=labels) for one in modes)

    def _risks(self, context: Context, spec: FailuresOptions) -> IndicatorAssessment:
        if spec.every:
            own: IndicatorAssessment = context.result("indicators")
            return own
        losses = named_losses(context.study, [spec.loss]) if spec.loss else list(stated_losses(context.study))[:1]
        one = None if spec.scenario is None else [spec.scenario]
        found: IndicatorAssessment = context.result("indicators", scenario=one, losses=losses)
        return found

    def asked(self, context: Context) -> Mapping[str, Any] | None:
        """Wherever indicators are answered."""
        found = context.for_page("indicators")
        if not (isinstance(found, IndicatorAssessment) and found.results):
            return None
        stated = context.study is not None and "samples" in context.study.assess.failures.model_fields_set
        return {"every": True} | ({} if stated else {"samples": SHOWN})

    def sections(self, result: Sequence[FailureModes], models: Sequence[str]) -> Iterable[Section]:
        """Each scenario and loss, and in it each model; all but the first are folded away."""
        return sections(result, models)

    def illustrated(self, folder: Path, ledger: Ledger, result: Sequence[FailureModes]) -> tuple[FailureModes, ...]:
        """With the inputs themselves."""
        del folder
        return tuple(with_exhibits(ledger.storage, one) for one in result)


def sections(found: Sequence[FailureModes], models: Sequence[str] = ()) -> Iterator[Section]:
    """Each scenario and loss, and in it each model; all but the first are folded away."""
    del models
    yield Headline(headline(found[0]))
    yield Text(_HOW, how=True)
    if any(_lacks_picture(one, held) for every in found for one, held in (every.exhibits or {}).items()):
        yield Text((_NOT_KEPT,))
    for place, one in enumerate(found):
        title = f"Scenario {one.scenario}, loss {one.loss}"
        yield Group(title, (_overview(one), *_models(one)), folded=place > 0)


def _lacks_picture(failure: Failure, held: Exhibit) -> bool:
    return not held.kept and failure.arm != CLEAN


def _overview(found: FailureModes) -> Table:
    columns = (
        Column("model"),
        Column("branch"),
        Column("share of the risk", "share"),
        Column("mean loss", loss_kind(found.bounds)),
        Column("samples that fail"),
        Column("made worse", "count", detail=True),
        Column("worst sample"),
    )
    rows: list[tuple[Value, ...]] = []
    for mode in found.modes:
        worst = mode.failures[0] if mode.failures else None
        shown = Cell(caption(worst, found.labels), (worst.sample,)) if worst else None
        counts = f"{mode.n_hurt} of {mode.n}", mode.n_made_worse
        rows.append((mode.model, branch_name(mode), mode.share, mode.value, *counts, shown))
    return Table(f"Where each model fails: {_label(found)}", columns, tuple(rows))


def _models(found: FailureModes) -> Iterator[Section]:
    for place, model in enumerate(found.models):
        modes = tuple(_mode(found, mode) for mode in found.of(model))
        yield Group(model, modes or (Text(("No branch has a loss.",)),), folded=place > 0)


def _mode(found: FailureModes, mode: FailureMode) -> Group:
    table, about = _samples(found, mode), Text((explanation(mode),))
    if shown := _pictures(mode, found):
        return Group(heading(mode, found), (about, shown, Group("As a table", (table,), folded=True)))
    return Group(heading(mode, found), (about, table))


def _pictures(mode: FailureMode, found: FailureModes) -> Pictures | None:
    """The failures of which there is something to look at."""
    pictures = tuple(
        _picture(one, held, found.labels) for one, held in _held(mode, found.exhibits) if held.clean or held.perturbed
    )
    return Pictures("", pictures) if pictures else None


def _picture(one: Failure, held: Exhibit, labels: Labels) -> Picture:
    lines = [caption(one, labels), one.arm]
    if not one.made_worse and one.arm != CLEAN:
        lines.append("as bad without it")
    if held.perturbed:
        return Picture(held.perturbed, f"perturbed input of sample {one.sample}", "\n".join(lines), held.clean)
    if _lacks_picture(one, held):
        lines.append("the perturbed input was not kept")
    return Picture(held.clean, f"clean input of sample {one.sample}", "\n".join(lines))


def _samples(found: FailureModes, mode: FailureMode) -> Table:
    held = _held(mode, found.exhibits)
    columns = [Column("sample"), Column("what happened"), Column("loss", "magnitude"), Column("arm")]
    rows: list[tuple[Value, ...]] = [
        (one.sample, caption(one, found.labels), _loss(one), one.arm) for one in mode.failures
    ]
    if any(kept.changes for _, kept in held):
        columns.append(Column("features that changed"))
        rows = [(*row, _changed(*kept, found.labels)) for row, kept in zip(rows, held, strict=True)]
    title = f"Samples that fail with {mode.model} under {branch_name(mode)}: {_label(found)}"
    return Table(title, tuple(columns), tuple(rows))


def _held(mode: FailureMode, exhibits: Exhibits) -> list[tuple[Failure, Exhibit]]:
    return [(one, (exhibits or {}).get(one, Exhibit())) for one in mode.failures]


def _loss(one: Failure) -> Value:
    """Of the answer, and of the sample under the whole branch where that differs."""
    return one.loss if one.loss == one.branch_loss else Cell(one.loss, (f"{one.branch_loss:.3g} in the branch",))


def _changed(one: Failure, held: Exhibit, labels: Labels) -> str:
    """`age: 0 → 3; 2 more`."""
    if not held.kept:
        return "none: a clean input" if one.arm == CLEAN else "not kept"
    told = [
        f"{labels.feature_name(change.feature)}: {change.before:.4g} → {change.after:.4g}" for change in held.changes
    ]
    n_more = held.n_changed - len(held.changes)
    return "; ".join([*told, f"{n_more} more"] if n_more else told)


def _label(found: FailureModes) -> str:
    return f"{found.scenario}, {found.loss}"
