"""The same study on a real Ray cluster of this machine: the same rows, whatever is lost on the way."""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from advrisk import Run, Study
from advrisk.core.errors import RunError
from advrisk.run import campaign
from advrisk.run.executors import cluster as ray_cluster
from advrisk.run.executors import local
from advrisk.run.executors import ray as ray_executor
from advrisk.run.options import Options
from advrisk.testing.ledgers import outcome_rows, output_rows

from .conftest import IN_WORKERS, study_of

ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")

# Ray itself leaves files and processes to the garbage collector, and calls what it will change.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
Study_ = dict[str, Any]
SMALL = {"object_store_memory": 100_000_000, "include_dashboard": False}
TRANSFER = {"attack": "transfer", "from": "plain", "arm": {"attack": "pgd", "norm": "linf", "eps": 0.2, "steps": 10}}

PARTS = '''
"""Attacks that lose their worker, or keep it for ever, and a net that registers them by being imported."""
import os, time
from pathlib import Path
from advrisk.core.traits import AttackTraits
from advrisk.parts.attacks.registry import attacks
from advrisk.parts.models.small import SmallCnn

def net():
    return SmallCnn(size=8, width=8)

def bad(name):
    if name in {part.name for part in attacks}:  # some other test made Python forget this module
        return lambda function: function
    passes = lambda *_: (2, 1)
    traits = AttackTraits(needs="gradients", norms=("linf",), objective="ace", passes=passes, use_when="testing")
    return attacks.register(name, traits=traits)

def tries(name):
    with open(os.environ["ADVRISK_TRIES"] + name, "a") as file:
        file.write(".")
        return file.tell()

@bad("kills-its-first-worker")
def kills_its_first_worker(probe):
    probe.forward(probe.x0, probe.active())
    if tries("first") == 1:
        os._exit(9)

@bad("kills-every-worker")
def kills_every_worker(probe):
    tries("every")
    os._exit(9)

@bad("keeps-its-worker")
def keeps_its_worker(probe):
    tries("hangs")
    time.sleep(600)

@bad("sleeps")
def sleeps(probe):
    tries("sleeps")
    time.sleep(0.25)
    probe.forward(probe.x0, probe.active())
'''


