"""Collecting mistakes, so that one run reports all of them."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from advrisk.core.errors import AdvriskError, StudyError
from advrisk.core.names import counted

MOST = 20  # mistakes that one message lists


class Mistakes:
    """The mistakes of one study or recipe: each check runs within `collect`; `refuse` raises all of them."""

    def __init__(self) -> None:
        self._errors: list[AdvriskError] = []

    def __bool__(self) -> bool:
        return bool(self._errors)

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Keep an error that is raised inside instead of passing it on."""
        try:
            yield
        except AdvriskError as error:
            self._errors.append(error)

    def add(self, *errors: AdvriskError) -> None:
        """Keep errors that nothing has raised yet."""
        self._errors += errors

    def refuse(self) -> None:
        """Raise what was collected as one error; do nothing where nothing was."""
        if self._errors:
            raise joined(self._errors) from None


def joined(errors: Iterable[AdvriskError]) -> AdvriskError:
    """Several errors as one: a line for each, in the order of the file."""
    single = [part for error in errors for part in error.parts or (error,)]
    if len(single) == 1:
        return single[0]
    ordered = sorted(single, key=lambda error: error.line or 0)
    kinds = {type(error) for error in ordered}
    found = (kinds.pop() if len(kinds) == 1 else StudyError)(_listed(list(dict.fromkeys(map(str, ordered)))))
    found.line, found.parts = ordered[0].line, tuple(ordered)
    return found


def _listed(messages: Sequence[str]) -> str:
    n_more = len(messages) - MOST
    return "\n".join([*messages[:MOST], *([f"… and {counted(n_more, 'more mistake')}"] if n_more > 0 else [])])
