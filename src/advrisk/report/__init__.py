"""Estimates -> tables, figures, one self-contained HTML file. Reads; computes no estimate of its own."""

from advrisk.report.html import arm_shares, write_report

__all__ = ["arm_shares", "write_report"]
