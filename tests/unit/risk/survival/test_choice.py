"""The family that held-out rows speak for."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from advrisk.assess.survival.rows import choice_text
from advrisk.core.errors import RiskError
from advrisk.risk.survival import FAMILIES, choose_family, fit_survival

GIVEN: dict[str, Any] = {"duration": "t", "event": "e", "covariates": ["eps", "defence"]}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_right_family_is_found(draw: Callable[..., Any], family: str) -> None:
    found = choose_family(draw(family, n=1500, seed=3), **GIVEN, rng=np.random.default_rng(0))
    assert found.family == family
    assert found.decided
    ordered = sorted(found.log_likelihoods.values(), reverse=True)
    assert found.margin.value == pytest.approx(ordered[0] - ordered[1])
    assert choice_text(found).startswith(f"{family}: ahead of {found.runner_up} by")


def test_few_rows_leave_it_undecided(draw: Callable[..., Any]) -> None:
    found = choose_family(draw("loglogistic", n=60), **GIVEN, folds=3, rng=np.random.default_rng(0))
    assert not found.decided
    assert choice_text(found).startswith("undecided; ")
    assert found.margin.low <= 0 <= found.margin.value


def test_it_holds_out_whole_clusters_and_adds_up_what_they_say(tables: dict[str, Any]) -> None:
    """By hand: the folds that the generator deals, each scored by a fit of the others."""
    table = tables["weibull"]
    found = choose_family(
        table, **GIVEN, families=("weibull", "lognormal"), cluster="sample", folds=4, rng=np.random.default_rng(5)
    )
    names = np.unique(table["sample"])
    seen = np.array([table["e"][table["sample"] == name].any() for name in names])
    rng = np.random.default_rng(5)
    dealt = np.concatenate([rng.permutation(np.flatnonzero(seen)), rng.permutation(np.flatnonzero(~seen))])
    fold_of = {names[one]: place % 4 for place, one in enumerate(dealt)}
    fold = np.array([fold_of[name] for name in table["sample"]])
    for family in ("weibull", "lognormal"):
        total = 0.0
        for k in range(4):
            train = {name: values[fold != k] for name, values in table.items()}
            fit = fit_survival(train, **GIVEN, family=family)
            total += fit.row_log_likelihoods({name: values[fold == k] for name, values in table.items()}).sum()
        assert found.log_likelihoods[family] == pytest.approx(total)
    assert found.n_clusters == len(names)


@pytest.mark.parametrize("cluster", [None, "sample"])
def test_the_order_of_rows_does_not_matter(tables: dict[str, Any], cluster: str | None) -> None:
    table = tables["lognormal"]
    order = np.random.default_rng(1).permutation(400)
    mixed = {name: values[order] for name, values in table.items()}
    one, other = (
        choose_family(frame, **GIVEN, cluster=cluster, rng=np.random.default_rng(0)) for frame in (table, mixed)
    )
    assert one.family == other.family
    for family in FAMILIES:
        assert one.log_likelihoods[family] == pytest.approx(other.log_likelihoods[family], abs=1e-9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"families": ("weibull",)}, "a choice needs two families or more, found weibull"),
        ({"families": ("weibull", "gamma")}, "no family of survival times is called 'gamma'"),
        ({"folds": 1}, "cannot be cut into 1 folds"),
        ({"folds": 999}, "cannot be cut into 999 folds"),
    ],
)
def test_what_is_no_choice_is_refused(tables: dict[str, Any], given: dict[str, Any], message: str) -> None:
    with pytest.raises(RiskError, match=message):
        choose_family(tables["weibull"], **GIVEN, **given, rng=np.random.default_rng(0))


def test_a_fold_that_cannot_be_fitted_is_named(tables: dict[str, Any]) -> None:
    rare = {**tables["weibull"], "defence": np.where(np.arange(400) == 7, "rare", tables["weibull"]["defence"])}
    with pytest.raises(RiskError, match=r"without fold \d of 5, weibull: "):
        choose_family(rare, **GIVEN, rng=np.random.default_rng(0))


@pytest.mark.parametrize("seed", range(8))
def test_a_level_that_two_clusters_have_is_never_held_out_whole(seed: int) -> None:
    """By chance alone, both would be in one of five folds for one seed in five."""
    rng = np.random.default_rng(3)
    sample = np.repeat(np.arange(20), 3)
    table = {"t": rng.weibull(1.5, 60), "e": np.ones(60), "sample": sample, "eps": rng.uniform(size=60)}
    table["light"] = np.where(np.isin(sample, [4, 11]), "night", "day").astype(object)
    found = choose_family(
        table,
        duration="t",
        event="e",
        covariates=["eps", "light"],
        families=("weibull", "lognormal"),
        cluster="sample",
        rng=np.random.default_rng(seed),
    )
    assert found.n_clusters == 20
