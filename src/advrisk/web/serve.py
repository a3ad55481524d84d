"""Serving the pages until somebody ends it."""

import asyncio
import contextlib
import socket
import sys
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from typing import cast
from urllib.parse import urlsplit

from advrisk.core.errors import RunError
from advrisk.web.app import Service, make_app
from advrisk.web.labelling import Labelling, hash_of, new_token
from advrisk.web.notes import Notes, logged
from advrisk.web.trials import Asking

LOCAL = "127.0.0.1"
# How long one thread keeps Python's lock from another: a request takes it many times while a download is fitted.
SWITCH_S = 0.0002


@dataclass(frozen=True)
class Place:
    """Where to serve; a port of None: the one of last time if it is free, else any."""

    host: str = LOCAL
    port: int | None = None
    public: str | None = None  # the address by which others reach it, through a server in front

    def listen(self, last: str | None) -> socket.socket:
        """A socket on the wanted port; without a wish on that of last time's address, so that links stay valid."""
        if self.port is not None:
            return _bound(self.host, self.port)
        before = urlsplit(last).port if last else None
        if before is not None:
            with contextlib.suppress(RunError):
                return _bound(self.host, before)
        return _bound(self.host, 0)

    def address(self, port: int) -> str:
        """The server's own address; one on all interfaces is called by the machine's name."""
        host = socket.gethostname() if self.host in ("0.0.0.0", "::") else self.host
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    @property
    def loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False


def serve(
    labelling: Labelling,
    asking: Asking,
    place: Place,
    listening: socket.socket,
    *,
    show_curve: bool = False,
    open_browser: bool = False,
    say: Callable[[str], None],
) -> None:
    """Serve on a socket until interrupted; `say` is told the operator's link once requests are taken."""
    import uvicorn

    from advrisk.web.connections import Connections, Listening, TimedProtocol, limits_here

    sys.setswitchinterval(SWITCH_S)
    notes = Notes()
    connections = Connections(limits_here(), notes)
    address = place.address(listening.getsockname()[1])
    base = place.public or address
    labelling.store.put_address(address, base)
    token = new_token()
    service = Service(labelling, asking, hash_of(token), base, show_curve=show_curve)
    config = uvicorn.Config(
        make_app(service, loopback=place.loopback, public=place.public),
        http=cast("type[asyncio.Protocol]", partial(TimedProtocol, connections)),
        loop="asyncio",  # others take connections without asking
        access_log=False,  # addresses hold tokens
        log_config=None,
        log_level="warning",
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=2,
    )
    with (
        logged(notes, "uvicorn.error", "asyncio"),
        Listening.of(listening, connections) as limited,
        contextlib.suppress(KeyboardInterrupt),  # from the moment at which somebody knows that it is served
    ):
        say(f"{base}/o/{token}")
        if open_browser:
            webbrowser.open(f"{address}/o/{token}")
        uvicorn.Server(config).run(sockets=[limited])


def checked_public(text: str) -> str:
    """An address for links: a scheme and a name, as a browser writes them in `Origin`."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    plain = parts.path in ("", "/") and not (parts.query or parts.fragment or "@" in parts.netloc)
    if parts.scheme not in ("http", "https") or not parts.hostname or not plain or not text.isascii():
        raise RunError(f"--public-url: an address such as https://label.example.org is needed, found {text!r}")
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    usual = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{name}" + ("" if port in (None, usual) else f":{port}")


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)
    except (OSError, OverflowError) as error:
        made.close()
        reason = getattr(error, "strerror", None) or error
        raise RunError(f"{host}:{port}: cannot be served on: {reason}; choose another --host or --port") from None
    return made
