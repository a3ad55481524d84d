"""YAML with the line of every field, so that later error messages can name file and line.

Nothing here knows studies. Only plain YAML is read: no object tags, no duplicate keys,
and limits on size, nesting and expanded aliases.
"""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from advrisk.core.errors import AdvriskError, StudyError
from advrisk.core.files import regular

Loc = tuple[str | int, ...]

MAX_BYTES = 2_000_000
MAX_DEPTH = 40
MAX_NODES = 200_000

_YAML = "tag:yaml.org,2002:"
_TYPED_TAGS = {_YAML + kind for kind in ("int", "float", "bool", "timestamp")}
_PLAIN_TAGS: dict[type[yaml.Node], set[str]] = {
    yaml.ScalarNode: _TYPED_TAGS | {_YAML + kind for kind in ("str", "null", "merge", "value")},
    yaml.SequenceNode: {_YAML + "seq"},
    yaml.MappingNode: {_YAML + "map"},
}


@dataclass(frozen=True)
class Source:
    """The origin of parsed values: a file (or `name`, for a dict), and a line for each field."""

    path: Path | None = None
    lines: dict[Loc, int] = field(default_factory=dict)
    name: str = "<study>"

    @property
    def folder(self) -> Path:
        """The folder for relative paths in the file."""
        return self.path.parent if self.path else Path.cwd()

    def resolve(self, path: str) -> Path:
        """The absolute path of a path in the file."""
        return (self.folder / Path(path).expanduser()).resolve()

    def error(self, loc: Loc, message: str) -> StudyError:
        """A StudyError that names file, line and field."""
        return self.error_at(loc, f"{field_name(loc)}: {message}" if loc else message)

    def error_at(self, loc: Loc, message: str) -> StudyError:
        """A StudyError that names file and line; the message names the field."""
        name = str(self.path) if self.path else self.name
        line = self._line(loc)
        places = [*([name] if name else []), *([str(line)] if line else [])]
        error = StudyError(f"{':'.join(places)}: {message}" if places else message)
        error.line = line
        return error

    @contextmanager
    def at(self, loc: Loc) -> Iterator[None]:
        """Give an error that is raised inside the file, line and field."""
        try:
            yield
        except AdvriskError as error:
            raise self.error(loc, str(error)) from None

    def _line(self, loc: Loc) -> int | None:
        while loc and loc not in self.lines:  # a missing field is blamed on its parent
            loc = loc[:-1]
        return self.lines.get(loc)


OPTIONS = Source(name="")  # of a command or a call: a message names the option alone


def field_name(loc: Loc) -> str:
    """`("arms", 1, "eps")` as `arms[1].eps`."""
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read_yaml(path: Path) -> tuple[dict[str, Any], Source]:
    """The mapping in a YAML file, and the line of each of its fields."""
    source = Source(path)
    node = _compose(path, _read_text(path))
    if not isinstance(node, yaml.MappingNode):
        raise source.error((), "must be a mapping of keys to values; `advrisk init` writes an example")
    try:
        for count, (loc, line) in enumerate(_positions(node, (), path)):
            source.lines[loc] = line
            if count > MAX_NODES:
                raise source.error((), f"more than {MAX_NODES} values once its aliases are expanded")
        data = yaml.SafeLoader("").construct_document(node)
    except yaml.YAMLError as error:
        raise StudyError(_yaml_message(path, error)) from None
    return data, source


def _read_text(path: Path) -> str:
    try:
        if regular(path).stat().st_size > MAX_BYTES:
            raise StudyError(f"{path}: larger than {MAX_BYTES} bytes; this is not a study file")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise StudyError(f"{path}: there is no such file; `advrisk init {path}` writes a starter study") from None
    except IsADirectoryError:
        raise StudyError(f"{path}: is a folder; name a YAML file") from None
    except UnicodeDecodeError as error:
        raise StudyError(f"{path}: is not UTF-8 text ({error.reason} at byte {error.start})") from None
    except OSError as error:
        raise StudyError(f"{path}: {error.strerror}") from None


def _compose(path: Path, text: str) -> yaml.Node | None:
    try:
        node: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
        return node
    except yaml.YAMLError as error:
        raise StudyError(_yaml_message(path, error)) from None
    except RecursionError:
        raise StudyError(f"{path}: nested deeper than {MAX_DEPTH} levels") from None


def _yaml_message(path: Path, error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        mark = error.problem_mark
        return f"{path}:{mark.line + 1}: not valid YAML: {error.problem} (column {mark.column + 1})"
    return f"{path}: not valid YAML: {error}"


def _positions(node: yaml.Node, loc: Loc, path: Path) -> Iterator[tuple[Loc, int]]:
    line = node.start_mark.line + 1
    if len(loc) > MAX_DEPTH:
        raise StudyError(f"{path}:{line}: nested deeper than {MAX_DEPTH} levels")
    _refuse_odd(node, loc, path)
    yield loc, line
    if isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            yield from _positions(child, (*loc, index), path)
    elif isinstance(node, yaml.MappingNode):
        yield from _mapping_positions(node, loc, path)


def _refuse_odd(node: yaml.Node, loc: Loc, path: Path) -> None:
    """Refuse values that are not plain: tags beyond YAML's own, and invalid dates or numbers."""
    position = f"{path}:{node.start_mark.line + 1}: {field_name(loc)}"
    if node.tag not in _PLAIN_TAGS[type(node)]:
        raise StudyError(f"{position}: the tag {node.tag} is not allowed; write a plain value")
    if node.tag in _TYPED_TAGS:
        try:
            str(yaml.constructor.SafeConstructor().construct_object(node))  # a message could not print what this cannot
        except (AttributeError, LookupError, ValueError):  # 2024-13-45, 0b_, !!bool maybe, 0xfff… of 5,000 digits
            kind = node.tag.rpartition(":")[2]
            problem = f"found {node.value[:40]!r}, which cannot be read as {kind}"
            raise StudyError(f"{position}: {problem}; quote it if text is meant") from None


def _mapping_positions(node: yaml.MappingNode, loc: Loc, path: Path) -> Iterator[tuple[Loc, int]]:
    names: set[Hashable] = set()
    for key, child in node.value:
        name = key.value
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise StudyError(f"{path}:{line}: {field_name(loc)}: a key must be plain text")
        if name in names:
            raise StudyError(f"{path}:{line}: {field_name((*loc, name))}: found this key twice; remove one")
        names.add(name)
        _refuse_odd(key, (*loc, name), path)
        if key.tag == f"{_YAML}bool":  # on, off, yes, no, true, false
            problem = f"YAML reads the key {name} as a truth value; quote it: '{name}'"
            raise StudyError(f"{path}:{line}: {field_name((*loc, name))}: {problem}")
        yield from _positions(child, (*loc, name), path)
        yield (*loc, name), line
