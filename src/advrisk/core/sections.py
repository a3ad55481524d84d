"""What an assessment shows people, as plain data: it says what stands where, and `render` says how it looks.

    Section
     ├─ Headline   one sentence for those who read no further
     ├─ Text       sentences, below a title or none
     ├─ Table      columns with their kinds, and rows of values
     ├─ Figure     a plotly figure as plain data
     └─ Pictures   images with captions

A number is formatted by the kind of its column, in `render.values` and nowhere else.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate

Kind = Literal["text", "share", "number", "distance", "count", "seconds", "p-value", "flag"]
Value = str | float | Estimate | None  # whole numbers and truth values are floats to the type checker


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, how its values are formatted, and their unit, if the heading names none."""

    name: str
    kind: Kind = "text"
    unit: str = ""

    @property
    def heading(self) -> str:
        return f"{self.name}, {self.unit}" if self.unit else self.name

    @property
    def key(self) -> str:
        """The name for machines: in CSV and JSON."""
        return slug(self.name)


@dataclass(frozen=True)
class Headline:
    """The answer in one sentence."""

    text: str


@dataclass(frozen=True)
class Text:
    """Sentences; several are shown as a list."""

    sentences: tuple[str, ...]
    title: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of values, one for each column; the first column names the row."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...] = ()

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
        return slug(self.title)


@dataclass(frozen=True)
class Figure:
    """A plotly figure, `{"data": […], "layout": {…}}`; `description` is read out in place of it."""

    title: str
    spec: Mapping[str, Any]
    description: str

    @property
    def key(self) -> str:
        return slug(self.title)


@dataclass(frozen=True)
class Picture:
    """An image as a PNG, what it shows, and what stands below it."""

    png: bytes = field(repr=False)
    description: str
    caption: str = ""


@dataclass(frozen=True)
class Pictures:
    """Images side by side."""

    title: str
    pictures: tuple[Picture, ...]


Section = Headline | Text | Table | Figure | Pictures


@dataclass(frozen=True)
class Unanswered:
    """Why a question has no answer, and what would give one."""

    reason: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.reason}; {self.remedy}" if self.remedy else self.reason


def headline_of(sections: Sequence[Section]) -> str:
    """The first headline; empty where there is none."""
    return next((one.text for one in sections if isinstance(one, Headline)), "")


def refuse_twins(sections: Sequence[Section]) -> None:
    """Refuse two tables, or two figures, of one name: files could hold only one of them."""
    for kind in (Table, Figure):
        keys = [one.key for one in sections if isinstance(one, kind)]
        if twins := sorted({key for key in keys if keys.count(key) > 1}):
            raise RiskError(f"two {kind.__name__.lower()}s have the title {twins[0]!r}; titles must differ")


def slug(name: str) -> str:
    """A name for machines: `robust accuracy at 8/255` becomes `robust_accuracy_at_8_255`."""
    return re.sub(r"\W+", "_", name).strip("_").lower()
