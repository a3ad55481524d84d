"""What a cell occupies."""

from typing import Any

import pytest

from advrisk.core.errors import StudyError
from advrisk.study import ResourcesSpec, study_from

STUDY: dict[str, Any] = {
    "name": "small",
    "data": {"source": "digits", "evaluate": 4},
    "models": {"net": {"source": "demo", "name": "plain"}},
    "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.1}],
}


def test_a_core_and_no_accelerator_unless_something_is_said() -> None:
    assert study_from(STUDY).resources == ResourcesSpec(cpus=1, gpus=0)
    assert study_from(STUDY | {"resources": {"cpus": 2, "gpus": "1/4"}}).resources == ResourcesSpec(cpus=2, gpus=0.25)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cpus": 0}, "resources.cpus: .*found 0"),
        ({"gpus": -1}, "resources.gpus: .*found -1"),
        ({"gpus": 1.5}, "resources.gpus: a number above 1 must be whole; found 1.5"),
        ({"gpu": 1}, "resources.gpu: unknown key; did you mean 'gpus'"),
        ({"cpus": "many"}, "resources.cpus: .*found 'many'"),
        ({"cpus": 5000}, "resources.cpus: .*found 5000"),
        (4, "resources: must be a mapping, found 4"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(given: Any, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        study_from(STUDY | {"resources": given})


@pytest.mark.parametrize(
    ("cpus", "gpus", "machine", "room"),
    [
        (1, 0, (8, 0), 8),
        (2, 0, (7, 0), 3),
        (0.1, 0, (1, 0), 10),
        (1, 0.25, (8, 1), 4),
        (1, 0.25, (3, 1), 3),
        (1, 0.4, (8, 2), 4),  # two on each; the fifth would need 0.2 of both
        (1, 0.1, (64, 1), 10),
        (1, 1, (64, 8), 8),
        (1, 2, (64, 7), 3),
        (1, 0.5, (8, 0), 0),
    ],
)
def test_how_many_fit_on_a_machine(cpus: float, gpus: float, machine: tuple[float, float], room: int) -> None:
    assert ResourcesSpec(cpus=cpus, gpus=gpus).fitting(*machine) == room
