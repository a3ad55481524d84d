"""A labelling in progress: questions, answers, and what they say, kept up to date beside the pages."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from advrisk.answers.records import Design, Labeller, LabellingSettings, LabellingTrial, default_url
from advrisk.answers.store import AnswerStore
from advrisk.answers.tables import NoAnswersError
from advrisk.api import Run
from advrisk.assess.damage.answers import (
    fit_answers,
    group_warnings,
    monotone_answers,
    monotone_notes,
    shape_doubts,
)
from advrisk.core.errors import LedgerError, RunError
from advrisk.risk.evasion import EvasionCurve, Floats, write_evasion
from advrisk.risk.labelling import informative_sizes
from advrisk.study import Norm
from advrisk.web.background import Background
from advrisk.web.fitting import FitProcess
from advrisk.web.history import LabellerHistory, TrialHistory
from advrisk.web.stimuli import Pool, load_pool
from advrisk.web.summary import LabellingSummary, summarise
from advrisk.web.trials import Asking, next_shown

GRACE_S = 3.0  # beyond the time limit in which a picture is sent again: networks are slow


@dataclass(frozen=True)
class Wishes:
    """What the operator asked for; None: as it was before, or the default."""

    answers: str | None = None
    norm: Norm | None = None
    design: Design | None = None
    seconds: float | None = None


@dataclass(frozen=True, eq=False)
class Chooser:
    """The sizes to ask about next, and the answers that they depend on."""

    sizes: Floats
    n_answers: int
    revision: tuple[int, int]


@dataclass(frozen=True)
class Written:
    """What a file of a curve rests on."""

    n_answers: int
    notes: tuple[str, ...]


class Labelling:
    """One run and its answers. Once started, curves are fitted in processes of their own, never in a request."""

    def __init__(self, pool: Pool, store: AnswerStore, settings: LabellingSettings) -> None:
        self.pool, self.store, self.settings = pool, store, settings
        self._history = TrialHistory([example.sample for example in pool.examples])
        self.state: dict[str, Any] | None = None  # the latest summary for the pages; it may be some answers behind
        self._summarised: tuple[tuple[int, int], int] | None = None  # of which answers and labellers
        self._chooser: Chooser | None = None
        self._background: tuple[Background, ...] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.store.close()

    # What is known

    def start(self) -> None:
        """Keep up with the answers from now on; the summary takes longer and must not delay the questions."""
        chooser = FitProcess("chooser", self.pool, self.store.url, self.settings)
        summary = FitProcess("summary", self.pool, self.store.url, self.settings)
        self._background = (
            Background(partial(self._update_chooser, chooser), "advrisk-chooser", interrupt=chooser.stop),
            Background(partial(self._update_summary, summary), "advrisk-summary", interrupt=summary.stop),
        )
        for task in self._background:
            task.start()
            task.notice()

    def _update_chooser(self, process: FitProcess) -> None:
        """Know what was shown, and the sizes to ask about, before somebody asks."""
        self._history.update(self.store)
        if self._chooser is None or self._chooser.revision != self.store.revision():
            self._chooser = process.fit()

    def _update_summary(self, process: FitProcess) -> None:
        now = self.store.revision(), len(self.store.labellers())
        if self._summarised != now:
            self.state = process.fit()
            self._summarised = now

    def stop(self) -> None:
        for task in self._background:
            task.stop()

    def notice(self) -> None:
        """Something may have changed: look when there is time."""
        for task in self._background:
            task.notice()

    @property
    def behind(self) -> bool:
        """Whether the last attempt to keep up with the answers failed."""
        return any(task.failed for task in self._background)

    def current_summary(self) -> LabellingSummary:
        """What all answers say that are there now."""
        return summarise(self.pool, self.settings, self.store.answers(), self.store.labellers())

    @property
    def chooser(self) -> Chooser:
        """The latest that is finished; if none is made beside the requests, the one of now."""
        return self.current_chooser() if self._chooser is None or self.behind else self._chooser

    def current_chooser(self) -> Chooser:
        """By all answers that are there now. That labellers and pictures differ is left aside: it takes long to find
        out, and hardly matters for what to ask."""
        revision = self.store.revision()
        held = self._chooser
        if held is None or held.revision != revision:
            answers = [replace(one, labeller="", sample=str(n)) for n, one in enumerate(self.store.answers())]
            curve = fit_answers(answers, design=self.settings.design, plausible=self.pool.plausible, few=True)
            sizes = informative_sizes(curve, self.pool.sizes)
            held = self._chooser = Chooser(sizes, len(answers), revision)
        return held

    def write_curve(self, target: Path, *, monotone: bool = False) -> Written:
        """Write the curve of all answers, with the doubts about it; too few answers, or all alike, are refused.

        A `monotone` curve assumes no shape.
        """
        answers = self.store.answers()
        if monotone:
            curve: EvasionCurve = monotone_answers(answers)
            notes = monotone_notes(answers)
        else:
            curve = fit_answers(answers, plausible=self.pool.plausible)
            notes = shape_doubts(curve)[1]
        written = Written(len(answers), (*notes, *group_warnings(answers)))
        write_evasion(target, curve, norm=self.settings.norm, notes=written.notes)
        return written

    # Questions and answers

    def invite(self, name: str) -> str:
        """A labeller's token: the link's secret part, of which only a hash is kept."""
        token = new_token()
        self.store.invite(name, hash_of(token))
        return token

    def labeller(self, token: str) -> Labeller | None:
        return self.store.labeller(hash_of(token))

    def revoke(self, name: str) -> None:
        """End a labeller's link, also on servers that run; answers stay."""
        self.store.revoke(name, hash_of(new_token()))

    def was_revoked(self, token: str) -> bool:
        return self.store.was_revoked(hash_of(token))

    def question(self, labeller: Labeller, asking: Asking) -> LabellingTrial | None:
        """The labeller's open question, or a new one; None when there is nothing left to ask."""
        held = self.store.open_trial(labeller.id)
        if held is not None and self._can_show(held):
            return held
        if held is not None:
            self.store.withdraw(held.id)
        place = self.store.n_trials(labeller.id)
        shown = next_shown(
            self.pool,
            asking,
            self.chooser.sizes,
            labeller=labeller.id,
            place=place,
            seen=self.seen(labeller),
        )
        return None if shown is None else self.store.put_trial(labeller.id, place, new_token(), shown)

    def seen(self, labeller: Labeller) -> LabellerHistory:
        """What a labeller was shown and answered, by now."""
        self._history.update(self.store)
        return self._history.of(labeller.id)

    def _can_show(self, trial: LabellingTrial) -> bool:
        try:
            self.pool.pictures(trial.shown)
        except (LedgerError, KeyError):
            return False
        return True


