"""Clusters that are not there are refused in a few seconds, with what to do about it."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from advrisk import Study
from advrisk.core.errors import AdvriskError, RunError
from advrisk.parts.models.small import SmallCnn
from advrisk.run.executors import cluster as ray_cluster
from advrisk.run.executors.choice import local_device, remote_device
from advrisk.run.executors.cluster import Cluster, chosen_address, refuse_without_cluster
from advrisk.run.loading import choose_device
from advrisk.run.options import Options
from advrisk.study import ResourcesSpec, study_from

STUDY = {
    "name": "small",
    "data": {"source": "digits", "evaluate": 4},
    "models": {"net": {"source": "torch", "factory": "advrisk.parts.models.small:SmallCnn", "args": {"size": 8}}},
    "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.1}],
}


class Ray:
    """What a cluster asks of Ray."""

    def __init__(self, nodes: list[dict[str, Any]] | None = None) -> None:
        self.found, self.began, self.ended = nodes or [], list[dict[str, Any]](), 0
        self.environments: list[dict[str, str]] = []
        self.connected = False
        self.fails: BaseException | None = None

    def is_initialized(self) -> bool:
        return self.connected

    def init(self, **settings: Any) -> None:
        self.environments.append({name: value for name, value in os.environ.items() if name.startswith("RAY_")})
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as Ray takes it over
        self.began.append(settings)
        if self.fails is not None:
            raise self.fails

    def shutdown(self) -> None:
        self.ended += 1

    def nodes(self) -> list[dict[str, Any]]:
        return self.found


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Ray:
    made = Ray()
    monkeypatch.setattr(ray_cluster, "ray_module", lambda: made)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return made


@pytest.fixture
def deaf() -> Iterator[str]:
    """The address of somebody who listens and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=lambda: _accept(server), daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def _accept(server: socket.socket) -> None:
    held = []
    while True:
        try:
            held.append(server.accept()[0])
        except OSError:
            break
    for connection in held:
        connection.close()


HERE = {"CPU": 2.0, "GPU": 0.0}


def refuse(address: str | None, *, workers: int | None = None, **resources: float) -> int:
    return refuse_without_cluster(address, ResourcesSpec(**resources), workers=workers, here=HERE)


class TestAddresses:
    def test_the_one_given_comes_first_then_the_variable_then_a_cluster_here(self, monkeypatch):
        monkeypatch.setenv("RAY_ADDRESS", "head:6379")
        assert chosen_address("ray://other:10001") == "ray://other:10001"
        assert chosen_address(None) == "head:6379"
        monkeypatch.delenv("RAY_ADDRESS")
        assert chosen_address(None) == "local"
        assert chosen_address("auto") == "auto"

    @pytest.mark.parametrize(
        "wrong", ["head", "head:port", "http://head:80", "ray://head", "head:6379/x", "head:99999"]
    )
    def test_anything_else_is_refused_where_it_was_said(self, wrong, monkeypatch):
        with pytest.raises(RunError, match=r"--address: found .*; host:port, ray://host:port, auto or local is needed"):
            chosen_address(wrong)
        monkeypatch.setenv("RAY_ADDRESS", wrong)
        with pytest.raises(RunError, match="RAY_ADDRESS: found"):
            chosen_address(None)


