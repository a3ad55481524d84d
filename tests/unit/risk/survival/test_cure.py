"""Rows that never fail, and the law's times that are refused because of them."""

from typing import Any

import numpy as np
import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.survival import FAMILIES, SurvivalFit, fit_survival, kaplan_meier
from advrisk.risk.survival.families import family_named

N = 300


def fitted(family: str, *, never: float, cluster: bool = False, seed: int = 1) -> tuple[SurvivalFit, dict[str, Any]]:
    """Times by the law's own quantiles, watched up to 30; the last rows in a random order never fail."""
    rng = np.random.default_rng(seed)
    noise = family_named(family).quantile((np.arange(N) + 0.5) / N)
    t = rng.permutation(np.exp(2 + 0.7 * noise))
    t = np.where(np.arange(N) < never * N, np.inf, t)
    frame = {"t": np.minimum(t, 30.0), "e": (t <= 30).astype(float), "sample": np.arange(N) // 3}
    how = {"cluster": "sample"} if cluster else {}
    return fit_survival(frame, duration="t", event="e", covariates=[], family=family, **how), frame


@pytest.mark.parametrize("family", FAMILIES)
def test_a_median_is_refused_where_rows_never_fail_and_given_where_all_do(family: str) -> None:
    fit, _ = fitted(family, never=0.0)
    assert fit.cure_p_value > 0.05
    assert fit.median().value == pytest.approx(fit.median(at={}).value)
    fit, frame = fitted(family, never=0.3)
    assert fit.cure_p_value < 0.001
    for refused in (lambda: fit.median(), lambda: fit.quantile(0.2)):
        with pytest.raises(RiskError, match=r"more rows survive than .* use kaplan_meier\(durations, event\)"):
            refused()
    assert np.isfinite(kaplan_meier(frame["t"], frame["e"]).median().high)  # the remedy has an answer


def test_the_score_is_that_of_the_mixture_likelihood() -> None:
    """By differences of the likelihood in the share that never fails, row by row, and by regression on the scores."""
    fit, _ = fitted("weibull", never=0.1)
    model, theta = fit._model, fit._theta
    eta, u = model.predictors(theta)
    survival = np.exp(model.family.log_survival((model.rows.log_t - eta) * np.exp(-u)).value)
    events = np.ones(N, dtype=bool)
    events[model.rows.censored] = False
    step = 1e-6
    each = np.where(events, np.log1p(-step), np.log((step + (1 - step) * survival) / survival)) / step
    scores = model.scores(theta)
    left = each - scores @ np.linalg.lstsq(scores, each, rcond=None)[0]
    from scipy.stats import norm

    assert fit.cure_p_value == pytest.approx(norm.sf(each.sum() / np.sqrt(left @ left)), rel=1e-3)


def test_rows_of_one_cluster_count_together() -> None:
    """The same rows three times over say no more than once, once they are known to be the same."""
    fit, frame = fitted("weibull", never=0.04)
    thrice = {name: np.tile(column, 3) for name, column in frame.items()} | {"own": np.tile(np.arange(N), 3)}
    how: dict[str, Any] = {"duration": "t", "event": "e", "covariates": [], "family": "weibull"}
    assert fit_survival(thrice, **how, cluster="own").cure_p_value == pytest.approx(fit.cure_p_value, rel=1e-6)
    assert fit_survival(thrice, **how).cure_p_value < fit.cure_p_value / 2
