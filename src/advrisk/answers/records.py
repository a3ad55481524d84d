"""What people said of the pictures that they were shown, as records; `store` keeps them."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from advrisk.core.errors import LedgerError
from advrisk.core.extras import needs_extra
from advrisk.core.names import did_you_mean
from advrisk.core.traits import Norm
from advrisk.ledger.layout import ANSWERS_FILE

Design = Literal["yes-no", "side-by-side", "forced-choice"]
Trials = Literal["adaptive", "random"]
State = Literal["open", "stands", "undone", "withdrawn"]

CHANGED, UNCHANGED = "changed", "unchanged"  # the words of an answer to one picture
FIRST, SECOND = "first", "second"  # and of a choice between two


class AnswerRefusedError(LedgerError):
    """An answer that is forged, foreign, late or given already; it changes nothing."""


class NameRefusedError(LedgerError):
    """A name that no labeller can have."""


@dataclass(frozen=True)
class LabellingSettings:
    """What all answers of one database have in common: other answers would not belong to the same curve."""

    run: str  # whose pictures these are
    norm: Norm
    design: Design
    seconds: float | None  # how long a picture is seen; None: until it is answered

    def refuse_unlike(self, given: "LabellingSettings", where: str) -> None:
        """A run, norm, design or time that is not that of the answers that are there."""
        for name, word in (("run", "run"), ("norm", "norm"), ("design", "design"), ("seconds", "time limit")):
            held, asked = getattr(self, name), getattr(given, name)
            if held != asked:
                raise LedgerError(
                    f"{where}: holds answers of the {word} {_said(held)}, and {_said(asked)} is asked for; they do not "
                    "belong to one curve: name another database with --answers, or leave the option out"
                )


@dataclass(frozen=True)
class Shown:
    """What one trial shows: an original, or original + factor x (kept point - original), in 8 bits."""

    sample: str
    size: float  # in the norm, between the 8-bit pictures
    model: str | None = None  # None: nothing was changed
    arm: str | None = None
    cell: str | None = None
    factor: float = 1.0
    catch: bool = False
    trials: Trials = "adaptive"
    changed_first: bool = False  # forced choice: where the changed picture is


@dataclass(frozen=True)
class LabellingTrial:
    """A question put to a labeller; the nonce is what an answer must name."""

    id: int
    labeller: int
    place: int  # among the trials of the labeller
    nonce: str
    shown: Shown
    seen: float | None  # when the picture was first sent, in seconds since 1970
    again: bool  # whether it repeats a trial whose answer was taken back


@dataclass(frozen=True)
class TrialRow:
    """A trial and what became of it: its answer is awaited, stands or was taken back, or it was given up."""

    id: int
    labeller: int
    place: int
    shown: Shown
    state: State


@dataclass(frozen=True)
class Labeller:
    """Somebody who was invited."""

    id: int
    name: str


@dataclass(frozen=True)
class Answer:
    """One answer that stands. In a forced choice `undetected` says that the wrong picture was chosen."""

    labeller: str
    model: str | None
    arm: str | None
    sample: str
    size: float
    undetected: bool
    design: Design
    trials: Trials
    scaled: bool
    catch: bool
    seconds: float | None  # from picture to answer
    time: datetime


def words(design: Design) -> tuple[str, str]:
    """The two possible answers, in the order of their buttons."""
    return (FIRST, SECOND) if design == "forced-choice" else (UNCHANGED, CHANGED)


def undetected(design: Design, shown: Shown, said: str) -> bool:
    """Whether this answer says that the change went unnoticed; in a forced choice, whether it is wrong."""
    if said not in words(design):
        raise AnswerRefusedError(f"no answer is called {said!r}; {did_you_mean(said, words(design))}")
    if design == "forced-choice":
        return (said == FIRST) != shown.changed_first
    return said == UNCHANGED


def default_url(folder: Path) -> str:
    """Where the answers about a run lie unless somebody says otherwise."""
    return f"sqlite:///{(folder / ANSWERS_FILE).resolve()}"


def read_answers(folder: Path, url: str | None = None, *, norm: Norm | None = None) -> list[Answer]:
    """All answers about a run that stand, in the order in which they were given; none if nobody was asked.

    With `norm`, only if sizes were measured in it.
    """
    if url is None and not (folder / ANSWERS_FILE).exists():
        return []
    try:
        from advrisk.answers.store import AnswerStore
    except ModuleNotFoundError:
        shown = str(folder / ANSWERS_FILE) if url is None else "a database of answers"
        raise LedgerError(needs_extra(shown, "sqlalchemy")) from None
    with AnswerStore.open(url or default_url(folder), create=False) as store:
        settings = store.settings()
        other = norm is not None and settings is not None and settings.norm != norm
        return [] if other else store.answers()


def _said(value: object) -> str:
    return "none" if value is None else repr(value)
