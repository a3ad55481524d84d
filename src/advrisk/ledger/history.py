"""The history of a ledger: every segment that was published, so that one that is lost is missed.

    ledger/history.jsonl    {"segment": "00000001-3f2a9c1b", "digest": "…"}     digest: of its `segment.json`
                            {"removed": ["00000001-3f2a9c1b"], "accepted": ["…"]}     by a repair

A line is added once its segment has its name, and was pushed; a killed writer leaves a segment without a line, which
the next one adds. So the history names nothing that was not published, if it is read before segments are listed. A
segment that is gone is lost, unless another one replaced it or a repair removed it.

Lines are chained: `segment.json` holds the head of the chain at its publication (`after`), so that lines that were
altered or deleted contradict the segments that came later; while others write, only what `later_history` says counts
there. Segments of earlier versions have neither.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from advrisk.core.digest import digest_bytes
from advrisk.core.errors import LedgerError
from advrisk.core.files import NOT_AS_WRITTEN, whole_file
from advrisk.core.shortage import ShortageError, refuse_shortage
from advrisk.ledger.manifest import ADVICE, SEGMENT_NAME, Manifest

FILE = "history.jsonl"
_BEGINNING = ""  # the head before the first line


@dataclass(frozen=True)
class History:
    """What was published: segment -> digest of its `segment.json`, null if it had none; and the heads of the chain."""

    lines: tuple[str, ...] = ()
    digests: Mapping[str, str | None] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    accepted: frozenset[str] = frozenset()  # heads of lines that a repair found gone
    head: str = _BEGINNING
    heads: frozenset[str] = frozenset({_BEGINNING})

    @property
    def required(self) -> set[str]:
        """The segments that must be there, or replaced by another one."""
        return self.digests.keys() - self.removed

    def lost(self, there: Collection[str]) -> list[str]:
        """Published segments that are gone; `there` are those that exist, and those that one of these replaced."""
        return sorted(self.required - set(there))

    def unlike(self, name: str, manifest: Manifest | None) -> bool:
        """Whether a segment is not the one that was published under its name."""
        published = self.digests.get(name)
        return published is not None and (manifest is None or manifest.digest != published)

    def lacks_lines(self, manifest: Manifest | None) -> bool:
        """Whether a segment was published after lines that are not here as they were."""
        return manifest is not None and manifest.after is not None and manifest.after not in self.heads


def read_history(ledger: Path) -> History:
    """The history of a ledger; empty where there is none."""
    path = ledger / FILE
    try:
        return _parsed(path.read_text(encoding="utf-8").splitlines())
    except (FileNotFoundError, NotADirectoryError):
        return History()
    except NOT_AS_WRITTEN as error:
        refuse_shortage(error)
        raise LedgerError(f"{path}: cannot be read ({error}); {ADVICE}") from None


def later_history(ledger: Path, history: History, manifests: Iterable[Manifest | None]) -> History:
    """A history that was read before segments were listed, read again if it lacks lines that came meanwhile."""
    return read_history(ledger) if any(map(history.lacks_lines, manifests)) else history


def add_published(ledger: Path, history: History, segments: Mapping[str, str | None]) -> History:
    """Add a line for each of these segments, by name, with the digest of its manifest."""
    lines = [json.dumps({"segment": name, "digest": one}) for name, one in segments.items()]
    return _write(ledger, [*history.lines, *lines]) if lines else history


def remove(ledger: Path, names: Sequence[str]) -> None:
    """Let a history not require these segments any more; only a repair may do this."""
    _write(ledger, [*read_history(ledger).lines, json.dumps({"removed": list(names), "accepted": []})])


def take_over_repairs(ledger: Path, other: Path) -> None:
    """Let a history name what repairs of another ledger removed, whose rows are about to be appended."""
    mine, theirs = read_history(ledger), read_history(other)
    removed = sorted(theirs.removed - mine.required - mine.removed)
    accepted = sorted(theirs.accepted - mine.accepted)
    if removed or accepted:
        _write(ledger, [*mine.lines, json.dumps({"removed": removed, "accepted": accepted})])


def settle(ledger: Path, sound: Mapping[str, Manifest | None]) -> None:
    """Let a history require no other segments than these, which are sound; only a repair may do this."""
    try:
        history = read_history(ledger)
    except ShortageError:
        raise
    except LedgerError:
        history = History()  # what cannot be read is written anew
    required = history.required
    removed = sorted(required - sound.keys())
    heads = {one.after for one in sound.values() if one is not None and one.after is not None}
    repaired = {"removed": removed, "accepted": sorted(heads - history.heads)}
    lines = [*history.lines, *([json.dumps(repaired)] if any(repaired.values()) else [])]
    wrong = [name for name, one in sound.items() if history.unlike(name, one)]
    new = [name for name in sound if name not in required]
    for name in (*new, *wrong):
        one = sound[name]
        lines.append(json.dumps({"segment": name, "digest": None if one is None else one.digest}))
    _write(ledger, lines)


def _parsed(lines: Iterable[str]) -> History:
    digests: dict[str, str | None] = {}
    removed: set[str] = set()
    head, heads, accepted = _BEGINNING, [_BEGINNING], list[str]()
    kept = tuple(lines)
    for line in kept:
        entry = json.loads(line)
        if "segment" in entry:
            name, published = entry["segment"], entry["digest"]
            if not SEGMENT_NAME.fullmatch(name) or not isinstance(published, str | None):
                raise ValueError(f"{name!r} is no segment")
            digests[name] = published
            removed.discard(name)
        else:
            removed |= set(map(str, entry["removed"]))
            accepted += map(str, entry["accepted"])
        head = digest_bytes(head.encode(), line.encode())
        heads.append(head)
    return History(kept, digests, frozenset(removed), frozenset(accepted), head, frozenset([*heads, *accepted]))


def _write(ledger: Path, lines: list[str]) -> History:
    target = ledger / FILE
    try:
        with whole_file(target) as path:
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise LedgerError(
            f"{target}: cannot be written: {error.strerror or error}; what was published is intact. Make room or mend "
            "the disk, then run the same command again"
        ) from None
    return _parsed(lines)
