"""Failure modes as one picture: clean inputs beside those that made the model err, with captions."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from advrisk.assess.failures.exhibits import with_exhibits
from advrisk.assess.failures.modes import Exhibit, Failure, FailureMode, FailureModes
from advrisk.assess.failures.words import caption, heading
from advrisk.core.errors import RunError
from advrisk.core.files import whole_file
from advrisk.ledger.storage import Storage

Shown = Sequence[tuple[Failure, Exhibit]]
Sheet = tuple[FailureMode, Shown]  # a branch of a model, and the failures of which there are pictures

_SIDE, _GAP, _TEXT = 96, 10, 13  # pixels: of a picture, between pictures, of letters
_COLUMNS = 4
_LINES = 2  # under each pair of pictures
_HEAD = 30


def write_contact_sheet(storage: Storage, found: FailureModes, target: Path) -> int:
    """Write all failures with pictures into one PNG file; returns how many there are."""
    sheets = _sheets(with_exhibits(storage, found))
    if not sheets:
        raise RunError(
            f"{storage.folder}: there is no picture to show: nothing failed, inputs were not kept (`keep_inputs`), or "
            "they are no images"
        )
    if target.suffix.lower() != ".png":
        raise RunError(f"{target}: a contact sheet is a picture, so the name must end in .png")
    image = _drawn(found, sheets)
    try:
        with whole_file(target) as file:
            image.save(file, "PNG", optimize=True)
    except OSError as error:
        raise RunError(f"{target}: cannot be written: {error.strerror}") from None
    return sum(len(shown) for _, shown in sheets)


def _sheets(found: FailureModes) -> list[Sheet]:
    held = found.exhibits or {}
    each = ((mode, [(one, held[one]) for one in mode.failures]) for mode in found.modes)
    drawn = ((mode, [(one, exhibit) for one, exhibit in all_ if _pictures(exhibit)]) for mode, all_ in each)
    return [(mode, shown) for mode, shown in drawn if shown]


def _pictures(held: Exhibit) -> list[bytes]:
    return [one for one in (held.clean, held.perturbed) if one]


def _drawn(found: FailureModes, sheets: Sequence[Sheet]) -> Any:
    from PIL import Image, ImageDraw, ImageFont

    tile = 2 * _SIDE + 3 * _GAP, _SIDE + _LINES * (_TEXT + 4) + 2 * _GAP
    rows = [-(-len(shown) // _COLUMNS) for _, shown in sheets]
    image = Image.new("RGB", (_COLUMNS * tile[0] + _GAP, sum(_HEAD + n * tile[1] for n in rows) + _GAP), "white")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(_TEXT)
    top = _GAP
    for (mode, shown), n_rows in zip(sheets, rows, strict=True):
        title = f"{mode.model}: {heading(mode, found)}"
        draw.text((_GAP, top), _cut(title, image.width - 2 * _GAP, font), fill="black", font=font)
        for place, (one, held) in enumerate(shown):
            corner = _GAP + place % _COLUMNS * tile[0], top + _HEAD + place // _COLUMNS * tile[1]
            for offset, png in enumerate(_pictures(held)):
                image.paste(_thumbnail(png), (corner[0] + offset * (_SIDE + _GAP // 2), corner[1]))
            below = corner[1] + _SIDE + 3
            for line, text in enumerate((caption(one, found.labels), one.arm)):
                fitting = _cut(text, tile[0] - _GAP, font)
                draw.text((corner[0], below + line * (_TEXT + 3)), fitting, fill="black" if not line else "#555555",
                          font=font)  # fmt: skip
        top += _HEAD + n_rows * tile[1]
    return image


def _thumbnail(png: bytes) -> Any:
    from PIL import Image

    with Image.open(io.BytesIO(png)) as opened:
        image = opened.convert("RGB")
    scale = _SIDE / max(image.size)
    width, height = (max(1, round(side * scale)) for side in image.size)
    return image.resize((width, height), Image.Resampling.NEAREST if scale > 1 else Image.Resampling.LANCZOS)


def _cut(text: str, width: int, font: Any) -> str:
    """As much of a text as fits."""
    text = text[:width]  # a letter is a pixel wide at least: whatever the length, this is quick
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(f"{text}…") > width:
        text = text[:-1]
    return f"{text}…"
