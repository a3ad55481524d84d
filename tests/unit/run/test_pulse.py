"""How far a cell is while its attack runs."""

import pytest
import torch

from advrisk.run import pulse
from advrisk.run.pulse import Pulse, ignore_share


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(pulse.time, "monotonic", lambda: now[0])
    return now


def test_samples_that_are_done_and_shares_of_the_others_count(clock: list[float]) -> None:
    heard: list[tuple[str, float]] = []
    beat = Pulse("cell", lambda cell, n_done: heard.append((cell, n_done)), most_passes=40)
    beat(torch.tensor([1, 1, 1]), torch.tensor([False, False, False]), 5)
    assert not heard, "too early"
    clock[0] += 1.0
    beat(torch.tensor([10, 30, 50]), torch.tensor([False, True, False]), 5)
    assert heard == [("cell", 5 + 0.25 + 1 + 1)]
    beat(torch.tensor([20, 40, 50]), torch.tensor([False, True, False]), 5)
    assert len(heard) == 1, "not with every pass"


def test_without_a_known_number_of_passes_only_finished_samples_count(clock: list[float]) -> None:
    heard: list[float] = []
    beat = Pulse("cell", lambda _, n_done: heard.append(n_done), most_passes=0)
    clock[0] += 1.0
    beat(torch.tensor([10, 30]), torch.tensor([False, True]), 0)
    assert heard == [1.0]
    ignore_share("cell", 1.0)
