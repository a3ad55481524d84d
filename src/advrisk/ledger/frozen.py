"""What a certificate is about: the question, and for each model, norm and eps the list of attacks, frozen before its
test.

Both lie beside the ledger, written before the first cell on samples to calibrate is run. A question that was tested is
never forgotten: where another one takes its place, the samples are used a second time, and the new one says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from advrisk.core.digest import digest
from advrisk.core.errors import LedgerError
from advrisk.core.files import write_json
from advrisk.ledger.ledger import Ledger

FILE = "frozen.json"
_NOT_KNOWN = "which attacks were tested on these samples is not known any more: choose another folder and other samples"

Key = tuple[str, str, float]  # model, norm, eps


@dataclass(frozen=True)
class FrozenList:
    """The attacks on one model, within one eps, that a certificate is about.

    `searched` are those of them that a search found; the others stand in the study. `samples` names the samples to
    calibrate, by ids and contents. `earlier` are other lists for the same model, norm and eps whose test was begun on
    some of these samples before: what is certified now may have been chosen after a look at those results, and then
    nothing is guaranteed.
    """

    id: str
    model: str
    norm: str
    eps: float
    arms: tuple[str, ...]
    recipes: tuple[str, ...]
    searched: tuple[str, ...]
    samples: str
    n_samples: int
    frozen_at: str
    earlier: tuple["FrozenList", ...] = ()

    @property
    def key(self) -> Key:
        return self.model, self.norm, self.eps


def frozen_list(
    key: Key, recipes: Mapping[str, str], searched: Sequence[str], samples: Sequence[tuple[str, str]]
) -> FrozenList:
    """A list of arms (id -> recipe), named by its content; `samples` are ids and hashes."""
    model, norm, eps = key
    arms = tuple(sorted(recipes))
    used = [recipes[arm] for arm in arms]
    fingerprint = digest([list(pair) for pair in sorted(samples)])
    return FrozenList(
        id=digest([list(key), list(arms), used, fingerprint]),
        model=model,
        norm=norm,
        eps=eps,
        arms=arms,
        recipes=tuple(used),
        searched=tuple(sorted(searched)),
        samples=fingerprint,
        n_samples=len(samples),
        frozen_at=_now(),
    )


@dataclass(frozen=True)
class FrozenQuestion:
    """Everything that decides what is certified of a run, as it was settled before its test.

    `contents` name the samples to calibrate one by one. `earlier` are other questions whose test was begun on some of
    these samples before.
    """

    id: str
    alpha: float
    zeta: float
    method: str
    population: str | None
    lists: tuple[FrozenList, ...]
    samples: str
    contents: tuple[str, ...]
    frozen_at: str
    earlier: tuple["FrozenQuestion", ...] = ()

    @property
    def keys(self) -> dict[Key, FrozenList]:
        return {one.key: one for one in self.lists}


def frozen_question(
    lists: Sequence[FrozenList],
    samples: Sequence[tuple[str, str]],
    *,
    alpha: float,
    zeta: float,
    method: str,
    population: str | None,
) -> FrozenQuestion:
    """A question about lists that were made of the same `samples`, named by its content."""
    fingerprint = digest([list(pair) for pair in sorted(samples)])
    return FrozenQuestion(
        id=digest([alpha, zeta, method, population, fingerprint, sorted(one.id for one in lists)]),
        alpha=alpha,
        zeta=zeta,
        method=method,
        population=population,
        lists=tuple(lists),
        samples=fingerprint,
        contents=tuple(sorted(content or name for name, content in samples)),
        frozen_at=_now(),
    )


def frozen_lists(folder: str | Path) -> list[FrozenList]:
    """The lists that stand now, by model, norm and eps; none where nothing was frozen."""
    asked = asked_question(folder)
    if asked is None:
        return []
    others = {other.id: other for question in asked.earlier for other in question.lists}
    return [
        replace(one, earlier=tuple(other for other in others.values() if other.key == one.key and other.id != one.id))
        for one in sorted(asked.lists, key=lambda one: one.key)
    ]


def asked_question(folder: str | Path) -> FrozenQuestion | None:
    """The question that stands now, with those tested before on samples of it; None where nothing was frozen."""
    current, every = _read(Ledger.open(folder).path.parent)
    for one in every:
        if one.id == current:
            mine = set(one.contents)
            earlier = (other for other in every if other is not one and mine & set(other.contents))
            return replace(one, earlier=tuple(earlier))
    return None


def write_frozen(folder: Path, ledger: Ledger, question: FrozenQuestion) -> None:
    """Let this question stand. Others whose test was begun are remembered, the rest are forgotten."""
    current, every = _read(folder)
    if current == question.id:
        return
    tested = [one for one in every if one.id != question.id and any(_is_tested(each, ledger) for each in one.lists)]
    known = {one.id: one for question_ in every for one in question_.lists}
    own = next((one for one in every if one.id == question.id), question)
    own = replace(own, lists=tuple(known.get(one.id, one) for one in own.lists))  # as they were frozen at first
    content = {"current": question.id, "questions": [_plain(one) for one in (*tested, own)]}
    write_json(folder / FILE, content)


def refuse_lost(ledger: Ledger) -> None:
    """A run whose samples to calibrate were met, and that does not say any more by what."""
    path = ledger.path.parent / FILE
    if path.is_file():
        return
    met = ledger.query(
        "SELECT 1 FROM all_cells WHERE shard IN "
        "(SELECT shard FROM samples WHERE split IN ('calibrate', 'dropped-calibrate')) LIMIT 1"
    )
    if met.num_rows:
        raise LedgerError(f"{path}: is gone, although samples to calibrate were met; {_NOT_KNOWN}")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _is_tested(one: FrozenList, ledger: Ledger) -> bool:
    """Whether some attack of a list met samples to calibrate, also such as are not asked for any more."""
    found = ledger.query(
        "SELECT 1 FROM all_cells WHERE model = $model AND recipe IN (SELECT unnest($recipes)) AND shard IN "
        "(SELECT shard FROM samples WHERE split IN ('calibrate', 'dropped-calibrate')) LIMIT 1",
        {"model": one.model, "recipes": list(one.recipes)},
    )
    return bool(found.num_rows)


def _plain(one: FrozenQuestion) -> dict[str, object]:
    whole = asdict(one)
    whole["lists"] = [{name: value for name, value in each.items() if name != "earlier"} for each in whole["lists"]]
    return {name: value for name, value in whole.items() if name != "earlier"}


def _read(folder: Path) -> tuple[str, list[FrozenQuestion]]:
    path = folder / FILE
    try:
        content = TypeAdapter(_Content).validate_json(path.read_bytes(), strict=True)
    except FileNotFoundError:
        return "", []
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise LedgerError(f"{path}: cannot be read ({where}: {first['msg']}); {_NOT_KNOWN}") from None
    except OSError as error:
        raise LedgerError(f"{path}: cannot be read ({error.strerror}); {_NOT_KNOWN}") from None
    return content.current, content.questions


@dataclass(frozen=True)
class _Content:
    current: str
    questions: list[FrozenQuestion]
