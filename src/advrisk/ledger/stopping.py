"""The interim analyses of a run (`looks.json`), and where it stopped early: data only, `assess.stopping` has the words.

An interim analysis is never forgotten, as it has spent its share of the error that is allowed. Those of another
question stay in the file, and count again if that question is asked again. Readers are shown only those of samples
that are there and shown themselves.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from advrisk.core.digest import digest
from advrisk.core.errors import LedgerError
from advrisk.core.files import write_json
from advrisk.core.plain import InJson, plain
from advrisk.ledger.layout import EVASION_FILE, STUDY_FILE
from advrisk.ledger.ledger import Ledger
from advrisk.study import load_study, target_digests, target_kind

FILE = "looks.json"

# Shards to evaluate, of which not every cell that the study asks for is there.
_GAPS = """
    WITH wanted AS (SELECT coalesce(sum(repeats), 0) AS n FROM arms WHERE origin IN ('study', 'surrogate')),
    done AS (
        SELECT shard, count(*) AS n FROM cells JOIN arms USING (model, arm, recipe)
        WHERE origin IN ('study', 'surrogate') GROUP BY ALL
    )
    SELECT DISTINCT shard FROM samples LEFT JOIN done USING (shard), wanted
    WHERE split = 'evaluate' AND coalesce(done.n, 0) < wanted.n
"""


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
    question: str = ""  # names what was asked
    shards: str = ""  # names the shards that were looked at
    plan: str = ""  # names all that were to be run then, in their order

    in_json: ClassVar[InJson] = dict.fromkeys(("n_shards", "share", "question", "shards", "plan"))


@dataclass(frozen=True)
class Stopping:
    """Looks at a run, and whether it rests at one of them.

    `questions` names what is asked now, for each kind of target; `order` the shards in the order in which they are
    run. The run rests after the first `n_shards` of them; 0 while it goes on, and once it is done.
    """

    questions: Mapping[str, str]
    order: tuple[str, ...]
    n_samples: int  # all that are to be evaluated
    n_looks_planned: int
    looks: tuple[Look, ...] = ()  # at what is asked now
    n_shards: int = 0
    n_samples_run: int = 0  # samples of those shards
    max_passes: int | None = None  # that are spent, if that is why it rests; None: the targets are met
    earlier: tuple[Look, ...] = field(default=(), repr=False)  # at what was asked before
    gaps: frozenset[str] = field(default=frozenset(), repr=False)  # shards of which cells are missing; not in the file

    @property
    def rests(self) -> bool:
        return self.n_shards > 0

    @property
    def shards(self) -> tuple[str, ...]:
        """Those that it rests after."""
        return self.order[: self.n_shards]

    @property
    def plan(self) -> str:
        return digest(list(self.order))

    def spent(self, target: str) -> tuple[list[float], list[float]]:
        """Shares of the error that looks at a target have spent: while other samples were planned, and since."""
        own = [look for look in self.looks if look.target == target]
        return [one.share for one in own if one.plan != self.plan], [one.share for one in own if one.plan == self.plan]

    def look(self, target: str, n_shards: int) -> Look | None:
        """The look that was taken at the first so many shards, if any."""
        shards = digest(list(self.order[:n_shards]))
        return next((one for one in self.looks if (one.target, one.shards) == (target, shards)), None)

    def with_looks(self, *looks: Look) -> "Stopping":
        """With these, in place of what was seen there before."""
        places = {(one.target, one.shards) for one in looks}
        kept = [one for one in self.looks if (one.target, one.shards) not in places]
        return replace(self, looks=(*kept, *looks))

    def asking(self, questions: Mapping[str, str]) -> "Stopping":
        """The same run, of which this is asked now: looks at something else are earlier ones."""
        every = (*self.earlier, *self.looks)
        now = tuple(look for look in every if look.question == questions.get(target_kind(look.target)))
        return replace(
            self, questions=dict(questions), looks=now, earlier=tuple(look for look in every if look not in now)
        )

    @property
    def told(self) -> tuple[Look, ...]:
        """Looks at shards that are there, all of their cells; of a run that rests, those at where it does.

        Others were at samples that were removed or lost, or at more than are shown. They are spent all the same.
        """
        return tuple(look for look in self.looks if self._is_told(look))

    def _is_told(self, look: Look) -> bool:
        shards = self.order[: look.n_shards]
        shown = not self.rests or look.n_shards == self.n_shards
        return shown and digest(list(shards)) == look.shards and not self.gaps.intersection(shards)

    @property
    def latest(self) -> tuple[Look, ...]:
        """The last look at each target, of those that are told."""
        return tuple({look.target: look for look in sorted(self.told, key=lambda one: one.n_samples)}.values())

    @property
    def decision_level(self) -> float | None:
        """The level at which this run decides: that of the last look at a decision. None: nobody looked at one.

        Where looks were only at other samples, the strictest of them, until somebody looks again.
        """
        levels = [look.level for look in self.latest if look.decides]
        return max(levels or [look.level for look in self.looks if look.decides], default=None)

    def as_dict(self) -> dict[str, Any]:
        """What machines are told: whether it rests, and the last look at each target."""
        return {
            "rests": self.rests,
            "n_samples_run": self.n_samples_run if self.rests else None,
            "n_samples": self.n_samples,
            "max_passes": self.max_passes,
            "decision_level": self.decision_level,
            "looks": plain(self.latest),
        }


def asked_now(folder: Path) -> dict[str, str]:
    """Names what the study beside a ledger asks, for each kind of target; nothing where there is no study."""
    if not (folder / STUDY_FILE).is_file():
        return {}
    curve = folder / EVASION_FILE
    return target_digests(load_study(folder / STUDY_FILE), curve.read_text(encoding="utf-8") if curve.is_file() else "")


def read_stopping(folder: Path) -> Stopping | None:
    """What lies there; None where nobody looked and nothing stopped."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        content.pop("gaps", None)
        lists = {name: tuple(Look(**look) for look in content.pop(name)) for name in ("looks", "earlier")}
        return _checked(Stopping(**content | lists | {"order": tuple(content["order"])}))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise LedgerError(
            f"{path}: cannot be read ({error}); which looks were taken at this run is not known any more. Without the "
            "file the run can be read, but no decision that was taken on the way"
        ) from None


