"""Cells of a small study as they were before there were defences: `python tests/golden/make_cells.py > cells.json`.

Names of cells, outcomes and passes of models that neither draw nor refuse must stay what they were, or runs of before
would be carried out again, or say something else.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from advrisk import Study

STUDY: dict[str, Any] = {
    "name": "golden",
    "seed": 3,
    "data": {"source": "mnist-5k", "evaluate": 12},
    "models": {"plain": {"source": "demo", "name": "plain"}, "trades": {"source": "demo", "name": "trades"}},
    "shard": 8,
    "arms": [
        {"attack": ["fgsm", "pgd"], "norm": "linf", "eps": 0.1},
        {"attack": "deepfool", "norm": "l2"},
        {"attack": "square", "norm": "linf", "eps": 0.1, "max_queries": 50},
        {"corruption": "gaussian-noise", "sigma": 0.3},
    ],
}
COLUMNS = "cell, sample, outcome, prediction, n_forward, n_backward, n_judge, n_forward_first"


def cells(study: dict[str, Any]) -> dict[str, list[list[Any]]]:
    """Cell -> its rows."""
    with tempfile.TemporaryDirectory() as folder:
        run = Study.from_dict(study).run(Path(folder) / "run", workers=1)
        rows = run.query(f"SELECT {COLUMNS} FROM outcomes ORDER BY cell, sample").to_pylist()
    found: dict[str, list[list[Any]]] = {}
    for row in rows:
        cell, *rest = row.values()
        found.setdefault(cell, []).append(rest)
    return found


if __name__ == "__main__":
    json.dump(cells(STUDY), sys.stdout, separators=(",", ":"))
    sys.stdout.write("\n")
