"""Tables as lines of CSV: written whole, or not at all."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from advrisk.core.errors import RunError
from advrisk.core.files import whole_file


def write_lines(lines: Sequence[Mapping[str, Any]], target: Path) -> int:
    """Write a header and every line to a file; returns the number of lines."""
    if target.exists() and not target.is_file():
        raise RunError(f"{target}: cannot be written: it is no file")
    target = target.resolve()  # of a link, what it leads to
    try:
        with whole_file(target) as path, path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(lines[0]))
            writer.writeheader()
            writer.writerows(lines)
    except OSError as error:
        raise RunError(f"{target}: cannot be written: {error.strerror}") from None
    return len(lines)
