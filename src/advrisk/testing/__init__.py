"""The public kit for people who write their own parts: toy models, and checks that a part keeps its promises.

Nothing in the library imports this package.
"""

from advrisk.testing.conformance import (
    ConformanceError,
    check_attack,
    check_corruption,
    check_model,
)
from advrisk.testing.defences import check_defence
from advrisk.testing.detectors import check_detector

__all__ = ["ConformanceError", "check_attack", "check_corruption", "check_defence", "check_detector", "check_model"]
