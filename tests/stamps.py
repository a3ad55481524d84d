"""Segments that were written anew, with digests that fit: as somebody would forge them."""

from pathlib import Path

from advrisk.ledger.manifest import FILE, Manifest, manifest_text, read_manifest, stamp_file


def restamp(segment: Path) -> None:
    """Write down the digests of a segment's files as they are now."""
    old = read_manifest(segment)
    files = {path.name: stamp_file(path) for path in sorted(segment.iterdir()) if path.name != FILE}
    (segment / FILE).write_text(manifest_text(Manifest(files, old.inputs if old else {})), encoding="utf-8")
