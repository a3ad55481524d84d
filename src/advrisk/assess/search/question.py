"""What searches tried on the tuning split, and how many samples each setting broke."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from advrisk.assess.context import Context
from advrisk.assess.protocol import Assessment
from advrisk.assess.search.figures import surface, trajectory
from advrisk.core.errors import RiskError
from advrisk.core.names import counted, did_you_mean
from advrisk.core.sections import Cell, Column, Figure, Group, Headline, Section, Table, Text, Unanswered, Value
from advrisk.ledger import Ledger
from advrisk.ledger.searches import SearchRecord, Trial, fruitless_words, read_searches
from advrisk.study import assessments
from advrisk.study.assess import SearchesSpec

_WORST = 10  # settings that are shown first
_CAVEATS = (
    "Failures are counted on the tuning split: a sample fails when it is correct clean and incorrect attacked.",
    "The worst settings were picked because they look worst here, so their share of failures is no estimate of a risk; "
    "that comes from samples that no search saw.",
)
_ON_FIGURES = (
    "Filled points met all samples, open ones were dropped on the way. What was frozen for the certificate is larger, "
    "or a star."
)


@assessments.register("search")
class Searches(Assessment):
    """The settings that each search tried, the worst first."""

    kind = SearchRecord
    several = True

    def assess(self, context: Context, spec: SearchesSpec) -> tuple[SearchRecord, ...] | Unanswered:
        """Those against the models that are asked about."""
        found = read_searches(context.ledger)
        if not found and context.study is not None and context.study.search:
            return Unanswered(
                "nothing is written down of this study's searches: they have not begun, or the folder `search` of the "
                "run is gone",
                "run the same study again",
            )
        if not found:
            return Unanswered("this run holds no search", "add a section `search` to the study and run it again")
        return tuple(searches_of(found, spec.models))

    def asked(self, context: Context) -> Mapping[str, Any] | None:
        """Where a search was written down."""
        return {} if read_searches(context.ledger) else None

    def missing(self, ledger: Ledger, why: str) -> str:
        """That attacks ran with the study's own settings only, where any ran."""
        del why
        attacked = "SELECT 1 FROM arms WHERE kind = 'attack' AND origin IN ('study', 'import') LIMIT 1"
        if not len(ledger.query(attacked)):
            return ""
        return "No search looked for stronger settings of the attacks: they ran as the study has them."

    def sections(self, result: Sequence[SearchRecord], models: Sequence[str]) -> Iterable[Section]:
        """What the searches came to; of several, each one by itself is folded away."""
        return sections(result, models)


def sections(found: Sequence[SearchRecord], models: Sequence[str] = ()) -> Iterator[Section]:
    """What the searches came to; of several, each one by itself is folded away."""
    del models
    yield Headline(_headline(found))
    if len(found) == 1:
        settings, *others = _one(found[0], "")
        yield settings
        yield Text((*search_words(found[0])[1:], *_CAVEATS))
        yield from others
        return
    yield _overview(found)
    yield Text((*(f"{one.label}: {said}" for one in found for said in _warnings(one)), *_CAVEATS))
    for number, one in enumerate(found, start=1):
        own = (Text(tuple(search_words(one))), *_one(one, f" of search {number}"))
        yield Group(f"Search {number}: {one.label}", own, folded=True)


def search_words(one: SearchRecord) -> list[str]:
    """What a search did and found; then what to know beside that."""
    tried = f"{counted(len(one.trials), 'setting')} tried by {one.method}"
    if waiting := sum(not trial.n and not trial.n_errors for trial in one.trials):
        tried += f", {waiting} of them not run yet"
    worst = one.worst
    if worst is None or not worst.n:
        return [f"{tried}.", *_warnings(one)]
    told = f"{tried}; the worst, {worst.text}, breaks {worst.failures} of {worst.n} samples."
    return [told, *_on_ties(one), *_warnings(one)]


def _on_ties(one: SearchRecord) -> Iterator[str]:
    """Settings that are as bad as the worst, and which of them is frozen."""
    if one.n_worst > 1 and not one.fruitless:
        tied = f"{counted(one.n_worst - 1, 'other setting')} tried {'breaks' if one.n_worst == 2 else 'break'}"
        yield f"{tied} as large a share: of equals, those nearest to the attack's own default setting are frozen first."


