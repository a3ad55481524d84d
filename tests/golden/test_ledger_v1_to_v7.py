"""A ledger that was begun with schema version 1 and resumed with versions 2 to 6, and then with the present one.

The cells of version 1 know nothing of the shares in `TRUST`, and those of 1 and 2 not of `no_start`: they are null
there. So are the causes of arms before version 4, the seconds that were spent before version 5, and the distances that
the judge measured before version 6. No question was frozen in the ledger before version 7. Everything else is as it
was, and rows of all versions answer one query.
"""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from advrisk.assess.damage.distances import smallest_distances
from advrisk.core.errors import LedgerError
from advrisk.ledger import TABLES, Ledger
from advrisk.ledger.frozen import frozen_list, frozen_lists, frozen_question, write_frozen
from advrisk.ledger.tables import SCHEMA_VERSION

HERE = Path(__file__).parent
OLD = HERE / "ledger-v1"
SAMPLES = ["digits/000001", "digits/000002", "digits/000003", "digits/000004"]
TRUST = ["zero_gradients", "not_increasing", "still_gaining"]
PGD, FAB = "pgd-linf-0.1-ace", "fab-linf"
_CLEAN = "SELECT cell FROM cells WHERE arm = 'clean' AND model = 'plain'"


def rows(ledger: Ledger, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in ledger.query(sql).to_pylist()]


@pytest.fixture
def mixed(tmp_path: Path) -> Ledger:
    """The old run, gone on with: FAB against both models, and PGD against `hardened` by a new recipe."""
    shutil.copytree(HERE / "ledger-v2", tmp_path / "run")
    return Ledger.open(tmp_path / "run")


def versions(ledger: Ledger) -> list[bytes]:
    files = sorted(ledger.path.rglob("*.parquet"))
    return [pq.read_schema(file).metadata[b"advrisk.schema"] for file in files]


def test_the_files_are_of_both_versions(mixed: Ledger) -> None:
    assert sorted(set(versions(mixed))) == [b"1", b"2"]


def test_cells_of_version_3_stand_beside_them() -> None:
    ledger = Ledger.open(HERE / "ledger-v3")
    assert set(versions(ledger)) == {b"1", b"2", b"3"}
    assert rows(ledger, "SELECT cell, no_start FROM cells WHERE no_start IS NOT NULL") == [("cell-r-hop-0", 0.5)]
    assert rows(ledger, "SELECT count(*), count(zero_gradients) FROM cells") == [(12, 2)]
    assert rows(ledger, "SELECT count(*), count(cause) FROM arms") == [(11, 0)]
    assert rows(ledger, "SELECT count(*) FROM measures") == [(0,)]


def test_arms_and_measures_of_version_4_stand_beside_them() -> None:
    ledger = Ledger.open(HERE / "ledger-v4")
    assert set(versions(ledger)) == {b"1", b"2", b"3", b"4"}
    assert rows(ledger, "SELECT arm, cause FROM arms WHERE cause IS NOT NULL") == [("fog-level-1", "weather")]
    assert rows(ledger, "SELECT sample, value FROM measures") == [(SAMPLES[0], 0.25)]
    assert rows(ledger, "SELECT count(*), count(spent_s) FROM outcomes") == [(44, 0)]
    counts = "count(n_confirm) + count(n_forward_before) + count(n_backward_before)"
    assert rows(ledger, f"SELECT {counts} FROM outcomes") == [(0,)]


def test_seconds_of_version_5_stand_beside_them() -> None:
    ledger = Ledger.open(HERE / "ledger-v5")
    assert set(versions(ledger)) == {b"1", b"2", b"3", b"4", b"5"}
    assert rows(ledger, "SELECT arm, spent_s FROM outcomes WHERE spent_s IS NOT NULL") == [("hopskipjump-l2", 0.125)]
    assert rows(ledger, "SELECT arm, n_confirm FROM outcomes WHERE n_confirm IS NOT NULL") == [("hopskipjump-l2", 2)]
    assert rows(ledger, "SELECT arm, inference_s FROM cells WHERE inference_s IS NOT NULL") == [("hopskipjump-l2", 0.5)]
    assert rows(ledger, "SELECT count(near_l0) + count(near_l2) + count(near_linf) FROM outcomes") == [(0,)]


def test_measured_distances_of_version_6_stand_beside_them() -> None:
    """FAB keeps 0.04 on 000001 of `plain`; PGD, run again there, kept 0.08 and measured 0.02 on its way back."""
    before = smallest_distances(Ledger.open(HERE / "ledger-v5"), norm="linf", arms=[FAB, PGD]).by_model["plain"]
    ledger = Ledger.open(HERE / "ledger-v6")
    assert set(versions(ledger)) == {b"1", b"2", b"3", b"4", b"5", b"6"}
    after = smallest_distances(ledger, norm="linf", arms=[FAB, PGD]).by_model["plain"]
    assert after.tolist() == [0.02, *before.tolist()[1:]]


