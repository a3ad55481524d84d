"""Which samples go into which split and shard. Pure: the same question gives the same answer."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advrisk.core.digest import digest
from advrisk.core.errors import DataError, LedgerError
from advrisk.core.names import did_you_mean
from advrisk.core.seeds import calibration_key, key
from advrisk.study import DataSpec

SPLITS = ("train", "tune", "calibrate", "evaluate")
POOL = "test"  # what a data source calls samples that any split may use
DROPPED = "dropped"  # what a ledger calls a sample that was evaluated and is not asked for any more


@dataclass(frozen=True)
class Shard:
    """Samples that are attacked together; named by their ids and contents, never cut again."""

    id: str
    samples: tuple[str, ...]


@dataclass(frozen=True)
class KnownSample:
    """What a ledger already says of a sample."""

    hash: str | None  # None where it was imported
    split: str
    shard: str | None = None
    place: int | None = None  # its position in the shard


def choose_splits(
    data: DataSpec,
    ids: Sequence[str],
    given: Sequence[str] | None,
    *,
    seed: int,
    labels: Sequence[int] | None = None,
) -> dict[str, str]:
    """Sample id -> split, for the samples that a study uses.

    In an order that depends on the seed and each id alone (if balanced, on its class among `labels`, too), `evaluate`
    takes samples from the front, `calibrate` from the back, `tune` from before those, and `train` from before these.
    Asking for more to evaluate or to train later adds samples and moves none; a larger `calibrate` moves the others,
    which a run that used them refuses (`refuse_moved`). Samples that the source itself marks for a split are for that
    split alone.
    """
    marked = given if given is not None else [POOL] * len(ids)
    if unknown := set(marked) - {POOL, *SPLITS}:
        raise DataError(f"the split {min(unknown)!r} is not known; {did_you_mean(min(unknown), (POOL, *SPLITS))}")
    class_of = dict(zip(ids, labels, strict=True)) if labels is not None and data.order == "balanced" else {}
    pool = _ordered([name for name, mark in zip(ids, marked, strict=True) if mark == POOL], data.order, seed, class_of)
    chosen: dict[str, str] = {}
    counts = {"evaluate": data.evaluate, "calibrate": data.calibrate, "tune": data.tune, "train": data.train}
    for split, count in counts.items():
        own = [name for name, mark in zip(ids, marked, strict=True) if mark == split]
        source = _ordered(own, data.order, seed, class_of) if own else pool
        n = len(source) if count == "all" else count
        if n > len(source) or (split == "evaluate" and n == 0):
            raise DataError(f"{split}: {n} samples are asked for, but {len(source)} are left of {len(ids)}")
        taken = source[:n] if split == "evaluate" else source[len(source) - n :]
        chosen |= dict.fromkeys(taken, split)
        pool = [name for name in pool if name not in chosen]
    return chosen


def samples_left(ids: Sequence[str], given: Sequence[str] | None, chosen: Mapping[str, str]) -> int:
    """Samples that `evaluate` could still take: those that the source marks for it, or else those for any split."""
    marked = given if given is not None else [POOL] * len(ids)
    source = "evaluate" if "evaluate" in marked else POOL
    return sum(mark == source and name not in chosen for name, mark in zip(ids, marked, strict=True))


def _ordered(ids: list[str], order: str, seed: int, class_of: Mapping[str, int]) -> list[str]:
    if order == "file":
        return ids
    shuffled = sorted(ids, key=lambda name: key("order", seed, name))
    if order == "shuffled":
        return shuffled
    seen: Counter[int] = Counter()
    rounds = {}
    for name in shuffled:  # each round takes one sample of every class that has one left
        rounds[name] = seen[class_of[name]]
        seen[class_of[name]] += 1
    return sorted(shuffled, key=rounds.__getitem__)


def dropped_from(split: str) -> str:
    """What a ledger calls a sample that was in that split and is not asked for any more."""
    return DROPPED if split == "evaluate" else f"{DROPPED}-{split}"


def cut_shards(
    wanted: Sequence[str], hashes: Mapping[str, str], known: Mapping[str, KnownSample], *, size: int
) -> list[Shard]:
    """Shards that hold every wanted sample of a split: those already cut stay whole, new samples make new ones."""
    for name, before in known.items():
        if name in hashes and before.hash is not None and hashes[name] != before.hash:
            raise LedgerError(f"sample {name} changed since this run began; choose another folder for the new data")
    members: dict[str, list[str]] = {}
    for name, before in sorted(known.items(), key=lambda item: (item[1].shard or "", item[1].place or 0)):
        if before.shard is not None:
            members.setdefault(before.shard, []).append(name)
    needed = {known[name].shard for name in wanted if name in known} - {None}
    kept = [Shard(shard, tuple(members[shard])) for shard in members if shard in needed]
    for shard in kept:
        for name in shard.samples:
            if name not in hashes:
                raise LedgerError(f"sample {name} is in this run but no longer in the data; choose another folder")
    placed = {name for shard in kept for name in shard.samples}
    new = [name for name in wanted if name not in placed]
    blocks = [new[start : start + size] for start in range(0, len(new), size)]
    return kept + [Shard(_shard_id(block, hashes), tuple(block)) for block in blocks]


def in_order_of_looks(shards: Sequence[Shard], hashes: Mapping[str, str]) -> list[Shard]:
    """Shards of samples to calibrate, the one that is looked at first before the others."""
    return sorted(shards, key=lambda shard: min(calibration_key(hashes[name], name) for name in shard.samples))


def _shard_id(samples: Sequence[str], hashes: Mapping[str, str]) -> str:
    return digest([[name, hashes[name]] for name in samples])[:16]


def refuse_moved(chosen: Mapping[str, str], known: Mapping[str, KnownSample]) -> None:
    """A sample that was used in one split must not turn up in another: its numbers would be tainted."""
    for name, split in chosen.items():
        before = known[name].split if name in known else split
        before = next((one for one in SPLITS if before == dropped_from(one)), before)
        if before != split:
            raise LedgerError(
                f"sample {name} was used as {before!r} in this run and is now {split!r}; choose another folder"
            )
