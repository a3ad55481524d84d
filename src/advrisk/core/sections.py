"""What an assessment shows people, as plain data: it says what stands where, and `render` says how it looks.

    Section
     ├─ Headline      one sentence for those who read no further
     ├─ Summary       what it adds to the executive summary
     ├─ Front         what it adds to the first screen of a page
     ├─ Text          sentences, below a title or none
     ├─ Table         columns with their kinds, and rows of values
     ├─ Figure        a figure as plotly specifies it, as plain data
     ├─ Alternatives  figures of which one is shown at a time
     ├─ Pictures      images with captions
     └─ Group         sections below a title; a folded one is for those who look closer

A number of a table is formatted by the kind of its column, in `core.values` and nowhere else.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Literal, TypeVar

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate

# A share has one decimal (12.3 %), a risk more where it is small (0.123 %), a weight three digits (0.05 %); a number
# has three decimals, a magnitude three digits, what is precise four; an amount is of money.
Kind = Literal[
    "text",
    "share",
    "risk",
    "weight",
    "number",
    "magnitude",
    "precise",
    "distance",
    "count",
    "amount",
    "seconds",
    "p-value",
    "flag",
]
T = TypeVar("T")

Plain = str | float | Estimate | None  # whole numbers and truth values are floats to the type checker
# Of the executive summary; `headlines` are what a terminal shows of a whole run.
Part = Literal["ship", "sure", "drivers", "undecided", "untested", "headlines"]


@dataclass(frozen=True)
class Cell:
    """A value with lines below it, or one that stands out.

    `best` and `worst` are of that value; `total` and `spare` stand with the first of a row and are of the whole row.
    """

    value: Plain
    beside: tuple[str, ...] = ()
    mark: Literal["", "best", "worst", "total", "spare"] = ""
    depth: int = 0  # of a branch in a tree: how far it is indented
    kind: Kind | None = None  # another than that of its column


Value = Plain | Cell


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, how its values are formatted, and their unit, if the heading names none.

    Pages and files hold every column, a terminal and Markdown only those that are no `detail`.
    """

    name: str
    kind: Kind = "text"
    unit: str = ""
    detail: bool = False
    nth: int = 1  # of several that have one name for machines

    @property
    def heading(self) -> str:
        return f"{self.name}, {self.unit}" if self.unit else self.name

    @property
    def key(self) -> str:
        """The name for machines: in CSV and JSON."""
        return _key(self.name, self.nth)


@dataclass(frozen=True)
class Headline:
    """The answer in one sentence."""

    text: str


@dataclass(frozen=True)
class Summary:
    """Sentences for one part of the executive summary; shown there and nowhere else."""

    part: Part
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Text:
    """Sentences; several are shown as a list. How to read what follows (`how`) stands on pages, and in a terminal with
    `--details`; a result or a caveat never does."""

    sentences: tuple[str, ...]
    title: str = ""
    how: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of values, one for each column; the first column names the row.

    Markdown shows the first table of a question, and those that `lead`.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...] = ()
    lead: bool = False
    nth: int = 1  # of several that have one name for machines

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise RiskError(f"table {self.title!r}: a row of {len(row)} values for {len(self.columns)} columns")
        keys = [column.key for column in self.columns]
        if len(set(keys)) < len(keys):
            raise RiskError(f"table {self.title!r}: two columns are called the same: {', '.join(sorted(keys))}")
        for key in keys:
            if key.removesuffix("_low").removesuffix("_high") in keys and key.endswith(("_low", "_high")):
                raise RiskError(f"table {self.title!r}: {key} is the end of an interval; rename that column")

    @property
    def key(self) -> str:
        return _key(self.title, self.nth)

    @property
    def brief(self) -> "Table":
        """The table without its detail columns."""
        kept = [place for place, column in enumerate(self.columns) if not column.detail]
        columns = tuple(self.columns[place] for place in kept)
        rows = tuple(tuple(row[place] for place in kept) for row in self.rows)
        return replace(self, columns=columns, rows=rows)


@dataclass(frozen=True)
class Figure:
    """A plotly figure, `{"data": […], "layout": {…}}`; `description` is read out in place of it.

    Pages draw traces of the types scatter, bar, heatmap and sunburst.
    """

    title: str
    spec: Mapping[str, Any]
    description: str
    columns: int = 0  # of a heat map, which needs room for each
    nth: int = 1  # of several that have one name for machines
    label: str = ""  # by which it is chosen among alternatives, in place of its title

    @property
    def key(self) -> str:
        return _key(self.title, self.nth)


@dataclass(frozen=True)
class Alternatives:
    """Figures of which a page shows one at a time, to be chosen by its label or title."""

    label: str
    figures: tuple[Figure, ...]

    def __post_init__(self) -> None:
        if not self.figures:
            raise RiskError(f"alternatives {self.label!r}: there is no figure to choose")


@dataclass(frozen=True)
class Picture:
    """An image as a PNG, what it shows, and what stands below it; the first line of that stands out."""

    png: bytes = field(repr=False)
    description: str
    caption: str = ""
    before: bytes = field(default=b"", repr=False)  # what it was made from, shown to its left


