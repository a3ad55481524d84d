"""How `advrisk run` ended before everything was done: what is done, what remains, and the command that resumes it."""

import shlex
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advrisk.core.durations import duration_text, parse_duration
from advrisk.core.errors import AdvriskError, StudyError

if TYPE_CHECKING:
    from advrisk.api.run import Run
    from advrisk.assess.status import Status
    from advrisk.run.progress import Progress

# Options that the resuming command repeats: all but the limits.
_REPEATED = {"workers": "--workers", "device": "--device", "on": "--on", "address": "--address", "target": "--target"}
_NOUNS = {
    "cells": ("cell", "cells"),
    "rounds": ("round of searches", "rounds of searches"),
    "calibration_cells": ("calibration cell", "calibration cells"),
    "measures": ("measure", "measures"),
    "scores": ("detector score", "detector scores"),
}


def time_limit(max_time: str | None, max_minutes: float | None) -> str | None:
    """The one time limit of `--max-time` and `--max-minutes`, as a duration."""
    if max_time is not None and max_minutes is not None:
        raise StudyError(f"--max-time {max_time} and --max-minutes {max_minutes:g} both limit the time; give one")
    if max_minutes is not None:
        return f"{max_minutes:.9f}m"
    if max_time is not None:
        try:
            parse_duration(max_time)
        except ValueError as error:
            raise StudyError(f"--max-time: {error}") from None
    return max_time


@dataclass(frozen=True)
class Ending:
    """A command that runs a study: what it was given, when it began, and what to say of its end."""

    study: Path
    folder: str
    options: Mapping[str, Any]
    began: float = field(default_factory=time.monotonic)

    @property
    def resume(self) -> str:
        """The command that does what is left: the same one without its limits."""
        words = ["advrisk", "run", str(self.study), "--out", self.folder]
        words += ["--retry-errors"] if self.options.get("retry_errors") else []
        for name, option in _REPEATED.items():
            given = self.options.get(name)
            for value in given if isinstance(given, list | tuple) else [given]:
                if value is not None and (name, value) != ("on", "local"):
                    words += [option, str(value)]
        return shlex.join(words)

    def facts(self, run: "Run", state: "Status", left: Mapping[str, int]) -> dict[str, Any]:
        """How a run ended, for `--json`; `looks` are its last interim analyses, `status` is as in `advrisk status`.

        `complete` is false for a run that stopped early, too; `resume` is null where it is complete.
        """
        complete = state.complete and not left
        return {
            "complete": complete,
            "stopped_by": self._stopped_by(run, state, left),
            "remaining": dict(left),
            "resume": None if complete else self.resume,
            "looks": state.looks,
            "status": state.as_dict(),
        }

    def _stopped_by(self, run: "Run", state: "Status", left: Mapping[str, int]) -> str | None:
        if left or not state.done:
            return "time" if self._late else None if self.options.get("max_passes") is None else "passes"
        if not state.rests or run.stopping is None:
            return None
        return "target" if run.stopping.max_passes is None else "passes"

    @property
    def _late(self) -> bool:
        limit = self.options.get("max_time")
        return limit is not None and time.monotonic() - self.began >= parse_duration(limit)

    def print_unfinished(self, state: "Status", left: Mapping[str, int]) -> None:
        """Say on standard error how far the run came, and how to resume it."""
        limit = ""
        if self._late:
            limit = f"Stopped by the time limit of {duration_text(parse_duration(self.options['max_time']))}: "
        elif passes := self.options.get("max_passes"):
            limit = f"Stopped by the limit of {passes:,} passes: "
        rest = ", ".join(f"{n:,} {_NOUNS[name][n > 1]}" for name, n in left.items())
        print(f"{limit}{state.so_far} are done{f'; {rest} left' if rest else ''}.", file=sys.stderr)
        print(f"Run the same command again to resume, or without limits: {self.resume}", file=sys.stderr)

    def print_interrupted(self) -> None:
        """The JSON of a run that was interrupted: what its ledger holds by then, if there is one."""
        from advrisk.api import Run

        facts: dict[str, Any] = {"complete": False, "remaining": None, "looks": [], "status": None}
        try:
            run = Run.open(self.folder)
            state = run.status()
            facts = self.facts(run, state, remaining(state, None))
        except AdvriskError as error:  # it had not begun
            facts |= {"message": str(error)}
        print_json(facts | {"complete": False, "stopped_by": "interrupt", "resume": self.resume})


def remaining(state: "Status", last: "Progress | None") -> dict[str, int]:
    """How much is left, by kind; empty if nothing is. Calibration cells count once it is known which they are."""
    left = {
        "cells": state.n_cells_expected - state.n_cells,
        "rounds": state.n_rounds_expected - state.n_rounds,
        "calibration_cells": (state.n_calibrated_expected or 0) - state.n_calibrated,
    }
    if last is not None:
        left |= {"measures": last.n_to_measure - last.n_measured, "scores": last.n_to_score - last.n_scored}
    return {name: n for name, n in left.items() if n > 0}


def print_json(facts: Mapping[str, Any]) -> None:
    """As strict JSON."""
    from advrisk.core.plain import json_text

    print(json_text(facts))
