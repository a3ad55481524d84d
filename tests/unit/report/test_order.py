"""Numbers that are sums do not depend on the order in which rows were written or read."""

from pathlib import Path

import numpy as np
import pytest

from advrisk.assess.attacks.flags import flagged_arms
from advrisk.core.sections import Unanswered
from advrisk.ledger import Ledger, table_from
from advrisk.report.provenance import provenance
from tests.findings import findings_of

SHARES = np.random.default_rng(0).random(400) * 10.0 ** np.random.default_rng(1).integers(-6, 1, 400)


def written(folder: Path, order: np.ndarray) -> Ledger:
    """A flagged arm of 400 cells in eight segments."""
    ledger = Ledger.open(folder, create=True)
    recipe = {"model": ["plain"], "arm": ["pgd"], "recipe": ["r"], "origin": ["study"], "kind": ["attack"]}
    ledger.append({"arms": table_from("arms", recipe)})
    for part in np.array_split(order, 8):
        n = len(part)
        cells = {
            "cell": [f"c{number}" for number in part],
            "recipe": ["r"] * n,
            "model": ["plain"] * n,
            "arm": ["pgd"] * n,
            "flags": [["zero-gradients"]] * n,
            "zero_gradients": SHARES[part],
            "wall_s": SHARES[part],
            "process_s": SHARES[part],
        }
        ledger.append({"cells": table_from("cells", cells)})
    return ledger


def test_shares_and_seconds_are_the_same_to_the_last_digit(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    orders = [rng.permutation(len(SHARES)) for _ in range(5)]
    assert len({sum(SHARES[order].tolist()) for order in orders}) > 1, "the order would not matter anyhow"
    found, worked = [], []
    for number, order in enumerate(orders):
        ledger = written(tmp_path / str(number), order)
        (row,) = flagged_arms(ledger)
        made = provenance(tmp_path, ledger, None, findings_of(damage=Unanswered("")))
        found.append(row["share"])
        worked.append((made.wall_s, made.process_s))
    assert len(set(found)) == len(set(worked)) == 1
    assert found[0] == pytest.approx(SHARES.mean(), rel=1e-12)
