"""Fitting beside the server: a thread that fits would keep Python's lock from the threads that answer requests.

Each task has a process of low priority, `python -m advrisk.web.fitter FD`, which reads the answers itself and sends
back plain data. It ends with the server.
"""

import os
import subprocess
import threading
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, Literal

from advrisk.answers.records import LabellingSettings
from advrisk.core.children import ONE_THREAD, cause_of_death, start_child
from advrisk.core.errors import RunError
from advrisk.ledger.storage import Storage
from advrisk.web.stimuli import Pool

Task = Literal["chooser", "summary"]


class FitProcess:
    """A process that fits on request; one that has died is started anew for the next request."""

    def __init__(self, task: Task, pool: Pool, url: str, settings: LabellingSettings) -> None:
        sent = replace(pool, storage=Storage(pool.folder))
        vars(sent).update(sizes=pool.sizes)  # they depend on a picture, which need not be fetched again
        self._material = (task, sent, url, settings)
        self._lock = threading.Lock()
        self._child: tuple[subprocess.Popen[bytes], Connection] | None = None
        self._stopped = False

    def fit(self) -> Any:
        """The result for all answers that are there now."""
        process, connection = self._running()
        try:
            connection.send(None)
            result = connection.recv()
        except (EOFError, OSError):
            connection.close()
            reason = cause_of_death(process)
            with self._lock:
                self._child = None
            raise RunError(f"the process that fits the curve died ({reason})") from None
        if isinstance(result, RunError):
            raise result
        return result

    def stop(self) -> None:
        """Kill the process, also while another thread waits for its result; no other is started."""
        with self._lock:
            self._stopped = True
            if self._child is not None:
                self._child[0].kill()
                self._child[0].wait()

    def _running(self) -> tuple["subprocess.Popen[bytes]", Connection]:
        with self._lock:
            if self._stopped:
                raise RunError("the server ends")
            if self._child is None:
                try:
                    self._child = start_child("advrisk.web.fitter", os.environ | ONE_THREAD)
                except OSError as error:
                    raise RunError(f"no process could be started to fit the curve: {error.strerror}") from None
                with suppress(OSError):  # it has died already, which the request shows
                    self._child[1].send(self._material)
            return self._child
