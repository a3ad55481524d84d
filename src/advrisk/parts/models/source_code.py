"""A digest of a model's Python files, as weights and printed architecture do not determine its forward pass."""

import inspect
import sys
from pathlib import Path

from torch import nn

from advrisk.core.digest import digest, digest_bytes

_LIBRARY = "torch"  # whose layers need no digest


def source_digest(factory: str, module: nn.Module) -> str | None:
    """A digest of the files that define `package.module:factory` and the layers of its module.

    None where no file can be read: compiled modules, notebooks.
    """
    package, _, name = factory.partition(":")
    makers = {package, getattr(getattr(sys.modules.get(package), name, None), "__module__", package)}
    layers = {type(layer).__module__ for layer in module.modules()}
    names = {one for one in makers | layers if one.partition(".")[0] != _LIBRARY}
    contents = {one: _content(one) for one in sorted(names)}
    readable = {one: content for one, content in contents.items() if content is not None}
    return digest(readable) if readable else None


def _content(name: str) -> str | None:
    try:
        path = inspect.getsourcefile(sys.modules[name])
        return None if path is None else digest_bytes(Path(path).read_bytes())
    except (KeyError, TypeError, OSError):  # the module has no file
        return None