def _warnings(one: SearchRecord) -> Iterator[str]:
    """A search that found nothing, settings of which not everything is known, and that more is to come."""
    if one.fruitless:
        told = fruitless_words([one])
        yield f"{told[0].upper()}{told[1:]}"
    flagged = sorted((trial for trial in one.trials if trial.n_errors), key=lambda trial: (-trial.n_errors, trial.arm))
    if flagged:
        most = f"most of them {flagged[0].text}, on {counted(flagged[0].n_errors, 'sample')}"
        yield (
            f"{counted(len(flagged), 'setting')} ended on some samples with an error or a timeout, {most}: these count "
            "neither as broken nor as held here, and as broken in a certificate. Allow more time, or mend the attack."
        )
    if not one.finished:
        yield f"Not finished: {one.n_rounds_done} of {counted(one.n_rounds, 'round')}."


def _headline(found: Sequence[SearchRecord]) -> str:
    if len(found) == 1:
        return f"{found[0].label}: {search_words(found[0])[0]}"
    tried = f"{len(found)} searches tried {counted(sum(len(one.trials) for one in found), 'setting')}"
    worst = [(one, one.worst) for one in found if one.worst is not None and one.worst.failures]
    if not worst:
        return f"{tried}; none breaks a sample."
    one, trial = min(worst, key=lambda pair: pair[1].order)
    return (
        f"{tried}; the worst, {trial.text} of {one.name}, breaks {trial.failures} of {trial.n} samples of {one.model}."
    )


def _overview(found: Sequence[SearchRecord]) -> Table:
    columns = (
        Column("attack"),
        Column("model"),
        Column("settings tried", "count"),
        Column("worst setting"),
        Column("broken", "count"),
    )
    rows = []
    for one in found:
        worst = one.worst if one.worst is not None and one.worst.n else None
        came_to = (None, None) if worst is None else (worst.text, Cell(worst.failures, (f"[of {worst.n}]",)))
        rows.append((one.name, one.model, len(one.trials), *came_to))
    return Table("The worst setting of each search", columns, tuple(rows))


def _one(one: SearchRecord, of: str) -> Iterator[Section]:
    """A search by itself: its worst settings, its figures, and all its settings."""
    ordered = sorted(one.trials, key=lambda trial: trial.order)
    first = [trial for place, trial in enumerate(ordered) if place < _WORST or trial.frozen]
    others = [trial for trial in ordered if trial not in first]
    note = f"The worst {len(first)} of {len(ordered)} settings; `advrisk show search RUN --details` shows all."
    yield _settings(f"{'The worst' if others else 'All'} settings{of}", first, (note,) if others else ())
    yield Group(
        f"How {of.removeprefix(' of ') or 'the search'} went",
        (Text((_ON_FIGURES,), how=True), Group("", tuple(_figures(one, of)), beside=True)),
    )
    if others:
        yield Group(f"Other settings{of}", (_settings(f"All other settings{of}", others),), folded=True)


def _settings(title: str, trials: Sequence[Trial], notes: tuple[str, ...] = ()) -> Table:
    errors = any(trial.n_errors for trial in trials)
    columns = (
        Column("setting"),
        Column("broken", "count"),
        Column("of", "count"),
        *((Column("errors", "count"),) if errors else ()),
        Column("round", "count"),
        Column("by"),
        Column("frozen", "flag"),
    )
    rows = tuple(
        (trial.text, *_counts(trial), *((trial.n_errors,) if errors else ()), trial.round, trial.by, trial.frozen)
        for trial in trials
    )
    return Table(title, columns, rows, notes)


def _counts(trial: Trial) -> tuple[Value, Value]:
    return (trial.failures, trial.n) if trial.n or trial.n_errors else (None, "not run yet")


def _figures(one: SearchRecord, of: str) -> Iterator[Figure]:
    yield Figure(
        f"Share of samples broken by each setting{of}",
        trajectory(one),
        "Share of samples broken, setting by setting in their order.",
    )
    for name, plot in surface(one).items():
        described = "Share of samples broken against the settings."
        yield Figure(f"Share of samples broken by the settings{of}, over {name}", plot, described)


def searches_of(found: Sequence[SearchRecord], models: Sequence[str] | None) -> list[SearchRecord]:
    """Those against these models, or all."""
    known = {one.model for one in found}
    for model in models or ():
        if model not in known:
            raise RiskError(f"no search was made against a model called {model!r}; {did_you_mean(model, known)}")
    return [one for one in found if models is None or one.model in models]
