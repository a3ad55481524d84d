"""The language of requirements: `damage.hardened <= 0.2`, `broken.new at 8/255 <= broken.old + 2 %`.

    requirement = term [op number | op term [("+" | "-") number]] ["with caveats"]
    term        = quantity ["." name] ["[" name {"," name} "]"] ["at" number]
    op          = "<=" | "<" | ">=" | ">" | "=="
    number      = 0.2 | 1e-3 | 8/255 | 20 %
    name        = any text without spaces and the signs above, or "in quotes", or * for all models

Nothing here knows a run: `study.ground` checks names of models.
"""

import re
from dataclasses import dataclass, replace
from typing import Literal

from advrisk.core.errors import StudyError
from advrisk.core.names import did_you_mean
from advrisk.core.numbers import parse_number
from advrisk.study.questions import Quantity
from advrisk.study.registered import CERTIFIED, quantities, quantity_named

Op = Literal["<=", "<", ">=", ">", "=="]
EVERY = "*"
_LONGEST = 1000  # characters of a requirement

_QUANTITY = re.compile(r"[^\W\d]\w*(-\w+)*")
_QUOTED = re.compile(r'"((?:[^"]|"")*)"|\'((?:[^\']|\'\')*)\'')
_BARE = re.compile(r"[^\s\"'<>=≤≥\[\],+*%]+")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?:\s*/\s*\d+(?:\.\d+)?)?(?![\w.])(?:\s*%)?")
_OP = re.compile(r"<=|>=|==|<|>|≤|≥")
_SAME = {"≤": "<=", "≥": ">="}
_WITH_CAVEATS = re.compile(r"with\s+caveats\b")


@dataclass(frozen=True)
class Term:
    """A quantity of something: `broken.hardened at 8/255`."""

    quantity: str
    subject: str | None = None  # the name after the dot; None without one, or for `*`
    every: bool = False  # `*`: every model separately
    inside: tuple[str, ...] = ()
    size: float | None = None
    size_text: str = ""

    @property
    def what(self) -> Quantity:
        quantity = quantity_named(self.quantity)
        assert quantity is not None  # the reader refused other names
        return quantity

    def __str__(self) -> str:
        name = "" if self.subject is None else quoted(self.subject)
        inside = [quoted(one) for one in self.inside]
        if self.every and self.what.of == "detector":
            inside = [EVERY]
        elif self.every:
            name = EVERY
        return (
            self.quantity
            + (f".{name}" if name else "")
            + (f"[{', '.join(inside)}]" if inside else "")
            + (f" at {self.size_text}" if self.size is not None else "")
        )

    def named(self, model: str) -> "Term":
        """The same term for one model instead of every model."""
        if not self.every:
            return self
        if self.what.of == "detector":
            return replace(self, every=False, inside=(model,))
        return replace(self, every=False, subject=model)


@dataclass(frozen=True)
class Requirement:
    """A term that must be at most, or at least, a limit; with `right`, another term and a margin."""

    left: Term
    op: Op | None = None  # None: yes or no
    limit: float = 0.0  # with `right`: the margin
    limit_text: str = ""
    right: Term | None = None
    with_caveats: bool = False  # of certificates: caveats do not fail it

    def __str__(self) -> str:
        return f"{self._plain} with caveats" if self.with_caveats else self._plain

    @property
    def _plain(self) -> str:
        if self.op is None:
            return str(self.left)
        if self.right is None:
            return f"{self.left} {self.op} {self.limit_text}"
        margin = f" {'-' if self.limit < 0 else '+'} {self.limit_text}" if self.limit else ""
        return f"{self.left} {self.op} {self.right}{margin}"

    @property
    def terms(self) -> tuple[Term, ...]:
        return (self.left,) if self.right is None else (self.left, self.right)

    def named(self, model: str) -> "Requirement":
        """The same requirement for one model instead of every model."""
        return replace(self, left=self.left.named(model))


def quoted(name: str) -> str:
    """A name, in quotes if it has signs with another meaning."""
    if _BARE.fullmatch(name):
        return name
    mark = "'" if '"' in name and "'" not in name else '"'
    return f"{mark}{name.replace(mark, mark + mark)}{mark}"


