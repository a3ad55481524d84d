"""What is sent to machines that may not see this one's files, and what they send back.

Files travel as their bytes: those that models are made from, the modules beside the study, what detectors learned, and
the points that a transfer takes over; back come the inputs that a cell kept. Nothing here knows how they travel.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from advrisk.core.digest import digest_bytes
from advrisk.core.errors import LedgerError, RunError
from advrisk.core.files import whole_file
from advrisk.ledger.inputs import crafted_inputs, detector_state
from advrisk.plan import Cell
from advrisk.run.executors.local import Assignment, RunCell
from advrisk.run.loading import OBJECT
from advrisk.run.rows import CellResult
from advrisk.run.workbench import Workbench
from advrisk.study import StudySpec

Files = dict[str, bytes]  # path below the run's folder -> content
Put = Callable[[Any], Any]  # stores something for all workers, and returns a reference to it


@dataclass(frozen=True)
class Payload:
    """Everything that a worker elsewhere needs to set up its workbench.

    Its contents are not in it but stored by `put`, so that a machine fetches each of them once for all its workers.
    """

    assignment: Any  # the reference of the assignment
    weights: Mapping[tuple[str, str], tuple[str, str, Any]]  # (model, parameter) -> path, digest, content
    modules: Mapping[str, tuple[str, Any]]  # path below the study's folder -> digest, content
    states: Mapping[str, Any]  # path below the run's folder -> content


@dataclass(frozen=True)
class RemoteResult:
    """The rows of a cell, and the files that belong to it."""

    result: CellResult
    files: Files


def pack(assignment: Assignment, bench: Workbench, put: Put) -> Payload:
    """Store what workers need; a file that several models are made from, once."""
    stored: dict[str, Any] = {}

    def put_file(path: Path) -> tuple[str, Any]:
        content = path.read_bytes()
        name = digest_bytes(content)
        if name not in stored:
            stored[name] = put(np.frombuffer(content, np.uint8))
        return name, stored[name]

    weights = {key: (str(path), *put_file(path)) for key, path in _named_files(bench).items()}
    states = [
        detector_state(bench.folder, one.id, model) for one in assignment.detectors for model in assignment.digests
    ]
    return Payload(
        assignment=put(assignment),
        weights=weights,
        modules={name: put_file(path) for name, path in modules_beside(bench.study).items()},
        states={str(path.relative_to(bench.folder)): put_file(path)[1] for path in states if path.is_file()},
    )


def unpack(payload: Payload, folder: Path, get: Callable[[Any], Any]) -> Assignment:
    """The assignment with everything in a folder of this machine.

    Modules that were sent come before all that this machine has, unless it has the same ones in the same place: then
    what else lies beside them is found, too.
    """
    assignment: Assignment = get(payload.assignment)
    home, code = assignment.study.where.folder.resolve(), ""
    if not all(_holds(home / name, content) for name, (content, _) in payload.modules.items()):
        code = str(folder / "code")
        for name, (_, reference) in payload.modules.items():
            _write(folder / "code" / name, get(reference))
    for name, reference in payload.states.items():
        _write(folder / name, get(reference))
    models = dict(assignment.study.models)
    for (model, parameter), (given, content, reference) in payload.weights.items():
        path = Path(given)
        if not _holds(path, content):
            path = folder / "weights" / content / path.name
            if not path.exists():
                _write(path, get(reference))
        models[model] = models[model].model_copy(update={parameter: str(path)})
    return replace(
        assignment,
        study=assignment.study.model_copy(update={"models": models}),
        folder=folder,
        code=code,
    )


def refuse_other_modules(payload: Payload) -> None:
    """A module of this machine that stands in for one that was sent: rows would depend on who made them."""
    for name, (content, _) in payload.modules.items():
        module = sys.modules.get(_module_name(name))
        path = Path(getattr(module, "__file__", None) or "")
        if module is not None and not _holds(path, content):
            raise RunError(f"{path} stands in for {name}, which lies beside the study; remove it, or rename that one")


def points_for(cell: Cell, folder: Path) -> Files:
    """The file with the points that a cell takes over, if they were kept: else it crafts them again."""
    paths = [crafted_inputs(folder, need.id) for need in cell.needs]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if path.is_file()}


def run_with_files(run_cell: RunCell, cell: Cell, given: Files, bench: Workbench) -> RemoteResult:
    """Put the files that a cell needs in place, run it, and take out the files that it made."""
    for name, content in given.items():
        _write(bench.folder / name, content)
    result = run_cell(cell, bench)
    for name in given:
        (bench.folder / name).unlink()
    return RemoteResult(result, _taken(bench.folder))


def store_files(remote: RemoteResult, folder: Path) -> CellResult:
    """Store the files of a remote result where those of a local cell lie."""
    for name, content in remote.files.items():
        target = folder / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(target) as path:
                path.write_bytes(content)
        except OSError as error:
            raise LedgerError(f"{target}: inputs could not be stored: {error.strerror}") from error
    return remote.result


def modules_beside(study: StudySpec) -> dict[str, Path]:
    """The Python files in the study's folder that were imported from there, by their path below it."""
    if study.where.path is None:
        return {}
    folder, files = study.where.folder.resolve(), {}
    for name, module in list(sys.modules.items()):
        path = Path(getattr(module, "__file__", None) or "").resolve()
        if path.suffix == ".py" and path.is_relative_to(folder) and path.is_file():
            below = str(path.relative_to(folder))
            if _module_name(below) == name:
                files[below] = path
    return files


def _module_name(path: str) -> str:
    """What the file at a path below a folder is imported as from there."""
    parts = Path(path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _named_files(bench: Workbench) -> dict[tuple[str, str], Path]:
    """The files that sources of models are given, by model and parameter."""
    named: dict[tuple[str, str], Path] = {}
    for name, spec in bench.study.models.items():
        if spec.source != OBJECT:
            settings = bench.registries.models.get(spec.source).bind(spec.params, folder=bench.study.where.folder)
            files = {key: value for key, value in settings.items() if isinstance(value, Path) and value.is_file()}
            named |= {(name, key): path.resolve() for key, path in files.items()}
    return named


def _holds(path: Path, content: str) -> bool:
    """Whether this machine has the same file in the same place."""
    try:
        return digest_bytes(path.read_bytes()) == content
    except OSError:
        return False


def _taken(folder: Path) -> Files:
    """The inputs that were written; what only says that clean inputs are known stays, and is empty from then on."""
    files: Files = {}
    for path in sorted((folder / "inputs").rglob("*")):
        if path.is_file() and path.stat().st_size:
            files[str(path.relative_to(folder))] = path.read_bytes()
            if path.parent.name == "shards":
                path.write_bytes(b"")
            else:
                path.unlink()
    return files


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(memoryview(content))
