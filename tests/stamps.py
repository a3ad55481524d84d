"""Segments that were written anew, with digests that fit: as somebody would forge them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from advrisk.ledger import history as histories
from advrisk.ledger.history import settle
from advrisk.ledger.manifest import FILE, Manifest, manifest_text, read_manifest, stamp_file
from advrisk.ledger.segments import all_segments
from advrisk.ledger.tables import STAMPED_KEY


def resist(segment: Path) -> None:
    """Turn every success into `resisted`, as somebody would who wants a certificate."""
    file = segment / "outcomes.parquet"
    table = pq.read_table(file, partitioning=None)
    place = table.column_names.index("outcome")
    changed = pc.replace_substring(table["outcome"].cast(pa.string()), "success", "resisted")
    pq.write_table(
        table.set_column(place, table.schema.field(place), changed.cast(table.schema.field(place).type)), file
    )


def restamp(segment: Path, *, history: bool = True) -> None:
    """Write down the digests of a segment's files as they are now; with `history`, as if they had been published so."""
    old = read_manifest(segment)
    files = {path.name: stamp_file(path) for path in sorted(segment.iterdir()) if path.name != FILE}
    manifest = Manifest(files, old.inputs if old else {}, after=old and old.after)
    (segment / FILE).write_text(manifest_text(manifest), encoding="utf-8")
    if history:
        ledger = segment.parents[1]
        settle(ledger, {one.name: read_manifest(one) for one in all_segments(ledger)})


def as_of_an_earlier_version(segment: Path) -> None:
    """Leave a segment without digests, in a ledger without a history."""
    (segment.parents[1] / histories.FILE).unlink(missing_ok=True)
    (segment / FILE).unlink()
    for file in segment.iterdir():
        table = pq.read_table(file, partitioning=None)
        metadata = {name: value for name, value in table.schema.metadata.items() if name != STAMPED_KEY}
        pq.write_table(table.replace_schema_metadata(metadata), file)
