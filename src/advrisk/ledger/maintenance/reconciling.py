"""Whether two ledgers hold the same study: the same models, samples and settings, and the same rows where both have
a cell; what of the question only the second one holds; and the study of both, which names the models of both."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from advrisk.core.errors import AdvriskError, LedgerError
from advrisk.core.files import whole_file
from advrisk.core.names import counted
from advrisk.ledger.layout import STUDY_FILE
from advrisk.ledger.ledger import SOUND_CELL, Ledger
from advrisk.ledger.maintenance.diffing import COMPARED, TIMES, digest_of_rows
from advrisk.ledger.stopping import FILE as LOOKS_FILE
from advrisk.ledger.stopping import Stopping, read_stopping
from advrisk.ledger.tables import KEYS, table_from
from advrisk.study import as_written, load_study, plain_sizes, study_from, written_sizes

_DROPPED = "dropped"
_MODELS = "models"
# What must be the same of a thing that both name; null where one does not know it, as of imported samples.
_SAME = {
    "models": ("digest",),
    "samples": ("hash", "label", "weight", "strata", "shard", "place"),
    "arms": ("recipe", "seed"),
}
_WHY = {
    "models": "they are not the same model",
    "samples": "the data differ, or samples were added in other steps",
    "arms": "settings, seeds or versions differ",
}


def refuse_unlike(one: Path, other: Path) -> None:
    """Two runs that cannot be one: of other studies, models, samples or settings, or with other rows for a cell."""
    studies = [folder / STUDY_FILE for folder in (one, other)]
    if all(path.is_file() for path in studies):
        names = [load_study(path).name for path in studies]
        if names[0] != names[1]:
            raise LedgerError(f"{one} holds the study {names[0]!r}, and {other} {names[1]!r}; they cannot be merged")
    first, second = Ledger.open(one), Ledger.open(other)
    for table, columns in _SAME.items():
        held = _by_key(first, table)
        for key, row in _by_key(second, table).items():
            _refuse_row(table, key, columns, held.get(key, {}), row, one, other)
    shared_cells(first, second)


def refuse_unlike_looks(one: Path, other: Path) -> None:
    """Of a run that rests, readers see no more than it rests after; and a look that was taken cannot be untaken."""
    first, second = looks = [read_stopping(folder) for folder in (one, other)]
    if first == second or (first and second and _joined(first, second)):
        return
    for folder, found in zip((one, other), looks, strict=True):
        if found is not None and found.rests and not _at_one_place(first, second):
            raise LedgerError(
                f"{folder} stopped early, after {found.n_shards} of {counted(len(found.order), 'group')} of samples, "
                f"and the other one did not stop there: merged, they would be neither. Finish it first, with `advrisk "
                f"run STUDY.yaml --out {folder}` without a target"
            )
    if first is not None and second is not None:
        raise LedgerError(
            f"{LOOKS_FILE} of {one} and {other} differ: looks that were taken at one of them decide nothing of both; "
            "keep them apart, or merge before the first look"
        )


def joined_looks(one: Path, other: Path) -> Stopping | None:
    """Looks at two runs that were not refused, as those of one; None where there is nothing to join.

    A question names its models: what only one of them was asked decides nothing of both. Such looks stay as earlier
    ones, so that what they spent is not forgotten.
    """
    first, second = read_stopping(one), read_stopping(other)
    return None if first is None or second is None or first == second else _joined(first, second)


def _joined(first: Stopping, second: Stopping) -> Stopping | None:
    """None where they are of other samples, rest elsewhere, or saw other things when asked the same."""
    common = {kind: asked for kind, asked in first.questions.items() if second.questions.get(kind) == asked}
    every = [(*found.looks, *found.earlier) for found in (first, second)]
    ours, theirs = ({look for look in looks if look.question in common.values()} for looks in every)
    if not _at_one_place(first, second) or ours != theirs:
        return None
    return replace(
        first,
        looks=tuple(dict.fromkeys((*every[0], *every[1]))),
        earlier=(),
        n_looks_planned=max(first.n_looks_planned, second.n_looks_planned),
        max_passes=second.max_passes if first.max_passes is None else first.max_passes,
    ).asking(common)


def _at_one_place(first: Stopping | None, second: Stopping | None) -> bool:
    return first is not None and second is not None and (first.order, first.n_shards) == (second.order, second.n_shards)


def _refuse_row(
    table: str,
    key: tuple[Any, ...],
    columns: Sequence[str],
    ours: Mapping[str, Any],
    theirs: Mapping[str, Any],
    one: Path,
    other: Path,
) -> None:
    for column in columns:
        found = [row.get(column) for row in (ours, theirs)]
        if None not in found and found[0] != found[1]:
            raise LedgerError(
                f"{table}: {' against '.join(map(str, reversed(key)))} has the {column} {found[0]} in {one} and "
                f"{found[1]} in {other}: {_WHY[table]}, so the two ledgers cannot be merged"
            )
    if table == "samples" and ours and _split(ours) != _split(theirs):
        raise LedgerError(
            f"samples: {key[0]} was used as {_split(ours)!r} in {one} and as {_split(theirs)!r} in {other}, so the two "
            "ledgers cannot be merged"
        )


def _split(row: Mapping[str, Any]) -> str:
    """The split of a sample, also if it is not asked for any more."""
    split = str(row["split"])
    return "evaluate" if split == _DROPPED else split.removeprefix(f"{_DROPPED}-")


def _by_key(ledger: Ledger, table: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    rows: list[dict[str, Any]] = ledger.query(f"FROM {table} ORDER BY {', '.join(KEYS[table])}").to_pylist()
    return {tuple(row[name] for name in KEYS[table]): row for row in rows}


def shared_cells(one: Ledger, other: Ledger) -> tuple[set[str], set[str]]:
    """The cells that both hold, and those of them that ended in errors or were cut short in the first ledger only.

    Cells with different rows that are sound in both are refused, by name.
    """
    ours, theirs = _digests(one), _digests(other)
    shared = ours.keys() & theirs.keys()
    better = {cell for cell in shared if ours[cell][0] and not theirs[cell][0]}
    unlike = sorted(cell for cell in shared if not ours[cell][0] and not theirs[cell][0] and ours[cell] != theirs[cell])
    if unlike:
        raise LedgerError(
            f"{one.path.parent} and {other.path.parent} hold different rows for {counted(len(unlike), 'cell')}: "
            + "; ".join(_conflict(one, other, cell) for cell in unlike[:3])
            + ". Find out which is right, with `advrisk ledger diff`; they cannot be merged"
        )
    return shared, better


def _digests(ledger: Ledger) -> dict[str, tuple[int, ...]]:
    """Cell -> whether it is not sound, and digests of its outcomes and outputs, times aside."""
    columns = {name: [one for one in COMPARED[name].columns if one not in TIMES] for name in ("outcomes", "outputs")}
    parts = {
        name: f"SELECT cell, count(*) AS n, {digest_of_rows(['sample', *own])} AS digest FROM {name} GROUP BY cell"
        for name, own in columns.items()
    }
    rows = ledger.query(
        f"SELECT c.cell, NOT {SOUND_CELL}, coalesce(o.n, 0), coalesce(o.digest, '0'), coalesce(u.n, 0), "
        f"coalesce(u.digest, '0') FROM cells c LEFT JOIN ({parts['outcomes']}) o USING (cell) "
        f"LEFT JOIN ({parts['outputs']}) u USING (cell)"
    ).to_pylist()
    return {cell: tuple(map(int, told)) for cell, *told in (row.values() for row in rows)}


def _conflict(one: Ledger, other: Ledger, cell: str) -> str:
    """Which cell, and the first row in which it differs."""
    columns = [name for name in COMPARED["outcomes"].columns if name not in TIMES]
    asked = f"SELECT model, arm, repeat, sample, {', '.join(columns)} FROM outcomes WHERE cell = $cell ORDER BY sample"
    ours, theirs = (ledger.query(asked, {"cell": cell}).to_pylist() for ledger in (one, other))
    name = f"cell {cell}" if not ours else f"{ours[0]['arm']} against {ours[0]['model']}, repeat {ours[0]['repeat']}"
    by_sample = {row["sample"]: row for row in theirs}
    for row in ours:
        found = by_sample.get(row["sample"])
        unlike = ["its rows"] if found is None else [key for key in row if repr(row[key]) != repr(found[key])]
        if unlike:
            return f"{name}, sample {row['sample']} ({', '.join(unlike)})"
    return f"{name} (its outputs)"


def added_question(ledger: Ledger, other: Ledger) -> dict[str, pa.Table]:
    """Models, arms and samples that only the other ledger knows, or that only it asks for still."""
    added = {}
    for table in KEYS:
        held = _by_key(ledger, table)
        rows = [row for key, row in _by_key(other, table).items() if _is_news(table, held.get(key), row)]
        if rows:
            added[table] = table_from(table, {name: [row[name] for row in rows] for name in rows[0]})
    return added


def _is_news(table: str, ours: Mapping[str, Any] | None, theirs: Mapping[str, Any]) -> bool:
    if ours is None:
        return True
    if table == "arms":
        dropped = ours["origin"] == _DROPPED != theirs["origin"]
        return dropped or (theirs["origin"] != _DROPPED and (theirs["repeats"] or 0) > (ours["repeats"] or 0))
    if table == "samples":
        dropped = [str(row["split"]).startswith(_DROPPED) for row in (ours, theirs)]
        return dropped == [True, False] or (ours["shard"] is None and theirs["shard"] is not None)
    return False


def join_studies(source: Path, target: Path) -> None:
    """Let the study of the target name the models of both, if the studies differ in nothing else."""
    text = _joined_text(target, source)
    if text is None:
        return
    try:
        with whole_file(target / STUDY_FILE) as file:
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise LedgerError(f"{target / STUDY_FILE}: cannot be written: {error.strerror}") from None


def unjoined(one: Path, other: Path) -> list[str]:
    """The models of both, where their studies cannot be joined; nothing where they can, or one of them has none."""
    studies = [folder / STUDY_FILE for folder in (one, other)]
    if not all(path.is_file() for path in studies) or _joined_text(one, other) is not None:
        return []
    ours, theirs = map(_compared_study, studies)
    if ours == theirs | {_MODELS: ours[_MODELS] | theirs[_MODELS]}:
        return []  # the first one asks all that the other does
    return sorted(ours[_MODELS].keys() | theirs[_MODELS].keys())


def _joined_text(one: Path, other: Path) -> str | None:
    """The text of the first study with the models of both; None where that says nothing new, or is no study."""
    studies = [folder / STUDY_FILE for folder in (one, other)]
    if not all(path.is_file() for path in studies):
        return None
    ours, theirs = map(_compared_study, studies)
    models, added = ours[_MODELS], {name: one for name, one in theirs[_MODELS].items() if name not in ours[_MODELS]}
    if not added or theirs | {_MODELS: models | added} != ours | {_MODELS: models | theirs[_MODELS]}:
        return None
    content = as_written(ours | {_MODELS: models | added}, written_sizes(_read_study(studies[0])))
    try:
        study_from(content)
    except AdvriskError:
        return None
    head = _comments(studies[0])
    if (others := _comments(studies[1])) != head:
        head += [f"# Of {', '.join(added)}: {line.removeprefix('# ')}" for line in others]
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110)
    return "".join(f"{line}\n" for line in head) + text


def _read_study(path: Path) -> dict[str, Any]:
    """What stands in the file of a study that was read before."""
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content


def _compared_study(path: Path) -> dict[str, Any]:
    """The same with sizes as numbers: 8/255 is not another question than 0.03137254901960784."""
    content: dict[str, Any] = plain_sizes(_read_study(path))
    return content


def _comments(path: Path) -> list[str]:
    """What is said of where relative paths are meant."""
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
