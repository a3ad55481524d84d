"""p-values of 10,000 counts beside MAPIE's, both in one process; ours alone where MAPIE is not installed."""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advrisk.risk.certificate import p_value
from bench.timing import in_turn, median_ratio

ALPHA = 0.1


def main(*, tiny: bool = False) -> None:
    """Print milliseconds of both and their ratio, and how far the p-values differ."""
    risks, rounds = (20, 1) if tiny else (10_000, 30)
    rng = np.random.default_rng(0)
    print(f"{risks:,} risks, alpha = {ALPHA}; milliseconds, the median of {rounds} rounds")
    print("                            MAPIE   ours: Hoeffding-Bentkus     exact   MAPIE's ceil  largest difference")
    print("                                          (MAPIE / ours)               is off by 1   otherwise")
    for name, n, failures in (
        ("any of 100", 100, rng.integers(0, 101, risks)),
        ("any of 1,000", 1000, rng.integers(0, 1001, risks)),
        ("1,000 at a risk of 8 %", 1000, rng.binomial(1000, 0.08, risks)),
        ("50,000 at a risk of 8 %", 50_000, rng.binomial(50_000, 0.08, risks)),
    ):
        works = {
            "ours": partial(p_value, failures, n, ALPHA, method="hoeffding-bentkus"),
            "exact": partial(p_value, failures, n, ALPHA),
            **_theirs(failures, n),
        }
        taken = in_turn(works, rounds=rounds)
        ms = {key: 1e3 * float(np.median(taken[key])) for key in works}
        if "MAPIE" not in works:
            print(f"{name:24} {'not installed':>13} {ms['ours']:8.2f} {ms['exact']:24.2f}")
            continue
        off = np.ceil(failures / n * n) != failures
        difference = np.abs(works["MAPIE"]()[:, 0] - works["ours"]())[~off].max()
        ratio = median_ratio(taken["MAPIE"], taken["ours"])
        shown = f"{ms['MAPIE']:8.2f} {ms['ours']:8.2f} ({ratio:4.1f}) {ms['exact']:24.2f}"
        print(f"{name:24} {shown} {off.mean():12.1%} {difference:14.1e}")
    print("limit: 5 times as quick")


def _theirs(failures: NDArray[np.int64], n: int) -> dict[str, Callable[[], Any]]:
    """MAPIE's, if it is installed."""
    if not find_spec("mapie"):
        return {}
    from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value

    return {"MAPIE": partial(compute_hoeffding_bentkus_p_value, failures / n, n, ALPHA)}


if __name__ == "__main__":
    main()