@dataclass(frozen=True)
class Pictures:
    """Images side by side."""

    title: str
    pictures: tuple[Picture, ...]


@dataclass(frozen=True)
class Group:
    """Sections below a title. `folded` ones are for those who look closer: a page unfolds them, a terminal shows them
    with `--details`, Markdown and notebooks leave them out."""

    title: str
    sections: tuple["Section", ...]
    folded: bool = False
    beside: bool = False  # each other, where the page is wide enough

    @property
    def key(self) -> str:
        return slug(self.title)


@dataclass(frozen=True)
class Badge:
    """A verdict in a few words."""

    text: str
    mark: Literal["", "best", "worst", "open"] = ""


@dataclass(frozen=True)
class Tile:
    """One model at first sight: its verdicts, and a few numbers, each below the heading of its column."""

    model: str
    badges: tuple[Badge, ...] = ()
    facts: tuple[tuple[Column, Value], ...] = ()


@dataclass(frozen=True)
class Front:
    """What a question adds to the first screen of a page, and shows nowhere else.

    Tiles of all questions become one for each model; a page shows the first figure, and the first pictures or table.
    `size` is one of the stated sizes and its norm, to be explained by a picture.
    """

    tiles: tuple[Tile, ...] = ()
    sections: tuple["Section", ...] = ()
    size: tuple[str, float] | None = None


Named = TypeVar("Named", Table, Figure)
Section = Headline | Summary | Front | Text | Table | Figure | Alternatives | Pictures | Group


@dataclass(frozen=True)
class Unanswered:
    """Why a question has no answer, and what would give one."""

    reason: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.reason}; {self.remedy}" if self.remedy else self.reason


def result_of(found: T | Unanswered | None) -> T | None:
    """An answer; None where there is none, or nobody asked."""
    return None if isinstance(found, Unanswered) else found


def why_not(found: object) -> str:
    """Why a question has no answer; empty where it has one, or nobody asked."""
    return str(found) if isinstance(found, Unanswered) else ""


def every(sections: Iterable[Section]) -> Iterator[Section]:
    """All sections in their order, those within groups and alternatives in place of these."""
    for one in sections:
        match one:
            case Group() | Front():
                yield from every(one.sections)
            case Alternatives():
                yield from one.figures
            case _:
                yield one


def unfolded(sections: Iterable[Section]) -> Iterator[Section]:
    """Those that are read first: no groups that are folded away."""
    return (one for one in sections if not (isinstance(one, Group) and one.folded))


def read_first(sections: Iterable[Section]) -> Iterator[Section]:
    """All of them in their order, those within groups in place of these."""
    for one in unfolded(sections):
        yield from read_first(one.sections) if isinstance(one, Group) else (one,)


def headline_of(sections: Sequence[Section]) -> str:
    """The first headline; empty where there is none."""
    return next((one.text for one in read_first(sections) if isinstance(one, Headline)), "")


def summary_of(sections: Sequence[Section], part: Part) -> list[str]:
    """What the sections add to a part of the executive summary."""
    return [text for one in every(sections) if isinstance(one, Summary) and one.part == part for text in one.sentences]


def without_twins(sections: Iterable[Section]) -> tuple[Section, ...]:
    """The same sections; tables, and figures, that would have one name for machines are numbered.

    Titles hold names from outside, and `a-b` and `a b` are one to machines; people read them as they are.
    """
    taken: dict[type, set[str]] = {Table: set(), Figure: set()}

    def named(one: Named) -> Named:
        nth = next(nth for nth in count(1) if _key(one.title, nth) not in taken[type(one)])
        taken[type(one)].add(_key(one.title, nth))
        return replace(one, nth=nth)

    def numbered(one: Section) -> Section:
        match one:
            case Group() | Front():
                return replace(one, sections=tuple(map(numbered, one.sections)))
            case Alternatives():
                return replace(one, figures=tuple(map(named, one.figures)))
            case Table():
                return named(one)
            case Figure():
                return named(one)
        return one

    return tuple(map(numbered, sections))


def distinct_columns(columns: Iterable[Column]) -> tuple[Column, ...]:
    """The same columns, numbered for machines where an earlier one has the name: models may be called anything."""
    found: list[Column] = []
    for one in columns:
        taken = {key for column in found for key in _with_ends(column.key)}
        nth = next(nth for nth in count(1) if taken.isdisjoint(_with_ends(_key(one.name, nth))))
        found.append(replace(one, nth=nth))
    return tuple(found)


def _with_ends(key: str) -> set[str]:
    """The names of a column and of the ends of its intervals."""
    return {key, f"{key}_low", f"{key}_high"}


def _key(name: str, nth: int) -> str:
    return slug(name) if nth == 1 else f"{slug(name)}_{nth}"


def slug(name: str) -> str:
    """A name for machines: `robust accuracy at 8/255` becomes `robust_accuracy_at_8_255`."""
    return re.sub(r"\W+", "_", name).strip("_").lower()