@dataclass(frozen=True)
class LabelledRun:
    """A run whose pictures are shown, before anything was looked for in it."""

    run: Run
    wishes: Wishes

    @property
    def url(self) -> str:
        return self.wishes.answers or default_url(self.run.folder)

    @cached_property
    def name(self) -> str:
        """What the answers call the run: its study, or its folder where there is none."""
        return self.run.study.name if self.run.study else self.run.folder.resolve().name

    def settings(self, held: LabellingSettings | None) -> LabellingSettings:
        """What is asked for; what is not said stays as it was."""
        asked = self.wishes
        return LabellingSettings(
            run=self.name,
            norm=asked.norm or (held.norm if held else self.norm()),
            design=asked.design or (held.design if held else "yes-no"),
            seconds=asked.seconds if asked.seconds is not None else (held.seconds if held else None),
        )

    def samples(self) -> set[str]:
        return set(self.run.query("SELECT DISTINCT sample FROM samples")["sample"].to_pylist())

    def norm(self) -> Norm:
        """The norm that the study asks for, or the only one there is."""
        if self.run.study:
            return self.run.study.assess.damage.norm
        norms = self.run.query("SELECT DISTINCT norm FROM arms WHERE norm IS NOT NULL")["norm"].to_pylist()
        if len(norms) != 1:
            raise RunError(f"{self.run.folder}: holds attacks in {norms or 'no norm'}; say which with --norm")
        only: Norm = norms[0]
        return only

    def pool(self, norm: Norm) -> Pool:
        study = self.run.study
        arms = study.assess.damage.arms if study else None
        return load_pool(self.run.folder, self.run.ledger, norm=norm, arms=arms, seed=study.seed if study else 0)


Check = Callable[[LabellingSettings, Pool, AnswerStore | None], object]


def open_labelling(folder: str | Path, wishes: Wishes, *, create: bool, ready: Check | None = None) -> Labelling:
    """A run and its answers, checked to belong together; nothing is written if they do not.

    Without `create` the answers must be there. `ready` may refuse what is to be done before anything is written;
    the answers that it is given are None where there are none yet.
    """
    source = LabelledRun(Run.open(folder), wishes)
    pool = source.pool(wishes.norm or source.norm())
    store = _store_if_there(source.url, needed=not create)
    try:
        held = _held_settings(source, store)
        if held is None and not create:
            raise NoAnswersError(f"{folder}: holds no answers yet; `advrisk label {folder}` asks for some")
        settings = source.settings(held)
        if settings.norm != pool.norm:
            pool = source.pool(settings.norm)
        if ready is not None:
            ready(settings, pool, store)
        if store is None:
            store = AnswerStore.open(source.url)
        if create:
            store.settle(settings)
        return Labelling(pool, store, settings)
    except BaseException:
        if store is not None:
            store.close()
        raise


def _store_if_there(url: str, *, needed: bool) -> AnswerStore | None:
    try:
        return AnswerStore.open(url, create=False)
    except NoAnswersError:
        if needed:
            raise
        return None


def _held_settings(source: LabelledRun, store: AnswerStore | None) -> LabellingSettings | None:
    """What is asked already. As long as nothing was, it may become something else."""
    held = None if store is None else store.settings()
    if store is None or held is None:
        return None
    if not store.has_trials():
        return held if held.run == source.name else None
    held.refuse_unlike(source.settings(held), store.where)
    strange = store.samples() - source.samples()
    if strange:
        raise LedgerError(
            f"{store.where}: holds answers about samples that {source.run.folder} does not hold, {min(strange)!r} for "
            "one: they are of another run of the same name; name another database with --answers"
        )
    return held


def new_token() -> str:
    """192 random bits for an address."""
    return secrets.token_urlsafe(24)


def hash_of(token: str) -> str:
    return sha256(token.encode()).hexdigest()
