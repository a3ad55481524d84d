"""The Ray cluster that a run uses: one that it starts here, or one that is there already.

Only what was started here is ended here. Nothing in this file knows what a cell is.
"""

import importlib
import json
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from advrisk.core.errors import RunError
from advrisk.core.extras import needs_extra
from advrisk.run.executors.scratch import Scratch
from advrisk.study import ResourcesSpec

LOCAL = "local"
ADDRESS = "RAY_ADDRESS"  # the variable that Ray's own tools read, too
ANSWER_S = 30.0  # how long a cluster may take to answer
_FOLDER = "advrisk-ray-"
_REPORTS = "RAY_USAGE_STATS_ENABLED"
_TOKENS = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
_LONGEST = 20  # of a folder for Ray: its sockets lie some 85 characters below, and a socket's path has 107 at most
_QUESTION = """
import json, logging, sys, ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level=logging.ERROR)
print(json.dumps([node["Resources"] for node in ray.nodes() if node["Alive"]]))
"""
Machine = Mapping[str, float]  # what Ray says that it has: CPU, GPU and others


def ray_module() -> Any:
    """Ray, which is no requirement of advrisk."""
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise RunError(f"{needs_extra('--on ray', 'ray')} ({error})") from None


def chosen_address(given: str | None) -> str:
    """`host:port`, `ray://host:port`, `auto`, or `local` where no cluster is named."""
    address = given or os.environ.get(ADDRESS) or LOCAL
    if address not in (LOCAL, "auto") and _host_and_port(address) is None:
        where = "--address" if given else ADDRESS
        raise RunError(f"{where}: found {address!r}; host:port, ray://host:port, auto or local is needed")
    return address


def refuse_without_cluster(given: str | None, resources: ResourcesSpec, *, workers: int | None, here: Machine) -> int:
    """How many workers there is room for, or at most so many as are asked for; nothing is started and written.

    Refused are: that Ray is not installed, that no cluster answers at the address within some seconds, and that no
    machine has what a worker takes. `here` is what one that is started here would have. Of another one, workers may
    be asked for before there is room: it may grow on demand.
    """
    ray, address = ray_module(), chosen_address(given)
    if ray.is_initialized():
        if given:
            raise RunError(f"--address {given}: Ray is connected already; leave the address out, or end that first")
        room = _room_on(_machines(ray), resources)
    elif address == LOCAL:
        room = _room_on([here], resources)
        if not room:
            raise RunError(
                f"`resources` of the study asks {wanted_text(resources)} for each cell, and this machine has "
                f"{here['CPU']:g} CPU and {here['GPU']:g} GPU; ask for less, or name a cluster with --address"
            )
    else:
        room = _room_on(_ask(address), resources)
    if not room and not workers:
        raise no_room(resources)
    return workers or room


def no_room(resources: ResourcesSpec) -> RunError:
    return RunError(
        f"no machine of the Ray cluster has {wanted_text(resources)}, which `resources` of the study asks for each "
        "cell; ask for less, or add machines"
    )


def wanted_text(resources: ResourcesSpec) -> str:
    """As in `1 CPU and 0.5 GPU`."""
    return f"{resources.cpus:g} CPU" + (f" and {resources.gpus:g} GPU" if resources.gpus else "")


