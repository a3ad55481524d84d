"""Which attacks a certificate is about: for each model, norm and eps the list that was frozen before its test.

The lists lie beside the ledger, written before the first cell on samples to calibrate is run. A list that was tested is
never forgotten: where another one takes its place, the samples are used a second time, and the new list says so.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from advrisk.core.digest import digest
from advrisk.core.errors import LedgerError
from advrisk.core.files import whole_file
from advrisk.ledger.ledger import Ledger

FILE = "frozen.json"

Key = tuple[str, str, float]  # model, norm, eps


@dataclass(frozen=True)
class FrozenList:
    """The attacks on one model, within one eps, that a certificate is about.

    `searched` are those of them that a search found; the others stand in the study. `samples` names the samples to
    calibrate, by ids and contents. `earlier` are other lists for the same model, norm and eps whose test was begun on
    samples of this run before: what is certified now may have been chosen after a look at those results, and then
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
        frozen_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def frozen_lists(folder: str | Path) -> list[FrozenList]:
    """The lists that stand now, by model, norm and eps; none where nothing was frozen."""
    current, every = _read(_home(folder))
    return [
        replace(one, earlier=tuple(other for other in every if other.key == one.key and other.id != one.id))
        for one in sorted(every, key=lambda one: one.key)
        if one.id in current
    ]


def write_frozen(folder: Path, ledger: Ledger, lists: Sequence[FrozenList]) -> None:
    """Let these lists stand. Others whose test was begun are remembered, the rest are forgotten."""
    current, every = _read(folder)
    if current == [one.id for one in lists]:
        return
    new = {one.id for one in lists}
    before = {one.id: one for one in every if one.id in new}
    tested = [one for one in every if one.id not in new and _is_tested(one, ledger)]
    kept = [*tested, *(before.get(one.id, one) for one in lists)]
    content = {"current": [one.id for one in lists], "lists": [_plain(one) for one in kept]}
    try:
        with whole_file(folder / FILE) as file:
            file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise LedgerError(f"{folder / FILE}: cannot be written: {error.strerror}") from None


def _is_tested(one: FrozenList, ledger: Ledger) -> bool:
    """Whether some attack of a list met samples to calibrate, also such as are not asked for any more."""
    found = ledger.query(
        "SELECT 1 FROM all_cells WHERE model = $model AND recipe IN (SELECT unnest($recipes)) AND shard IN "
        "(SELECT shard FROM samples WHERE split IN ('calibrate', 'dropped-calibrate')) LIMIT 1",
        {"model": one.model, "recipes": list(one.recipes)},
    )
    return bool(found.num_rows)


def _plain(one: FrozenList) -> dict[str, object]:
    return {name: value for name, value in asdict(one).items() if name != "earlier"}


def _home(folder: str | Path) -> Path:
    return Ledger.open(folder).path.parent


def _read(folder: Path) -> tuple[list[str], list[FrozenList]]:
    path = folder / FILE
    if not path.is_file():
        return [], []
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        lists = [
            FrozenList(**row | {name: tuple(row[name]) for name in ("arms", "recipes", "searched")})
            for row in content["lists"]
        ]
        return list(map(str, content["current"])), lists
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LedgerError(
            f"{path}: cannot be read ({error}); which attacks were tested on these samples is not known any more: "
            "choose another folder and other samples"
        ) from None
