"""`advrisk report`: everything a run answers, in one file."""

from pathlib import Path
from typing import Annotated

import typer

from advrisk.cli.options import RunFolder


def report(
    folder: RunFolder,
    out: Annotated[Path | None, typer.Option(help="The file to write (default: report.html in the run).")] = None,
) -> None:
    """Write one self-contained HTML file.

    Example: advrisk report runs/signs --out signs.html
    """
    from advrisk.api import Run

    print(f"{Run.open(folder).report(out)} written; open it in a browser")
