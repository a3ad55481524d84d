"""Makes tests/golden/ledger-v3: the run of ledger-v2, gone on with as schema version 3 wrote it.

    python tests/golden/make_ledger_v3.py tests/golden/ledger-v3

HopSkipJump against `plain`, which found no start for half of its samples. The committed files stay as they are when
the schema changes; this file then only tells where they came from.
"""

import shutil
import sys
import uuid
from pathlib import Path
from unittest import mock

from advrisk.ledger import Ledger, table_from

OLD = Path(__file__).parent / "ledger-v2"
ARM = "hopskipjump-l2"


def make(folder: Path) -> None:
    """Write the ledger: one more segment, whose name does not depend on chance."""
    shutil.copytree(OLD, folder)
    arm = {"model": ["plain"], "arm": [ARM], "recipe": ["r-hop"], "origin": ["study"], "kind": ["attack"]}
    arm |= {"norm": ["l2"], "repeats": [1], "params": ["{}"]}
    cell = {"cell": ["cell-r-hop-0"], "recipe": ["r-hop"], "model": ["plain"], "arm": [ARM], "repeat": [0]}
    cell |= {"n_samples": [4], "n_errors": [0], "no_start": [0.5]}
    with mock.patch("uuid.uuid4", side_effect=[uuid.UUID(int=9 << 96)]):
        Ledger.open(folder).append({"arms": table_from("arms", arm), "cells": table_from("cells", cell)})


if __name__ == "__main__":
    make(Path(sys.argv[1]))
