from types import SimpleNamespace
from typing import Any, cast

import pytest

from advrisk.run.executors import local
from advrisk.run.executors.local import START_S, Assignment, WorkerPool
from advrisk.study import study_from


@pytest.mark.parametrize("alive", [True, False])
def test_a_pool_takes_over_a_worker_that_was_started_before_if_it_is_still_there(
    alive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = SimpleNamespace(poll=lambda: None if alive else 1)
    before: Any = SimpleNamespace(connection=SimpleNamespace(closed=False), process=process)
    fresh: Any = object()
    monkeypatch.setattr(local, "spawn_worker", lambda: fresh)
    pool = WorkerPool(cast(Any, None), workers=2, started=before)
    assert [pool._spawn(), pool._spawn()] == [before if alive else fresh, fresh]


def test_workers_are_given_the_time_that_a_study_allows_for_loading() -> None:
    models = {name: {"source": "demo", "name": "plain"} for name in "ab"}
    content = {"name": "n", "data": {"source": "digits", "evaluate": 1}, "models": models, "arms": [{"attack": "fgsm"}]}
    allowed = [
        cast(Any, Assignment).start_s.fget(SimpleNamespace(study=study_from(content | given)))
        for given in ({}, {"max_load_s": 1}, {"max_load_s": 1000})
    ]
    assert allowed == [START_S, START_S, 2000]
