"""Every error a user can cause, as one tree.

    AdvriskError
    ├── StudyError      (ValueError)    the study or recipe file asks for something impossible
    ├── DataError       (ValueError)    the samples are not what the study says they are
    ├── RegistryError   (LookupError)   a name that no registered part has
    ├── ModelError      (ValueError)    a model cannot be loaded, or does not fit the data
    ├── RunError        (RuntimeError)  a run cannot start, or cannot go on
    ├── LedgerError     (RuntimeError)  a ledger cannot be read or written
    ├── RiskError       (ValueError)    numbers from which no estimate can be made
    └── ExtraError      (ModuleNotFoundError)  a package that an extra of advrisk installs is missing

A message says what was found, where, and what to do about it. The command line prints it
without a traceback and exits with 2; any other exception is a bug and shows its traceback.
"""


class AdvriskError(Exception):
    """Anything that the user can put right.

    `line` is that of the study file, where the error names one; `parts` are the errors that this one lists.
    """

    line: int | None = None
    parts: "tuple[AdvriskError, ...]" = ()


class StudyError(AdvriskError, ValueError):
    """The study or recipe file asks for something impossible."""


class DataError(AdvriskError, ValueError):
    """The samples are not what the study says they are."""


class RegistryError(AdvriskError, LookupError):
    """A name that no registered part has."""


class ModelError(AdvriskError, ValueError):
    """A model cannot be loaded, or does not fit the data."""


class RunError(AdvriskError, RuntimeError):
    """A run cannot start, or cannot go on."""


class LedgerError(AdvriskError, RuntimeError):
    """A ledger cannot be read or written."""


class RiskError(AdvriskError, ValueError):
    """Numbers from which no estimate can be made."""


class ExtraError(AdvriskError, ModuleNotFoundError):
    """A package that an extra of advrisk installs is missing."""
