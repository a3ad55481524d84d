"""Evasion curves: expected numbers are counted by hand."""

import numpy as np
import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.damage import success_ratio
from advrisk.risk.evasion import Evasion, average, threshold

DISTANCES = {"a": [0.0, 1.0, np.inf], "b": [1.0, 2.0, 2.0]}


def test_average_counts_strictly_greater_distances() -> None:
    # pooled: 0, 1, 1, 2, 2, inf
    sizes = [0.0, 0.5, 1.0, 1.5, 2.0, 9.0, np.inf]
    assert average(DISTANCES)(sizes).tolist() == [5 / 6, 5 / 6, 3 / 6, 3 / 6, 1 / 6, 1 / 6, 0.0]


def test_average_is_one_minus_the_mean_success_ratio() -> None:
    taus = np.array([0.0, 0.3, 1.0, 1.7, 2.0, 50.0])
    ratios = np.mean([success_ratio(distances, taus) for distances in DISTANCES.values()], axis=0)
    np.testing.assert_allclose(average(DISTANCES)(taus), 1 - ratios, atol=1e-15)


def test_average_names_its_models_and_cannot_be_changed() -> None:
    curve = average(DISTANCES)
    assert curve.models == ("a", "b")
    with pytest.raises(ValueError, match="read-only"):
        curve.distances[0] = 7.0


def test_average_does_not_change_the_distances_it_was_given() -> None:
    given = np.array([3.0, 1.0, 2.0])
    average({"a": given})
    assert given.tolist() == [3.0, 1.0, 2.0]


def test_threshold_lets_sizes_up_to_tau_pass() -> None:
    assert threshold(1.0)([0.0, 0.99, 1.0, 1.01, np.inf]).tolist() == [1.0, 1.0, 1.0, 0.0, 0.0]


def test_no_detector_still_gives_a_failed_attack_no_damage() -> None:
    assert threshold(np.inf)([0.0, 1e300, np.inf]).tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("curve", [average(DISTANCES), threshold(1.5)], ids=["average", "threshold"])
def test_a_curve_keeps_the_shape_of_its_sizes_and_does_not_increase(curve: Evasion) -> None:
    assert curve(np.zeros((2, 3))).shape == (2, 3)
    assert curve(1.0).shape == ()
    values = curve(np.append(np.linspace(0, 3, 301), np.inf))
    assert (np.diff(values) <= 0).all()
    assert values.min() >= 0
    assert values.max() <= 1
    assert values[-1] == 0


@pytest.mark.parametrize("curve", [average(DISTANCES), threshold(1.5)], ids=["average", "threshold"])
def test_a_size_must_be_a_size(curve: Evasion) -> None:
    with pytest.raises(RiskError, match=r"sizes: found -0\.5 at index 1, 0"):
        curve([[1.0], [-0.5]])
    with pytest.raises(RiskError, match="sizes: found nan;"):
        curve(np.nan)


def test_a_threshold_must_be_a_size() -> None:
    with pytest.raises(RiskError, match=r"tau: found -1\.0"):
        threshold(-1.0)


def test_average_of_no_model_is_refused() -> None:
    with pytest.raises(RiskError, match="no model"):
        average({})


def test_average_of_unequal_lengths_is_refused() -> None:
    with pytest.raises(RiskError, match=r"model 'b' has 1 distances and model 'a' has 2.*same samples"):
        average({"a": [1.0, 2.0], "b": [1.0]})
