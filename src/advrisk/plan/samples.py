"""Splits and shards of samples. Pure functions: the same study gives the same split."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advrisk.core.digest import digest
from advrisk.core.errors import DataError, LedgerError
from advrisk.core.names import did_you_mean
from advrisk.core.seeds import calibration_key, key
from advrisk.study import DataSpec

SPLITS = ("train", "tune", "calibrate", "evaluate")
POOL = "test"  # a data source's mark of samples for any split
DROPPED = "dropped"  # the ledger's split of a sample that was evaluated and is no longer in the study


@dataclass(frozen=True)
class Shard:
    """Samples that are attacked together; named by their ids and contents, never cut again."""

    id: str
    samples: tuple[str, ...]


@dataclass(frozen=True)
class RecordedSample:
    """A sample in a ledger, as its row in the table `samples`."""

    hash: str | None  # None if imported
    split: str
    shard: str | None = None
    place: int | None = None  # its index in the shard


def choose_splits(
    data: DataSpec,
    ids: Sequence[str],
    marks: Sequence[str] | None,
    *,
    seed: int,
    labels: Sequence[int] | None = None,
) -> dict[str, str]:
    """Sample id -> split, for the samples that a study uses; `marks` are the splits that the source sets.

    In an order that depends on the seed and each id alone (if balanced, on its class among `labels`, too), `evaluate`
    takes samples from the front, `calibrate` from the back, `tune` from before those, and `train` from before these.
    More samples to evaluate or to train add samples and move none; a larger `calibrate` moves the others, which a run
    that used them refuses (`refuse_moved`). Samples that the source marks for a split are for that split alone.
    """
    marked = marks if marks is not None else [POOL] * len(ids)
    if unknown := set(marked) - {POOL, *SPLITS}:
        raise DataError(f"unknown split {min(unknown)!r}; {did_you_mean(min(unknown), (POOL, *SPLITS))}")
    class_of = dict(zip(ids, labels, strict=True)) if labels is not None and data.order == "balanced" else {}
    pool = _ordered([name for name, mark in zip(ids, marked, strict=True) if mark == POOL], data.order, seed, class_of)
    chosen: dict[str, str] = {}
    counts = {"evaluate": data.evaluate, "calibrate": data.calibrate, "tune": data.tune, "train": data.train}
    for split, count in counts.items():
        own = [name for name, mark in zip(ids, marked, strict=True) if mark == split]
        source = _ordered(own, data.order, seed, class_of) if own else pool
        n = len(source) if count == "all" else count
        if n > len(source) or (split == "evaluate" and n == 0):
            raise DataError(f"{split}: the study needs {n} samples, but {len(source)} of {len(ids)} are left")
        taken = source[:n] if split == "evaluate" else source[len(source) - n :]
        chosen |= dict.fromkeys(taken, split)
        pool = [name for name in pool if name not in chosen]
    return chosen


def samples_left(ids: Sequence[str], marks: Sequence[str] | None, chosen: Mapping[str, str]) -> int:
    """The number of samples that `evaluate` could still take: those marked for it, or else those for any split."""
    marked = marks if marks is not None else [POOL] * len(ids)
    source = "evaluate" if "evaluate" in marked else POOL
    return sum(mark == source and name not in chosen for name, mark in zip(ids, marked, strict=True))


def _ordered(ids: list[str], order: str, seed: int, class_of: Mapping[str, int]) -> list[str]:
    if order == "file":
        return ids
    shuffled = sorted(ids, key=lambda name: key("order", seed, name))
    if order == "shuffled":
        return shuffled
    counts: Counter[int] = Counter()
    rounds = {}
    for name in shuffled:  # each round takes one sample of every class that has one left
        rounds[name] = counts[class_of[name]]
        counts[class_of[name]] += 1
    return sorted(shuffled, key=rounds.__getitem__)


def dropped_from(split: str) -> str:
    """The ledger's split of a sample that was in `split` and is no longer in the study."""
    return DROPPED if split == "evaluate" else f"{DROPPED}-{split}"


def cut_shards(
    wanted: Sequence[str], hashes: Mapping[str, str], recorded: Mapping[str, RecordedSample], *, size: int
) -> list[Shard]:
    """Shards of all wanted samples of a split: existing shards stay whole, new samples make new ones."""
    for name, before in recorded.items():
        if name in hashes and before.hash is not None and hashes[name] != before.hash:
            raise LedgerError(f"sample {name} changed since this run began; choose another folder for the new data")
    members: dict[str, list[str]] = {}
    for name, before in sorted(recorded.items(), key=lambda item: (item[1].shard or "", item[1].place or 0)):
        if before.shard is not None:
            members.setdefault(before.shard, []).append(name)
    needed = {recorded[name].shard for name in wanted if name in recorded} - {None}
    kept = [Shard(shard, tuple(members[shard])) for shard in members if shard in needed]
    for shard in kept:
        for name in shard.samples:
            if name not in hashes:
                raise LedgerError(f"sample {name} is in this run but no longer in the data; choose another folder")
    assigned = {name for shard in kept for name in shard.samples}
    new = [name for name in wanted if name not in assigned]
    blocks = [new[start : start + size] for start in range(0, len(new), size)]
    return kept + [Shard(_shard_id(block, hashes), tuple(block)) for block in blocks]


def in_interim_order(shards: Sequence[Shard], hashes: Mapping[str, str]) -> list[Shard]:
    """Shards of the calibration split, in the order of their interim analyses."""
    return sorted(shards, key=lambda shard: min(calibration_key(hashes[name], name) for name in shard.samples))


def _shard_id(samples: Sequence[str], hashes: Mapping[str, str]) -> str:
    return digest([[name, hashes[name]] for name in samples])[:16]


def refuse_moved(chosen: Mapping[str, str], recorded: Mapping[str, RecordedSample]) -> None:
    """Refuse a sample that was used in another split: its results would be biased."""
    for name, split in chosen.items():
        before = recorded[name].split if name in recorded else split
        before = next((one for one in SPLITS if before == dropped_from(one)), before)
        if before != split:
            raise LedgerError(
                f"sample {name} was used as {before!r} in this run and is now {split!r}; choose another folder"
            )