class TestRefusals:
    def test_without_ray_it_is_said_how_to_install_it(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "ray", None)
        with pytest.raises(RunError, match=r'pip install "advrisk\[ray\]"'):
            refuse(None)

    def test_a_closed_port_is_refused_at_once(self, ray):
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(RunError, match=f"no Ray cluster answers at {address}: .*refused.*`ray status` tells"):
            refuse(address)

    def test_one_that_never_answers_is_waited_for_as_long_as_is_allowed(self, ray, deaf, monkeypatch):
        monkeypatch.setattr(ray_cluster, "ANSWER_S", 1.0)
        with pytest.raises(RunError, match=f"answers at {deaf}: nothing that Ray understands came within 1 s"):
            refuse(deaf)

    def test_what_ray_complains_of_is_told(self, ray, deaf, monkeypatch):
        said = "RuntimeError: Version mismatch: The cluster was started with:\\n    Ray: 2.9.0\\n    Python: 3.10.1\\n"
        monkeypatch.setattr(ray_cluster, "_QUESTION", f"import sys; sys.exit('''Traceback\n{said}''')")
        with pytest.raises(RunError, match=r"is of another version: .*Ray: 2.9.0 Python: 3.10.1. Install the same"):
            refuse(deaf)

    def test_a_cluster_that_wants_a_token_is_told_from_one_that_is_not_there(self, ray, deaf, monkeypatch):
        said = "Unauthenticated: RPC error: InvalidAuthToken\\nConnectionError: Failed to connect"
        monkeypatch.setattr(ray_cluster, "_QUESTION", f"import sys; sys.exit('{said}')")
        with pytest.raises(RunError, match="wants a token: set RAY_AUTH_MODE=token"):
            refuse(deaf)

    def test_a_client_needs_more_than_ray_alone(self, ray, deaf, monkeypatch):
        monkeypatch.setattr(ray_cluster, "_QUESTION", "import sys; sys.exit('requires pip package `ray[client]`.')")
        with pytest.raises(RunError, match=r'ray:// needs more than ray alone: pip install "advrisk\[ray\]"'):
            refuse(f"ray://{deaf}")

    def test_a_connection_that_is_there_is_used_but_not_for_another_address(self, ray):
        ray.connected = True
        ray.found = [{"Alive": True, "Resources": {"CPU": 3.0}}]
        assert refuse(None) == 3
        with pytest.raises(RunError, match="Ray is connected already"):
            refuse("head:6379")

    def test_what_this_machine_has_not_is_refused_before_a_cluster_is_started(self, ray):
        assert refuse(None) == 2
        assert refuse(None, cpus=0.5) == 4
        assert refuse(None, cpus=0.5, workers=5) == 5
        with pytest.raises(RunError, match="asks 64 CPU for each cell, and this machine has 2 CPU and 0 GPU"):
            refuse(None, cpus=64, workers=1)
        with pytest.raises(RunError, match=r"asks 1 CPU and 0\.5 GPU for each cell, and this machine has 2 CPU and 0"):
            refuse(None, gpus=0.5)
        assert not ray.began

    def test_what_a_cluster_has_not_is_refused_unless_it_may_grow(self, ray, deaf, monkeypatch):
        said = 'print(\'a line before\'); print(\'[{"CPU": 4.0, "GPU": 1.0}, {"CPU": 4.0}]\')'
        monkeypatch.setattr(ray_cluster, "_QUESTION", said)
        assert refuse(deaf) == 8
        assert refuse(deaf, gpus=0.5) == 2
        with pytest.raises(RunError, match="no machine of the Ray cluster has 1 CPU and 2 GPU, which `resources`"):
            refuse(deaf, gpus=2)
        assert refuse(deaf, gpus=2, workers=7) == 7, "they are asked for, so that it grows"

    def test_a_study_that_is_refused_leaves_nothing_behind(self, tmp_path: Path, monkeypatch):
        monkeypatch.delenv("RAY_ADDRESS", raising=False)
        study = Study.from_dict(STUDY)
        with pytest.raises(RunError, match="on: found 'rays'; did you mean 'ray'"):
            study.run(tmp_path / "run", on="rays")  # type: ignore[arg-type]
        with pytest.raises(RunError, match="is that of a Ray cluster: add --on ray"):
            study.run(tmp_path / "run", address="head:6379")
        with pytest.raises(RunError, match=r"`resources: \{gpus: 0.25\}`"):
            study.run(tmp_path / "run", on="ray", device="cuda")
        with pytest.raises(RunError, match=r"no Ray cluster answers at 127\.0\.0\.1:9"):
            study.run(tmp_path / "run", on="ray", address="127.0.0.1:9")
        with pytest.raises(RunError, match=r"`resources` of the study asks 1024 CPU for each cell, and this machine"):
            Study.from_dict(STUDY | {"resources": {"cpus": 1024}}).run(tmp_path / "run", on="ray")
        assert not (tmp_path / "run").exists()

    def test_a_dry_run_refuses_what_a_run_does_and_starts_nothing(self, ray, tmp_path: Path):
        study = Study.from_dict(STUDY)
        for wrong, words in [
            ({"on": "rays"}, "on: found 'rays'"),
            ({"address": "head:6379"}, "add --on ray"),
            ({"on": "ray", "address": "nonsense"}, "--address: found 'nonsense'"),
            ({"on": "ray", "device": "cuda"}, "resources: {gpus: 0.25}"),
            ({"target": "bogus"}, "bogus"),
            ({"target": "gate"}, "gate"),
        ]:
            with pytest.raises(AdvriskError, match=re.escape(words)):
                study.dry_run(tmp_path / "run", **wrong)
        assert (
            study.dry_run(tmp_path / "run", on="ray", workers=3, target="broken.net at 0.1 ±0.1", max_passes=5).workers
            == 3
        )
        with pytest.raises(RunError, match="the model net is an object of this process: it cannot be sent"):
            Study.from_dict(STUDY | {"models": {"net": {"source": "object"}}}).dry_run(
                tmp_path / "run", on="ray", modules={"net": SmallCnn(size=8)}
            )
        assert not ray.began
        assert not (tmp_path / "run").exists()

    def test_what_exists_in_this_process_only_cannot_be_sent(self, tmp_path: Path, monkeypatch):
        monkeypatch.delenv("RAY_ADDRESS", raising=False)
        study = Study.from_dict(STUDY | {"models": {"net": {"source": "object"}}})
        with pytest.raises(RunError, match="the model net is an object of this process: it cannot be sent"):
            study.run(tmp_path / "run", on="ray", modules={"net": SmallCnn(size=8)})
        assert not (tmp_path / "run").exists()


