"""Spoiled files, one after another, against one loader in a process of its own, and what became of them.

A loader must load a file, or refuse it with an AdvriskError. Anything else is a fault: another exception, the end of
the process, more than `SECONDS` for one file, or more memory than `MEMORY` beyond what the program takes anyway.
"""

import multiprocessing
import resource
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from advrisk.core.errors import AdvriskError
from tests.fuzz.loaders import LOADERS, Loader, faulty
from tests.fuzz.mutations import spoiled

SECONDS = 60.0
MEMORY = 3 * 2**30
LOADED, REFUSED, FAULT = "loaded", "refused", "fault"


@dataclass
class Tally:
    """What became of the files given to one loader."""

    loader: str
    n: int = 0
    loaded: int = 0
    refused: int = 0
    slowest_s: float = 0.0
    faults: list[tuple[int, str]] = field(default_factory=list)  # place, and what happened
    messages: Counter[str] = field(default_factory=Counter)  # the kinds of errors

    def __str__(self) -> str:
        return (
            f"{self.loader:20} {self.n:7} files: {self.loaded:6} loaded, {self.refused:6} refused, "
            f"{len(self.faults)} faults; the slowest took {self.slowest_s:.2f} s"
        )


def fuzz(loader: str, n: int, *, seed: int = 0, seconds: float = SECONDS, most_faults: int = 20) -> Tally:
    """Give n spoiled files to a loader; after a crash or a hang a new process goes on with the next file."""
    tally, place = Tally(loader), 0
    context = multiprocessing.get_context("spawn")
    while place < n and len(tally.faults) < most_faults:
        ours, theirs = context.Pipe()
        process = context.Process(target=_feed, args=(loader, place, n, seed, theirs), daemon=True)
        process.start()
        theirs.close()
        place = _watch(process, ours, tally, place, seconds)
    return tally


def _watch(process: multiprocessing.Process, told: Connection, tally: Tally, place: int, seconds: float) -> int:
    """Listen to a process until its end; returns the place to go on from."""
    patience = 120.0  # it must import everything first
    begun = time.monotonic()
    while True:
        try:
            if not told.poll(patience):
                process.kill()
                tally.faults.append((place, f"no answer within {seconds:g} s"))
                break
            answer = told.recv()
        except EOFError:
            process.join(10)
            if process.exitcode == 0:
                return place
            if patience > seconds:
                raise RuntimeError(f"{tally.loader}: the loader does not take its own good files") from None
            tally.faults.append((place, f"the process ended with {process.exitcode}"))
            break
        patience = seconds
        if answer is None:  # ready
            begun = time.monotonic()
            continue
        outcome, message = answer
        tally.slowest_s = max(tally.slowest_s, time.monotonic() - begun)
        begun = time.monotonic()
        tally.loaded += outcome == LOADED
        tally.refused += outcome == REFUSED
        if outcome == FAULT:
            tally.faults.append((place, message))
        elif outcome == REFUSED:
            tally.messages[message] += 1
        tally.n += 1
        place += 1
    process.join(10)
    tally.n += 1
    return place + 1


def _feed(name: str, first: int, n: int, seed: int, told: Connection) -> None:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        loader = {**LOADERS, "faulty": faulty}[name](Path(folder))
        for which, content in enumerate(loader.seeds):
            loader.load(content, which)  # or the files that are spoiled are not good to begin with
        _limit_memory()
        told.send(None)
        for place in range(first, n):
            told.send(tried(loader, place, seed))
    told.close()


def tried(loader: Loader, place: int, seed: int) -> tuple[str, str]:
    """What becomes of the place-th file, and the kind of error or what is wrong."""
    content, which = spoiled_file(loader, place, seed)
    try:
        loader.load(content, which)
    except AdvriskError as error:
        return (REFUSED, type(error).__name__) if str(error).strip() else (FAULT, "an error without a word")
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if "/advrisk/" in frame.filename] or frames
        where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in (frames[-1], ours[-1]))
        return FAULT, f"{type(error).__name__}: {str(error)[:200]} ({where})"
    return LOADED, ""


def spoiled_file(loader: Loader, place: int, seed: int) -> tuple[bytes, int]:
    """The place-th file of a campaign, the same for the same seed, and which good file it was made from."""
    rng = np.random.default_rng([seed, place])
    which = int(rng.integers(len(loader.seeds)))
    return spoiled(loader.seeds[which], rng, loader.ways), which


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
