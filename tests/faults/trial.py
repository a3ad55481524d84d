"""One trial: a study, a fault, the same command again until it is done, and the ledger held against the reference."""

import hashlib
import signal
import time
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from advrisk.core.flags import CUT_SHORT
from advrisk.ledger import Ledger
from advrisk.ledger.maintenance.checking import check
from advrisk.ledger.maintenance.diffing import diff_ledgers
from advrisk.testing.ledgers import outcome_rows, output_rows
from tests.faults.processes import Command, Prepare, strays, without_report
from tests.faults.study import Studied

DONE, MISTAKE, ERROR_ROWS, INTERRUPTED = 0, 2, 3, 130
TOLD = {
    DONE: "went on",
    MISTAKE: "ended with a message",
    ERROR_ROWS: "error rows",
    INTERRUPTED: "ended in order",
    -signal.SIGKILL: "killed",
    -signal.SIGTERM: "killed",
}


@dataclass
class Reference:
    """A run without a fault, and how long it took; later runs that nothing struck may show that it takes less."""

    folder: Path
    length_s: float

    @cached_property
    def content(self) -> dict[str, Any]:
        return content(self.folder)

    @cached_property
    def ledger(self) -> Ledger:
        return Ledger.open(self.folder)


def content(folder: Path) -> dict[str, Any]:
    """What two runs are compared by: rows, answers and kept inputs, byte by byte."""
    inputs = {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((folder / "inputs").rglob("*.np?"))
    }
    return {"outcomes": outcome_rows(folder), "outputs": output_rows(folder), "inputs": inputs}


@dataclass
class Trial:
    """A folder of its own, random numbers of its own, and the commands that were given so far."""

    home: Path
    studied: Studied
    reference: Reference
    rng: np.random.Generator
    out: Path = field(init=False)  # the run's folder
    commands: list[Command] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.out = self.home / "run"

    def command(self, *words: object, prepare: Prepare | None = None) -> Command:
        log = self.home / f"log-{len(self.commands)}"
        self.commands.append(Command(*words, folder=self.studied.folder, log=log, prepare=prepare))
        return self.commands[-1]

    def run(
        self,
        *words: object,
        out: str = "",
        workers: int = 1,
        report: bool = False,
        prepare: Prepare | None = None,
    ) -> Command:
        """The command that is given again and again; `out` may be a URL."""
        asked = ("run", self.studied.file, "--out", out or self.out, "--workers", workers, "--publish-s", "0.1", *words)
        return self.command(*asked, prepare=partial(_prepared, report, prepare))

    def moment(self) -> None:
        """Wait until a random moment of a run."""
        time.sleep(float(self.rng.uniform(0, self.reference.length_s)))

    def one_of(self, choices: list[Any]) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def finish(self, *, retry: bool = False) -> bool:
        """Give the command again; whether there was something to be tried again. It must end well."""
        if not retry:
            retry = self.expect(self.run(), DONE, ERROR_ROWS) == ERROR_ROWS or bool(self.cut_short())
        if retry:
            self.expect(self.run("--retry-errors"), DONE)
        return retry

    def cut_short(self) -> list[str]:
        """The cells that say so."""
        sql = f"SELECT cell FROM cells WHERE list_contains(flags, '{CUT_SHORT}')"
        return list(Ledger.open(self.out).query(sql)["cell"].to_pylist())

    def expect(self, command: Command, *codes: int) -> int:
        """Its exit code, which must be one of these; without a traceback."""
        code = command.code()
        said = command.log.read_text(encoding="utf-8", errors="replace") if command.log.exists() else ""
        assert code in codes, f"exit code {code}: {said}"
        assert "Traceback" not in said, said
        if code == DONE and command is self.commands[0] and command.word == "run":
            self.reference.length_s = min(self.reference.length_s, 1.2 * (time.monotonic() - command.began))
        return code

    def verify(self) -> None:
        """Everything is there, as without the fault, and nothing else."""
        left = strays(self.home)
        assert not left, f"processes are left: {left}"
        found = content(self.out)
        for name, expected in self.reference.content.items():
            assert found[name] == expected, f"{name}: {_difference(found[name], expected)}"
        unequal = diff_ledgers(self.out, self.reference.ledger).tables
        assert not unequal, f"the ledgers differ: {unequal}"
        findings = check(self.out).findings
        assert not findings, f"check: {findings}"
        unfinished = [path for path in self.out.rglob(".*") if "aside" not in path.parts]
        assert not unfinished, f"unfinished: {unfinished}"


def _prepared(report: bool, prepare: Prepare | None) -> None:
    if not report:
        without_report()
    if prepare is not None:
        prepare()


def _difference(found: Any, expected: Any) -> str:
    """The first thing that is not as expected."""
    if isinstance(found, dict):
        unequal = [name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name)]
        return f"{len(unequal)} of {len(expected)} differ: {sorted(unequal)[:3]}"
    if len(found) != len(expected):
        return f"{len(found)} rows, and {len(expected)} were expected"
    one, other = next((one, other) for one, other in zip(found, expected, strict=True) if one != other)
    return str({name: (one[name], other[name]) for name in one if one[name] != other[name]})
