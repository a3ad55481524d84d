"""Faults of a run on object storage: the same commands with a URL, against a real server on loopback."""

import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from unittest import mock

from tests.faults.kinds import JUMPS_S, MissedError, jump, kind, spoiled_bytes, told
from tests.faults.storage import Elsewhere, Storage, no_storage
from tests.faults.trial import DONE, MISTAKE, Trial


@kind("storage: driver killed", unable=no_storage)
def driver_killed(trial: Trial) -> str:
    """kill -9 of the driver while it puts segments there; its lease is left behind."""
    there = Elsewhere(trial)
    run = there.run()
    there.moment()
    run.send(signal.SIGKILL)
    code = there.expect(run, DONE, -signal.SIGKILL)
    there.finish()
    return told(trial, code, struck=code != DONE)


@kind("storage: nothing is taken", unable=no_storage)
def nothing_is_taken(trial: Trial) -> str:
    """The server answers every PUT with 503 for a while, and everything else as ever."""
    return _for_a_while(trial, lambda storage: storage.told("refuse", "accept"))


@kind("storage: server away", unable=no_storage)
def server_away(trial: Trial) -> str:
    """Nobody listens for a while, or who listens does not answer."""
    return _for_a_while(
        trial, lambda storage: storage.still() if trial.rng.random() < 0.3 else storage.told("away", "back")
    )


@kind("storage: clocks apart", unable=no_storage)
def clocks_apart(trial: Trial) -> str:
    """A second machine, whose clock is off by a minute or by ten years, begins the run that the first is at."""
    there = Elsewhere(trial)
    first = there.run()
    there.moment()
    there.machine = "off"
    struck = first.is_alive
    second = there.run(prepare=partial(jump, 0.0, trial.one_of([*JUMPS_S])))
    codes = [trial.expect(run, DONE, MISTAKE) for run in (first, second)]
    there.finish()
    if not struck:
        trial.verify()
        raise MissedError
    if codes == [DONE, DONE]:
        return "second waited or had nothing to do"
    return "second refused" if codes[0] == DONE else "first ended with a message"


@kind("storage: files damaged", unable=no_storage)
def files_damaged(trial: Trial) -> str:
    """Bytes of a segment or of kept inputs that lie there change, or the file is cut, grows or is gone."""
    from advrisk.ledger.sync.remote import Remote

    there = Elsewhere(trial)
    trial.expect(there.run(), DONE)
    with mock.patch.dict("os.environ", there.storage.environment(trial.home / "judge")):
        remote = Remote.open(there.url)
        names = [name for name in sorted(remote.listing()) if name.endswith((".zip", ".npz"))]
        name = trial.one_of(names)
        spoiled = spoiled_bytes(trial, remote.get(name))
        if spoiled is None:
            remote.delete(name)
        else:
            with remote.files.open_output_stream(f"{remote.root}/{name}") as file:
                file.write(spoiled)
    there.machine = "another"
    trial.expect(there.command("ledger", "check", there.url, "--repair"), DONE)
    there.finish()
    return "run again" if spoiled is None and name.endswith(".zip") else "found and repaired"


def _for_a_while(trial: Trial, fault: Callable[[Storage], AbstractContextManager[None]]) -> str:
    """Something is wrong with the server from some moment of a run on, and is well again some seconds later."""
    there = Elsewhere(trial)
    run = there.run()
    there.moment()
    with fault(there.storage):
        struck = run.is_alive
        time.sleep(float(trial.rng.uniform(0.1, 4)))
    code = trial.expect(run, DONE, MISTAKE)
    there.finish()
    return told(trial, code, struck=struck)
