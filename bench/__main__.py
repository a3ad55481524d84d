"""Run every benchmark, those of a shard, or those named: `python -m bench --shard engine`, `python -m bench ledger`.

With --page, what each benchmark prints replaces what stands between `<!-- NAME -->` and `<!-- /NAME -->` of that page.
"""

import argparse
import contextlib
import importlib
import io
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from advrisk.core.errors import RunError
from advrisk.core.names import did_you_mean
from bench.shards import SHARDS, benchmarks
from studies.page import fenced, fill


@dataclass(frozen=True)
class Measured:
    """What a benchmark printed, and what it took."""

    lines: list[str]
    process_s: float  # of the processor, with the processes that it started
    wall_s: float


class Tee(io.StringIO):
    """Text that is kept, and shown at once."""

    def __init__(self, shown: io.TextIOBase) -> None:
        super().__init__()
        self.shown = shown

    def write(self, text: str, /) -> int:
        self.shown.write(text)
        self.shown.flush()
        return super().write(text)


def main(words: Sequence[str] | None = None) -> int:
    """Parse arguments, run, and print what each took."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"benchmarks: {', '.join(benchmarks())}")
    parser.add_argument("--shard", choices=list(SHARDS), help="those of one shard")
    parser.add_argument("--tiny", action="store_true", help="a size at which figures mean nothing, to see that it runs")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write what they print into this page")
    given = parser.parse_args(words)
    try:
        taken = {name: _run(name, given.page, tiny=given.tiny) for name in _chosen(given.names, given.shard)}
        print("\n" + "\n".join(_times(taken)))
    except RunError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    return 0


def _chosen(names: Sequence[str], shard: str | None) -> Sequence[str]:
    unknown = [name for name in names if name not in benchmarks()]
    if unknown:
        raise RunError(f"there is no benchmark {unknown[0]!r}; {did_you_mean(unknown[0], benchmarks())}")
    return names or (SHARDS[shard] if shard else benchmarks())


def _run(name: str, page: Path | None, *, tiny: bool) -> Measured:
    module = importlib.import_module(f"bench.{name}")
    print(f"\n== {name}: {(module.__doc__ or '').splitlines()[0]}", flush=True)
    began, began_process = time.perf_counter(), _process_s()
    with contextlib.redirect_stdout(Tee(sys.stdout)) as printed:
        module.main(tiny=tiny)
    found = Measured(
        printed.getvalue().rstrip("\n").splitlines(), _process_s() - began_process, time.perf_counter() - began
    )
    if page:
        fill(page, {name: fenced(found.lines)})
    return found


def _process_s() -> float:
    """Seconds of the processor until now, of this process and of those that it started and that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _times(taken: dict[str, Measured]) -> list[str]:
    lines = [f"{'benchmark':22} {'processor s':>12} {'clock s':>8}"]
    lines += [f"{name:22} {one.process_s:12.0f} {one.wall_s:8.0f}" for name, one in taken.items()]
    total = sum(one.process_s for one in taken.values()), sum(one.wall_s for one in taken.values())
    return [*lines, f"{'all':22} {total[0]:12.0f} {total[1]:8.0f}"]


if __name__ == "__main__":
    sys.exit(main())
