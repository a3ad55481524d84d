"""The frozen question of a certificate, and other tests on the same samples.

A test on fresh samples errs with at most the stated probability because the question was frozen before any result.
Models, sizes, attacks, alpha, zeta, method and population are all part of the question: to leave out the model or the
size that failed is to choose it. So the study must ask what was frozen, and whatever else met these samples is a caveat
of every certificate.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from advrisk.assess.certificate.words import percent
from advrisk.core.errors import RiskError
from advrisk.core.names import counted, few
from advrisk.ledger import Ledger
from advrisk.ledger.frozen import FrozenQuestion, Key, asked_question, unlisted_attacks
from advrisk.ledger.history import read_history
from advrisk.study import StudySpec, TargetSpec

_NAMED = 4  # lists named in a sentence
_EXCHANGED = "SELECT model::VARCHAR AS model FROM all_models GROUP BY ALL HAVING count(DISTINCT digest) > 1"
_IN_RECIPES = ("seed", "success")  # settings that change the recipe of every attack


def question_settings(study: StudySpec) -> dict[str, Any]:
    """The settings of a study that decide a certificate, besides attacks and samples."""
    asked = study.assess.certificate
    if asked is None:
        return {}
    success = study.success
    return {
        **asked.model_dump(mode="json", include={"alpha", "zeta", "method", "population", "search_guarantee"}),
        "seed": study.seed,
        "success": success.model_dump(mode="json") if isinstance(success, TargetSpec) else success,
        "order": study.data.order,
    }


def stated_question(study: StudySpec) -> dict[str, Any]:
    """The settings of a study that decide the lists and the samples: models, attacks, sizes and splits."""
    asked = study.assess.certificate
    splits = study.data.model_dump(mode="json", include={"source", "evaluate", "calibrate", "tune", "train"})
    return {
        **{f"data.{name}": value for name, value in splits.items()},
        "models": [name for name, spec in study.models.items() if not spec.surrogate],
        "defences": list(study.defences),
        "arms": [_entry(one) for one in study.arms if not one.corruption],
        "search": [_entry(one) for one in study.search],
        "assess.certificate.arms": None if asked is None else asked.arms,
    }


def refuse_other_question(study: StudySpec, question: FrozenQuestion) -> None:
    """Refuse a study whose question differs from the one frozen before the test."""
    if study.assess.certificate is None:
        raise RiskError("the study does not ask for a certificate any more; put `assess.certificate` back")
    before = question.settings | question.stated
    if found := list(_changed(before, question_settings(study) | stated_question(study))):
        raise RiskError(
            f"the study does not ask what was frozen before the test at {question.frozen_at}: {'; '.join(found)}. Put "
            "the study back as it was; or run it again: the new question then stands, and every certificate names the "
            "one before"
        )


def _entry(entry: BaseModel) -> str:
    """An entry of a study on one line, without unset fields."""
    return _said(entry.model_dump(mode="json", by_alias=True, exclude_defaults=True))


def caveats_of_samples(ledger: Ledger, zeta: float) -> list[str]:
    """Caveats from the ledger's history: other questions, attacks without a question, repairs.

    Every other question whose test was begun counts, whatever it asked: one on some of these samples has a sentence of
    its own, and those on other samples share one, since to try again is to try twice. `zeta` is that of the claims.
    """
    asked = asked_question(ledger)
    if asked is None:
        return []
    exchanged = {row["model"] for row in ledger.query(_EXCHANGED).to_pylist()}
    caveats = [
        f"Samples to calibrate were met before by another question, settled at {one.frozen_at}: "
        f"{'; '.join(_differences(asked, one, exchanged))}. If what is asked now was chosen after that result, "
        "nothing is guaranteed: take new samples, in a new folder."
        for one in asked.earlier
    ]
    if met := unlisted_attacks(ledger):
        named = few([f"{arm} against {model}" for model, arm in met], "more")
        caveats.append(
            f"Samples to calibrate were met by attacks that no frozen question lists: {', '.join(named)}. What is "
            "asked now may have been chosen after their results: take new samples, in a new folder."
        )
    return [*caveats, *_on_repetition(asked, zeta), *_on_repairs(ledger)]


def _on_repairs(ledger: Ledger) -> list[str]:
    """A note if the ledger may have lost a question or cells."""
    history = read_history(ledger.path)
    if not (history.removed or history.accepted):
        return []
    names = ", ".join(few(sorted(history.removed), "more"))
    removed = f"removed {counted(len(history.removed), 'segment')} from the ledger ({names})"
    done = removed if names else "wrote the history of the ledger anew"
    return [
        f"A repair {done}: whether another question or attack met samples to calibrate before is not known any more. "
        "Take new samples, in a new folder."
    ]


def _on_repetition(asked: FrozenQuestion, zeta: float) -> list[str]:
    """A note if other questions were tested on other samples of the same run."""
    if not asked.n_elsewhere:
        return []
    n = asked.n_elsewhere + len(asked.earlier) + 1
    return [
        f"{counted(asked.n_elsewhere, 'other question')} of this run met other samples before. Of {n} tests, some are "
        f"wrong up to {percent(min(1.0, n * zeta))} of the time: show them all, or decide before the test which counts."
    ]


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """The difference of settings; for lists, the removed and the added entries."""
    for name in dict.fromkeys([*before, *after]):
        was, now = before.get(name), after.get(name)
        if was == now:
            continue
        shown = name.replace("_", " ")
        if isinstance(was, list) and isinstance(now, list):
            gone, added = ([one for one in these if one not in those] for these, those in ((was, now), (now, was)))
            parts = [f"without {_few(gone)}"] if gone else []
            parts += [f"with {_few(added)}"] if added else []
            yield f"{shown} {' and '.join(parts) or 'in another order'}"
        else:
            yield f"{shown} was {_said(was)} and is {_said(now)}"


def _few(entries: Sequence[Any]) -> str:
    return ", ".join(few([_said(one) for one in entries], "more"))


def _said(value: Any) -> str:
    if value is None:
        return "not said"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _differences(now: FrozenQuestion, then: FrozenQuestion, exchanged: Collection[str]) -> Iterator[str]:
    """The differences of two questions; `exchanged` are models that had another digest in this run.

    Recipes depend on seed and criterion: where those changed, only another digest shows another model.
    """
    yield from _changed(then.settings, now.settings)
    if then.samples != now.samples:
        again = len(set(then.contents) & set(now.contents))
        yield f"of its {counted(len(then.contents), 'sample')}, {again} {'is' if again == 1 else 'are'} used again"
    mine, theirs = now.keys, then.keys
    if gone := sorted(theirs.keys() - mine.keys()):
        yield f"left out now: {_places(gone)}"
    if added := sorted(mine.keys() - theirs.keys()):
        yield f"new: {_places(added)}"
    both = sorted(mine.keys() & theirs.keys())
    if other := [key for key in both if mine[key].arms != theirs[key].arms]:
        yield f"other attacks: {_places(other)}"
    if tries := [key for key in both if mine[key].arms == theirs[key].arms and mine[key].tries != theirs[key].tries]:
        yield f"attacks are tried more or less often: {_places(tries)}"
    if anew := [key for key in both if mine[key].arms == theirs[key].arms and mine[key].recipes != theirs[key].recipes]:
        explained = any(now.settings.get(name) != then.settings.get(name) for name in _IN_RECIPES)
        anew = [key for key in anew if key[0] in exchanged or not explained]
    if anew:
        yield f"another model of that name, or attacks that work otherwise: {_places(anew)}"


def _places(keys: list[Key]) -> str:
    named = ", ".join(f"{model} within {norm} {eps:g}" for model, norm, eps in keys[:_NAMED])
    return named if len(keys) <= _NAMED else f"{named} and {len(keys) - _NAMED} more"
