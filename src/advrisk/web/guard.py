"""What every request must pass and every reply carries: known hosts, small bodies, and headers that forbid the rest."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MOST_BYTES = 4096  # of a request's body: an answer, or a name

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """The outermost layer of the application.

    With `loopback`, only requests that call this machine by its own names are served: a page elsewhere whose name
    was made to point here (DNS rebinding) calls it by another. Requests that change something must not come from
    another page. `public` is one more address (scheme://name[:port]) by which it is called.
    """

    def __init__(self, app: App, *, loopback: bool, public: str | None = None) -> None:
        self._app, self._loopback, self._public = app, loopback, public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if self._loopback and not self._called_by(headers.get("host", "")):
            await _refuse(send, 421, "this server answers to its own address only")
        elif scope["method"] not in ("GET", "HEAD") and not self._own_page(headers):
            await _refuse(send, 403, "requests from other pages are refused")
        elif _announced(headers) > MOST_BYTES:
            await _refuse(send, 413, "too large")
        else:
            await self._pass_on(scope, receive, send)

    def _called_by(self, host: str) -> bool:
        if _without_port(host) in LOOPBACK:
            return True
        if self._public is None:
            return False
        scheme, _, name = self._public.partition("://")
        return host.lower() in (name, name + {"http": ":80", "https": ":443"}[scheme])

    def _own_page(self, headers: dict[str, str]) -> bool:
        origin = headers.get("origin")
        return origin in (None, self._public) or origin.partition("://")[2] == headers.get("host")

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        messages = await _small_body(receive)
        if messages is None:
            await _refuse(send, 413, "too large")
            return
        if messages[-1]["type"] == "http.disconnect":
            return  # before the request was whole

        async def again() -> Message:
            return messages.pop(0) if messages else await receive()

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *_encoded(HEADERS)]}
            await send(message)

        await self._app(scope, again, with_headers)


async def _small_body(receive: Receive) -> list[Message] | None:
    """All messages of a body whose length may not be announced; None if they are too much."""
    messages: list[Message] = []
    while not messages or messages[-1].get("more_body", False):
        messages.append(await receive())
        if sum(len(message.get("body", b"")) for message in messages) > MOST_BYTES:
            return None
    return messages


def _announced(headers: dict[str, str]) -> int:
    length = headers.get("content-length", "0")
    return int(length) if length.isdecimal() else MOST_BYTES + 1


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name.lower() if colon and port.isdecimal() else host.lower()


async def _refuse(send: Send, status: int, reason: str) -> None:
    headers = _encoded({**HEADERS, "Content-Type": "application/json"})
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f'{{"error": "{reason}"}}'.encode()})


def _encoded(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]
