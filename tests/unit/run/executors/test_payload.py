"""What is sent to other machines can be used there without this one's files."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import save_file

from advrisk.core.errors import RunError
from advrisk.ledger import Ledger, Storage
from advrisk.parts.models.small import SmallCnn
from advrisk.plan import Cell
from advrisk.run.cell import run_cell
from advrisk.run.executors import payload
from advrisk.run.executors.choice import assignment_for
from advrisk.run.executors.worker import set_up_bench
from advrisk.run.options import DEFAULTS
from advrisk.run.planning import outline_study, plan_study
from advrisk.run.preparation import load_bench
from advrisk.run.workbench import Workbench
from advrisk.study import load_study

MODULE = "from advrisk.parts.models.small import SmallCnn\n\ndef net():\n    return SmallCnn(size=8, width=2)\n"


class Store:
    """An object store, as far as a payload knows one."""

    def __init__(self) -> None:
        self.held: list[Any] = []

    def put(self, content: Any) -> int:
        self.held.append(content)
        return len(self.held) - 1

    def get(self, place: int) -> Any:
        return self.held[place]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a study of two models that are made from one file and a module beside it."""
    folder = tmp_path / "home"
    folder.mkdir()
    torch.manual_seed(0)
    save_file(SmallCnn(size=8, width=2).state_dict(), folder / "net.safetensors")
    (folder / "far_nets.py").write_text(MODULE)
    model = {"source": "torch", "factory": "far_nets:net", "weights": "net.safetensors"}
    pgd = {"attack": "pgd", "norm": "linf", "eps": 0.3, "steps": 2}
    study = {
        "name": "far",
        "data": {"source": "digits", "evaluate": 8},
        "models": {"one": model, "two": model},
        "arms": [{"attack": "transfer", "from": "one", "arm": pgd}],
        "keep_inputs": "all",
        "shard": 8,
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "far_nets", raising=False)
    return folder


@pytest.fixture
def here(home: Path) -> tuple[Workbench, list[Cell], Any]:
    study = load_study(home / "study.yaml")
    bench = load_bench(study, home / "run", DEFAULTS)
    plan = plan_study(outline_study(bench), Ledger(Storage(home / "run")), bench)
    return bench, list(plan.cells()), assignment_for(run_cell, bench, plan, device="cpu")


def test_a_machine_without_the_files_makes_the_same_rows(
    here: tuple[Workbench, list[Cell], Any], home: Path, tmp_path: Path
) -> None:
    bench, cells, assignment = here
    store = Store()
    packed = payload.pack(assignment, bench, store.put)
    assert len(store.held) == 3, "the assignment, the weights, which two models share, and the module"
    paths = [str(home), *sys.path]
    assignment = replace(assignment, python_path=())
    store.held[packed.assignment] = assignment
    (home / "net.safetensors").unlink()
    (home / "far_nets.py").unlink()
    sys.path[:] = [path for path in paths if path != str(home)]
    del sys.modules["far_nets"]
    local = payload.unpack(packed, tmp_path / "far", store.get)
    assert local.study.where.path == home / "study.yaml"
    far = set_up_bench(local)
    assert Path(sys.modules["far_nets"].__file__ or "").is_relative_to(tmp_path / "far")
    for cell in cells:
        found = payload.run_with_files(run_cell, cell, payload.points_for(cell, bench.folder), far)
        assert payload.store_files(found, bench.folder).n_errors == 0
        expected = run_cell(cell, bench).tables["outcomes"].drop_columns(["first_s", "spent_s"])
        assert found.result.tables["outcomes"].drop_columns(["first_s", "spent_s"]).equals(expected)


OLDER = MODULE + "\nSTEPS = 1  # in place of 40, say: no digest tells it from the newer one\n"


def test_an_older_module_in_the_same_place_is_not_taken_for_the_one_sent(
    here: tuple[Workbench, list[Cell], Any], home: Path, tmp_path: Path
) -> None:
    bench, _, assignment = here
    assert str(home) in assignment.python_path, "as the driver's path really is"
    store = Store()
    packed = payload.pack(assignment, bench, store.put)
    del sys.modules["far_nets"]
    (home / "far_nets.py").write_text(OLDER)
    set_up_bench_of(packed, store, tmp_path)
    payload.refuse_other_modules(packed)
    assert Path(sys.modules["far_nets"].__file__ or "").is_relative_to(tmp_path / "far")


def test_an_installed_module_that_stands_in_for_the_one_sent_is_refused(
    here: tuple[Workbench, list[Cell], Any], tmp_path: Path
) -> None:
    bench, _, assignment = here
    store = Store()
    packed = payload.pack(assignment, bench, store.put)
    del sys.modules["far_nets"]
    (tmp_path / "far_nets.py").write_text(OLDER)
    sys.path.insert(0, str(tmp_path))
    set_up_bench_of(packed, store, tmp_path)
    with pytest.raises(RunError, match=r"/far_nets.py stands in for far_nets.py, which lies beside the study"):
        payload.refuse_other_modules(packed)


def test_modules_that_the_machine_has_are_used_where_they_lie(
    here: tuple[Workbench, list[Cell], Any], home: Path, tmp_path: Path
) -> None:
    """So that a module finds what else lies beside it."""
    bench, _, assignment = here
    store = Store()
    packed = payload.pack(assignment, bench, store.put)
    del sys.modules["far_nets"]
    set_up_bench_of(packed, store, tmp_path)
    payload.refuse_other_modules(packed)
    assert Path(sys.modules["far_nets"].__file__ or "") == home / "far_nets.py"


def set_up_bench_of(packed: payload.Payload, store: Store, folder: Path) -> Workbench:
    return set_up_bench(payload.unpack(packed, folder / "far", store.get))


def test_every_file_is_sent_back_once(here: tuple[Workbench, list[Cell], Any], tmp_path: Path) -> None:
    bench, cells, _ = here
    far = replace(bench, folder=tmp_path / "far", _targets={}, crafted={})
    crafting = next(cell for cell in cells if cell.is_needed)
    moved = next(cell for cell in cells if cell.needs)
    first = payload.run_with_files(run_cell, crafting, {}, far)
    kinds = sorted(Path(name).parts[1] for name in first.files)
    assert kinds == ["bounds.npy", "cells", "crafted", "shards"]
    payload.store_files(first, bench.folder)
    given = payload.points_for(moved, bench.folder)
    assert list(given) == [name for name in first.files if "crafted" in name]
    second = payload.run_with_files(run_cell, moved, given, far)
    assert [Path(name).parts[1] for name in second.files] == ["cells"], "clean inputs are known, and points were given"


def test_a_file_in_its_place_is_used_only_if_it_is_the_same(
    here: tuple[Workbench, list[Cell], Any], home: Path, tmp_path: Path
) -> None:
    bench, _, assignment = here
    store = Store()
    packed = payload.pack(assignment, bench, store.put)

    def used() -> Path:
        return Path(payload.unpack(packed, tmp_path / "far", store.get).study.models["two"].params["weights"])

    assert used() == home / "net.safetensors"
    content = (home / "net.safetensors").read_bytes()
    (home / "net.safetensors").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert used().is_relative_to(tmp_path / "far")
    assert used().read_bytes() == content


def test_what_is_stored_may_be_an_array(tmp_path: Path) -> None:
    payload._write(tmp_path / "a" / "b", np.frombuffer(b"content", np.uint8))
    assert (tmp_path / "a" / "b").read_bytes() == b"content"
