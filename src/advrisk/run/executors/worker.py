"""A worker process: `python -m advrisk.run.executors.worker FD`, started by `local.WorkerPool`.

It talks to its parent through an inherited socket, and ends when that closes, also within a cell. It is a program of
its own rather than a fork or a multiprocessing child, so that user scripts need no main guard.
"""

import importlib
import signal
import sys
from multiprocessing.connection import Connection

import torch

from advrisk.core.errors import AdvriskError, RunError
from advrisk.parts import REGISTRIES
from advrisk.run.detectors.ready import ready_detector
from advrisk.run.executors.local import READY, Assignment
from advrisk.run.executors.parent import end_with_parent
from advrisk.run.workbench import Workbench


def main(connection: Connection) -> None:
    """Set up the workbench, then run cells until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    end_with_parent(connection.fileno())
    torch.set_num_threads(1)
    try:
        assignment: Assignment = connection.recv()
        try:
            bench = set_up_bench(assignment)
        except AdvriskError as error:
            connection.send(RunError(f"a worker process could not start: {error}"))
            return
        connection.send(READY)
        while True:
            connection.send(assignment.run_cell(connection.recv(), bench))
    except (EOFError, ConnectionError):
        return  # the parent has gone


def set_up_bench(assignment: Assignment) -> Workbench:
    """The workbench that an assignment describes, whose models must be those that were planned for."""
    sys.path[:0] = [assignment.code] if assignment.code else []
    sys.path += [entry for entry in assignment.python_path if entry not in sys.path]
    for name in assignment.modules:
        importlib.import_module(name)
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


if __name__ == "__main__":
    main(Connection(int(sys.argv[1])))
