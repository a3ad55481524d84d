"""Makes tests/golden/ledger-v6: the run of ledger-v5, resumed as schema version 6 wrote it.

    python tests/golden/make_ledger_v6.py tests/golden/ledger-v6

PGD runs again against `plain`, and the judge walks one of its successes back. The committed files stay as they are when
the schema changes; this file then only records where they came from.
"""

import shutil
import sys
import uuid
from pathlib import Path
from unittest import mock

from advrisk.ledger import Ledger, table_from

OLD = Path(__file__).parent / "ledger-v5"
PGD = "pgd-linf-0.1-ace"


def make(folder: Path) -> None:
    """Write the ledger: one more segment, whose name does not depend on chance."""
    shutil.copytree(OLD, folder)
    ledger = Ledger.open(folder)
    at = f"model = 'plain' AND arm = '{PGD}' AND repeat = 0"
    cells = ledger.query(f"SELECT * FROM cells WHERE {at}").to_pylist()
    rows = ledger.query(f"SELECT * FROM outcomes WHERE {at} ORDER BY sample").to_pylist()
    rows = [row | {"near_linf": row["d_linf"]} for row in rows]
    rows[0] |= {"outcome": "success", "d_linf": 0.08, "near_linf": 0.02}
    tables = {
        name: table_from(name, {key: [row[key] for row in own] for key in own[0]})
        for name, own in {"cells": cells, "outcomes": rows}.items()
    }
    with mock.patch("uuid.uuid4", side_effect=[uuid.UUID(int=13 << 96)]):
        ledger.append(tables)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
