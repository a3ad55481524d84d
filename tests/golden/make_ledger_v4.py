"""Makes tests/golden/ledger-v4: the run of ledger-v3, gone on with as schema version 4 wrote it.

    python tests/golden/make_ledger_v4.py tests/golden/ledger-v4

A corruption with its cause, and a measure of `plain` at a clean input. The committed files stay as they are when the
schema changes; this file then only tells where they came from.
"""

import shutil
import sys
import uuid
from pathlib import Path
from unittest import mock

from advrisk.ledger import Ledger, table_from

OLD = Path(__file__).parent / "ledger-v3"
ARM = "fog-level-1"


def make(folder: Path) -> None:
    """Write the ledger: one more segment, whose name does not depend on chance."""
    shutil.copytree(OLD, folder)
    ledger = Ledger.open(folder)
    arm = {"model": ["plain"], "arm": [ARM], "recipe": ["r-fog"], "origin": ["study"], "kind": ["corruption"]}
    arm |= {"cause": ["weather"], "repeats": [1], "params": ["{}"]}
    clean = ledger.query("SELECT cell FROM cells WHERE arm = 'clean' AND model = 'plain'")["cell"].to_pylist()
    measured = {"cell": clean, "sample": ["digits/000001"], "measure": ["clever"], "value": [0.25]}
    with mock.patch("uuid.uuid4", side_effect=[uuid.UUID(int=11 << 96)]):
        ledger.append({"arms": table_from("arms", arm), "measures": table_from("measures", measured)})


if __name__ == "__main__":
    make(Path(sys.argv[1]))
