"""Makes certificate-v4.json: the document of a certificate as version 4 has it, from hand-made rows.

Run it only to make a new version, under a new name: `python -m tests.golden.make_certificate_v4`. A document is
verified by programs that write its version; others say so.
"""

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from advrisk.assess.certificate.assessment import assess_certificates
from advrisk.assess.certificate.document import certificate_document
from advrisk.ledger import Ledger
from tests.unit.assess.certificate.conftest import write_rows

N = 80
MODEL = "plain <script>"
WRONG = "w" * 9
BROKEN = {
    MODEL: {
        "pgd@linf:0.02": "s".ljust(N - 9, "r") + WRONG,
        "nes@linf:0.02": ["rs".ljust(N, "r"), "rrs".ljust(N, "r")],
        "pgd@linf:0.05": "sssssssssse".ljust(N - 9, "r") + WRONG,
        "pgd@l2:1": "".ljust(N - 9, "r") + WRONG,
    },
    "hardened": {"pgd@linf:0.02": "".ljust(N, "r")},
}
SAMPLES = [{"label": place * place % 7 % 5} for place in range(N)]


def golden_ledger(folder: Path) -> Ledger:
    """Two models, four lists; one attack was found by a search and tried twice, one is flagged."""
    facts = {"nes@linf:0.02": {"origin": "frozen"}}
    return write_rows(folder, BROKEN, facts=facts, flags={"pgd@linf:0.05": ["still-gaining"]}, samples=SAMPLES)


def document(ledger: Ledger, model: str = MODEL, **given: Any) -> dict[str, Any]:
    """The document of a model, made at a fixed time."""
    found = assess_certificates(ledger, **given)
    made = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    return certificate_document(ledger, found, found.of(model), every=found.lists, study="signs", seed=7, made=made)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        text = json.dumps(document(golden_ledger(Path(folder))), indent=1, ensure_ascii=False)
    Path(__file__).with_name("certificate-v4.json").write_text(text + "\n", encoding="utf-8")
