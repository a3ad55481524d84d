"""The time that is written into files; `SOURCE_DATE_EPOCH` fixes it, so that the same run gives the same bytes."""

import os
from datetime import UTC, datetime

from advrisk.core.errors import RunError

VARIABLE = "SOURCE_DATE_EPOCH"  # https://reproducible-builds.org/specs/source-date-epoch/


def time_of_making() -> datetime:
    """Now, or the seconds since 1970 that the environment names."""
    stated = os.environ.get(VARIABLE)
    if not stated:
        return datetime.now(UTC)
    try:
        return datetime.fromtimestamp(int(stated), UTC)
    except (ValueError, OverflowError, OSError):
        raise RunError(
            f"{VARIABLE} must be whole seconds since 1970, found {stated!r}; set it so, or not at all"
        ) from None