@pytest.fixture(autouse=True)
def on_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Studies that are run on Ray are really run there; others, in this process."""
    here = campaign.choose_executor

    def executor(run_cell: Any, bench: Any, plan: Any, options: Options, trial: Any) -> Any:
        return (IN_WORKERS if options.on == "ray" else here)(run_cell, bench, plan, options, trial)

    monkeypatch.setattr(campaign, "choose_executor", executor)
    monkeypatch.delenv(ray_cluster.ADDRESS, raising=False)


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    """A folder with a short name, which workers write into, too; pytest's are too long for Ray's sockets."""
    with tempfile.TemporaryDirectory(prefix="rt-", dir="/tmp") as name, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", name)
        patch.setattr(tempfile, "tempdir", name)  # Python has asked for the variable already
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("ADVRISK_TRIES", f"{name}/tries-")
        yield Path(name)


@pytest.fixture(scope="module")
def cluster(scratch: Path) -> Iterator[str]:
    """The address of a cluster with two cores, which claims to have a GPU."""
    made = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "num_gpus": 1, **SMALL})
    try:
        yield made.address
    finally:
        made.shutdown()


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for study files, with the module of their parts: parts are registered once in a process."""
    folder = tmp_path_factory.mktemp("beside")
    (folder / "ray_parts.py").write_text(PARTS)
    return folder


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster is known to answer, and what hangs is stopped soon."""
    monkeypatch.setattr(ray_cluster, "_ask", lambda _: [{"CPU": 2.0, "GPU": 1.0}])
    monkeypatch.setattr(local, "GRACE_S", 2.0)
    monkeypatch.setattr(ray_executor, "TRIES", 2)


def with_parts(nets: Path, *names: str) -> Study_:
    """A study whose attacks lose their workers."""
    study = study_of(nets)
    study["data"]["evaluate"] = 16
    study["models"] = {"plain": study["models"]["plain"] | {"factory": "ray_parts:net", "args": {}}}
    study["arms"] = [{"attack": name, "norm": "linf", "eps": 0.1} for name in names]
    return study


def loaded(study: Study_, beside: Path) -> Study:
    (beside / "study.yaml").write_text(yaml.safe_dump(study))
    return Study.load(beside / "study.yaml")


@pytest.mark.usefixtures("quick")
def test_rows_and_inputs_are_those_of_this_process_though_a_worker_is_lost(
    nets: Path, beside: Path, tmp_path: Path, cluster: str, scratch: Path
) -> None:
    study = study_of(nets) | {"resources": {"cpus": 1, "gpus": 0.5}, "device": "cpu"}
    study["data"]["evaluate"] = 32
    study["models"]["plain"] |= {"factory": "ray_parts:net", "args": {}}
    study["arms"] += [TRANSFER, {"attack": "kills-its-first-worker", "norm": "linf", "eps": 0.1}]
    seen: list[Any] = []
    both = loaded(study, beside)
    both.run(tmp_path / "ray", on="ray", workers=1, address=cluster, on_progress=seen.append)
    assert len((scratch / "tries-first").read_text()) > 2 * 2, "one of the two cells of each model was begun twice"
    both.run(tmp_path / "here")
    assert outcome_rows(tmp_path / "ray") == outcome_rows(tmp_path / "here")
    assert output_rows(tmp_path / "ray") == output_rows(tmp_path / "here")
    kept = [{path.relative_to(run) for path in run.rglob("*.np?")} for run in (tmp_path / "ray", tmp_path / "here")]
    assert kept[0] == kept[1]
    assert any("crafted" in str(path) for path in kept[0])
    assert seen[-1].finished
    assert seen[-1].n_done == 2 * 2 * (1 + 4 + 2 + 1 + 1) + 2, "of each shard, the points to transfer are crafted once"
    assert not ray.is_initialized(), "the connection is ended with the run"


def test_what_no_machine_has_is_refused_and_nothing_is_written(study: Study_, tmp_path: Path, cluster: str) -> None:
    study |= {"resources": {"gpus": 2}, "device": "cpu"}
    with pytest.raises(RunError, match="no machine of the Ray cluster has 1 CPU and 2 GPU, which `resources`"):
        Study.from_dict(study).run(tmp_path / "ray", on="ray", address=cluster)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_cells_that_lose_or_keep_every_worker_cost_no_rows_of_others(
    nets: Path, beside: Path, tmp_path: Path, cluster: str, scratch: Path
) -> None:
    names = ["kills-every-worker", "keeps-its-worker", "fgsm"]
    study = loaded(with_parts(nets, *names) | {"max_cell_s": 2}, beside)
    rows = study.run(tmp_path / "ray", on="ray", address=cluster).outcomes().to_pylist()
    found = {name: {row["outcome"] for row in rows if row["family"] == name} for name in [*names, "clean"]}
    assert len(rows) == 16 * 4, "a row is missing"
    assert found["kills-every-worker"] == {"error"}
    assert found["keeps-its-worker"] == {"timeout"}
    assert not found["fgsm"] & {"error", "timeout"}
    messages = {row["family"]: row["message"] for row in rows}
    assert messages["kills-every-worker"].startswith("lost 2 workers of the Ray cluster, the last one: ")
    assert messages["keeps-its-worker"] == "hung for more than 2 s and was stopped"
    tries = {name: len((scratch / f"tries-{name}").read_text()) for name in ("every", "hangs")}
    assert tries == {"every": 2, "hangs": 2}


@pytest.mark.usefixtures("quick")
def test_a_killed_driver_leaves_a_run_that_goes_on(nets: Path, beside: Path, tmp_path: Path, cluster: str) -> None:
    study = slow_study(nets, beside)
    study.run(tmp_path / "here")
    with killed_midway(beside, tmp_path / "ray", "--address", cluster, "--workers", "1") as process:
        process.kill()
    state = Run.open(tmp_path / "ray").status()
    assert 0 < state.n_cells < state.n_cells_expected
    seen: list[Any] = []
    study.run(tmp_path / "ray", on="ray", address=cluster, workers=1, on_progress=seen.append)
    assert seen[0].n_skipped == state.n_cells
    assert outcome_rows(tmp_path / "ray") == outcome_rows(tmp_path / "here")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_cluster_of_its_own_ends_with_the_run(
    nets: Path, beside: Path, tmp_path: Path, scratch: Path, number: signal.Signals
) -> None:
    study = slow_study(nets, beside)
    study.run(tmp_path / "here")
    with killed_midway(beside, tmp_path / "ray", "--workers", "2") as process:
        process.send_signal(number)
    assert process.returncode == (-number if number == signal.SIGKILL else 130)
    began = time.monotonic()
    while (left := processes_in(scratch)) and time.monotonic() - began < 30:
        time.sleep(0.2)
    assert not left, "the cluster outlives the run that started it"
    assert bool(list(scratch.glob("advrisk-ray-*"))) == (number == signal.SIGKILL)
    study.run(tmp_path / "ray", on="ray", workers=2)
    assert outcome_rows(tmp_path / "ray") == outcome_rows(tmp_path / "here")
    assert not list(scratch.glob("advrisk-ray-*")), "what a killed run left is removed by the next one"


@pytest.mark.slow
@pytest.mark.usefixtures("scratch")
def test_a_lost_machine_costs_time_and_no_rows(nets: Path, beside: Path, tmp_path: Path) -> None:
    """Two machines of two cores, one of which is lost, with the cells of its workers, while the run goes on."""
    study = slow_study(nets, beside)
    study.run(tmp_path / "here")
    study.run(tmp_path / "own", on="ray", workers=1)  # Ray must not keep the token of that cluster for the next one
    made = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 2, **SMALL})
    other = made.add_node(num_cpus=2, object_store_memory=100_000_000)
    seen: list[Any] = []

    def lose(progress: Any) -> None:
        seen.append(progress)
        if progress.n_done == 6:
            made.remove_node(other, allow_graceful=False)

    try:
        study.run(tmp_path / "ray", on="ray", address=made.address, on_progress=lose)
    finally:
        made.shutdown()
    assert seen[-1].finished
    assert outcome_rows(tmp_path / "ray") == outcome_rows(tmp_path / "here")


def slow_study(nets: Path, beside: Path) -> Study:
    """Sixteen short cells, and eight that sleep for a moment."""
    return loaded(with_parts(nets, "sleeps", "fgsm") | {"shard": 2}, beside)


@contextmanager
def killed_midway(beside: Path, out: Path, *words: str) -> Iterator["subprocess.Popen[bytes]"]:
    """`advrisk run --on ray` in a process of its own, once some cells are done; it has ended afterwards."""
    command = [sys.executable, "-m", "advrisk", "run", "study.yaml", "--out", str(out), "--on", "ray"]
    process = subprocess.Popen(
        [*command, "--publish-s", "0", *words],
        cwd=beside,
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    segments = out / "ledger" / "segments"
    while process.poll() is None and (not segments.exists() or len(list(segments.glob("0*"))) < 4):
        time.sleep(0.02)
    try:
        yield process
        process.wait(timeout=60)
    finally:
        process.kill()
        process.wait()


def processes_in(folder: Path) -> list[int]:
    """Processes of Ray that were started with files in a folder of advrisk's."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"{folder}/advrisk-ray-" in path.read_bytes().decode(errors="replace"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found
