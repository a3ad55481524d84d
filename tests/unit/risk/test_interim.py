"""Schedule and alpha spending of interim analyses."""

from itertools import pairwise

import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.interim import RESERVE, alpha_share, interim_schedule, strict_level


def test_looks_grow_and_end_with_everything() -> None:
    assert interim_schedule([64] * 8) == (1, 2, 3, 4, 6, 8)
    assert interim_schedule([64]) == (1,)
    places = interim_schedule([64] * 1000)
    assert places[-1] == 1000
    assert len(places) < 20
    assert all(later > before for before, later in pairwise(places))


def test_the_first_interim_analysis_waits_for_enough_samples() -> None:
    assert interim_schedule([4] * 20)[0] == 8
    assert interim_schedule([4, 4]) == (2,)
    assert interim_schedule([29, 1, 64])[0] == 2


def test_a_schedule_needs_shards() -> None:
    with pytest.raises(RiskError, match="found 0 shards"):
        interim_schedule([])
    with pytest.raises(RiskError, match=r"growth above 1; found 3 shards and 1\.0"):
        interim_schedule([64] * 3, growth=1.0)


def test_the_analyses_of_a_schedule_share_all_but_the_reserve() -> None:
    spent: list[float] = []
    for _ in range(5):
        spent.append(alpha_share([], spent, 5))
    assert spent == pytest.approx([(1 - RESERVE) / 5] * 5)
    assert alpha_share([], spent[:1], 5) == spent[0]  # also where others were left out
    with pytest.raises(RiskError, match="needs at least one interim analysis"):
        alpha_share([], [], 0)


def test_samples_can_be_added_repeatedly_without_overspending_alpha() -> None:
    earlier: list[float] = []
    for _ in range(30):
        own: list[float] = []
        for _ in range(3):
            own.append(alpha_share(earlier, own, 3))
        assert own == pytest.approx([own[0]] * 3)
        earlier += own
        assert own[0] > 0
        assert sum(earlier) < 1
    assert earlier[3] == pytest.approx(RESERVE / 2 / 3)  # half of the reserve, for three analyses
    assert 0.95 < strict_level(0.95, earlier[-1]) < 1


def test_after_unscheduled_analyses_half_of_the_unspent_alpha_is_available() -> None:
    """As after a run that stopped at its limit of passes, or after samples were removed and restored."""
    assert alpha_share([], [0.4], 1) == pytest.approx(0.3)
    assert alpha_share([0.3], [0.5], 1) == pytest.approx(0.1)
    with pytest.raises(RiskError, match="have spent all"):
        alpha_share([0.7], [0.7], 1)


def test_the_level_of_an_interim_analysis() -> None:
    assert strict_level(0.95, 1.0) == pytest.approx(0.95)
    assert strict_level(0.95, 0.2) == pytest.approx(0.99)
    assert strict_level(0.95, 0.2, n_models=3) == pytest.approx(0.99)
    assert strict_level(0.95, 0.2, n_models=5) == pytest.approx(0.995)  # a worse one of four may be named
    assert strict_level(0.95, 1e-30) < 1