def test_questions_of_the_present_version_stand_beside_them(tmp_path: Path) -> None:
    assert SCHEMA_VERSION == 7
    shutil.copytree(HERE / "ledger-v6", tmp_path / "run")
    ledger = Ledger.open(tmp_path / "run")
    assert frozen_lists(ledger) == []
    question = frozen_question(
        [frozen_list(("plain", "linf", 0.1), {PGD: "r-pgd"}, (), [("a", "b")])], [("a", "b")], {}
    )
    write_frozen(ledger, question)
    ledger = Ledger.open(tmp_path / "run")
    assert set(versions(ledger)) == {b"1", b"2", b"3", b"4", b"5", b"6", b"7"}
    assert [one.key for one in frozen_lists(ledger)] == [("plain", "linf", 0.1)]


def test_a_ledger_of_version_1_alone_has_nulls_where_version_2_has_shares() -> None:
    ledger = Ledger.open(OLD)
    found = ledger.query("SELECT * FROM cells")
    assert set(found.column_names) == set(TABLES["cells"].names)
    assert found.num_rows == 10
    for name in (*TRUST, "no_start"):
        assert found[name].null_count == 10
        assert found[name].type == pa.float64()
    assert rows(ledger, "SELECT count(*) FROM cells WHERE zero_gradients > 0.1") == [(0,)]


@pytest.mark.parametrize("table", sorted(TABLES))
def test_every_table_has_its_columns(mixed: Ledger, table: str) -> None:
    for ledger in (mixed, Ledger.open(OLD)):
        found = ledger.query(f"SELECT * FROM {table}")
        assert set(found.column_names) == set(TABLES[table].names)
        assert (found.num_rows > 0) == (table not in ("measures", "questions"))  # of versions 4 and 7


def test_cells_of_both_versions_answer_one_query(mixed: Ledger) -> None:
    """Eight of the ten old cells are left: both draws of PGD against `hardened` have another recipe now."""
    found = rows(mixed, f"SELECT model, arm, repeat, {', '.join(TRUST)} FROM cells ORDER BY ALL")
    noise = "gaussian-noise,sigma=0.1"
    old = [("hardened", arm, 0) for arm in ("clean", "fgsm-linf-0.1-ace", noise)]
    old += [("plain", arm, 0) for arm in ("clean", "fgsm-linf-0.1-ace", noise, PGD)] + [("plain", PGD, 1)]
    expected = [(*place, None, None, None) for place in old]
    expected += [("plain", FAB, 0, 0.25, None, 0.5), ("hardened", FAB, 0, 1.0, None, None)]
    expected += [("hardened", PGD, 0, None, 0.0, None)]
    assert found == sorted(expected, key=lambda row: row[:3])


def test_shares_can_be_summed_up_over_both(mixed: Ledger) -> None:
    sql = "SELECT count(*), count(zero_gradients), max(zero_gradients), avg(coalesce(still_gaining, 0)) FROM cells"
    assert rows(mixed, sql) == [(11, 2, 1.0, pytest.approx(0.5 / 11))]
    flagged = "SELECT arm FROM cells WHERE list_contains(flags, 'still-gaining') ORDER BY arm"
    assert rows(mixed, flagged) == [(FAB,), (FAB,), (PGD,)]


def test_outcomes_of_both_versions_stand_side_by_side(mixed: Ledger) -> None:
    """Of forty old rows the eight of the old recipe are gone; twelve new ones came, with targets."""
    sql = "SELECT criterion, count(*), count(target) FROM outcomes GROUP BY 1 ORDER BY 1"
    assert rows(mixed, sql) == [("label", 32, 0), ("target", 12, 12)]
    assert rows(
        mixed, f"SELECT sample, target FROM outcomes WHERE arm = '{FAB}' AND model = 'plain' ORDER BY sample"
    ) == list(zip(SAMPLES, [5, 6, 7, 8], strict=True))


def test_the_smallest_distances_are_taken_over_both(mixed: Ledger) -> None:
    """plain: FAB is nearer than what was known for 000001 and 000003, and 000004 was wrong before;
    hardened: the new PGD, and FGSM of the old rows, which breaks 000002 at 0.1 only."""
    found = smallest_distances(mixed, norm="linf")
    distances = {
        model: dict(zip(found.samples, values.tolist(), strict=True)) for model, values in found.by_model.items()
    }
    plain = dict(zip(SAMPLES, [0.04, 0.07, 0.03, 0.0], strict=True))
    hardened = dict(zip(SAMPLES, [float("inf"), 0.06, 0.07, float("inf")], strict=True))
    assert distances == {"plain": plain, "hardened": hardened}


def test_finished_cells_are_those_of_both(mixed: Ledger) -> None:
    old, both = Ledger.open(OLD).finished_cells(), mixed.finished_cells()
    assert both == old | {"cell-r-fab-0", "cell-r-fab-2-0", "cell-r-new-0"}
    assert len(both) == 15


def test_a_newer_segment_behind_an_old_one_is_refused(tmp_path: Path) -> None:
    """Looking at the first and oldest file must not spare the last one the look."""
    shutil.copytree(OLD, tmp_path / "run")
    newer = sorted((tmp_path / "run" / "ledger" / "segments").iterdir())[-1]
    later = newer.with_name("00000099-00000000")
    shutil.copytree(newer, later)
    for file in later.iterdir():
        table = pq.read_table(file)
        pq.write_table(table.replace_schema_metadata({b"advrisk.schema": str(SCHEMA_VERSION + 1).encode()}), file)
    with pytest.raises(LedgerError, match=f"schema version {SCHEMA_VERSION + 1} is newer"):
        Ledger.open(tmp_path / "run").query("FROM cells")
