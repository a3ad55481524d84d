"""Model sources: where models come from, and the check that they fit the data."""

from advrisk.parts.models import demo, torch_module  # noqa: F401  (their decorators register the sources)
from advrisk.parts.models.checked import checked_model
from advrisk.parts.models.registry import Loaded, models

__all__ = ["Loaded", "checked_model", "models"]
