"""What lifelines says of small tables of survival times: the numbers that our fits are held against.

Run it with a Python that has lifelines, which pins an old pandas; `make slow` builds one in `.venv-oracles`:

    .venv-oracles/bin/python tests/golden/make_survival.py          writes tests/golden/survival.json
    .venv-oracles/bin/python tests/golden/make_survival.py --ask    answers one case, JSON from stdin to stdout

It needs nothing of advrisk. A case has `columns`, `duration`, `event`, `covariates`, `family` and, where wanted,
`shape_covariates`, `lower`, `robust` and `exactly` (false: with lifelines' own stopping
rule); the answer has the coefficients in the units of the columns.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

_ROWS = 240
_FITTERS = {"weibull": "WeibullAFTFitter", "lognormal": "LogNormalAFTFitter", "loglogistic": "LogLogisticAFTFitter"}


def main() -> None:
    """One answer, or the file of them."""
    if "--ask" in sys.argv:
        json.dump(answer(json.load(sys.stdin)), sys.stdout)
        return
    tables = {"exact": _table(1), "passes": _passes(2), "tied": _tied(3)}
    asked = [
        {"table": table, "duration": "t", "event": "e", "family": family, **case}
        for family in _FITTERS
        for table, case in (
            ("exact", {"covariates": ["eps", "depth", "age"]}),
            ("exact", {"covariates": []}),
            ("exact", {"covariates": ["eps", "depth"], "robust": True}),
            ("exact", {"covariates": ["eps", "depth"], "shape_covariates": ["eps"]}),
            ("tied", {"covariates": ["eps", "depth"]}),
            ("passes", {"covariates": ["eps", "depth"], "lower": "low"}),
            ("passes", {"covariates": ["eps"], "shape_covariates": ["depth"], "lower": "low"}),
        )
    ]
    cases = [{**case, "answer": answer({**case, "columns": tables[case["table"]]})} for case in asked]
    for case in cases:
        del case["answer"]["seconds"]
    path = Path(__file__).with_name("survival.json")
    path.write_text(json.dumps({"tables": tables, "cases": cases}, indent=None, separators=(",", ":")) + "\n")
    print(f"{path}: {len(cases)} cases")  # noqa: T201


def answer(case: dict[str, Any]) -> dict[str, Any]:
    """lifelines' fit of one case."""
    import lifelines
    import pandas as pd

    columns, names = pd.DataFrame(case["columns"]), list(case["covariates"])
    shape = list(case.get("shape_covariates", ()))
    frame = columns[[*dict.fromkeys([*names, *shape])]].copy()
    formulas = {"formula": _formula(names), "ancillary": _formula(shape)}
    fitter = getattr(lifelines, _FITTERS[case["family"]])()
    options: dict[str, Any] = {"robust": case.get("robust", False)}
    if case.get("exactly", True):  # as it comes, it stops some digits early
        fitter._scipy_fit_method = "SLSQP"
        options["fit_options"] = {"ftol": 1e-15, "maxiter": 2000}
    began = time.process_time()
    if "lower" in case:
        seen = columns[case["event"]] == 1
        frame["low"] = np.where(seen, np.maximum(columns[case["lower"]], 1e-30), columns[case["duration"]])
        frame["high"] = np.where(seen, columns[case["duration"]], 1e30)  # its slopes are nan at 0 and inf
        fitter.fit_interval_censoring(frame, lower_bound_col="low", upper_bound_col="high", **formulas, **options)
    else:
        frame["t"], frame["e"] = columns[case["duration"]], columns[case["event"]]
        fitter.fit(frame, duration_col="t", event_col="e", **formulas, **options)
    fit_s = time.process_time() - began
    concordance = fitter.concordance_index_ if "lower" not in case else None
    found: dict[str, Any] = {"seconds": {"fit": fit_s, "with concordance": time.process_time() - began}}
    for part, key in (("scale", fitter._primary_parameter_name), ("shape", fitter._ancillary_parameter_name)):
        found[part] = {_name(name): value for name, value in fitter.params_[key].items()}
        found[f"{part}_errors"] = {_name(name): value for name, value in fitter.standard_errors_[key].items()}
    found |= {"log_likelihood": fitter.log_likelihood_, "aic": fitter.AIC_}
    return found | ({} if concordance is None else {"concordance": concordance})


def _formula(names: list[str]) -> str:
    return " + ".join(["1", *names])


def _name(name: str) -> str:
    return "intercept" if name == "Intercept" else name


def _table(seed: int) -> dict[str, list[float]]:
    """log T = 1 - 20 eps + depth/20 + sigma W, censored at a time of its own."""
    rng = np.random.default_rng(seed)
    eps, depth, age = rng.uniform(0, 0.1, _ROWS), rng.choice([8.0, 20.0, 32.0], _ROWS), rng.normal(40, 10, _ROWS)
    survival = np.exp(1 - 20 * eps + depth / 20 + 0.7 * np.log(rng.exponential(size=_ROWS)))
    stopped = rng.exponential(6.0, _ROWS)
    return _rounded(eps=eps, depth=depth, age=age, t=np.minimum(survival, stopped), e=survival <= stopped)


def _passes(seed: int) -> dict[str, list[float]]:
    """The same in whole passes, at most 12: an event noticed at pass k lies in (k - 1, k]."""
    table = _table(seed)
    t, e = np.ceil(np.array(table["t"]) * 2), np.array(table["e"])
    t, e = np.minimum(t, 12), np.where(t > 12, 0, e)
    return _rounded(eps=np.array(table["eps"]), depth=np.array(table["depth"]), t=t, e=e, low=t - 1)


def _tied(seed: int) -> dict[str, list[float]]:
    """Few different times and covariates, so that times and predictions tie."""
    table = _table(seed)
    t, eps = np.ceil(np.array(table["t"])), np.round(np.array(table["eps"]), 2)
    return _rounded(eps=eps, depth=np.array(table["depth"]), t=t, e=np.array(table["e"]))


def _rounded(**columns: np.ndarray) -> dict[str, list[float]]:
    return {name: [float(f"{value:.5g}") for value in values] for name, values in columns.items()}


if __name__ == "__main__":
    main()
