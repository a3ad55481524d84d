"""The small runs of the gate's tests."""

from tests.unit.risk.gate.conftest import make_run

__all__ = ["make_run"]
