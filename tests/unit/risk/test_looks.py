"""When a run is looked at, and what the looks may spend together."""

from itertools import pairwise

import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.looks import HELD, look_places, look_share, strict_level


def test_looks_grow_and_end_with_everything() -> None:
    assert look_places([64] * 8) == (1, 2, 3, 4, 6, 8)
    assert look_places([64]) == (1,)
    places = look_places([64] * 1000)
    assert places[-1] == 1000
    assert len(places) < 20
    assert all(later > before for before, later in pairwise(places))


def test_the_first_look_waits_for_enough_samples() -> None:
    assert look_places([4] * 20)[0] == 8
    assert look_places([4, 4]) == (2,)
    assert look_places([29, 1, 64])[0] == 2


def test_without_shards_there_is_nothing_to_look_at() -> None:
    with pytest.raises(RiskError, match="found 0 shards"):
        look_places([])
    with pytest.raises(RiskError, match=r"growth above 1; found 3 shards and 1\.0"):
        look_places([64] * 3, growth=1.0)


def test_the_looks_of_a_plan_share_all_but_what_is_held_back() -> None:
    spent: list[float] = []
    for _ in range(5):
        spent.append(look_share([], spent, 5))
    assert spent == pytest.approx([(1 - HELD) / 5] * 5)
    assert look_share([], spent[:1], 5) == spent[0]  # also where others were left out
    with pytest.raises(RiskError, match="no look is planned"):
        look_share([], [], 0)


def test_samples_can_be_added_for_ever_and_never_is_more_spent_than_there_is() -> None:
    earlier: list[float] = []
    for _ in range(30):
        own: list[float] = []
        for _ in range(3):
            own.append(look_share(earlier, own, 3))
        assert own == pytest.approx([own[0]] * 3)
        earlier += own
        assert own[0] > 0
        assert sum(earlier) < 1
    assert earlier[3] == pytest.approx(HELD / 2 / 3)  # half of what the first plan left, for three looks
    assert 0.95 < strict_level(0.95, earlier[-1]) < 1


def test_where_looks_that_nobody_planned_spent_more_half_of_the_rest_is_left() -> None:
    """A run that rested where its passes were spent; or samples were taken away and put back."""
    assert look_share([], [0.4], 1) == pytest.approx(0.3)
    assert look_share([0.3], [0.5], 1) == pytest.approx(0.1)
    with pytest.raises(RiskError, match="have spent all"):
        look_share([0.7], [0.7], 1)


def test_the_level_of_a_look() -> None:
    assert strict_level(0.95, 1.0) == pytest.approx(0.95)
    assert strict_level(0.95, 0.2) == pytest.approx(0.99)
    assert strict_level(0.95, 0.2, n_models=3) == pytest.approx(0.99)
    assert strict_level(0.95, 0.2, n_models=5) == pytest.approx(0.995)  # a worse one of four may be named
    assert strict_level(0.95, 1e-30) < 1
