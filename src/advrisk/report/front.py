"""The first screen of the page: a tile for each model, a figure, adversarial examples, and three sentences."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from advrisk.assess.findings import Findings
from advrisk.assess.gate.records import GateResult
from advrisk.assess.selection.beside import leading_first
from advrisk.assess.selection.headline import Gate, Requirements, requirements_of
from advrisk.core.palette import COLOURS, cycled, model_places
from advrisk.core.sections import Badge, Figure, Front, Pictures, Section, Table, Tile
from advrisk.render.page import page_parts, page_tile
from advrisk.report.executive import LABELS, ExecutiveSummary

MAX_TILES = 8
_LONG = 170  # characters of an answer that is split
_REQUIREMENTS: dict[Requirements, Badge] = {
    "met": Badge("meets every requirement", "best"),
    "not met": Badge("fails a requirement", "worst"),
    "undecided": Badge("requirement undecided", "open"),
    "not checked": Badge("requirements not checked", "open"),
}


@dataclass(frozen=True)
class FirstScreen:
    """What stands there, as the template shows it."""

    answer: str
    more: str  # what a long answer says beside
    tiles: list[dict[str, Any]]
    n_more: int  # models without a tile
    figure: list[dict[str, Any]]
    examples: list[dict[str, Any]]
    sentences: list[tuple[str, str]]  # each with its heading
    size: tuple[str, float] | None  # a norm and a size to be explained


def first_screen(found: Findings, executive: ExecutiveSummary) -> FirstScreen:
    """From what each question adds to it, the one that leads first."""
    fronts = [(one.name, part) for one in leading_first(found) for part in one.sections if isinstance(part, Front)]
    tiles = merged_tiles([front.tiles for _, front in fronts], found.answer("gate", GateResult))
    answer, rest = short_answer(executive.answer)
    early = executive.ship[1] if found.stopping is not None and found.stopping.rests else ""
    places = model_places(found.models or [tile.model for tile in tiles])
    return FirstScreen(
        answer=answer,
        more=" ".join(filter(None, (rest, early))),
        tiles=[
            page_tile(tile) | {"colour": cycled(COLOURS, places.get(tile.model, len(places)))}
            for tile in tiles[:MAX_TILES]
        ],
        n_more=max(0, len(tiles) - MAX_TILES),
        figure=_first(fronts, Figure),
        examples=_first(fronts, Pictures, Table),
        sentences=list(_sentences(executive)),
        size=next((front.size for _, front in fronts if front.size), None),
    )


def short_answer(sentence: str) -> tuple[str, str]:
    """A long sentence up to its first semicolon, and the rest as a sentence of its own."""
    first, sign, rest = sentence.partition("; ")
    if len(sentence) <= _LONG or not sign:
        return sentence, ""
    return f"{first}.", f"{rest[0].upper()}{rest[1:]}"


def merged_tiles(held: Sequence[Sequence[Tile]], gate: Gate) -> list[Tile]:
    """One tile for each model, in the order of the first question; its requirements come first."""
    by_model: dict[str, list[Tile]] = {}
    for tile in (tile for tiles in held for tile in tiles):
        by_model.setdefault(tile.model, []).append(tile)
    return [
        Tile(
            model,
            (*_required(model, gate), *(badge for tile in tiles for badge in tile.badges)),
            tuple(fact for tile in tiles for fact in tile.facts),
        )
        for model, tiles in by_model.items()
    ]


def _required(model: str, gate: Gate) -> Iterator[Badge]:
    if (state := requirements_of(model, [model], gate)) is not None:
        yield _REQUIREMENTS[state]


def _first(fronts: Sequence[tuple[str, Front]], *kinds: type[Section]) -> list[dict[str, Any]]:
    """The first section of these kinds."""
    for name, front in fronts:
        for one in front.sections:
            if isinstance(one, kinds):
                return page_parts(name, [one])
    return []


def _sentences(executive: ExecutiveSummary) -> Iterator[tuple[str, str]]:
    """How sure the answer is, what is undecided or else drives the risk, and what was not tested."""
    parts = dict(executive.parts())
    for choices in (("sure",), ("undecided", "drivers") if executive.open_points else ("drivers",), ("untested",)):
        label = next((LABELS[name] for name in choices if parts.get(LABELS[name])), None)
        if label is not None:
            yield label, parts[label][0]
