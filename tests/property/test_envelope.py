"""Optimality equals the areas under the curves, whatever the distances; and what must hold of any arms."""

import math

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from advrisk.risk.envelope import ROUNDING, optimality, spare_arms, without_each

Matrix = NDArray[np.float64]

SIZES = st.one_of(st.sampled_from([0.5, 1.0, 2.0, math.inf]), st.floats(0.01, 10))


@st.composite
def matrices(draw: st.DrawFn, *, least_arms: int = 1, least_samples: int = 1) -> Matrix:
    """Distances of (arms, samples), some samples wrong from the start for all arms."""
    n_arms, n = draw(st.integers(least_arms, 4)), draw(st.integers(least_samples, 8))
    numbers = draw(st.lists(SIZES, min_size=n_arms * n, max_size=n_arms * n))
    found = np.array(numbers).reshape(n_arms, n)
    found[:, draw(st.lists(st.booleans(), min_size=n, max_size=n))] = 0
    return found


def area(distances: Matrix, reach: float, *, steps: int = 20_000) -> float:
    """The area under robust accuracy, on a fine grid."""
    grid = (np.arange(steps) + 0.5) * reach / steps
    return float((distances[:, None] > grid).mean(0).sum() * reach / steps)


@given(matrices(least_samples=3))
def test_the_sum_equals_the_area_between_the_curves(found: Matrix) -> None:
    envelope = found.min(0)
    reach = envelope[envelope < math.inf].max(initial=0)
    clean = float((envelope > 0).mean()) * reach
    possible = clean - area(envelope, reach)
    assume(possible > 0.01 * max(clean, 0.01))  # a grid cannot tell a smaller area
    for arm in found:
        told = optimality(arm, envelope)
        assert told is not None
        np.testing.assert_allclose(told, 1 - (area(arm, reach) - area(envelope, reach)) / possible, atol=0.02)


@given(matrices())
def test_optimality_lies_between_an_arm_that_never_succeeds_and_the_envelope(found: Matrix) -> None:
    envelope = found.min(0)
    if optimality(envelope, envelope) is None:
        broken = envelope[(envelope > 0) & (envelope < math.inf)]
        assert np.ptp(broken) <= ROUNDING * broken.max() if broken.size else True
        return
    assert optimality(envelope, envelope) == 1
    assert optimality(np.where(envelope > 0, math.inf, 0), envelope) == 0
    assert all(0 <= optimality(arm, envelope) <= 1 for arm in found)


@given(matrices(least_arms=2, least_samples=3), st.data())
def test_a_better_distance_never_lowers_the_own_optimality(found: Matrix, data: st.DataObject) -> None:
    """Against the same envelope; every step towards it counts or changes nothing."""
    envelope = found.min(0)
    assume(optimality(envelope, envelope) is not None)
    closer = np.where(
        data.draw(st.lists(st.booleans(), min_size=found.shape[1], max_size=found.shape[1])), envelope, found[0]
    )
    assert optimality(closer, envelope) >= optimality(found[0], envelope)


@given(matrices(least_arms=2, least_samples=3))
def test_a_new_arm_lowers_the_others_where_the_reach_stays(found: Matrix) -> None:
    *others, new = found
    before = np.min(others, axis=0)
    farthest = np.where(before < math.inf, before, -1).argmax()
    new[(before == math.inf) | (np.arange(len(new)) == farthest)] = math.inf  # so the reach stays
    after = np.minimum(before, new)
    assume(optimality(before, before) is not None and optimality(after, after) is not None)
    assert before[before < math.inf].max() == after[after < math.inf].max()
    assert all(optimality(arm, after) <= optimality(arm, before) + 1e-12 for arm in others)


def test_a_new_arm_that_moves_the_reach_can_raise_the_others() -> None:
    """So optimalities of different sets of arms are not to be compared."""
    own, other, new = np.array([[0.1, 0.4, math.inf], [0.1, 0.2, 0.4], [math.inf, math.inf, 0.2]])
    before, after = np.minimum(own, other), np.minimum(np.minimum(own, other), new)
    np.testing.assert_allclose([optimality(own, before), optimality(own, after)], [0.6, 1.0])


@given(matrices(least_arms=2))
def test_the_envelope_without_each_arm_is_that_of_the_others(found: Matrix) -> None:
    for place, without in enumerate(without_each(found)):
        np.testing.assert_array_equal(without, np.delete(found, place, axis=0).min(0))


@given(matrices(), st.data())
def test_dropping_the_spare_arms_changes_nothing_and_no_further_arm_can_go(found: Matrix, data: st.DataObject) -> None:
    passes = np.array([data.draw(st.lists(st.floats(0, 100), min_size=len(found), max_size=len(found)))])
    spare, envelope = spare_arms(found[None], passes), found.min(0)
    if not ((envelope > 0) & (envelope < math.inf)).any():
        assert not spare.any()
        return
    left = found[~spare]
    assert (left.min(0) <= envelope * (1 + ROUNDING)).all()
    assert ((without_each(left) > envelope * (1 + ROUNDING)).any(1)).all()
