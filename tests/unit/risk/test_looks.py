"""When a run is looked at, and what the looks may spend together."""

from itertools import pairwise

import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.looks import look_places, look_share, strict_level


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


def test_looks_never_spend_more_than_there_is() -> None:
    spent: list[float] = []
    for left in (5, 4, 3, 2, 1):
        spent.append(look_share(spent, left))
    assert spent == pytest.approx([0.2] * 5)
    grown = [0.2, 0.2]  # then the study was given more samples, and six looks are to come instead of three
    for left in range(6, 0, -1):
        grown.append(look_share(grown, left))
    assert grown[2:] == pytest.approx([0.1] * 6)
    assert look_share([0.7, 0.7], 1) == 0.0
    with pytest.raises(RiskError, match="no look is left"):
        look_share([1.0], 0)


def test_the_level_of_a_look() -> None:
    assert strict_level(0.95, 1.0) == pytest.approx(0.95)
    assert strict_level(0.95, 0.2) == pytest.approx(0.99)
    assert strict_level(0.95, 0.2, n_models=3) == pytest.approx(0.99)
    assert strict_level(0.95, 0.2, n_models=5) == pytest.approx(0.995)  # a worse one of four may be named
