"""The executive summary: which model, how sure, what drives the risk, what is open, what was not tested."""

from collections.abc import Iterable
from dataclasses import dataclass, fields

from advrisk.assess.findings import Findings
from advrisk.assess.selection.answer import leading
from advrisk.assess.selection.beside import drivers_beside, leading_first, sentences_beside, without_drivers
from advrisk.assess.stopping import level_words, rest_words
from advrisk.core.names import cut_words, one_line
from advrisk.core.sections import Part, Unanswered, summary_of
from advrisk.ledger import Ledger
from advrisk.report.untested import not_tested
from advrisk.study import StudySpec

LABELS = {
    "ship": "Which model",
    "sure": "How sure that is",
    "drivers": "What drives the risk",
    "undecided": "What is undecided",
    "untested": "What was not tested",
    "further": "What else was asked",
}
DECIDED = "Nothing: every comparison that was asked for is decided."
_WORD = 60  # characters of a word; names may be longer
_SENTENCE = 600


@dataclass(frozen=True)
class ExecutiveSummary:
    """Short parts, each a list of sentences; the first sentence of all is the answer."""

    ship: tuple[str, ...]
    sure: tuple[str, ...]
    drivers: tuple[str, ...]
    undecided: tuple[str, ...]
    untested: tuple[str, ...]
    further: tuple[str, ...] = ()

    @property
    def open_points(self) -> bool:
        """Whether something is undecided."""
        return self.undecided != (DECIDED,)

    @property
    def answer(self) -> str:
        """The least bad model and how bad it is, in one sentence."""
        return self.ship[0]

    def parts(self) -> list[tuple[str, tuple[str, ...]]]:
        """Each part with its heading; empty ones are left out."""
        held = {field.name: getattr(self, field.name) for field in fields(self)}
        return [(LABELS[name], sentences) for name, sentences in held.items() if sentences]


def executive_summary(ledger: Ledger, study: StudySpec | None, found: Findings) -> ExecutiveSummary:
    """What a reader should know who reads nothing else."""
    return ExecutiveSummary(
        ship=_brief(_to_ship(found)),
        sure=_brief(_how_sure(found, study)),
        drivers=_brief(_what_drives(found)),
        undecided=_brief(_undecided(found) or [DECIDED]),
        untested=_brief(not_tested(ledger, study, found)),
        further=_brief(_further(found)),
    )


# Which model


def _to_ship(found: Findings) -> list[str]:
    told = list(leading(found).sentences)
    if found.stopping is not None and found.stopping.rests:  # right after the answer, which rests on that
        told.insert(1, f"This run stopped early, {rest_words(found.stopping)}")
    return [*told, *sentences_beside(found), *_said(found, "ship"), *found.view.sentences()]


def _further(found: Findings) -> list[str]:
    """The headline of every registered assessment, or why it has no answer."""
    return [
        f"{name}: no answer, as {str(one).rstrip('.')}."
        if isinstance(one, Unanswered)
        else one.headline or f"{one.title}: see below."
        for name, one in found.brought.items()
    ]


# How sure


def _how_sure(found: Findings, study: StudySpec | None) -> list[str]:
    told = [*(level_words(found.stopping, study) if found.stopping else []), *_said(found, "sure")]
    return told or ["There is no number to be sure of."]


# What drives the risk


def _what_drives(found: Findings) -> list[str]:
    return [*_said(found, "drivers"), *drivers_beside(found)] or [without_drivers(found)]


# What is undecided


def _undecided(found: Findings) -> list[str]:
    unanswered = [(name, found.why_not(name)) for name in found.answers if name not in found.brought]
    return [
        *_said(found, "undecided"),
        *(f"Nothing can be said of {name}: {why.rstrip('.')}." for name, why in unanswered if why),
    ]


# Words


def _said(found: Findings, part: Part) -> list[str]:
    """What findings add to a part themselves: the one that leads, then the others in the order of the page."""
    return [sentence for one in leading_first(found) for sentence in summary_of(one.sections, part)]


def _brief(sentences: Iterable[str]) -> tuple[str, ...]:
    """Names from outside may be of any length and hold anything; a summary is short, and every line is one line."""
    return tuple(brief(sentence) for sentence in dict.fromkeys(sentences))


def brief(sentence: str) -> str:
    """A sentence without what cannot be shown, with long words cut in the middle, and not too long."""
    words = cut_words(one_line(sentence), _WORD)
    return words if len(words) <= _SENTENCE else f"{words[: _SENTENCE - 1]}…"
