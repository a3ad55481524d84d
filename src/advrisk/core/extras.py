"""The extras of advrisk: which one installs which package, and the message that names it where a package is missing.

`pyproject.toml` lists the same packages by the names that pip knows; a test compares the two.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from advrisk.core.errors import ExtraError

# Package, by the name that Python imports -> extra. The core reads runs; all else is here.
EXTRAS: Mapping[str, str] = {
    "mlxtend": "run",
    "safetensors": "run",
    "sklearn": "run",
    "torch": "run",
    "botorch": "search",
    "fastapi": "label",
    "sqlalchemy": "label",
    "uvicorn": "label",
    "art": "art",
    "foolbox": "foolbox",
    "alembic": "mlflow",
    "mlflow": "mlflow",
    "psycopg": "postgres",
    "ray": "ray",
}


def needs_extra(what: str, package: str, extra: str = "") -> str:
    """The message that `what` lacks a package: `advrisk run needs torch: pip install "advrisk[run]"`."""
    return f'{what} needs {package}: pip install "advrisk[{extra or EXTRAS[package]}]"'


@contextmanager
def extras_named(what: str) -> Iterator[None]:
    """Raise an ExtraError where a package of an extra is not installed; also a decorator. The outermost names."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name not in EXTRAS:
            raise
        raise ExtraError(needs_extra(what, error.name), name=error.name) from None
