"""A worker process: `python -m advrisk.run.executors.worker FD`, started by `local.WorkerPool`.

It talks to its parent through an inherited socket, and ends when that closes, also within a cell. It is a program of
its own rather than a fork or a multiprocessing child, so that user scripts need no main guard.
"""

import importlib
import math
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from multiprocessing.connection import Connection

import torch

from advrisk.core.children import end_with_parent
from advrisk.core.containment import Containment
from advrisk.core.errors import AdvriskError, RunError
from advrisk.parts import REGISTRIES
from advrisk.run.detectors.ready import ready_detector
from advrisk.run.executors.local import READY, Assignment, CellShare, TrialLoad
from advrisk.run.loading import load_model
from advrisk.run.workbench import Workbench

_ALARM_S = 10.0  # after which a model that hangs ends this process, beyond the time that its parent allows


def main(connection: Connection) -> None:
    """Set up the workbench, then run cells until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    end_with_parent(connection.fileno())
    torch.set_num_threads(1)
    try:
        received = connection.recv()
        if isinstance(received, TrialLoad):
            load_on_trial(received, connection)
            received = connection.recv()
        assignment: Assignment = received
        try:
            bench = set_up_bench(assignment)
        except AdvriskError as error:
            connection.send(RunError(f"a worker process could not start: {error}"))
            return
        bench.on_share = lambda cell, n_done: connection.send(CellShare(cell, n_done))
        connection.send(READY)
        while True:
            connection.send(assignment.run_cell(connection.recv(), bench))
    except (EOFError, ConnectionError):
        return  # the parent has gone


def load_on_trial(order: TrialLoad, connection: Connection) -> None:
    """Load models and report each; a crash ends this process, and a model that hangs does so after its time."""
    _make_importable(order.python_path, ())
    for module in order.modules:
        with suppress(ImportError):
            importlib.import_module(module)
    containment = Containment()
    for name in order.models:
        if order.study.models[name].source not in REGISTRIES.models:
            continue  # a source that was registered in the parent alone
        connection.send((name,))
        signal.alarm(math.ceil(order.study.max_load_s + _ALARM_S))  # the parent may be gone
        try:
            load_model(name, order.study, REGISTRIES, order.data, order.device, containment)
        except AdvriskError as error:
            connection.send(error)
        finally:
            signal.alarm(0)
    connection.send(READY)


def set_up_bench(assignment: Assignment) -> Workbench:
    """The workbench that an assignment describes, whose models must be those that were planned for."""
    sys.path[:0] = [assignment.code] if assignment.code else []
    _make_importable(assignment.python_path, assignment.modules)
    bench = Workbench.set_up(
        assignment.study,
        REGISTRIES,
        folder=assignment.folder,
        run=assignment.run,
        device=assignment.device,
        data=assignment.data,
    )
    bench.detectors |= {
        one.id: ready_detector(one, bench.study, bench.registries, bench.folder) for one in assignment.detectors
    }
    for name, model in bench.material.models.items():
        if model.digest != assignment.digests[name]:
            raise RunError(f"the model {name} changed while the run was starting; run the same command again")
    return bench


def _make_importable(python_path: Iterable[str], modules: Iterable[str]) -> None:
    """Search where the parent does, and import the modules that register the parts of a study."""
    sys.path += [entry for entry in python_path if entry not in sys.path]
    for name in modules:
        importlib.import_module(name)


if __name__ == "__main__":
    main(Connection(int(sys.argv[1])))
