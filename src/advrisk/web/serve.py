"""Serving the pages until somebody ends it."""

import contextlib
import socket
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from advrisk.core.errors import RunError
from advrisk.web.app import Service, make_app
from advrisk.web.labelling import Labelling, hash_of, new_token
from advrisk.web.trials import Asking

LOCAL = "127.0.0.1"


@dataclass(frozen=True)
class Place:
    """Where to serve; a port of None: the one of last time if it is free, else any."""

    host: str = LOCAL
    port: int | None = None

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
    *,
    show_curve: bool = False,
    open_browser: bool = False,
    say: Callable[[str], None],
) -> None:
    """Serve until interrupted; `say` is told the operator's link once requests are taken."""
    import uvicorn

    listening = _listen(place, labelling.store.address())
    with contextlib.closing(listening):
        base = _base(place, listening.getsockname()[1])
        labelling.store.put_address(base)
        token = new_token()
        service = Service(labelling, asking, hash_of(token), base, show_curve=show_curve)
        config = uvicorn.Config(
            make_app(service, loopback=place.loopback),
            access_log=False,  # addresses hold tokens
            log_level="warning",
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=2,
        )
        say(f"{base}/o/{token}")
        if open_browser:
            webbrowser.open(f"{base}/o/{token}")
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])


def _listen(place: Place, last: str | None) -> socket.socket:
    """A socket on the wanted port; without a wish on last time's, so that links stay valid."""
    if place.port is not None:
        return _bound(place.host, place.port)
    before = urlsplit(last).port if last else None
    if before is not None:
        with contextlib.suppress(RunError):
            return _bound(place.host, before)
    return _bound(place.host, 0)


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


def _base(place: Place, port: int) -> str:
    """The address for links; a server on all interfaces is called by the machine's name."""
    host = socket.gethostname() if place.host in ("0.0.0.0", "::") else place.host
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
