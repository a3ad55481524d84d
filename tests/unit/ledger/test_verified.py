"""What was altered since it was written is refused by whoever reads it, not only by `ledger check`."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger
from advrisk.ledger.manifest import FILE, read_manifest
from tests.stamps import resist, restamp


@pytest.fixture
def segment(tmp_path: Path, cell: Callable[..., dict[str, pa.Table]]) -> Path:
    return Ledger.open(tmp_path / "run", create=True).append(cell("c1"))


def opened(segment: Path) -> Ledger:
    return Ledger.open(segment.parents[2])


def test_altered_rows_are_refused(segment: Path) -> None:
    assert opened(segment).query("SELECT count(*) AS n FROM all_outcomes WHERE outcome = 'success'")["n"][0].as_py()
    resist(segment)
    with pytest.raises(LedgerError, match=r"outcomes\.parquet: was altered.*ledger check RUN --repair"):
        opened(segment).outcomes()


def test_no_flipped_bit_changes_rows_in_silence(segment: Path) -> None:
    whole = {name: opened(segment).query(f"SELECT * FROM all_{name} ORDER BY ALL") for name in ("outcomes", "outputs")}
    rng = np.random.default_rng(0)
    for name, before in whole.items():
        assert before.num_rows
        file = segment / f"{name}.parquet"
        content = file.read_bytes()
        for place in rng.integers(len(content), size=30):
            flipped = bytearray(content)
            flipped[place] ^= 1 << int(rng.integers(8))
            file.write_bytes(flipped)
            with pytest.raises(LedgerError):
                opened(segment).query(f"SELECT * FROM {name.upper()}")  # DuckDB knows no case
        file.write_bytes(content)
        assert opened(segment).query(f"SELECT * FROM all_{name} ORDER BY ALL").equals(before)


def test_the_digests_cannot_be_left_out(segment: Path) -> None:
    (segment / FILE).unlink()
    with pytest.raises(LedgerError, match=r"segment\.json: is not the one that was published.*--repair"):
        opened(segment).outcomes()


def test_a_table_that_was_put_there_later_is_refused(segment: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), segment / "measures.parquet")
    with pytest.raises(LedgerError, match=r"measures\.parquet: does not belong to the segment"):
        opened(segment).outcomes()


def test_an_altered_manifest_is_refused(segment: Path) -> None:
    text = (segment / FILE).read_text()
    (segment / FILE).write_text(text.replace('"bytes": ', '"bytes": 1'))
    with pytest.raises(LedgerError, match=r"segment\.json: was altered"):
        opened(segment).outcomes()


def test_a_table_that_is_gone_is_missed(segment: Path) -> None:
    (segment / "outcomes.parquet").unlink()
    with pytest.raises(LedgerError, match=r"outcomes\.parquet: is missing.*ledger check RUN --repair"):
        opened(segment).outcomes()


def test_altered_rows_with_digests_that_fit_are_refused(segment: Path) -> None:
    resist(segment)
    restamp(segment, history=False)
    with pytest.raises(LedgerError, match=r"segment\.json: is not the one that was published.*--repair"):
        opened(segment).outcomes()


def test_to_forge_the_history_too_contradicts_the_segments_that_came_later(
    segment: Path, cell: Callable[..., dict[str, pa.Table]]
) -> None:
    published = opened(segment).append(cell("c2"))
    resist(segment)
    before = read_manifest(segment)
    restamp(segment, history=False)
    after = read_manifest(segment)
    assert before is not None
    assert after is not None
    history = segment.parents[1] / "history.jsonl"
    history.write_text(history.read_text().replace(before.digest, after.digest))
    with pytest.raises(LedgerError, match=r"history\.jsonl: was altered, or lines are missing.*--repair"):
        opened(published).outcomes()


def test_digests_of_a_version_without_a_history_are_required_all_the_same(segment: Path) -> None:
    (segment.parents[1] / "history.jsonl").unlink()
    (segment / FILE).unlink()
    with pytest.raises(LedgerError, match=r"segment\.json: is missing, which holds the digests"):
        opened(segment).outcomes()
