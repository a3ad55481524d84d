"""Makes mapie_p_values.json: p-values of MAPIE (BSD-3-Clause), which ours are held against.

    PYTHON tests/golden/make_mapie_p_values.py

where PYTHON is one that has MAPIE, say that of `pip install 'mapie>=1.6,<1.7'`. Only counts are taken for which its
`ceil(n * risk)` is the count that was meant.
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value

FILE = Path(__file__).with_name("mapie_p_values.json")


def main() -> None:
    """Write the file anew."""
    rows = []
    for n in (1, 7, 100, 1000, 54_321):
        failures = np.unique(np.linspace(0, n, 25).astype(int))
        failures = failures[np.ceil(failures / n * n) == failures]
        for alpha in (0.01, 0.1, 0.5, 0.9):
            for binary in (False, True):
                p = compute_hoeffding_bentkus_p_value(failures / n, n, alpha, binary)[:, 0]
                rows.append({"n": n, "alpha": alpha, "binary": binary, "failures": failures.tolist(), "p": p.tolist()})
    FILE.write_text(json.dumps({"mapie": version("mapie"), "rows": rows}) + "\n")


if __name__ == "__main__":
    main()
