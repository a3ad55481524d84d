"""Makes tests/golden/ledger-v5: the run of ledger-v4, resumed as schema version 5 wrote it.

    python tests/golden/make_ledger_v5.py tests/golden/ledger-v5

HopSkipJump runs again against `plain`, with seconds spent and confirming passes. The committed files stay as they are
when the schema changes; this file then only records where they came from.
"""

import shutil
import sys
import uuid
from pathlib import Path
from unittest import mock

from advrisk.ledger import Ledger, table_from

OLD = Path(__file__).parent / "ledger-v4"


def make(folder: Path) -> None:
    """Write the ledger: one more segment, whose name does not depend on chance."""
    shutil.copytree(OLD, folder)
    hop = {"model": ["plain"], "arm": ["hopskipjump-l2"], "repeat": [0], "cell": ["cell-r-hop-0"]}
    cells = table_from("cells", hop | {"recipe": ["r-hop"], "n_samples": [1], "n_errors": [0], "inference_s": [0.5]})
    success = {"sample": ["digits/000001"], "outcome": ["success"], "d_l2": [0.75], "d_linf": [0.25]}
    spent = {"n_forward": [9], "spent_s": [0.125], "n_confirm": [2]}
    with mock.patch("uuid.uuid4", side_effect=[uuid.UUID(int=12 << 96)]):
        Ledger.open(folder).append({"cells": cells, "outcomes": table_from("outcomes", hop | success | spent)})


if __name__ == "__main__":
    make(Path(sys.argv[1]))
