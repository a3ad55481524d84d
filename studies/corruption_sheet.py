"""One picture under every corruption of images that is registered, and what their levels stand for.

    python -m studies.corruption_sheet [--out FILE] [--page FILE]

The picture is drawn here, so that it belongs to nobody. Everything else comes from the registry: a corruption that is
added stands on the sheet and in the tables the next time.
"""

import argparse
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from advrisk.core.errors import AdvriskError, RunError
from advrisk.core.registry import Part
from advrisk.core.seeds import key
from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions import corruptions
from studies.page import fill, places

LEVELS = (1, 3, 5)
SIDE, GAP, TEXT = 72, 4, 16  # pixels: a picture, what lies between two, a line of text
ACROSS = 3  # corruptions side by side
FIRST = ("sensor", "noise", "weather")  # causes in this order, then the others

Corruption = Part[CorruptionTraits]


def scene(side: int = SIDE) -> Tensor:
    """A sign beside a road under an open sky, as (1, 3, side, side) in [0, 1]."""
    large = 8 * side
    picture = Image.new("RGB", (large, large))
    draw = ImageDraw.Draw(picture)
    for i in range(large):  # the sky, brighter towards the horizon
        share = i / large
        draw.line([(0, i), (large, i)], fill=(int(90 + 130 * share), int(150 + 80 * share), int(225 + 20 * share)))

    def at(*points: tuple[float, float]) -> list[tuple[float, float]]:
        return [(x * large, y * large) for x, y in points]

    draw.polygon(at((0, 0.62), (0.25, 0.5), (0.45, 0.6), (0.7, 0.48), (1, 0.6), (1, 1), (0, 1)), fill=(70, 120, 60))
    draw.polygon(at((0.5, 0.62), (0.56, 0.62), (0.98, 1), (0.3, 1)), fill=(95, 95, 100))
    draw.polygon(at((0.525, 0.64), (0.535, 0.64), (0.66, 1), (0.61, 1)), fill=(235, 235, 225))
    draw.rectangle(at((0.26, 0.4), (0.3, 0.95)), fill=(130, 130, 135))
    for size, colour in ((0.25, (245, 245, 245)), (0.225, (190, 25, 35))):
        corners = [np.pi / 8 + corner * np.pi / 4 for corner in range(8)]
        draw.polygon(at(*((0.28 + size * np.cos(a), 0.32 + size * np.sin(a)) for a in corners)), fill=colour)
    draw.rectangle(at((0.13, 0.28), (0.43, 0.36)), fill=(245, 245, 245))
    draw.polygon(at((0.72, 0.56), (0.78, 0.3), (0.88, 0.22), (0.96, 0.36), (0.98, 0.56)), fill=(35, 80, 40))
    small = picture.resize((side, side), Image.Resampling.BOX)
    return torch.from_numpy(np.asarray(small).transpose(2, 0, 1)[None] / np.float32(255))


def on_images() -> list[Corruption]:
    """Corruptions of images that have levels, cause by cause."""
    found = [part for part in corruptions if part.traits.inputs != "tables" and part.traits.n_levels >= max(LEVELS)]
    return sorted(found, key=lambda part: (_rank(part.traits.cause), part.traits.cause))


def _rank(cause: str) -> int:
    return FIRST.index(cause) if cause in FIRST else len(FIRST)


def strength(part: Corruption, level: int) -> dict[str, Any]:
    """What a level of a corruption stands for."""
    return {name: values[level - 1] for name, values in part.traits.levels.items()}


def corrupted(part: Corruption, x: Tensor, level: int) -> Tensor:
    """The picture at a level, within its bounds, always with the same draw."""
    space = Space.box(0.0, 1.0)
    noise = Noise([key("corruption-sheet", part.name)])
    return space.project(part.function(x.clone(), noise, torch.tensor([0]), space, **strength(part, level)), x)


def sheet(parts: Sequence[Corruption]) -> Image.Image:
    """Every corruption at three levels, with its name above them, under the name of its cause."""
    x, width = scene(), len(LEVELS) * (SIDE + GAP) + 3 * GAP
    branches = [(cause, list(group)) for cause, group in groupby(parts, key=lambda part: part.traits.cause)]
    n_rows = [-(-len(group) // ACROSS) for _, group in branches]
    height = SIDE + TEXT + GAP
    canvas = Image.new("RGB", (ACROSS * width, sum(n * height + TEXT + GAP for n in n_rows)), "white")
    top = 0
    for (cause, group), n in zip(branches, n_rows, strict=True):
        ImageDraw.Draw(canvas).text((GAP, top), cause.upper(), fill="black", font=ImageFont.load_default(12))
        for place, part in enumerate(group):
            corner = (place % ACROSS * width + GAP, top + TEXT + place // ACROSS * height)
            _paste(canvas, part, x, corner)
        top += n * height + TEXT + GAP
    return canvas.quantize(256, dither=Image.Dither.NONE)


def _paste(canvas: Image.Image, part: Corruption, x: Tensor, corner: tuple[int, int]) -> None:
    left, top = corner
    name, values = next(iter(part.traits.levels.items()))
    title = f"{part.name}: {name} {', '.join(_shown(values[level - 1]) for level in LEVELS)}"
    ImageDraw.Draw(canvas).text((left, top), title, fill="black", font=ImageFont.load_default(11))
    for place, level in enumerate(LEVELS):
        values = (corrupted(part, x, level)[0] * 255).round().byte().permute(1, 2, 0).contiguous().numpy()
        canvas.paste(Image.fromarray(values), (left + place * (SIDE + GAP), top + TEXT))


def level_tables() -> dict[str, list[str]]:
    """For each cause, a table of what the levels stand for: name of the place on the page -> lines."""
    blocks: dict[str, list[str]] = {}
    for part in corruptions:
        head = "| corruption | parameter | level 1 | level 2 | level 3 | level 4 | level 5 | draws differ |"
        lines = blocks.setdefault(f"levels-{part.traits.cause}", ["", head, "|---|---|---|---|---|---|---|---|"])
        for name, values in part.traits.levels.items():
            cells = [*map(_shown, values), *[""] * 5][:5]
            cells = [f"`{part.name}`", f"`{name}`", *cells, "yes" if part.traits.random else "no"]
            lines.append("| " + " | ".join(cells) + " |")
    return {place: [*lines, ""] for place, lines in blocks.items()}


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def main(words: Sequence[str] | None = None) -> int:
    """Parse arguments, print; a user's mistake is printed without a traceback."""
    parser = argparse.ArgumentParser(prog="python -m studies.corruption_sheet", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, metavar="FILE", help="draw the sheet into this PNG file")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the tables into this page")
    given = parser.parse_args(words)
    try:
        for place, lines in level_tables().items():
            print("\n".join([place, *lines]))
        if given.out:
            _save(sheet(on_images()), given.out)
            print(f"wrote {given.out}")
        if given.page:
            known = places(given.page.read_text(encoding="utf-8")) if given.page.is_file() else level_tables()
            fill(given.page, {place: lines for place, lines in level_tables().items() if place in known})
            print(f"wrote {given.page}")
    except AdvriskError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _save(picture: Image.Image, file: Path) -> None:
    try:
        picture.save(file, format="PNG", optimize=True)
    except OSError as error:
        raise RunError(f"{file}: cannot be written: {error.strerror}") from None


if __name__ == "__main__":
    sys.exit(main())
