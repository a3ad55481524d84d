"""Code that a study names, `module:name`: whether it may register parts of its own. Its source is read, never run."""

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_REFERENCE = re.compile(r"([A-Za-z_][\w.]*):[A-Za-z_]\w*")


def may_register_parts(value: Any, folder: Path) -> bool:
    """Whether code that is named anywhere in this part of a study imports advrisk, directly or by modules beside it."""
    search = [folder, Path.cwd(), *map(Path, sys.path)]
    waiting = [module for module in _modules(value) if module.partition(".")[0] != "advrisk"]
    read: set[Path] = set()
    while waiting:
        path = _file(waiting.pop(), search)
        if path is None or path in read:  # a missing module is reported when it is loaded
            continue
        read.add(path)
        try:
            imported = set(_imported(ast.parse(path.read_bytes())))
        except (OSError, SyntaxError, ValueError):
            return True
        if any(name.partition(".")[0] == "advrisk" for name in imported):
            return True
        waiting += [name for name in imported if _is_own(name, search)]
    return False


def _modules(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from [match[1]] if (match := _REFERENCE.fullmatch(value)) else []
    elif isinstance(value, Mapping):
        yield from (module for one in value.values() for module in _modules(one))
    elif isinstance(value, list | tuple):
        yield from (module for one in value for module in _modules(one))


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))


def _is_own(module: str, search: Sequence[Path]) -> bool:
    """Whether a module is neither Python's nor an installed package."""
    if module.partition(".")[0] in sys.stdlib_module_names:
        return False
    path = _file(module, search)
    return path is not None and not {"site-packages", "dist-packages"} & set(path.parts)


def _file(module: str, search: Sequence[Path]) -> Path | None:
    inside = Path(*module.split("."))
    paths = (folder / one for folder in search for one in (inside.with_suffix(".py"), inside / "__init__.py"))
    return next((path for path in paths if path.is_file()), None)
