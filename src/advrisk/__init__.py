"""advrisk: how risky is it to deploy this model when somebody, or the weather, perturbs its inputs?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from advrisk.core.version import VERSION

if TYPE_CHECKING:
    from advrisk.api import Run, Study, train
    from advrisk.api.evasion import fit_evasion
    from advrisk.core import Estimate
    from advrisk.ledger import Ledger

__version__ = VERSION
__all__ = ["Estimate", "Ledger", "Run", "Study", "fit_evasion", "train"]

# Imported when first used, so that `import advrisk` costs nothing.
_HOME = {
    "Estimate": "core",
    "Ledger": "ledger",
    "Run": "api",
    "Study": "api",
    "fit_evasion": "api.evasion",
    "train": "api",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"advrisk.{_HOME[name]}"), name)
    raise AttributeError(f"module 'advrisk' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
