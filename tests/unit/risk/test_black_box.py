"""What of a black-box attack's successes counts as missed by attacks with gradients."""

import numpy as np
import pytest

from advrisk.risk.black_box import missed_by_gradients

INF = float("inf")


@pytest.mark.parametrize(
    ("black_at", "found", "rooms", "minimal", "missed"),
    [
        (0.1, INF, [0.1], False, True),
        (0.1 + 1e-9, INF, [0.1], False, True),  # eps up to rounding
        (0.05, 0.1, [0.1], False, False),  # an arm at eps .1 is not asked to be nearer
        (0.25, INF, [0.1], False, False),  # nor allowed as far as .25
        (0.1, 0.3, [0.1, 0.3], False, True),  # what it found at eps .3 does not make up for eps .1
        (0.1, 0.12, [], True, True),  # one that looks for the smallest should have been nearer
        (0.1, 0.1009, [], True, False),  # but for the margin
        (0.1, INF, [], True, True),
        (0.1, INF, [], False, False),  # there is no arm with gradients
        (INF, INF, [0.1], True, False),
        (0.0, 0.0, [0.1], True, False),  # wrong from the start
    ],
)
def test_what_counts_as_missed(black_at: float, found: float, rooms: list[float], minimal: bool, missed: bool) -> None:
    result = missed_by_gradients(np.array([[black_at]]), np.array([[found]]), rooms, minimal=minimal)
    assert result.tolist() == [[missed]]
