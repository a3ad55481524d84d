"""Estimates -> tables, figures, one self-contained HTML file. Reads; computes no estimate of its own."""

from advrisk.report.html import arm_shares, flagged_arms, write_report

__all__ = ["arm_shares", "flagged_arms", "write_report"]
