"""Names and sentences from outside, in Markdown: shown as they are, whatever signs they hold."""

import re

from advrisk.core.names import one_line

_UNSEEN = "\u200b"  # a space of no width: a page shows nothing, and what stands around it is no link
_BEGINNING = re.compile(r"[#>=:]|[+-](?!\d)|\d+[.)](?=\s|$)")  # of a heading, a quote, a list, a rule
# Addresses, mentions, and numbers of issues become links on many pages, even behind a backslash or as an entity.
_LINKED = re.compile(
    r"(?i)(?<=http)(?=s?:)|(?<=ftp)(?=:)|(?<=mailto)(?=:)|(?<=xmpp)(?=:)|(?<=www)(?=\.)|(?<=[@#])(?=\w)|(?<=\bgh)(?=-\d)"
)
_SPECIAL = re.compile(r"[\\`*_{}\[\]#|~$&<>]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def escaped(text: object) -> str:
    """Text that Markdown, and the HTML it allows, show as it is: on one line, no link, no mention, no command."""
    flat = _flat(text)
    if _BEGINNING.match(flat):
        flat = f"{_UNSEEN}{flat}"
    return _SPECIAL.sub(lambda found: _ENTITIES.get(found[0], f"\\{found[0]}"), _LINKED.sub(_UNSEEN, flat))


def code(name: str, *, cell: bool = False) -> str:
    """A name as code, between more backticks than it holds in a row; within a `cell` of a table `|` needs a mark."""
    flat = _flat(name).replace("|", "\\|" if cell else "|")
    fence = "`" * (max((len(run) for run in re.findall("`+", flat)), default=0) + 1)
    space = " " if "`" in flat else ""
    return f"{fence}{space}{flat}{space}{fence}"


def _flat(text: object) -> str:
    return " ".join(one_line(str(text)).split())
