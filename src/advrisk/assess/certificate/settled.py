"""What was settled before the test, and what else was asked of the same samples before.

A test on fresh samples errs with at most the stated probability because nobody chose the question after a look at them.
Models, sizes, attacks, alpha, zeta, method and population are all part of the question: to leave out the model or the
size that fell is to choose it.
"""

from collections.abc import Iterator

from advrisk.core.names import counted
from advrisk.ledger import Ledger
from advrisk.ledger.frozen import FrozenQuestion, Key, asked_question

_NAMED = 4  # lists named in a sentence
_SETTINGS = ("alpha", "zeta", "method", "population")


def used_before(ledger: Ledger) -> list[str]:
    """A sentence for each other question whose test was begun on samples of the one that stands: how they differ."""
    asked = asked_question(ledger.path)
    if asked is None:
        return []
    return [
        f"Samples to calibrate were met before by another question, settled at {one.frozen_at}: "
        f"{'; '.join(_differences(asked, one))}. If what is asked now was chosen after a look at that, nothing is "
        "guaranteed: take new samples, in a new folder."
        for one in asked.earlier
    ]


def not_settled(ledger: Ledger, **asked: object) -> list[str]:
    """A sentence for each setting that is not the one that was settled before the test, where one was."""
    question = asked_question(ledger.path)
    if question is None:
        return []
    return [
        f"{name} = {asked[name]} is not what was settled before the test, which is {getattr(question, name)}."
        for name in _SETTINGS
        if asked[name] != getattr(question, name)
    ]


def _differences(now: FrozenQuestion, then: FrozenQuestion) -> Iterator[str]:
    for name in _SETTINGS:
        before, after = getattr(then, name), getattr(now, name)
        if before != after:
            yield f"{name} was {before or 'not said'} and is {after or 'not said'}"
    if then.samples != now.samples:
        again = len(set(then.contents) & set(now.contents))
        yield f"of its {counted(len(then.contents), 'sample')}, {again} are used again"
    mine, theirs = now.keys, then.keys
    if gone := sorted(theirs.keys() - mine.keys()):
        yield f"left out now: {_told(gone)}"
    if added := sorted(mine.keys() - theirs.keys()):
        yield f"new: {_told(added)}"
    both = sorted(mine.keys() & theirs.keys())
    if other := [key for key in both if mine[key].arms != theirs[key].arms]:
        yield f"other attacks: {_told(other)}"
    if anew := [key for key in both if mine[key].arms == theirs[key].arms and mine[key].recipes != theirs[key].recipes]:
        yield f"another model of that name, or attacks that work otherwise: {_told(anew)}"


def _told(keys: list[Key]) -> str:
    named = ", ".join(f"{model} within {norm} {eps:g}" for model, norm, eps in keys[:_NAMED])
    return named if len(keys) <= _NAMED else f"{named} and {len(keys) - _NAMED} more"