class TestClusters:
    def test_one_that_is_started_here_is_ended_and_leaves_nothing(self, ray):
        with Cluster(None, cpus=3) as cluster:
            folder = cluster.folder
            assert folder is not None
            assert folder.is_dir()
            assert ray.began[0]["num_cpus"] == 3
            assert ray.began[0]["_temp_dir"] == str(folder)
            assert len(str(folder)) < 40
        assert ray.ended == 1
        assert not folder.exists()

    def test_one_that_was_there_is_left_alone(self, ray):
        with Cluster("head:6379", cpus=3) as cluster:
            assert cluster.folder is None
            assert ray.began[0]["address"] == "head:6379"
            assert "num_cpus" not in ray.began[0]
        assert ray.ended == 1, "only the connection"
        ray.connected = True
        with Cluster(None, cpus=3):
            pass
        assert len(ray.began) == ray.ended == 1

    def test_what_fails_or_is_interrupted_while_it_starts_leaves_nothing(self, ray, tmp_path, monkeypatch):
        monkeypatch.setattr(ray_cluster.tempfile, "gettempdir", lambda: "/tmp")
        before = set(Path("/tmp").glob("advrisk-ray-*"))
        for failure, raised in ((RuntimeError("no room"), RunError), (KeyboardInterrupt(), KeyboardInterrupt)):
            ray.fails = failure
            with pytest.raises(raised), Cluster(None, cpus=1):
                pass
        assert ray.ended == 2
        assert set(Path("/tmp").glob("advrisk-ray-*")) <= before

    def test_nobody_is_told_and_nobody_else_may_use_it(self, ray, monkeypatch):
        for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_USAGE_STATS_ENABLED"):
            monkeypatch.delenv(name, raising=False)
        before = dict(os.environ)
        for _ in range(2):
            with Cluster(None, cpus=1):
                assert dict(os.environ) == before
        first, second = ray.environments
        assert first == second
        assert first["RAY_USAGE_STATS_ENABLED"] == "0"
        assert len(first["RAY_AUTH_TOKEN"]) == 64
        monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
        with Cluster(None, cpus=1):
            assert "RAY_AUTH_TOKEN" not in ray.environments[-1], "the user has decided"

    def test_sigterm_means_what_it_meant_before(self, ray):
        before = signal.getsignal(signal.SIGTERM)
        with Cluster("head:6379", cpus=1):
            assert signal.getsignal(signal.SIGTERM) == before

    def test_room_is_counted_machine_by_machine(self, ray):
        ray.found = [
            {"Alive": True, "Resources": {"CPU": 3.0, "GPU": 1.0}},
            {"Alive": True, "Resources": {"CPU": 3.0}},
            {"Alive": False, "Resources": {"CPU": 64.0, "GPU": 8.0}},
            {"Alive": True, "Resources": {}},
        ]
        cluster = Cluster("head:6379", cpus=1)
        assert cluster.room_for(ResourcesSpec(cpus=1)) == 6
        assert cluster.room_for(ResourcesSpec(cpus=2)) == 2
        assert cluster.room_for(ResourcesSpec(cpus=1, gpus=0.5)) == 2
        assert cluster.room_for(ResourcesSpec(cpus=0.5, gpus=0.1)) == 6
        assert cluster.room_for(ResourcesSpec(cpus=1, gpus=2)) == 0


@pytest.mark.parametrize("asked", ["cuda", "cuda:3", "auto"])
def test_the_driver_computes_on_what_it_has_wherever_workers_do(asked):
    """A head without an accelerator, and a cluster with some."""
    study = study_from(STUDY | {"resources": {"gpus": 0.5}})
    options = Options(on="ray", device=asked)
    assert local_device(study, options) == choose_device("auto")
    assert remote_device(study, options) == ("cuda" if asked == "auto" else asked)
    assert local_device(study, Options(on="ray", device="cpu")) == remote_device(study, Options(on="ray", device="cpu"))


def test_nothing_of_ray_is_imported_before_it_is_asked_for():
    code = "import sys, advrisk.run.campaign; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
