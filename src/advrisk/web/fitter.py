"""A process that fits curves: `python -m advrisk.web.fitter FD`, started by `fitting.FitProcess`."""

import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from advrisk.answers.records import LabellingSettings
from advrisk.answers.store import AnswerStore
from advrisk.core.children import end_with_parent
from advrisk.core.errors import AdvriskError, RunError
from advrisk.web.fitting import Task
from advrisk.web.labelling import Labelling
from advrisk.web.stimuli import Pool

NICENESS = 5  # a third of the server's share of a core that both want


def main(connection: Connection) -> None:
    """Send one result per request, or the reason why there is none."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    end_with_parent(connection.fileno())
    os.nice(NICENESS)
    try:
        material = connection.recv()
        while True:
            connection.recv()
            connection.send(result_or_reason(*material))
    except (EOFError, ConnectionError):
        return  # the parent has gone


def result_or_reason(task: Task, pool: Pool, url: str, settings: LabellingSettings) -> Any:
    """What the pages need of all answers that are there now, as plain data; an error as what it says."""
    try:
        with Labelling(pool, AnswerStore.open(url, create=False), settings) as labelling:
            return labelling.current_chooser() if task == "chooser" else labelling.current_summary().state()
    except AdvriskError as error:
        return RunError(str(error))
    except Exception as error:
        return RunError(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(Connection(int(sys.argv[1])))
