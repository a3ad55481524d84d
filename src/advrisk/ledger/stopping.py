"""That a run stopped before all samples were attacked, and why; and every look that was taken at it on the way.

It lies beside the ledger. What was looked at is never forgotten while the question stays the same: looks that were
taken have spent their share of the error that is allowed.
"""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from advrisk.core.errors import LedgerError
from advrisk.core.files import whole_file
from advrisk.ledger.ledger import Ledger

FILE = "looks.json"


@dataclass(frozen=True)
class Look:
    """One look at one target: after how many shards and samples, with which share of the error, and what was seen."""

    target: str
    decides: bool
    n_shards: int
    n_samples: int
    share: float  # of the error that all looks at this target may make together; 1 where nothing is decided
    level: float
    met: bool
    said: str


@dataclass(frozen=True)
class Stopping:
    """Looks at a run, and whether it rests at one of them.

    `question` names what was asked, `order` the shards in the order in which they are run. The run rests after the
    first `n_shards` of them; 0 while it goes on, and once it is done.
    """

    question: str
    order: tuple[str, ...]
    n_samples: int  # all that are to be evaluated
    planned: int  # looks in all
    looks: tuple[Look, ...] = ()
    n_shards: int = 0
    at: int = 0  # samples of those shards
    max_passes: int | None = None  # that are spent, if that is why it rests; None: the targets are met

    @property
    def rests(self) -> bool:
        return self.n_shards > 0

    @property
    def shards(self) -> tuple[str, ...]:
        """Those that it rests after."""
        return self.order[: self.n_shards]

    def spent(self, target: str) -> list[float]:
        """Shares of the error that looks at a target have spent."""
        return [look.share for look in self.looks if look.target == target]

    def look(self, target: str, n_shards: int) -> Look | None:
        """The look that was taken at that place, if any."""
        return next((one for one in self.looks if (one.target, one.n_shards) == (target, n_shards)), None)

    def with_looks(self, *looks: Look) -> "Stopping":
        """With these, in place of what was seen there before."""
        places = {(one.target, one.n_shards) for one in looks}
        kept = [one for one in self.looks if (one.target, one.n_shards) not in places]
        return replace(self, looks=(*kept, *looks))

    @property
    def latest(self) -> tuple[Look, ...]:
        """The last look at each target."""
        return tuple({look.target: look for look in sorted(self.looks, key=lambda one: one.n_samples)}.values())


def read_stopping(folder: Path) -> Stopping | None:
    """What lies there; None where nobody looked and nothing stopped."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        looks = tuple(Look(**look) for look in content.pop("looks"))
        return _checked(Stopping(**{**content, "looks": looks, "order": tuple(content["order"])}))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise LedgerError(
            f"{path}: cannot be read ({error}); which looks were taken at this run is not known any more. Without the "
            "file the run can be read, but no decision that was taken on the way"
        ) from None


def resting_ledger(folder: str | Path) -> tuple[Ledger, Stopping | None]:
    """The ledger of a run, of one that stopped early only as far as it came; and the looks at it."""
    ledger = Ledger.open(folder)
    found = read_stopping(ledger.path.parent)
    return (ledger.of_shards(found.shards) if found is not None and found.rests else ledger), found


def _checked(found: Stopping) -> Stopping:
    """A file that somebody wrote by hand may hold anything."""
    counts = [found.n_samples, found.planned, found.n_shards, found.at, found.max_passes or 0]
    counts += [number for look in found.looks for number in (look.n_shards, look.n_samples)]
    shares = [number for look in found.looks for number in (look.share, look.level)]
    words = [found.question, *found.order, *(word for look in found.looks for word in (look.target, look.said))]
    if not all(type(number) is int and number >= 0 for number in counts) or found.n_shards > len(found.order):
        raise ValueError("a number of samples, shards or passes is none")
    if not all(isinstance(number, int | float) and 0 <= number <= 1 for number in shares):
        raise ValueError("a share or a level is not between 0 and 1")
    if not all(isinstance(word, str) for word in words):
        raise ValueError("a name is no text")
    return found


def write_stopping(folder: Path, found: Stopping) -> None:
    """Let this stand."""
    try:
        with whole_file(folder / FILE) as file:
            file.write_text(json.dumps(asdict(found), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise LedgerError(f"{folder / FILE}: cannot be written: {error.strerror}") from None


def stopping_words(found: Stopping | None) -> list[str]:
    """What whoever reads the run must know: that it rests, why, and what the looks allow to be said."""
    if found is None:
        return []
    words = []
    if found.rests:
        why = "what was asked for is known" if found.max_passes is None else _spent(found.max_passes)
        words.append(f"Stopped early, after {found.at:,} of {found.n_samples:,} samples: {why}.")
    for look in found.latest:
        words.append(_looked(look, found))
    if found.rests and any(look.met and look.decides for look in found.looks):
        words.append("Other intervals and verdicts here are told as if nobody had looked before.")
    return words


def _looked(look: Look, found: Stopping) -> str:
    after = f"after {look.n_samples:,} of {found.n_samples:,} samples"
    number = sum(one.target == look.target for one in found.looks)
    level = f"at level {look.level:.4g}, at look {number} of at most {found.planned}, which share the error allowed"
    if not look.met:
        return f"The target `{look.target}` is not reached {after}{f' ({level})' if look.decides else ''}: {look.said}."
    if not look.decides:
        return f"The target `{look.target}` was reached {after}: {look.said}."
    return f"Decided {after} ({look.said}) {level}."


def _spent(max_passes: int) -> str:
    return f"another shard would probably have gone beyond {max_passes:,} passes"
