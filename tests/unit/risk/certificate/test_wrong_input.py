"""Values of the wrong kind or shape: a sentence that names them, whatever function they are given to."""

from collections.abc import Callable
from typing import Any

import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.certificate import (
    Count,
    betting_certified_risk,
    betting_p_values,
    certified_risk,
    certify,
    certify_in_order,
    holm,
    most_failures,
    p_value,
    power,
    samples_to_certify,
    search_guarantee,
    smallest_n,
)

GUARANTEE = {"rounds": 5, "settings": [[0.0], [1.0]], "kernel": "matern-5/2", "length_scale": 1.0} | {
    "norm_bound": 1.0,
    "noise": 0.1,
    "delta": 0.05,
    "beta": 1.0,
}
ONE = {"a": Count(1, 10, "set")}


def guarantee(**changes: Any) -> Any:
    return search_guarantee(0.05, **(GUARANTEE | changes))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: p_value([1, 2], 10, [0.1, 0.2, 0.3]), r"alpha of shape \(3,\)"),
        (lambda: certified_risk([1, 2], [10, 10], [0.05, 0.1, 0.2]), r"zeta of shape \(3,\)"),
        (lambda: most_failures([10, 20], [0.1, 0.2, 0.3], 0.05), r"alpha of shape \(3,\)"),
        (lambda: most_failures(10, 0.1, [0.05, 0.1]), "zeta must be one number"),
        (lambda: power([10, 20], [0.1, 0.2, 0.3], 0.1, 0.05), r"true_risk of shape \(3,\)"),
        (lambda: power(10, 0.1, [0.1, 0.2], 0.05), "alpha must be one number"),
        (lambda: power(10, "a", 0.1, 0.05), "a true risk is a number"),
        (lambda: samples_to_certify([0.01, 0.02], 0.1, 0.05), "true_risk must be one number"),
        (lambda: samples_to_certify(0.01, [0.1, 0.2], 0.05), "alpha must be one number"),
        (lambda: samples_to_certify(0.01, 0.1, 0.05, power=[0.8, 0.9]), "power must be one number"),
        (lambda: smallest_n([0.1, 0.2], 0.05), "alpha must be one number"),
        (lambda: smallest_n(0.1, 0.05, method="bet"), "unknown method 'bet'"),
        (lambda: smallest_n(1e-320, 0.05), "is too small for any number"),
        (lambda: certify({"a": 5}, alpha=0.1), "a: must be a Count.*found 5"),
        (lambda: certify(ONE, alpha=0.1, union=3), "union: must be a Count.*found 3"),
        (lambda: certify(ONE, alpha=0.1, clean=(0, 10)), "clean: must be a Count"),
        (lambda: certify([5], alpha=0.1), "arms must be a mapping of names to counts"),
        (lambda: certify(ONE, alpha=[0.1, 0.2]), "alpha must be one number"),
        (lambda: certify(ONE, alpha=0.1, zeta=[0.1, 0.2]), "zeta must be one number"),
        (
            lambda: certify_in_order([[0, 1]], alpha=0.1, calibration="x"),
            "failed must be a mapping of names to answers",
        ),
        (
            lambda: certify_in_order({"a": [[0], [0, 1]]}, alpha=0.1, calibration="x"),
            "a: must be one answer for each sample",
        ),
        (lambda: certify_in_order({"a": [0]}, alpha=[0.1], calibration="x"), "alpha must be one number"),
        (lambda: betting_p_values([0, 1], [0.1, 0.2]), "alpha must be one number"),
        (lambda: betting_certified_risk([0, 1], [0.1, 0.2]), "zeta must be one number"),
        (lambda: betting_certified_risk([0, 1], 0.1, at_n=[[1], [1, 2]]), "at_n must be numbers of samples"),
        (lambda: holm([[0.1], [0.1, 0.2]]), "p-values must be numbers"),
        (lambda: guarantee(norm_bound="a"), "norm_bound must be a finite number, at least 0, found 'a'"),
        (lambda: guarantee(noise=[1.0, 2.0]), "noise must be a finite number"),
        (lambda: guarantee(beta=None), "beta must be a finite number"),
        (lambda: guarantee(beta=True), "beta must be a finite number"),
        (lambda: guarantee(delta=[0.1, 0.2]), "delta must be one number"),
        (lambda: guarantee(settings=[["a"]]), "settings must be a table of numbers"),
        (lambda: guarantee(settings=[[0.0], [0.0, 1.0]]), "settings must be a table of numbers"),
        (lambda: guarantee(length_scale="wide"), "length_scale must be a positive number"),
        (lambda: guarantee(kernel=["rbf"]), "unknown kernel"),
    ],
)
def test_a_sentence_and_no_traceback(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(RiskError, match=says):
        call()


def test_the_fewest_samples_are_told_also_where_nobody_has_so_many() -> None:
    assert smallest_n(1e-9, 0.05) == 2_995_732_273
    assert smallest_n(1e-9, 0.05, method="hoeffding-bentkus") == 2_995_732_273
    assert smallest_n(1e-9, 0.05, method="betting") > smallest_n(1e-9, 0.05)
