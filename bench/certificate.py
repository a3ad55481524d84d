"""p-values of 10,000 counts beside MAPIE's, both in one process.

Run: python -m bench certificate. MAPIE is looked for here, and else where `ADVRISK_ORACLES` says.
"""

import os
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from advrisk.risk.certificate import p_value
from bench.timing import in_turn, median_ratio

ALPHA, RISKS = 0.1, 10_000
ROOT = Path(__file__).parents[1]


def main() -> None:
    """Print milliseconds of both and their ratio, and how far the p-values differ."""
    if find_spec("mapie"):
        _side_by_side()
    elif other := os.environ.get("ADVRISK_ORACLES"):
        paths = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
        subprocess.run([other, "-m", "bench.certificate"], env={**os.environ, "PYTHONPATH": paths}, check=False)
    else:
        print("MAPIE is not installed; name a python that has it in ADVRISK_ORACLES", file=sys.stderr)


def _side_by_side() -> None:
    from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value

    rng = np.random.default_rng(0)
    print(f"{RISKS:,} risks, alpha = {ALPHA}; milliseconds, the median of 30 rounds")
    print("                            MAPIE   ours: Hoeffding-Bentkus     exact   MAPIE's ceil  largest difference")
    print("                                          (MAPIE / ours)               is off by 1   otherwise")
    for name, n, failures in (
        ("any of 100", 100, rng.integers(0, 101, RISKS)),
        ("any of 1,000", 1000, rng.integers(0, 1001, RISKS)),
        ("1,000 at a risk of 8 %", 1000, rng.binomial(1000, 0.08, RISKS)),
        ("50,000 at a risk of 8 %", 50_000, rng.binomial(50_000, 0.08, RISKS)),
    ):
        works = {
            "theirs": partial(compute_hoeffding_bentkus_p_value, failures / n, n, ALPHA),
            "ours": partial(p_value, failures, n, ALPHA, method="hoeffding-bentkus"),
            "exact": partial(p_value, failures, n, ALPHA),
        }
        taken = in_turn(works, rounds=30)
        theirs, ours, exact = (1e3 * float(np.median(taken[key])) for key in works)
        off = np.ceil(failures / n * n) != failures
        difference = np.abs(works["theirs"]()[:, 0] - works["ours"]())[~off].max()
        ratio = median_ratio(taken["theirs"], taken["ours"])
        print(f"{name:24} {theirs:8.2f} {ours:8.2f} ({ratio:4.1f}) {exact:24.2f} {off.mean():12.1%} {difference:14.1e}")
    print("limit: 5 times as quick")


if __name__ == "__main__":
    main()
