"""Connections: how many there are at once, and how long each may take to ask.

Connections that send nothing, or never finish what they begin, must not keep others out or take the descriptors that
the database needs. Each has a while to send a whole request. Where there are as many as there may be, the one that has
waited longest makes room for a new one; first those that were never answered.
"""

import asyncio
import os
import resource
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

from uvicorn.protocols.http.h11_impl import H11Protocol

from advrisk.core.errors import RunError
from advrisk.web.notes import Notes

RESERVED = 64  # descriptors for the database, pictures and files that are written
_FEWEST = 16  # connections; with fewer there is no point in serving
_SWEEP_S = 1.0
_PAUSE_S = 0.02  # before another attempt, where others hold what is needed to take a connection
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@dataclass(frozen=True)
class Limits:
    """Of connections at once, and of the seconds that one may take."""

    most: int = 512
    request_s: float = 15.0  # to send a whole request, from the beginning or the last reply on
    reply_s: float = 60.0  # to take a reply


def limits_here() -> Limits:
    """Limits that leave enough descriptors to the rest of this process, or an error if there are too few."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return Limits()
    used = len(os.listdir("/dev/fd"))
    most = allowed - used - RESERVED
    if most < _FEWEST:
        raise RunError(
            f"this process may open {allowed} files, has {used} open, and needs {RESERVED} for its database; for "
            f"people to connect it must be {used + RESERVED + _FEWEST} or more: say `ulimit -n 1024` first"
        )
    return Limits(min(Limits.most, most))


class Connections:
    """Those that are open. All is done in the thread of the event loop."""

    def __init__(
        self,
        limits: Limits,
        notes: Notes,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self.limits, self._notes, self._clock, self._pause = limits, notes, clock, pause
        self._since: dict[TimedProtocol, float] = {}  # when it began, or had its last reply
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._sweeping = False

    @property
    def n_open(self) -> int:
        return sum(one.fileno() >= 0 for one in self._sockets)

    def add(self, protocol: "TimedProtocol") -> None:
        self._since[protocol] = self._clock()
        if not self._sweeping:
            self._sweeping = True
            asyncio.get_running_loop().call_later(_SWEEP_S, self._sweep)

    def replied(self, protocol: "TimedProtocol") -> None:
        if protocol in self._since:
            self._since[protocol] = self._clock()

    def remove(self, protocol: "TimedProtocol") -> None:
        self._since.pop(protocol, None)

    def _sweep(self) -> None:
        """Close what took too long; the rest is looked at again in a second."""
        now = self._clock()
        for protocol in [one for one, since in self._since.items() if one.waiting and self._late(one, now - since)]:
            self._close(protocol, "connections were closed that did not send a whole request, or take a reply, in time")
        self._sweeping = bool(self._since)
        if self._sweeping:
            asyncio.get_running_loop().call_later(_SWEEP_S, self._sweep)

    def _late(self, protocol: "TimedProtocol", waited_s: float) -> bool:
        unsent = protocol.transport.get_write_buffer_size() > 0
        return waited_s > (self.limits.reply_s if unsent else self.limits.request_s)

    def _close(self, protocol: "TimedProtocol", reason: str) -> None:
        self.remove(protocol)
        protocol.transport.abort()  # an orderly end would wait for whoever does not read
        self._notes.add(reason)

    def accept(self, take: Callable[[], tuple[socket.socket, Any]]) -> tuple[socket.socket, Any]:
        """The next connection, once there is room for it; BlockingIOError: not now."""
        if self.n_open >= self.limits.most:
            if not self._close_waiting() and self.n_open <= len(self._since):  # none has yet to begin, or to end
                self._refuse(take)
            raise BlockingIOError
        try:
            taken = take()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            raise BlockingIOError from None
        except OSError as error:  # the event loop would say so of every attempt
            self._notes.add(f"connections cannot be taken: {error.strerror}", kind=f"accept: {error.errno}")
            if not self._close_waiting():
                self._pause(_PAUSE_S)  # or the loop would try again without end
            raise BlockingIOError from None
        self._sockets.add(taken[0])
        return taken

    def _close_waiting(self) -> bool:
        """Close the connection that has waited longest, if any waits."""
        waiting = [one for one in self._since if one.waiting]
        if waiting:
            first = min(waiting, key=lambda one: (one.was_answered, self._since[one]))
            self._close(first, "connections made room for others: there are too many")
        return bool(waiting)

    def _refuse(self, take: Callable[[], tuple[socket.socket, Any]]) -> None:
        refused, _ = take()
        with refused:
            refused.setblocking(False)
            refused.send(_BUSY)
        self._notes.add(f"connections were refused: {self.limits.most} are being answered")


class Listening(socket.socket):
    """A listening socket whose connections are limited."""

    connections: Connections

    @classmethod
    def of(cls, listening: socket.socket, connections: Connections) -> "Listening":
        """The same socket under another descriptor."""
        handle = os.dup(listening.fileno())
        made = cls(listening.family, listening.type, listening.proto, fileno=handle)
        made.connections = connections
        return made

    def accept(self) -> tuple[socket.socket, Any]:
        return self.connections.accept(super().accept)


class TimedProtocol(H11Protocol):
    """HTTP on one connection, which says when it waits for whoever is at the other end."""

    def __init__(self, connections: Connections, **given: Any) -> None:
        super().__init__(**given)
        self._limited = connections
        self.was_answered = False

    @property
    def waiting(self) -> bool:
        """Whether no whole request is here that is still to be answered."""
        cycle = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._limited.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._limited.remove(self)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self.was_answered = True
        self._limited.replied(self)
        super().on_response_complete()
