"""Worst-case ROC curves: thinned without leaving the curve, beside chance, the worst group first."""

from dataclasses import replace

import numpy as np
import pytest

from advrisk.assess.detection.figures import roc_curves, roc_figures, thinned
from advrisk.core.sections import Alternatives, without_twins
from advrisk.risk.detection.groups import MULTI_ARMED
from advrisk.risk.detection.roc import exact_roc

from .examples import against_many, knowing, two_sizes
from .examples import assessed as assessment


def test_a_curve_of_many_points_is_thinned_without_leaving_the_curve() -> None:
    rng = np.random.default_rng(0)
    roc = exact_roc(rng.normal(size=5000), rng.normal(1, size=5000))
    fpr, tpr = thinned(roc)
    assert len(fpr) == len(tpr) <= 402
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0, 0, 1, 1)
    points = set(zip(roc.fpr.tolist(), roc.tpr.tolist(), strict=True))
    assert set(zip(fpr, tpr, strict=True)) <= points
    assert abs(np.trapezoid(tpr, fpr) - np.trapezoid(roc.tpr, roc.fpr)) < 0.002


def test_a_short_curve_is_kept_whole() -> None:
    roc = exact_roc(np.array([0.0, 1.0, 1.0]), np.array([1.0, 2.0]))
    assert thinned(roc) == (roc.fpr.tolist(), roc.tpr.tolist())


@pytest.mark.parametrize("n_arms", [1, 8])
def test_chance_is_drawn_as_it_is_against_so_many_arms(n_arms: int) -> None:
    found = against_many(n_arms)
    chance, *curves = roc_curves(found.tables, "linf 0.1")["data"]
    assert chance["name"] == ("chance, 1 arm" if n_arms == 1 else "chance, 8 arms")
    assert chance["line"]["dash"] == "dot"
    assert [curve["name"] for curve in curves] == ["eye", "ear"], "one chance for both"
    expected = found.tables[0].table.row("linf 0.1").entries[MULTI_ARMED].chance_auroc
    assert np.trapezoid(chance["y"], chance["x"]) == pytest.approx(expected, abs=1e-3)
    if n_arms == 1:
        assert chance["y"] == pytest.approx(chance["x"]), "the diagonal"


def test_every_group_with_a_success_has_a_figure_and_the_worst_one_comes_first() -> None:
    (shown,) = roc_figures(two_sizes())
    assert [figure.title for figure in shown.figures] == ["ROC, net, linf 0.2", "ROC, net, linf 8/255"]
    for figure, chance in zip(shown.figures, (1 / 2, 1 / 6), strict=True):
        first = figure.spec["data"][0]
        assert first["name"].startswith("chance")
        assert np.trapezoid(first["y"], first["x"]) == pytest.approx(chance, abs=1e-3)


def test_models_with_almost_the_same_name_have_figures_of_their_own() -> None:
    found, alike = against_many(2, model="net-1"), against_many(3, model="net_1")
    shown = without_twins(roc_figures(replace(found, tables=(*found.tables, *alike.tables))))
    figures = [figure for one in shown if isinstance(one, Alternatives) for figure in one.figures]
    assert [figure.key for figure in figures] == ["roc_net_1_linf_0_1", "roc_net_1_linf_0_1_2"]
    assert "3 arms" in figures[1].spec["data"][0]["name"]


def test_where_no_group_broke_a_sample_nothing_is_drawn() -> None:
    assert list(roc_figures(assessment(knowing(4, usual=True)))) == []
