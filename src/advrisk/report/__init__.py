"""Estimates -> tables, figures, one self-contained HTML file. Reads; computes no estimate of its own."""

from advrisk.assess import built_in as _registered  # noqa: F401  registers the questions
from advrisk.assess.findings import Findings
from advrisk.report.html import arm_shares, write_report

__all__ = ["Findings", "arm_shares", "write_report"]
