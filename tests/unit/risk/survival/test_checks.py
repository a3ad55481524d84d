"""What cannot be fitted is refused, with the column and what to do."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.survival import FAMILIES, fit_survival

N = 40
RNG = np.random.default_rng(0)
BASE: dict[str, Any] = {
    "t": np.round(np.exp(RNG.normal(size=N)), 3) + 0.01,
    "e": (np.arange(N) % 4 > 0).astype(float),
    "x": RNG.uniform(size=N),
    "y": RNG.uniform(size=N),
    "arm": np.array(["pgd", "fgsm", "apgd", "cw"])[np.arange(N) % 4],
}


def fit(changes: dict[str, Any] | None = None, **given: Any) -> Any:
    given = {"duration": "t", "event": "e", "covariates": ["x"], "family": "weibull", **given}
    return fit_survival({**BASE, **(changes or {})}, **given)


def changed(name: str, value: float) -> dict[str, Any]:
    column = np.array(BASE[name])
    column[3] = value
    return {name: column}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            changed("t", np.nan),
            r"'t' \(the duration\) holds 1 value that is not a finite number, the first in row 3: nan",
        ),
        (changed("t", np.inf), "not a finite number, the first in row 3: inf"),
        (changed("t", -2.0), "'t' is negative in row 3: -2"),
        (changed("t", 0.0), "'t' is 0 in 1 row: a sample that is wrong before anything is done"),
        (changed("x", np.nan), r"'x' \(a covariate\) holds 1 value that is not a finite number"),
        (changed("e", 2.0), "'e' must be 1 .seen. or 0 .censored.; row 3 has 2"),
        ({"e": np.zeros(N)}, "none of 40 rows has an event"),
        ({"t": np.full(N, 5.0)}, "'t' is single-valued: every event has 5"),
        ({"x": np.full(N, 2.0)}, "'x' is 2 in every row"),
        ({"x": ["a"] * N}, "'x' is 'a' in every row"),
        ({name: np.resize(values[:1], N) for name, values in BASE.items()}, "in every row|single-valued|none of"),
        ({"t": ["a"] * N}, "'t' .the duration. must be of numbers, found text such as 'a'"),
        ({"e": np.array([1.0] + [0.0] * (N - 1))}, "1 event cannot carry 3 coefficients"),
    ],
)
def test_columns_that_say_nothing_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RiskError, match=message):
        fit(changes)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"covariates": ["x", "z"]}, "no column 'z'"),
        ({"covariates": ["x", "x"]}, "'x' is named twice"),
        ({"covariates": ["t"]}, "'t' is part of the outcome"),
        ({"covariates": ["x", "y"], "forbidden": ["y", "n_forward"]}, "'y' is computed from the outcome"),
        ({"shape_covariates": ["y"], "forbidden": ["y"]}, "'y' is computed from the outcome"),
        ({"family": "log-normal"}, "'log-normal'; did you mean 'lognormal'"),
        ({"level": 1.0}, "level must be a number between 0 and 1"),
        ({"covariates": ["arm"], "reference": {"arm": "pgdd"}}, "'pgdd' does not occur; did you mean 'pgd'"),
    ],
)
def test_what_is_asked_for_must_make_sense(given: dict[str, Any], message: str) -> None:
    with pytest.raises(RiskError, match=message):
        fit(**given)


@pytest.mark.parametrize(
    "copy",
    [
        BASE["t"],
        np.log(BASE["t"]),
        -(BASE["t"] ** 2),
        np.where(BASE["e"] > 0, 3 * BASE["t"], 1.0),
    ],
)
def test_a_copy_of_the_duration_is_refused(copy: np.ndarray) -> None:
    with pytest.raises(RiskError, match="'x' orders the rows exactly as the duration does"):
        fit({"x": copy})


@pytest.mark.parametrize("copy", [BASE["e"], 3 - 2 * BASE["e"], np.where(BASE["e"] > 0, "broken", "held")])
def test_a_copy_of_the_event_is_refused(copy: np.ndarray) -> None:
    with pytest.raises(RiskError, match="'x' says whether the event was seen"):
        fit({"x": copy})


def test_collinear_covariates_are_named() -> None:
    with pytest.raises(RiskError, match=r"'z' is collinear with 'x' and 'y' .* drop 'z', or 'x' and 'y'"):
        fit({"z": 2 * BASE["x"] - BASE["y"] + 1}, covariates=["x", "y", "z"])
    depth = np.where(BASE["arm"] == "fgsm", 8.0, 20.0)
    with pytest.raises(RiskError, match="'arm' is collinear with 'depth'"):
        fit({"depth": depth}, covariates=["depth", "arm"])
    with pytest.raises(RiskError, match="'z' is collinear with 'x'"):
        fit({"z": 2 * BASE["x"]}, shape_covariates=["x", "z"])


def test_almost_collinear_covariates_are_fitted() -> None:
    assert fit({"z": BASE["x"] + 0.01 * BASE["y"]}, covariates=["x", "z"]).n == N


def test_a_level_without_an_event_is_named() -> None:
    held = np.arange(N) % 4 == 0  # the censored rows: arm pgd, and nothing else
    with pytest.raises(RiskError, match=r"where 'arm' = 'pgd' \(10 rows\), no row has an event, all are censored"):
        fit(covariates=["arm"])
    two = np.where(held, "a", np.where(np.arange(N) % 4 == 1, "b", "c"))
    with pytest.raises(RiskError, match=r"where 'arm' = 'a' \(10 rows\)"):  # the reference itself
        fit({"arm": two}, covariates=["arm"])


def test_a_number_that_separates_is_named() -> None:
    beyond = np.where(BASE["e"] > 0, 1.0, 1 + BASE["y"])
    with pytest.raises(RiskError, match="'x' tells censored rows from events by itself"):
        fit({"x": beyond})


@pytest.mark.parametrize("family", FAMILIES)
def test_covariates_that_separate_together_are_named(family: str) -> None:
    """Neither alone, but their difference is 0 for events and positive for censored rows."""
    z = BASE["x"] + np.where(BASE["e"] > 0, 0.0, 0.5 + BASE["y"])
    with pytest.raises(RiskError, match="'x' and 'z' together separate rows without an event"):
        fit({"z": z}, covariates=["x", "z"], family=family)


def test_durations_that_covariates_give_exactly_are_refused() -> None:
    x, y = np.round(BASE["x"], 2), np.round(BASE["y"], 2)
    with pytest.raises(RiskError, match="predict every duration exactly"):
        fit({"t": np.exp(x - 2 * y), "e": np.ones(N), "x": x, "y": y}, covariates=["x", "y"])


def test_events_at_once_or_never_have_no_spread() -> None:
    """All events in the first pass and nothing after: shares, not times, are what differs."""
    late = {"t": np.where(BASE["e"] > 0, 1.0, 50.0 + np.arange(N)), "low": np.zeros(N)}
    with pytest.raises(RiskError, match=r"diverges .* events come at once or not at all"):
        fit(late, covariates=[], lower="low")


@pytest.mark.parametrize(("low", "row"), [(-1.0, 3), (1e9, 3), (np.nan, 3)])
def test_an_interval_must_begin_before_it_ends(low: float, row: int) -> None:
    column = BASE["t"] / 2
    column[row] = low
    with pytest.raises(RiskError, match=f"'low' must lie between 0 and the duration .* row {row} has"):
        fit({"low": column}, lower="low")


def test_of_censored_rows_no_lower_end_is_asked() -> None:
    low = np.where(BASE["e"] > 0, BASE["t"] / 2, np.nan)
    assert fit({"low": low}, lower="low").n == N


def test_every_event_in_the_first_pass_of_a_level_is_named() -> None:
    t = np.where(BASE["arm"] == "cw", 1.0, 1 + np.arange(N) % 7)
    e = np.where(BASE["arm"] == "cw", 1.0, (np.arange(N) % 3 > 0) * 1.0)
    with pytest.raises(
        RiskError, match=r"where 'arm' = 'cw' \(10 rows\), every event may have come at any time before"
    ):
        fit({"t": t, "e": e, "low": t - 1}, covariates=["arm"], lower="low")


def test_a_name_alone_is_one_covariate() -> None:
    assert fit(covariates="x").log_likelihood == fit().log_likelihood


def test_a_reference_of_nothing_is_refused() -> None:
    with pytest.raises(RiskError, match="reference names 'amr', which is no covariate here; did you mean 'arm'"):
        fit(covariates=["arm"], reference={"amr": "pgd"})


@pytest.mark.parametrize("level", ["a", None, 0, 1.0, True])
def test_a_level_is_a_share(level: Any) -> None:
    with pytest.raises(RiskError, match="level must be a number between 0 and 1"):
        fit(level=level)


def test_what_is_asked_of_a_fit_must_be_numbers() -> None:
    found = fit()
    for ask in (
        lambda: found.outside({"x": "abc"}),
        lambda: found.survival("a"),
        lambda: found.mean(until="a"),
        lambda: found.quantile("a"),
    ):
        with pytest.raises(RiskError, match=r"number|share"):
            ask()


def test_names_that_are_numbers_are_found() -> None:
    assert fit({7: BASE["y"]}, covariates=["7"]).log_likelihood == fit(covariates=["y"]).log_likelihood  # type: ignore[dict-item]


def test_a_column_that_is_there_twice_is_refused() -> None:
    frame = pd.concat([pd.DataFrame(BASE), pd.DataFrame({"x": BASE["y"]})], axis=1)
    with pytest.raises(RiskError, match="several columns called 'x'"):
        fit_survival(frame, duration="t", event="e", covariates=["x"], family="weibull")


def test_a_few_rows_in_order_accuse_nobody() -> None:
    """One in sixty orders of five rows is exact by chance."""
    few = {"t": [1.0, 2.0, 3.0, 4.5, 7.0], "e": [1.0] * 5, "x": [0.5, 0.4, 0.3, 0.2, 0.05]}
    assert fit_survival(few, duration="t", event="e", covariates=["x"], family="weibull").n == 5


def test_few_events_for_a_coefficient_are_told() -> None:
    assert fit().doubt == ""  # 30 events for 3 coefficients
    assert fit(covariates=["x", "y"]).doubt.startswith("Few events: 30 for 4 coefficients")
