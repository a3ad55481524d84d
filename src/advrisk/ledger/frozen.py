"""What a certificate is about: the question, and for each model, norm and eps the list of attacks, frozen before its
test.

Questions are rows of the ledger, appended before the first cell on samples to calibrate is run. Each names the one
before it by a digest of everything up to there: none can be changed, or taken out, without a trace. A question that was
tested is never forgotten: where another one takes its place, the samples are used a second time, and the new one says
so.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter, ValidationError

from advrisk.core.digest import digest
from advrisk.core.errors import LedgerError, RiskError
from advrisk.ledger.ledger import Ledger
from advrisk.ledger.tables import table_from

_NOT_KNOWN = (
    "which attacks were tested on these samples is not known any more: choose another folder and other samples for a "
    "certificate; what else the run holds stands, and `advrisk run` resumes it where the study asks for none"
)
NO_QUESTION = "samples to calibrate were met, but no question is frozen"
_ON_CALIBRATE = "shard IN (SELECT shard FROM samples WHERE split IN ('calibrate', 'dropped-calibrate'))"

Key = tuple[str, str, float]  # model, norm, eps


class LostQuestionError(LedgerError, RiskError):
    """A run does not say any more what was to be certified.

    Both of these: a run that is to be certified cannot go on, and of one that is read everything else is answered.
    """

    def __init__(self, place: Path, reason: str) -> None:
        super().__init__(f"{place}: {reason}; {_NOT_KNOWN}")
        self.reason, self.remedy = reason, _NOT_KNOWN


@dataclass(frozen=True)
class FrozenList:
    """The attacks on one model, within one eps, that a certificate is about.

    `searched` are those of them that a search found; the others stand in the study. `samples` names the samples to
    calibrate, by ids and contents; `tries` says how often each attack is tried. `earlier` are other lists for the same
    model, norm and eps whose test was begun on some of these samples before: what is certified now may have been chosen
    after those results, and then nothing is guaranteed.
    """

    id: str
    model: str
    norm: str
    eps: float
    arms: tuple[str, ...]
    recipes: tuple[str, ...]
    tries: tuple[int, ...]
    searched: tuple[str, ...]
    samples: str
    n_samples: int
    frozen_at: str
    earlier: tuple["FrozenList", ...] = ()

    @property
    def key(self) -> Key:
        return self.model, self.norm, self.eps


def frozen_list(
    key: Key,
    recipes: Mapping[str, str],
    searched: Sequence[str],
    samples: Sequence[tuple[str, str]],
    tries: Mapping[str, int] = MappingProxyType({}),
) -> FrozenList:
    """A list of arms (id -> recipe), named by its content; `samples` are ids and hashes, an arm has one try or more."""
    model, norm, eps = key
    arms = tuple(sorted(recipes))
    used, times = [recipes[arm] for arm in arms], [tries.get(arm, 1) for arm in arms]
    fingerprint = digest([list(pair) for pair in sorted(samples)])
    return FrozenList(
        id=digest([list(key), list(arms), used, times, fingerprint]),
        model=model,
        norm=norm,
        eps=eps,
        arms=arms,
        recipes=tuple(used),
        tries=tuple(times),
        searched=tuple(sorted(searched)),
        samples=fingerprint,
        n_samples=len(samples),
        frozen_at=_now(),
    )


@dataclass(frozen=True)
class FrozenQuestion:
    """Everything that decides what is certified of a run, as it was settled before its test.

    `settings` are alpha, zeta, method, population and what else decides beside the lists; `stated` is what the study
    says of models, attacks and splits, from which the lists came. `contents` name the samples to calibrate one by one,
    `recipes` everything that meets them for its sake, also clean arms and what is crafted on other models. `earlier`
    are other questions whose test was begun on some of these samples before, `n_elsewhere` such as had none of them.
    """

    id: str
    settings: dict[str, Any]
    stated: dict[str, Any]
    lists: tuple[FrozenList, ...]
    samples: str
    contents: tuple[str, ...]
    recipes: tuple[str, ...]
    frozen_at: str
    earlier: tuple["FrozenQuestion", ...] = ()
    n_elsewhere: int = 0

    @property
    def keys(self) -> dict[Key, FrozenList]:
        return {one.key: one for one in self.lists}


def frozen_question(
    lists: Sequence[FrozenList],
    samples: Sequence[tuple[str, str]],
    settings: Mapping[str, Any],
    *,
    stated: Mapping[str, Any] = MappingProxyType({}),
    recipes: Sequence[str] = (),
) -> FrozenQuestion:
    """A question about lists that were made of the same `samples`, named by its content; `recipes` run beside them.

    Its name does not depend on `stated`: a study may say the same in other words, or ask more beside it.
    """
    fingerprint = digest([list(pair) for pair in sorted(samples)])
    return FrozenQuestion(
        id=digest([dict(settings), fingerprint, sorted(one.id for one in lists)]),
        settings=dict(settings),
        stated=dict(stated),
        lists=tuple(lists),
        samples=fingerprint,
        contents=tuple(sorted(content or name for name, content in samples)),
        recipes=tuple(sorted({*recipes, *(recipe for one in lists for recipe in one.recipes)})),
        frozen_at=_now(),
    )


def frozen_lists(ledger: Ledger) -> list[FrozenList]:
    """The lists that stand now, by model, norm and eps; none where nothing was frozen."""
    asked = asked_question(ledger)
    if asked is None:
        return []
    others = {other.id: other for question in asked.earlier for other in question.lists}
    return [
        replace(one, earlier=tuple(other for other in others.values() if other.key == one.key and other.id != one.id))
        for one in sorted(asked.lists, key=lambda one: one.key)
    ]


def asked_question(ledger: Ledger) -> FrozenQuestion | None:
    """The question that stands now, with those tested before on samples of it; None where nothing was frozen."""
    links = list(_links(ledger).values())
    if not links:
        return None
    now = links[-1].question
    tested = {one.question.id: one.question for one, after in pairwise(links) if after.previous_tested}
    others = [one for name, one in tested.items() if name != now.id]
    earlier = tuple(one for one in others if set(now.contents) & set(one.contents))
    first = next(one.question for one in links if one.question.id == now.id)  # as it was frozen at first
    return replace(
        now,
        lists=first.lists,
        frozen_at=first.frozen_at,
        earlier=earlier,
        n_elsewhere=len(others) - len(earlier),
    )


def write_frozen(ledger: Ledger, question: FrozenQuestion) -> None:
    """Let this question stand from now on."""
    links = _links(ledger)
    previous, last = next(reversed(links.items()), ("", None))
    if last is not None and (last.question.id, last.question.stated) == (question.id, question.stated):
        return
    content = Link(question, last is not None and _is_tested(last.question, ledger)).content
    row = {"question": digest([previous, content]), "previous": previous, "content": content}
    ledger.append({"questions": table_from("questions", {name: [value] for name, value in row.items()})})


def unlisted_attacks(ledger: Ledger) -> list[tuple[str, str]]:
    """Models and arms of cells that met samples to calibrate, and that no question which was frozen lists."""
    known = {recipe for link in _links(ledger).values() for recipe in link.question.recipes}
    shown = {held: name for name, held in ledger.ids.items()}
    rows = ledger.query(
        f"SELECT DISTINCT model::VARCHAR AS model, arm::VARCHAR AS arm, recipe::VARCHAR AS recipe FROM all_cells "
        f"WHERE arm <> 'clean' AND {_ON_CALIBRATE} ORDER BY ALL"
    )
    met = [(row["model"], row["arm"]) for row in rows.to_pylist() if row["recipe"] not in known]
    return [(model, shown.get(arm, arm)) for model, arm in dict.fromkeys(met)]


def refuse_lost(ledger: Ledger) -> None:
    """A run whose samples to calibrate were met, and that does not say any more by what."""
    if ledger.query("SELECT 1 FROM questions LIMIT 1").num_rows:
        return
    if ledger.query(f"SELECT 1 FROM all_cells WHERE {_ON_CALIBRATE} LIMIT 1").num_rows:
        raise LostQuestionError(ledger.path, NO_QUESTION)


def has_lost_question(ledger: Ledger) -> bool:
    """Whether a run cannot say any more what was to be certified."""
    try:
        refuse_lost(ledger)
        _links(ledger)
    except LostQuestionError:
        return True
    return False


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _is_tested(one: FrozenQuestion, ledger: Ledger) -> bool:
    """Whether some attack of its lists met samples to calibrate, also such as are not asked for any more."""
    recipes = [recipe for each in one.lists for recipe in each.recipes]
    found = ledger.query(
        f"SELECT 1 FROM all_cells WHERE recipe IN (SELECT unnest($recipes)) AND {_ON_CALIBRATE} LIMIT 1",
        {"recipes": recipes},
    )
    return bool(found.num_rows)


@dataclass(frozen=True)
class Link:
    """A question in the chain of all that stood in a run."""

    question: FrozenQuestion
    previous_tested: bool  # whether the test of the one before it was begun when this one took its place

    @property
    def content(self) -> str:
        """For a row of the ledger."""
        whole = asdict(self)
        del whole["question"]["earlier"], whole["question"]["n_elsewhere"]
        for one in whole["question"]["lists"]:
            del one["earlier"]
        return json.dumps(whole, sort_keys=True)


def _links(ledger: Ledger) -> dict[str, Link]:
    """Every question that stood, by its id in the chain, the first one first."""
    return linked(ledger.query("SELECT DISTINCT question, previous, content FROM questions").to_pylist(), ledger.path)


def linked(rows: Sequence[Mapping[str, Any]], place: Path) -> dict[str, Link]:
    """Rows of questions in their order, read and checked; refused where the chain is not whole."""
    after = {row["previous"]: row for row in rows}
    links: dict[str, Link] = {}
    last = ""
    while row := after.pop(last, None):
        last = row["question"]
        if last != digest([row["previous"], row["content"]]):
            raise _broken(place, "one was altered")
        try:
            links[last] = TypeAdapter(Link).validate_json(row["content"] or "", strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            raise _broken(place, f"{'.'.join(map(str, first['loc'])) or 'content'}: {first['msg']}") from None
    if len(links) != len(rows):
        raise _broken(place, "one is missing, or two took the place of the same one")
    return links


def _broken(place: Path, why: str) -> LostQuestionError:
    return LostQuestionError(place, f"the questions that were frozen do not follow each other ({why})")
