"""Who writes to a folder on object storage, which has no locks: a file that says so, renewed while the writer lives.

Two writers that start at the same moment both write it, wait, and read it again: the one whose words stand there goes
on. What this cannot rule out: a writer that is stopped for longer than a lease lasts, and then goes on before it looks;
clocks that are minutes apart. Even then nothing is overwritten, as every segment has a name of its own: work is done
twice, and of two rows the later one counts.
"""

import contextlib
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime

from advrisk.core.errors import LedgerError
from advrisk.ledger.remote import Remote

FILE = "lease.json"
LASTS_S = 60.0
_RENEW_S = 15.0
_SETTLE_S = 0.5


class Lease:
    """The right to write to a folder; `check` before anything is published."""

    def __init__(self, remote: Remote, token: str) -> None:
        self._remote, self._token = remote, token
        self._lost = False

    def check(self) -> None:
        """Refuse to go on where somebody else has taken over."""
        if self._lost or _token(self._remote) != self._token:
            self._lost = True
            raise LedgerError(
                f"{self._remote.url}: another process writes to this folder now; what it and this one published is "
                "whole. Run the same command again when it has ended"
            )

    def renew(self) -> None:
        """Say that the writer lives."""
        self.check()
        _write(self._remote, self._token)

    def keep(self, ended: threading.Event) -> None:
        """Renew until the end; what cannot be renewed is noticed at the next `check`."""
        while not ended.wait(_RENEW_S):
            with contextlib.suppress(LedgerError):
                self.renew()


@contextlib.contextmanager
def leased(remote: Remote) -> Iterator[Lease]:
    """Hold the lease on a folder, or say who does."""
    _refuse_held(remote)
    token = uuid.uuid4().hex
    _write(remote, token)
    time.sleep(_SETTLE_S)
    if _token(remote) != token:
        _refuse_held(remote)
    lease, ended = Lease(remote, token), threading.Event()
    keeper = threading.Thread(target=lease.keep, args=(ended,), daemon=True)
    keeper.start()
    try:
        yield lease
    finally:
        ended.set()
        keeper.join()
        with contextlib.suppress(LedgerError):
            if _token(remote) == token:
                remote.delete(FILE)


def _refuse_held(remote: Remote) -> None:
    seen = remote.seen(FILE)
    if seen is None or time.time() - seen.written > LASTS_S:
        return
    raise LedgerError(
        f"{remote.url}: {_content(remote).get('holder', 'another process')} is writing to this folder; wait for it to "
        f"end (a writer that was killed is forgotten after {LASTS_S:.0f} s), or choose another folder"
    )


def _write(remote: Remote, token: str) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    holder = f"process {os.getpid()} on {socket.gethostname()}, seen at {now},"
    remote.put(FILE, json.dumps({"holder": holder, "token": token}).encode())


def _token(remote: Remote) -> str | None:
    return _content(remote).get("token")


def _content(remote: Remote) -> dict[str, str]:
    if remote.seen(FILE) is None:
        return {}
    try:
        return {str(key): str(value) for key, value in json.loads(remote.get(FILE)).items()}
    except (ValueError, AttributeError):
        return {}
