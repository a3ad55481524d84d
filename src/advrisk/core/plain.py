"""Values for JSON as the standard has it: no NaN, no infinity, no arrays, no keys but text."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """The same value in dicts, lists, text and numbers; what JSON has no number for becomes None."""
    if isinstance(value, Mapping):
        return {str(key): plain(held) for key, held in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(held) for held in value]
    if isinstance(value, set | frozenset):
        return [plain(held) for held in sorted(value)]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


def json_text(value: Any) -> str:
    """A value as strict JSON, for people and machines."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False)
