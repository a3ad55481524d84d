"""Words for people: names by pattern, the nearest known name, and nouns that agree with their number."""

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

T = TypeVar("T")

_NAMES = 3  # of a long list that are written out

# What steers a terminal or cannot be seen: control codes but the end of a line and the tab, marks that turn the
# direction of writing, separators, letters of no width, halves of letters.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_LINES = re.compile(r"[\n\t]")

_JOINERS = "\u200c\u200d"  # invisible, but part of letters and emoji


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name is one of these, or fits one of them with `*`."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def no_match(pattern: str, known: Iterable[str]) -> str | None:
    """A complaint where no arm fits a pattern, with the nearest one that there is."""
    names = set(known)
    if any(matches(name, [pattern]) for name in names):
        return None
    return f"no arm is called {pattern!r}; {did_you_mean(pattern, names)}"


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """A clause that offers the nearest known name, or lists what there is."""
    names = sorted(known)
    if close := nearest(name, names):
        return f"did you mean {close!r}?"
    return f"known: {', '.join(names)}" if names else "there is none yet"


def nearest(name: object, known: Iterable[str]) -> str | None:
    """The known name that looks most like the given one, if any does."""
    close = difflib.get_close_matches(str(name), sorted(known), n=1, cutoff=0.6)
    return close[0] if close else None


def search_label(name: str, parameters: Iterable[str], model: str) -> str:
    """A search, planned or done: `nes-linf-0.1 over sigma, eta against plain`."""
    return f"{name} over {', '.join(parameters)} against {model}"


def listed(names: Sequence[str]) -> str:
    """`a, b and c`; of many, the first and how many more."""
    if len(names) <= _NAMES + 1:
        return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return f"{', '.join(names[:_NAMES])} and {len(names) - _NAMES} more"


def few(sentences: Sequence[str], more: str, *, most: int = 4) -> list[str]:
    """The first sentences, and how many there are beyond: `2 more models are undecided.`"""
    if len(sentences) <= most:
        return list(sentences)
    return [*sentences[:most], f"{len(sentences) - most} {more}"]


def one_or_many(given: str | T) -> list[str] | T:
    """A list of one, where a single name was given; anything else as it is."""
    return [given] if isinstance(given, str) else given


def counted(n: int, noun: str) -> str:
    """`1 sample`, `3 samples`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def visible(text: str) -> str:
    """Text in which what would steer a terminal is written out, as in JSON: `\\u001b`. Lines and tabs stay."""
    return _UNSEEN.sub(_written_out, text)


def visible_line(text: str) -> str:
    """The same of a name, which has one line: the ends of others are written out, too."""
    return _LINES.sub(_written_out, visible(text))


def _written_out(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]


def one_line(name: str) -> str:
    """Without what would end the line, or what a label cannot show."""
    return "".join(letter if letter.isprintable() or letter in _JOINERS else " " for letter in name)


def cut(name: str, width: int) -> str:
    """Cut in the middle: a name begins with what it is, and ends with what tells it from others."""
    half = width // 2
    return name if len(name) <= width else f"{name[: width - half - 1]}…{name[-half:]}"


def cut_words(text: str, width: int) -> str:
    """Text whose long words are cut in the middle."""
    return re.sub(rf"\S{{{width + 1},}}", lambda word: cut(word.group(), width), text)