def resting_ledger(folder: str | Path) -> tuple[Ledger, Stopping | None]:
    """The ledger of a run by the study's names, as far as the run came; and the looks at what it asks now."""
    ledger = Ledger.open(folder).named()
    home = ledger.path.parent
    found = read_stopping(home)
    if found is None:
        return ledger, None
    asked = asked_now(home)  # the run that was to ask something else may have ended before it looked
    same = {kind: one for kind, one in found.questions.items() if one.startswith(asked.get(kind, ""))}
    ledger = ledger.of_shards(found.shards) if found.rests else ledger
    gaps = frozenset(ledger.query(_GAPS)["shard"].to_pylist()) if found.looks or found.earlier else frozenset()
    return ledger, replace(found.asking(same), gaps=gaps)


def _checked(found: Stopping) -> Stopping:
    """A file that somebody wrote by hand may hold anything."""
    looks = (*found.looks, *found.earlier)
    counts = [found.n_samples, found.n_looks_planned, found.n_shards, found.n_samples_run, found.max_passes or 0]
    counts += [number for look in looks for number in (look.n_shards, look.n_samples)]
    shares = [number for look in looks for number in (look.share, look.level)]
    words = [*found.questions.values(), *found.order]
    words += [word for one in looks for word in (one.target, one.said, one.question, one.shards, one.plan)]
    if not all(type(number) is int and number >= 0 for number in counts) or found.n_shards > len(found.order):
        raise ValueError("a number of samples, shards or passes is none")
    if not all(isinstance(number, int | float) and 0 < number <= 1 for number in shares):
        raise ValueError("a share or a level is not between 0 and 1")
    if not all(isinstance(word, str) for word in words):
        raise ValueError("a name is no text")
    if not all(type(flag) is bool for look in looks for flag in (look.met, look.decides)):
        raise ValueError("whether a look decides, or is met, is neither true nor false")
    if any(look.decides and look.level == 1 for look in looks) or _overspent(looks):
        raise ValueError("looks have spent all of the error")
    return found


def _overspent(looks: Sequence[Look]) -> bool:
    spent: dict[tuple[str, str], float] = {}
    for look in looks:
        if look.decides:
            spent[look.target, look.question] = spent.get((look.target, look.question), 0.0) + look.share
    return max(spent.values(), default=0.0) >= 1


def write_stopping(folder: Path, found: Stopping) -> None:
    """Let this stand."""
    content = asdict(found)
    content.pop("gaps")  # whoever reads it sees for himself
    write_json(folder / FILE, content)
