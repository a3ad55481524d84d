"""Our survival fits give what lifelines gives on the same rows; `make_survival.py` asked it."""

import importlib.util
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advrisk.risk.survival import SurvivalFit, fit_survival

HERE = Path(__file__).parent
GOLDEN = json.loads((HERE / "survival.json").read_text())
PARTS = ("scale", "shape")


def fitted(columns: dict[str, list[float]], case: dict[str, Any]) -> SurvivalFit:
    return fit_survival(
        {**columns, "row": list(range(len(columns["t"])))},
        duration=case["duration"],
        event=case["event"],
        covariates=case["covariates"],
        family=case["family"],
        shape_covariates=case.get("shape_covariates", ()),
        lower=case.get("lower"),
        cluster="row" if case.get("robust") else None,
    )


def named(case: dict[str, Any]) -> str:
    shape = "".join(f" | {name}" for name in case.get("shape_covariates", ()))
    return f"{case['family']}, {case['table']}: {' '.join(case['covariates'])}{shape}{' robust' * ('robust' in case)}"


def check(fit: SurvivalFit, case: dict[str, Any], answer: dict[str, Any]) -> None:
    for part in PARTS:
        for name, value in answer[part].items():
            assert fit.coefficient(name, part=part).natural.estimate.value == pytest.approx(value, abs=1e-5)
    # lifelines leaves out the factor G/(G - 1), here of every row its own cluster
    factor = math.sqrt(fit.n / (fit.n - 1)) if case.get("robust") else 1.0
    for part in PARTS:
        for name, value in answer[f"{part}_errors"].items():
            assert fit.coefficient(name, part=part).natural.standard_error == pytest.approx(factor * value, rel=1e-5)
    assert fit.log_likelihood == pytest.approx(answer["log_likelihood"], abs=1e-6)
    assert fit.aic == pytest.approx(answer["aic"], abs=1e-6)
    if "concordance" in answer:
        assert fit.concordance == pytest.approx(answer["concordance"], abs=1e-12)


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=named)
def test_a_fit_is_that_of_lifelines(case: dict[str, Any]) -> None:
    check(fitted(GOLDEN["tables"][case["table"]], case), case, case["answer"])


def test_ties_of_predictions_and_times_are_among_the_cases() -> None:
    columns = GOLDEN["tables"]["tied"]
    assert len(set(columns["t"])) < len(columns["t"]) / 4
    assert len(set(zip(columns["eps"], columns["depth"], strict=True))) < len(columns["t"]) / 4


@pytest.mark.slow
@pytest.mark.parametrize("case", GOLDEN["cases"], ids=named)
def test_lifelines_still_says_so(case: dict[str, Any]) -> None:
    """Asked again, on other rows than those of the file."""
    oracle = os.environ.get("ADVRISK_ORACLES", "")
    if not Path(oracle).is_file():
        pytest.skip("$ADVRISK_ORACLES names no Python with lifelines")
    ask = _bench().ask
    columns = _other_rows(GOLDEN["tables"][case["table"]])
    check(fitted(columns, case), case, ask(oracle, json.dumps({**case, "columns": columns})))


def _other_rows(columns: dict[str, list[float]]) -> dict[str, list[float]]:
    rows = np.random.default_rng(7).integers(0, len(columns["t"]), len(columns["t"]))
    return {name: np.array(values)[rows].tolist() for name, values in columns.items()}


def _bench() -> Any:
    spec = importlib.util.find_spec("bench.survival")
    assert spec is not None
    return importlib.import_module("bench.survival")
