"""The small runs of the gate's tests."""

from tests.unit.assess.gate.conftest import make_run

__all__ = ["make_run"]
