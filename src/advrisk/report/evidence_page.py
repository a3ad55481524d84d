"""The index of an evidence pack for people: a page and Markdown, made from its JSON and from nothing else."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from advrisk.report.evidence_numbers import SHARE
from advrisk.report.marks import escaped
from advrisk.report.survival import number_text

if TYPE_CHECKING:
    from jinja2 import Template

MOST_NUMBERS = 60  # of a topic, on the page; all stand in index.json
MARKS = {"answers": "●", "contributes": "◐", "does not answer": "○"}


def index_page(index: Mapping[str, Any]) -> str:
    """The page: complete in itself, but for links to the files beside it."""
    return _template().render(
        index,
        most=MOST_NUMBERS,
        marks=MARKS,
        titles=_titles(index),
        headlines={topic["id"]: headline(topic["numbers"]) for topic in index["numbers"]},
        value_text=value_text,
        interval_text=interval_text,
        link=link,
    )


@cache
def _template() -> "Template":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("advrisk.report", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("evidence.html")


def index_markdown(index: Mapping[str, Any]) -> str:
    """The same as Markdown."""
    parts = [
        f"# Evidence: {escaped(index['run'])}",
        f"**{escaped(index['summary']['text'])}**",
        *([f"**The run is not finished: {escaped(index['unfinished'])}.**"] if index["unfinished"] else []),
        escaped(index["notice"]),
        *(f"- {MARKS[degree]} *{degree}*: {escaped(meaning)}" for degree, meaning in index["degrees"].items()),
        *(_text(text, _titles(index)) for text in index["texts"]),
        "## The numbers",
        *(_topic(topic) for topic in index["numbers"]),
        "## Files",
        _table(
            ["file", "what it is", "bytes", "SHA-256"],
            [
                [f"[{escaped(one['path'])}]({link(one['path'])})", one["what"], f"{one['bytes']:,}", one["sha256"]]
                for one in index["files"]
            ],
            raw=(0,),
        ),
        f"Rows of the ledger: SHA-256 `{index['ledger']}`. Made by advrisk {escaped(index['program'])}, "
        f"{escaped(index['made'])}. `advrisk verify` checks this pack.",
    ]
    return "\n\n".join(parts) + "\n"


def value_text(number: Mapping[str, Any]) -> str:
    """The value, as people write it."""
    estimate = number["estimate"]
    if estimate is None:
        exact = number["exact"]
        return f"{exact:,}" if isinstance(exact, int) else exact if isinstance(exact, str) else number_text(exact)
    return _one(estimate["value"], number["unit"], sign=" %")


def interval_text(number: Mapping[str, Any]) -> str:
    """`[4.9, 9.6]`; nothing where a number is exact. None, for JSON knows no infinity, is one."""
    estimate = number["estimate"]
    if estimate is None:
        return ""
    low = "-infinite" if estimate["low"] is None else _one(estimate["low"], number["unit"])
    high = "infinite" if estimate["high"] is None else _one(estimate["high"], number["unit"])
    return f"[{low}, {high}]"


def headline(numbers: Sequence[Mapping[str, Any]]) -> str:
    """The first number of a topic, over all models: `clean inputs answered rightly: 95.8 % to 97.6 %`."""
    alike = [one for one in numbers if one["what"] == numbers[0]["what"]]
    values = [(_place(one), value_text(one)) for one in alike]
    if any(isinstance(place, str) for place, _ in values):  # not in any order
        said = list(dict.fromkeys(text for _, text in values))[:1]
    else:
        said = list(dict.fromkeys((min(values)[1], max(values)[1]))) if values else []
    return f"{alike[0]['what']}: {' to '.join(said)}" if alike else ""


def _place(number: Mapping[str, Any]) -> float | str:
    estimate = number["estimate"]
    value = number["exact"] if estimate is None else estimate["value"]
    return math.inf if value is None else value


def link(path: str) -> str:
    """A path as an address; a section stays one."""
    file, _, section = path.partition("#")
    return quote(file) + (f"#{quote(section)}" if section else "")


def _one(value: float | None, unit: str, *, sign: str = "") -> str:
    if value is None:
        return "infinite"
    return f"{100 * value:.1f}{sign}" if unit == SHARE else number_text(value)


def _titles(index: Mapping[str, Any]) -> dict[str, str]:
    return {topic["id"]: topic["title"] for topic in index["numbers"]}


def _text(text: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    rows = [
        [
            clause["id"],
            clause["asks"],
            f"{MARKS[clause['degree']]} {clause['degree']}",
            _given(clause, titles),
            clause["needed"],
        ]
        for clause in text["clauses"]
    ]
    table = _table(["clause", "asks", "this run", "by these figures", "still needed"], rows)
    return f"## {escaped(text['title'])}\n\n{escaped(text['edition'])}\n\n{table}"


def _given(clause: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    held = ", ".join(titles[name] for name in clause["numbers"])
    absent = "; ".join(f"{titles[one['numbers']]}: {one['why']}" for one in clause["not_in_this_run"])
    return " ".join(
        part
        for part in (clause["gives"], f"({held})" if held else "", f"Not in this run: {absent}." if absent else "")
        if part
    )


def _topic(topic: Mapping[str, Any]) -> str:
    head = f"### {escaped(topic['title'])}\n\n"
    if not topic["numbers"]:
        return f"{head}None: {escaped(topic['why_none'])}."
    rows = [
        [one["model"], one["what"], value_text(one), interval_text(one), *_basis(one), one["note"]]
        for one in topic["numbers"][:MOST_NUMBERS]
    ]
    table = _table(["model", "number", "value", "interval", "level", "n", "method", "note"], rows)
    more = len(topic["numbers"]) - MOST_NUMBERS
    rest = f"\n\n{more} more stand in index.json." if more > 0 else ""
    return f"{head}{escaped(topic['how'])} See [{topic['where']}]({link(topic['where'])}).\n\n{table}{rest}"


def _basis(number: Mapping[str, Any]) -> list[str]:
    estimate = number["estimate"]
    if estimate is None:
        return ["", "", "counted"]
    return [f"{100 * estimate['level']:.4g} %", f"{estimate['n']:,}", estimate["method"]]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, raw: Sequence[int] = ()) -> str:
    lines = [columns, ["---"] * len(columns)]
    lines += [[cell if place in raw else escaped(cell) for place, cell in enumerate(row)] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
