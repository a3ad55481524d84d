"""The README's picture: the first screen of the report that `make demo` writes, photographed in a headless Chromium.

    python -m studies.report_picture [RUN] [--out FILE]

RUN is the folder of the demo's run; without it the demo is run first, in a temporary folder.
"""

import argparse
import io
import sys
import tempfile
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

from advrisk import Run, Study
from advrisk.core.errors import AdvriskError
from advrisk.core.files import whole_file
from advrisk.report.pdf import find_chromium

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "report.png"
WIDTH = 1280
LARGEST = 300_000  # bytes
_COLOURS = 256
_FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]


def run_demo(folder: Path) -> Run:
    """What `advrisk demo` does, without the words."""
    with as_file(files("advrisk.demo")) as home:
        return Study.load(home / "study.yaml").run(folder)


def photograph(report: Path, target: Path = PICTURE) -> Path:
    """The report down to its adversarial examples, as a PNG file of few colours."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=_FLAGS)
        page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        page.goto(report.resolve().as_uri())
        page.wait_for_selector("#summary .chart")
        height = page.evaluate("document.querySelector('#summary').getBoundingClientRect().bottom")
        taken = page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": height})
        browser.close()
    with Image.open(io.BytesIO(taken)) as picture, whole_file(target) as file:
        picture.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
    return target


def main(words: Sequence[str] | None = None) -> int:
    """Run the demo unless the folder of a run is given, write its report, and take the picture."""
    parser = argparse.ArgumentParser(prog="python -m studies.report_picture", description=__doc__.splitlines()[0])
    parser.add_argument("run", nargs="?", type=Path, metavar="RUN", help="the folder of the demo's run")
    parser.add_argument(
        "--out", type=Path, default=PICTURE, metavar="FILE", help="the PNG file (default: the README's)"
    )
    given = parser.parse_args(words)
    try:
        with tempfile.TemporaryDirectory() as folder:
            run = Run.open(given.run) if given.run else run_demo(Path(folder) / "demo")
            path = photograph(run.report(Path(folder) / "report.html"), given.out)
    except AdvriskError as error:
        print(f"studies.report_picture: {error}", file=sys.stderr)
        return 2
    print(f"{path} written: {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
