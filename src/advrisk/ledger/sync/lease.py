"""Who writes to a folder on object storage, which has no locks: a file that says so, renewed while the writer lives.

Two writers that start at the same moment both write it, wait, and read it again: the one whose words stand there goes
on. How old it is, is told by the clock of the storage alone. What this cannot rule out: a writer that is stopped for
longer than a lease lasts, and then goes on before it looks. Even then no segment is overwritten, as each has a name of
its own, or deleted, as a writer deletes only what it has seen itself: work is done twice, and of two rows the later one
counts. Of a file beside the segments, the one that was put there last stands.
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
from advrisk.ledger.sync.remote import Remote

FILE = "lease.json"
_CLOCK = "lease-{}.json"  # written and deleted at once: when, says the clock there
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
    token = uuid.uuid4().hex
    _refuse_held(remote, token)
    _write(remote, token)
    time.sleep(_SETTLE_S)
    if _token(remote) != token:
        raise _held(remote)
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


def is_lease(name: str) -> bool:
    """Whether a file of that name says who writes, and is no part of a run."""
    return name == FILE or (name.startswith("lease-") and name.endswith(".json"))


def _refuse_held(remote: Remote, token: str) -> None:
    seen = remote.seen(FILE)
    if seen is not None and _now_there(remote, token) - seen.written <= LASTS_S:
        raise _held(remote)


def _held(remote: Remote) -> LedgerError:
    return LedgerError(
        f"{remote.url}: {_content(remote).get('holder', 'another process')} is writing to this folder; wait for it to "
        f"end (a writer that was killed is forgotten after {LASTS_S:.0f} s), or choose another folder"
    )


def _now_there(remote: Remote, token: str) -> float:
    """The time by the clock of the storage: clocks of two machines may be minutes apart."""
    name = _CLOCK.format(token)
    remote.put(name, b"{}")
    try:
        seen = remote.seen(name)
    finally:
        remote.delete(name)
    if seen is None:
        raise LedgerError(f"{remote.of(name)}: was written, and is not there; check what else works in this folder")
    return seen.written


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
