"""The index of an evidence pack for people: a page and Markdown, made from its JSON and from nothing else."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from advrisk.render.markdown import escaped
from advrisk.report.evidence.headlines import interval_text, value_text

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
        headlines=_headlines(index),
        value_text=value_text,
        interval_text=interval_text,
        link=link,
    )


@cache
def _template() -> "Template":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("advrisk.report.evidence", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    return environment.get_template("evidence.html")


def index_markdown(index: Mapping[str, Any]) -> str:
    """The same as Markdown."""
    parts = [
        f"# Evidence: {escaped(index['run'])}",
        f"**{escaped(index['summary']['text'])}**",
        *(f"**{escaped(caution)}**" for caution in index["cautions"]),
        escaped(index["notice"]),
        *(f"- {MARKS[degree]} *{degree}*: {escaped(meaning)}" for degree, meaning in index["degrees"].items()),
        *(_text(text, index) for text in index["texts"]),
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


def link(path: str) -> str:
    """A path as an address; a section stays one."""
    file, _, section = path.partition("#")
    return quote(file) + (f"#{quote(section)}" if section else "")


def _titles(index: Mapping[str, Any]) -> dict[str, str]:
    return {topic["id"]: topic["title"] for topic in index["numbers"]}


def _headlines(index: Mapping[str, Any]) -> dict[str, str]:
    return {topic["id"]: topic["headline"] for topic in index["numbers"]}


def _text(text: Mapping[str, Any], index: Mapping[str, Any]) -> str:
    rows = [
        [
            clause["id"],
            clause["asks"],
            f"{MARKS[clause['degree']]} {clause['degree']}",
            _given(clause, _titles(index), _headlines(index)),
            clause["needed"],
        ]
        for clause in text["clauses"]
    ]
    table = _table(["clause", "asks", "this run", "by these figures", "still needed"], rows)
    return f"## {escaped(text['title'])}\n\n{escaped(text['edition'])}\n\n{table}"


def _given(clause: Mapping[str, Any], titles: Mapping[str, str], headlines: Mapping[str, str]) -> str:
    held = ". ".join(f"{titles[name]}: {headlines[name]}" for name in clause["numbers"])
    absent = "; ".join(f"{titles[one['numbers']]}: {one['why']}" for one in clause["not_in_this_run"])
    return " ".join(
        part
        for part in (clause["gives"], f"{held}." if held else "", f"Not in this run: {absent}." if absent else "")
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
