"""The index of an evidence pack for people: a page and Markdown, made from its JSON and from nothing else."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from advrisk.render.markdown import escaped
from advrisk.report.evidence.clauses import ANSWERS, CONTRIBUTES, OTHERS
from advrisk.report.evidence.headlines import interval_text, value_text

if TYPE_CHECKING:
    from jinja2 import Template

MOST_NUMBERS = 60  # of a topic, on the page; all stand in index.json
MARKS = {"answers": "●", "contributes": "◐", "left to others": "○"}


def index_page(index: Mapping[str, Any]) -> str:
    """The page: complete in itself, but for links to the files beside it."""
    return _template().render(
        index,
        most=MOST_NUMBERS,
        marks=MARKS,
        supported=supported_texts(index),
        others=others_by_owner(index),
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
        *(_text(text, index) for text in supported_texts(index)),
        "## Left to others",
        *(_owned(owner, clauses) for owner, clauses in others_by_owner(index).items()),
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


def supported_texts(index: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The texts with the clauses that the run answers or contributes to; what it answers comes first."""
    texts = []
    for text in index["texts"]:
        own = [one for one in text["clauses"] if one["degree"] in (ANSWERS, CONTRIBUTES)]
        if own:
            texts.append({**text, "clauses": sorted(own, key=lambda one: one["degree"] != ANSWERS)})
    return sorted(texts, key=lambda text: text["clauses"][0]["degree"] != ANSWERS)


def others_by_owner(index: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The clauses left to others by who can answer them, each with the title of its text."""
    left = [
        {**one, "text": text["title"]} for text in index["texts"] for one in text["clauses"] if one["degree"] == OTHERS
    ]
    groups = {name: [one for one in left if one["owner"] == owner] for owner, name in index["owners"].items()}
    return {name: clauses for name, clauses in groups.items() if clauses}


def clause_names(clauses: Sequence[Mapping[str, Any]]) -> str:
    """`EU AI Act, Article 9: Art. 9(7); ISO/IEC 24029-2: 5.5, 5.6`"""
    by_text: dict[str, list[str]] = {}
    for one in clauses:
        by_text.setdefault(one["text"].partition(":")[0], []).append(one["id"])
    return "; ".join(f"{text}: {', '.join(names)}" for text, names in by_text.items())


def _owned(owner: str, clauses: Sequence[Mapping[str, Any]]) -> str:
    rows = [[one["id"], one["text"], one["asks"], _needed(one)] for one in clauses]
    return f"### For {escaped(owner)}\n\n{_table(['clause', 'text', 'asks', 'needed'], rows)}"


def _needed(clause: Mapping[str, Any]) -> str:
    """What would answer a clause: what the study can add first."""
    added = "; ".join(one["why"] for one in clause["not_in_this_run"])
    return f"{added}. {clause['needed']}" if added else str(clause["needed"])


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
            f"From {index['owners'][clause['owner']]}: {clause['needed']}",
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
