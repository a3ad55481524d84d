"""A search and a certificate's cells as a user runs them: by workers that stay, by the command line."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from advrisk import Study
from advrisk.run.executors.local import WorkerPool

from .conftest import Command

SEARCH = {"attack": "pgd", "norm": "linf", "eps": 0.1, "steps": 3, "method": "grid", "rounds": 3, "batch": 2}


@pytest.fixture
def searched(study: dict[str, Any]) -> dict[str, Any]:
    study["data"] |= {"evaluate": 8, "tune": 24, "calibrate": 16}
    study["arms"] = [{"attack": "fgsm", "norm": "linf", "eps": 0.1}]
    return study | {"search": [SEARCH], "assess": {"certificate": {}}, "shard": 8}


def test_workers_stay_from_round_to_round(
    searched: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawned, spawn = [], WorkerPool._spawn
    monkeypatch.setattr(WorkerPool, "_spawn", lambda pool: (spawned.append(pool), spawn(pool))[1])
    two = Study.from_dict(searched).run(tmp_path / "two", workers=2)
    assert len(spawned) == 2, "three phases and three rounds, and none of them hired anew"
    assert two.status().complete


@pytest.mark.slow
def test_any_number_of_workers_finds_the_same(searched: dict[str, Any], tmp_path: Path) -> None:
    one, two = (Study.from_dict(searched).run(tmp_path / str(n), workers=n) for n in (1, 2))
    assert one.searches() == two.searches()
    assert [found.id for found in one.frozen_lists()] == [found.id for found in two.frozen_lists()]


def test_mistakes_in_a_search_cost_nothing(advrisk: Command, searched: dict[str, Any], tmp_path: Path) -> None:
    searched["search"] = [SEARCH | {"over": {"step_sise": [0.1, 1]}}]
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(searched, sort_keys=False))
    failed = advrisk("run", "study.yaml", "--out", "run")
    assert failed.returncode == 2
    assert "pgd has no parameter 'step_sise'; did you mean 'step_size'" in failed.stderr
    assert "study.yaml:" in failed.stderr
    assert not (tmp_path / "run").exists()


def test_without_botorch_only_a_search_by_gp_ucb_is_refused(
    advrisk: Command, searched: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "botorch", None)  # as if it were not installed
    searched["search"] = [SEARCH, SEARCH | {"method": "gp-ucb", "eps": 0.05}]
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(searched, sort_keys=False))
    failed = advrisk("run", "study.yaml", "--out", "run")
    assert failed.returncode == 2
    assert 'search[1]: a search by gp-ucb needs botorch: pip install "advrisk[search]"' in failed.stderr
    assert not (tmp_path / "run").exists()
    searched["search"] = [SEARCH]
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(searched, sort_keys=False))
    assert advrisk("run", "study.yaml", "--out", "run", "--dry-run").returncode == 0


@pytest.mark.slow
def test_the_command_line_tells_of_a_search(advrisk: Command, searched: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(searched, sort_keys=False))
    dry = json.loads(advrisk("run", "study.yaml", "--out", "run", "--dry-run", "--json").stdout)
    assert dry["n_beside"] > 0
    done = advrisk("run", "study.yaml", "--out", "run")
    assert "searches: advrisk show search run" in done.stdout
    shown = json.loads(advrisk("show", "search", "run", "--json").stdout)
    assert all(one["finished"] for one in shown)
    status = json.loads(advrisk("status", "run", "--json").stdout)
    assert status["complete"]
    assert status["n_calibrated"] == status["n_calibrated_expected"] > 0
