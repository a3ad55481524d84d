"""A real S3 server on loopback, and runs that lie there by URL.

There is one server for all trials, each of which has a folder of its own there. What is shorter than for users: a
lease, so that nobody waits a minute for a writer that was killed.
"""

import functools
import importlib.util
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from unittest import mock

from tests.faults.processes import Command, Prepare
from tests.faults.trial import DONE, MISTAKE, Trial
from tests.servers import S3_SERVER, order, started

LASTS_S, RENEW_S, SETTLE_S = 3.0, 0.5, 0.1  # of a lease, in place of 60, 15 and 0.5
_TRIES = 12


def no_storage() -> str:
    """Why there is no server here; empty where there is one."""
    return "" if importlib.util.find_spec("moto") else "moto, the S3 server, is not installed"


@dataclass
class Storage:
    """The server, and how long a run without a fault takes on it."""

    address: str
    server: "subprocess.Popen[str]"
    length_s: float = 0.0
    names: Iterator[int] = field(default_factory=lambda: iter(range(10**9)))

    def tell(self, what: str) -> None:
        order(self.server, what)

    @contextmanager
    def still(self) -> Iterator[None]:
        """It answers nothing meanwhile, and everything later."""
        self.server.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.server.send_signal(signal.SIGCONT)

    @contextmanager
    def told(self, first: str, then: str) -> Iterator[None]:
        self.tell(first)
        try:
            yield
        finally:
            self.tell(then)

    def environment(self, cache: Path) -> dict[str, str]:
        """How users name the server, and the folder of a machine's copies."""
        return {
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://{self.address}",
            "ADVRISK_CACHE": str(cache),
        }


@functools.cache
def storage() -> Storage:
    """Start the server; it ends with this process."""
    from pyarrow import fs

    address, server = started(S3_SERVER)
    made = Storage(address, server)
    with mock.patch.dict(os.environ, made.environment(Path())):
        fs.S3FileSystem(endpoint_override=address, scheme="http", allow_bucket_creation=True).create_dir("bucket")
    return made


class Elsewhere:
    """A trial whose run lies on the server; `machine` names the one that works on it, which has copies of its own."""

    def __init__(self, trial: Trial) -> None:
        self.trial, self.storage = trial, storage()
        self.url = f"s3://bucket/run-{os.getpid()}-{next(self.storage.names)}"
        self.machine = "one"
        if not self.storage.length_s:
            run = self.run()
            trial.expect(run, DONE)
            self.storage.length_s = time.monotonic() - run.began
            self.url += "-next"

    def command(self, *words: object, prepare: Prepare | None = None) -> Command:
        names = self.storage.environment(self.trial.home / self.machine)
        return self.trial.command(*words, prepare=partial(_prepared, names, prepare))

    def run(self, *, prepare: Prepare | None = None) -> Command:
        names = self.storage.environment(self.trial.home / self.machine)
        return self.trial.run(out=self.url, prepare=partial(_prepared, names, prepare))

    def moment(self) -> None:
        """Wait until a random moment of a run."""
        time.sleep(float(self.trial.rng.uniform(0, self.storage.length_s)))

    def expect(self, run: Command, *codes: int) -> int:
        """As for others; a run that nothing struck shows how long one takes."""
        code = self.trial.expect(run, *codes)
        if code == DONE:
            self.storage.length_s = min(self.storage.length_s, 1.2 * (time.monotonic() - run.began))
        return code

    def finish(self) -> None:
        """Give the command again, here or on another machine, until the lease of a lost writer has run out."""
        self.machine = self.trial.one_of(["one", "another"])
        for _ in range(_TRIES):
            run = self.run()
            if self.trial.expect(run, DONE, MISTAKE) == DONE:
                break
            said = run.log.read_text(encoding="utf-8")
            assert "is writing to this folder" in said, said
            time.sleep(LASTS_S / 2)
        else:
            raise AssertionError("the folder is never free again")
        self.fetch()

    def fetch(self) -> None:
        """What is there now becomes what the trial is judged by; a lease or half a file is not left."""
        from advrisk.ledger import readable_storage
        from advrisk.ledger.sync.remote import Remote

        with mock.patch.dict(os.environ, self.storage.environment(self.trial.home / "judge")):
            names = list(Remote.open(self.url).listing())
            left = [
                name for name in names if name.startswith("lease") or any(part[0] == "." for part in Path(name).parts)
            ]
            assert not left, f"left behind: {left}"
            copy = readable_storage(self.url).folder
        for name in copy.glob(".*"):  # of the copy itself
            name.unlink()
        self.trial.out = copy


def _prepared(names: dict[str, str], prepare: Prepare | None) -> None:
    from advrisk.ledger.sync import lease

    os.environ.update(names)
    lease.LASTS_S, lease._RENEW_S, lease._SETTLE_S = LASTS_S, RENEW_S, SETTLE_S
    if prepare is not None:
        prepare()
