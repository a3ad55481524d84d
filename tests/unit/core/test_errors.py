"""The error tree is the one drawn atop the module."""

import builtins
import inspect
import re

import pytest

from advrisk.core import errors
from advrisk.core.errors import AdvriskError

DRAWN = dict(re.findall(r"[├└]── (\w+)\s+\((\w+)\)", errors.__doc__ or ""))
DEFINED = {name: kind for name, kind in inspect.getmembers(errors, inspect.isclass) if kind is not AdvriskError}


def test_the_drawing_shows_every_error_and_no_other() -> None:
    assert set(DRAWN) == set(DEFINED)
    assert {"StudyError", "RegistryError", "ModelError", "RunError", "LedgerError", "RiskError"} <= set(DRAWN)


@pytest.mark.parametrize("name", sorted(DEFINED))
def test_each_error_is_ours_and_the_builtin_it_is_drawn_with(name: str) -> None:
    assert DEFINED[name].__bases__ == (AdvriskError, getattr(builtins, DRAWN[name]))
    assert DEFINED[name].__doc__


def test_our_errors_are_ordinary_exceptions() -> None:
    assert AdvriskError.__bases__ == (Exception,)