def _machines(ray: Any) -> list[Machine]:
    """Those of a cluster that are there now."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def _room_on(machines: Iterable[Machine], resources: ResourcesSpec) -> int:
    """How many workers they can hold, whatever else uses them."""
    return sum(resources.fitting(machine.get("CPU", 0.0), machine.get("GPU", 0.0)) for machine in machines)


class Cluster:
    """A cluster, from `__enter__` to `__exit__`. A connection that the process has already is used, and stays.

    `cpus` are the cores of one that is started here; `folder` is where such a one, and its workers, may write.
    """

    def __init__(self, given: str | None, *, cpus: int) -> None:
        self.ray = ray_module()
        self.is_ours = False
        self._address, self._cpus = chosen_address(given), cpus
        self._connected = False
        self._scratch: Scratch | None = None

    def __enter__(self) -> Self:
        if self.ray.is_initialized():
            return self
        self._connected = True
        try:
            with _signals_kept():
                self._start() if self._address == LOCAL else self._init(address=self._address)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._connected:
            ours, self._connected, self.is_ours = self.is_ours, False, False
            self.ray.shutdown()  # ends a cluster of ours, and leaves any other
            if ours:
                _forget_token()
        if self._scratch is not None:
            self._scratch.remove()
            self._scratch = None

    @property
    def folder(self) -> Path | None:
        return self._scratch.path if self._scratch else None

    def room_for(self, resources: ResourcesSpec) -> int:
        """How many workers the machines that are there now can hold, whatever else uses them."""
        return _room_on(_machines(self.ray), resources)

    def _start(self) -> None:
        usual = Path(tempfile.gettempdir())
        self.is_ours = True
        self._scratch = Scratch(_FOLDER, usual if len(str(usual)) <= _LONGEST else Path("/tmp"))
        with _to_ourselves():
            self._init(address=LOCAL, num_cpus=self._cpus, include_dashboard=False, _temp_dir=str(self._scratch.path))

    def _init(self, **settings: Any) -> None:
        try:
            self.ray.init(log_to_driver=False, logging_level=logging.ERROR, **settings)
        except (OSError, RuntimeError, ValueError) as error:
            raise _no_answer(self._address, _complaint(str(error))) from None


def _ask(address: str) -> list[Machine]:
    """The machines of a cluster, if it answers.

    In a process of its own, as Ray ends the one that asks in vain, after two minutes.
    """
    place = _host_and_port(address)
    if place is not None:
        try:
            socket.create_connection(place, timeout=ANSWER_S / 3).close()
        except OSError as error:
            raise _no_answer(address, str(error)) from None
    command = [sys.executable, "-P", "-c", _QUESTION, address]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_S, check=False)
    except subprocess.TimeoutExpired:
        raise _no_answer(address, f"nothing that Ray understands came within {ANSWER_S:g} s") from None
    if asked.returncode:
        if "InvalidAuthToken" in asked.stderr or "AuthenticationError" in asked.stderr:
            raise RunError(
                f"the Ray cluster at {address} wants a token: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or "
                "RAY_AUTH_TOKEN_PATH to the cluster's own"
            )
        raise _no_answer(address, _complaint(asked.stderr))
    machines: list[Machine] = json.loads(asked.stdout.splitlines()[-1])
    return machines


def _no_answer(address: str, found: str) -> RunError:
    if "Version mismatch" in found:
        return RunError(f"the Ray cluster at {address} is of another version: {found}. Install the same ones here")
    if address == LOCAL:
        return RunError(f"Ray could not start here: {found}. Without --on ray, worker processes do the work")
    if "ray[client]" in found:
        return RunError(needs_extra(f"{address}: ray://", "more than ray alone", "ray"))
    return RunError(
        f"no Ray cluster answers at {address}: {found}. `ray status` tells where one runs (host:port, by default port "
        "6379; ray://host:10001 from outside the cluster); without --address and RAY_ADDRESS one is started here"
    )


def _complaint(text: str) -> str:
    """The last message, from the error's name on, on one line."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    mismatch = [place for place, line in enumerate(lines) if "Version mismatch" in line]
    message = lines[mismatch[-1] :] if mismatch else lines[-1:]
    return " ".join(" ".join(message).split())[:500].rstrip(".") or "it gave no reason"


def _host_and_port(address: str) -> tuple[str, int] | None:
    """Of `host:port` and `ray://host:port`; None where it is no such thing."""
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        known = parts.scheme in ("", "ray") and not parts.path and parts.hostname and parts.port
        return (str(parts.hostname), int(parts.port or 0)) if known else None
    except ValueError:
        return None


@contextmanager
def _to_ourselves() -> Iterator[None]:
    """Ray's settings for a cluster that is started here, where the user has made none.

    It tells nobody that it is used. And it takes work from those only who know a token, which Ray
    would else write into the user's home.
    """
    before = {name: os.environ.get(name) for name in (_REPORTS, *_TOKENS)}
    os.environ[_REPORTS] = "0"
    if not any(before[name] for name in _TOKENS):
        os.environ["RAY_AUTH_TOKEN"] = _token()
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            os.environ |= {} if value is None else {name: value}


@cache
def _token() -> str:
    """One for all clusters that this process starts: Ray remembers the first one that it receives."""
    return secrets.token_hex(32)


def _forget_token() -> None:
    """Reset the token and the mode that Ray caches for the process, or no other cluster could be used in it.

    Ray has no public call for this; versions before 2.60 lack the parts and need none of it.
    """
    with suppress(ImportError, AttributeError):
        raylet = importlib.import_module("ray._raylet")
        raylet.Config.initialize("")  # first, as a thread of Ray's may still load the token that the mode asks for
        raylet.AuthenticationTokenLoader.instance().reset_cache()


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Ray takes SIGTERM over when it starts; what it means is for the program to say."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