def parse_requirement(text: str) -> Requirement:
    """Parse a requirement; StudyError with the position of a mistake."""
    if not isinstance(text, str):
        raise StudyError(f"a requirement is text, as in 'damage.hardened <= 0.2'; found {text!r}")
    if len(text) > _LONGEST:
        raise StudyError(f"a requirement has at most {_LONGEST} characters, found {len(text)}")
    return _Reader(text).requirement()


class _Reader:
    """A requirement's text, and the position of the parser."""

    def __init__(self, text: str) -> None:
        self.text, self._at = text, 0

    def requirement(self) -> Requirement:
        left = self._term()
        if left.what.kind == "yes" and (with_caveats := self._with_caveats(left)):
            self._end()
            return Requirement(left, with_caveats=with_caveats)
        op = self._op()
        if op is None:
            if left.what.kind != "yes":
                raise self._error("a limit is missing, as in `<= 0.2`")
            return Requirement(left)
        if left.what.kind == "yes":
            raise self._error(f"{left.quantity} is a yes or no and takes no limit; write `{left}` alone", f"`{op}`")
        number = self._number()
        if number is None:
            return self._comparison(left, op)
        with_caveats = self._with_caveats(left)
        self._end()
        self._check_limit(left, op, *number)
        return Requirement(left, op, *number, with_caveats=with_caveats)

    def _with_caveats(self, left: Term) -> bool:
        if not self._match(_WITH_CAVEATS):
            return False
        if left.quantity not in CERTIFIED:
            raise self._error(f"only certificates have caveats, and {left.quantity} is none", "`with caveats`")
        return True

    def _comparison(self, left: Term, op: Op) -> Requirement:
        if not _QUANTITY.match(self._remaining):
            raise self._error("write a number, or the same quantity of another model")
        right = self._term()
        sign = self._match(re.compile(r"[-+]"))
        number = self._number() if sign else (0.0, "0")
        if number is None:
            raise self._error(f"a margin is missing after `{sign}`")
        self._end()
        if right.size is None and left.size is not None:
            right = replace(right, size=left.size, size_text=left.size_text)
        self._check_comparison(left, op, right)
        if number[0] < 0:
            raise self._error("a margin has one sign", f"`{sign} {number[1]}`")
        if left.what.kind == "share" and number[0] > 1:
            raise self._error("a margin of a share lies between 0 and 1; write 2 % or 0.02", number[1])
        return Requirement(left, op, -number[0] if sign == "-" else number[0], number[1], right)

    def _term(self) -> Term:
        name = self._match(_QUANTITY)
        what = quantity_named(name) if name else None
        if name is None or what is None:
            hint = did_you_mean(name, quantities()) if name else f"known: {', '.join(quantities())}"
            raise self._error(f"unknown quantity; {hint}", repr(name) if name else None)
        subject, every = None, False
        if self.text.startswith(".", self._at):
            self._at += 1
            subject, every = self._name(of=what.of)
        elif what.of != "anything":
            raise self._error(f"{name} needs a {what.of}: write {name}.NAME")
        inside = self._inside(name, what)
        if what.of == "detector" and inside == ((EVERY, True),):
            inside, every = (), True
        if any(is_every for _, is_every in inside):
            raise self._error(f"found `*` in the brackets of {name}; name the {what.inside[0]}", "`*`")
        size, size_text = self._size(name, what)
        return Term(name, subject, every, tuple(one for one, _ in inside), size, size_text)

    def _name(self, *, of: str) -> tuple[str | None, bool]:
        """A name and False, or None and True for all models."""
        if self._take(EVERY):
            if of == "detector":
                raise self._error("`*` stands for all models, not for all detectors; name one", "`*`")
            return None, True
        return self._plain_name(), False

    def _plain_name(self) -> str:
        match = _QUOTED.match(self.text, self._at)
        if match:
            self._at = match.end()
            return (match[1] or "").replace('""', '"') or (match[2] or "").replace("''", "'")
        if self.text[self._at : self._at + 1] in ("'", '"'):
            raise self._error("a quote is not closed; write a quote within quotes twice")
        bare = _BARE.match(self.text, self._at)
        if not bare:
            raise self._error("a name is missing; put it in quotes if it has spaces or signs")
        self._at = bare.end()
        return bare[0]

    def _inside(self, name: str, what: Quantity) -> tuple[tuple[str, bool], ...]:
        if not self._take("["):
            return ()
        names: list[tuple[str, bool]] = []
        while not names or self._take(","):
            self._skip()
            names.append((EVERY, True) if self._take(EVERY) else (self._plain_name(), False))
        if not self._take("]"):
            raise self._error("a `]` is missing")
        if len(names) > len(what.inside):
            allowed = f"{name}.NAME[{', '.join(what.inside)}]" if what.inside else f"{name} takes no brackets"
            raise self._error(f"too many names in brackets: {allowed}", f"{len(names)}")
        return tuple(names)

    def _size(self, name: str, what: Quantity) -> tuple[float | None, str]:
        if not self._match(re.compile(r"at\b")):
            return None, ""
        if what.size == "none":
            raise self._error(f"{name} has no size", "`at`")
        number = self._number()
        if number is None or number[0] < 0:
            raise self._error("a size, a number of at least 0, is missing after `at`")
        return number

    def _op(self) -> Op | None:
        op = self._match(_OP)
        if op is None and self._remaining:
            raise self._error("write one of <=, <, >=, >, or == for counts")
        return None if op is None else _SAME.get(op, op)  # type: ignore[return-value]

    def _number(self) -> tuple[float, str] | None:
        written = self._match(_NUMBER)
        if written is None:
            return None
        share = written.endswith("%")
        try:
            value = parse_number(written.rstrip("% ") if share else written)
        except ValueError as error:
            raise self._error(str(error)) from None
        return (value / 100 if share else value), re.sub(r"\s*%", " %", written)

    def _check_limit(self, left: Term, op: Op, limit: float, written: str) -> None:
        if left.what.size == "needed" and left.size is None:
            raise self._error(f"{left.quantity} needs a size: write `{left} at 8/255 {op} {written}`", f"`{left}`")
        if left.what.kind == "share" and not 0 <= limit <= 1:
            raise self._error(f"{left.quantity} is a share between 0 and 1; write 20 % or 0.2", written)
        if left.what.kind == "count" and (limit < 0 or limit != int(limit) or written.endswith("%")):
            raise self._error(f"{left.quantity} is a count; write a whole number of at least 0", written)
        if op == "==" and left.what.kind != "count":
            raise self._error(f"no estimate equals a number exactly; use <= or >= for {left.quantity}", "`==`")

    def _check_comparison(self, left: Term, op: Op, right: Term) -> None:
        if left.quantity != right.quantity:
            raise self._error(
                f"both sides need the same quantity; found {left.quantity} and {right.quantity}",
                right.quantity,
            )
        if not left.what.compared:
            raise self._error(f"{left.quantity} cannot be compared between models; write a number", f"`{right}`")
        if op == "==":
            raise self._error("no two estimates are equal exactly; use <= or >=", "`==`")
        if right.every:
            raise self._error("`*` is allowed on the left only; name one model on the right", f"`{right}`")
        if (left.inside, left.size) != (right.inside or left.inside, right.size):
            raise self._error("both sides need the same size, scenario and loss", f"`{left}` and `{right}`")
        if left.what.size == "needed" and left.size is None:
            raise self._error(f"{left.quantity} needs a size: write `{left} at 8/255`", f"`{left}`")
        if left.subject == right.subject and not left.every:
            raise self._error("both sides name the same model", f"`{right}`")

    def _end(self) -> None:
        if self._remaining:
            raise self._error("the requirement should end here")

    @property
    def _remaining(self) -> str:
        return self.text[self._at :].strip()

    def _skip(self) -> None:
        while self._at < len(self.text) and self.text[self._at].isspace():
            self._at += 1

    def _take(self, sign: str) -> bool:
        start = self._at
        self._skip()
        if self.text.startswith(sign, self._at):
            self._at += len(sign)
            return True
        self._at = start
        return False

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        self._skip()
        match = pattern.match(self.text, self._at)
        if match is None:
            return None
        self._at = match.end()
        return match[0]

    def _error(self, message: str, text: str | None = None) -> StudyError:
        """An error with the whole requirement and the text at which parsing stopped."""
        stopped_at = text if text is not None else repr(self._remaining[:40]) if self._remaining else "its end"
        written = self.text if len(self.text) <= 80 else f"{self.text[:77]}…"
        ending = "" if "found" in message else f"; found {stopped_at}"
        return StudyError(f"{written!r}: {message}{ending}")
