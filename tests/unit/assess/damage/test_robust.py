"""Robust accuracy at any size, and the sizes at which a curve of it may be drawn."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from advrisk.assess.damage.figures import robust_curves
from advrisk.assess.damage.robust import Robustness
from tests.damages import BETTER, EPS, assessed

FOUND: Mapping[str, Any] = {"m": np.array([0.0, 0.1, 0.2, np.inf])}


def test_robust_is_what_is_correct_and_not_broken() -> None:
    basis = Robustness(FOUND, 0.95)
    assert [basis.robust("m", eps).value for eps in (0, 0.1, 0.15, 0.2)] == [0.75, 0.5, 0.5, 0.25]
    assert [basis.broken("m", eps).value for eps in (0, 0.1, 0.2)] == [0.25, 0.5, 0.75]
    by_prediction = Robustness({"m": np.array([0.1, 0.2])}, 0.95, correct={"m": np.array([1.0, 0.0])})
    assert by_prediction.robust("m", 0).value == 0.5


def test_a_curve_is_smooth_only_where_an_attack_looked_for_the_smallest_change() -> None:
    smooth = Robustness(FOUND, 0.95, attacks=((None, "smallest"),)).curve_sizes((0.1,))
    assert len(smooth) > 50
    assert smooth[0] == 0
    assert smooth[-1] == pytest.approx(1.02 * 0.2)
    assert Robustness(FOUND, 0.95, attacks=((0.05, "first"), (0.1, "first"))).curve_sizes((0.1,)) == [0, 0.05, 0.1]
    assert Robustness(FOUND, 0.95).curve_sizes(()) == [0]


def test_the_figure_shows_the_numbers_of_the_table_with_their_intervals() -> None:
    found = assessed(**BETTER, attacks=((None, "smallest"),))
    plot = robust_curves(found)
    assert plot is not None
    lines = {trace["name"]: trace for trace in plot["data"] if "name" in trace}
    for row in found.models:
        line = lines[row.model]
        place = line["x"].index(round(EPS, 6))
        share = row.robust_accuracy[EPS]
        assert line["y"][place] == round(share.value, 4)
        assert line["customdata"][place] == (round(share.low, 4), round(share.high, 4))
        assert line["mode"] == "lines"
        assert line["y"] == sorted(line["y"], reverse=True)
    assert [shape["x0"] for shape in plot["layout"]["shapes"]] == [EPS]
    fixed = robust_curves(assessed(**BETTER, attacks=((EPS, "first"),)))
    assert fixed is not None
    assert {(trace["mode"], len(trace["x"])) for trace in fixed["data"] if "name" in trace} == {("lines+markers", 2)}
    assert robust_curves(assessed(**BETTER)) is None, "no attack is known to have tried anything"
