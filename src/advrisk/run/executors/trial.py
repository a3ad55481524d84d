"""A trial of models that run code of the user: they are loaded in a watched process first, which then runs cells.

A factory that hangs, crashes or ends its process takes that process with it, and not the run. Models that run no such
code need no trial, and objects of this process can have none.
"""

import sys
import time
from typing import Self

from advrisk.core.children import cause_of_death
from advrisk.core.errors import AdvriskError, RunError
from advrisk.core.mistakes import Mistakes
from advrisk.core.registries import Registries
from advrisk.parts.data import Dataset
from advrisk.run.executors import local
from advrisk.run.executors.local import READY, TrialLoad
from advrisk.run.loading import OBJECT
from advrisk.study import ModelSpec, StudySpec

_OURS, _HERE = "advrisk.", "__main__"


class TrialProcess:
    """The process in which models are loaded first; none where no model of the study runs code of the user.

    It starts at once, as it takes seconds to import torch. A pool of workers may take it over; as a context manager, it
    ends the process however the context is left.
    """

    def __init__(self, study: StudySpec, registries: Registries) -> None:
        self._study = study
        self._sources = {name: module for name, spec in study.models.items() if (module := _foreign(spec, registries))}
        self.worker = local.spawn_worker() if self._sources else None

    def load(self, data: Dataset, device: str) -> None:
        """Load every such model there; what goes wrong is one error that names each model."""
        if self.worker is None:
            return
        modules = tuple(sorted({module for module in self._sources.values() if not module.startswith(_OURS)}))
        order = TrialLoad(self._study, tuple(self._sources), device, data.subset([0]), tuple(sys.path), modules)
        loading, limit_s, mistakes = "", local.START_S, Mistakes()
        try:
            self.worker.connection.send(order)
            while True:
                began = time.monotonic()
                if not self.worker.connection.poll(limit_s):
                    raise self._hung(loading, time.monotonic() - began)
                message = self.worker.connection.recv()
                if isinstance(message, AdvriskError):
                    mistakes.add(message)
                    continue
                if message == READY:
                    mistakes.refuse()
                    return
                (loading,), limit_s = message, self._study.max_load_s
        except (EOFError, OSError):
            raise self._died(loading, cause_of_death(self.worker.process)) from None

    def end(self) -> None:
        """End the process, if it is still there."""
        if self.worker is not None:
            local.stop_worker(self.worker)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _hung(self, model: str, waited_s: float) -> AdvriskError:
        if not model:
            return RunError(f"a worker process could not start: it was not ready within {waited_s:.0f} s")
        return self._study.where.error(
            ("models", model),
            f"was not loaded and asked once within {self._study.max_load_s:g} s, and was stopped. Does its "
            "code hang, or fetch something? State a larger `max_load_s` in the study if it takes that long",
        )

    def _died(self, model: str, cause: str) -> AdvriskError:
        if not model:
            return RunError(f"a worker process could not start: it died ({cause})")
        return self._study.where.error(
            ("models", model),
            f"the process that loaded it died ({cause}): its factory or its first pass ended or crashed it. Call them "
            "by themselves, under `python -X faulthandler`, to see where",
        )


def _foreign(spec: ModelSpec, registries: Registries) -> str:
    """The module of a model's source, if it or its factory is code of the user; empty where it is not, or only here."""
    if spec.source == OBJECT or spec.source not in registries.models:
        return ""
    module = registries.models.get(spec.source).function.__module__
    factory = spec.params.get("factory")
    named = [module, factory] if isinstance(factory, str) else [module]
    if any(name.partition(":")[0] == _HERE for name in named):
        return ""
    return "" if all(name.startswith(_OURS) for name in named) else module
