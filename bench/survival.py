"""Survival fits: ours beside lifelines', on the same rows, with standard errors and concordance.

Run: python -m bench survival. lifelines pins an old pandas, so it is asked through another Python, $ADVRISK_ORACLES,
which `make bench` builds; its seconds are taken there, without start and import. Seconds are those that a core is busy,
so that other work on the machine does not matter. A quarter of the rows is censored.
"""

import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from advrisk.risk.survival import FAMILIES, fit_survival
from bench.timing import least_work, median_ratio

ASKED = Path(__file__).parents[1] / "tests" / "golden" / "make_survival.py"
N_COVARIATES = 8
SIZES = ((10_000, 5, 30), (100_000, 3, 10))  # rows, rounds, the ratio to reach


def main(*, tiny: bool = False) -> None:
    """Print seconds of both, their ratio, and how far the coefficients are apart; ours alone without lifelines."""
    oracle = os.environ.get("ADVRISK_ORACLES", "")
    if tiny or not Path(oracle).is_file():
        print("lifelines is not measured: $ADVRISK_ORACLES must name a Python that has it (`make bench` does)")
        oracle = ""
    names = [f"x{i}" for i in range(N_COVARIATES)]
    print(f"{'family':12} {'rows':>7}  {'':16} {'ours s':>7} {'lifelines s':>12} {'ratio':>6} {'limit':>6}")
    for rows, rounds, limit in ((200, 1, 0),) if tiny else SIZES:
        columns = table(rows, names)
        for family in FAMILIES:
            case = {"duration": "t", "event": "e", "covariates": names, "family": family}
            ours = _ours(columns, case, rounds)
            theirs, apart = _theirs(columns, case, oracle, rounds) if oracle else ({}, math.nan)
            for what, taken in ours.items():
                shown = f"{family:12} {rows:7}  {what:16} {min(taken):7.4f}"
                if what in theirs:
                    shown += f" {min(theirs[what]):12.2f} {median_ratio(theirs[what], taken):6.0f} {limit:6}"
                print(shown)
            if theirs:
                print(f"{'':20}  coefficients are at most {apart:.0e} apart", flush=True)


def table(rows: int, names: list[str]) -> dict[str, np.ndarray]:
    """log T = 1 + x beta + 0.6 W with W log-exponential, censored at a time of its own."""
    rng = np.random.default_rng(rows)
    columns = {name: rng.normal(size=rows) for name in names}
    eta = 1 + sum(0.1 * i * columns[name] for i, name in enumerate(names))
    survival = np.exp(eta + 0.6 * np.log(rng.exponential(size=rows)))
    stopped = rng.exponential(12.0, rows)
    return {**columns, "t": np.minimum(survival, stopped), "e": (survival <= stopped).astype(float)}


def _ours(columns: dict[str, np.ndarray], case: dict[str, Any], rounds: int) -> dict[str, list[float]]:
    """Seconds of the fit alone and with concordance, round by round."""
    works = {
        "fit": lambda: fit_survival(columns, **case),
        "with concordance": lambda: fit_survival(columns, **case).concordance,
    }
    fit_survival(columns, **case)  # the first call imports what it needs
    return {what: [least_work(3, work) for _ in range(rounds)] for what, work in works.items()}


def _theirs(
    columns: dict[str, np.ndarray], case: dict[str, Any], oracle: str, rounds: int
) -> tuple[dict[str, list[float]], float]:
    """The same of lifelines, and how far the coefficients are apart."""
    request = json.dumps({**case, "exactly": False, "columns": {name: list(v) for name, v in columns.items()}})
    answers = [ask(oracle, request) for _ in range(rounds)]
    seconds = {what: [answer["seconds"][what] for answer in answers] for what in answers[0]["seconds"]}
    fit = fit_survival(columns, **case)
    apart = max(
        abs(fit.coefficient(name, part=part).natural.estimate.value - value)
        for part in ("scale", "shape")
        for name, value in answers[-1][part].items()
    )
    return seconds, apart


def ask(oracle: str, request: str) -> dict[str, Any]:
    """What lifelines says of a case."""
    done = subprocess.run([oracle, str(ASKED), "--ask"], input=request, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    main()
