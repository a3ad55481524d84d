"""Optimality of arms, on arrays."""

import numpy as np

from advrisk.risk.envelope import optimality, spare_arms, without_each

INF = float("inf")


def test_nothing_broken_leaves_everything_open() -> None:
    whole = np.array([0.0, INF, INF])
    assert optimality(whole, whole) is None
    assert not spare_arms(np.stack([whole, whole])[None], np.ones((1, 2))).any()


def test_the_envelope_without_an_arm() -> None:
    found = np.array([[0.1, 0.2, INF], [0.1, 0.3, 0.5], [0.4, 0.4, INF]])
    np.testing.assert_array_equal(without_each(found), [[0.1, 0.3, 0.5], [0.1, 0.2, INF], [0.1, 0.2, 0.5]])
    np.testing.assert_array_equal(without_each(found[:1]), [[INF] * 3])
