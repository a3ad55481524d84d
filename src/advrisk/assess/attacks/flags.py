"""Reasons not to trust the cells of a run: the flags of their rows, and black-box attacks that did better."""

from collections.abc import Sequence
from typing import Any

from advrisk.assess.attacks.black_box import Lead, black_box_leads, has_black_box
from advrisk.assess.context import Context
from advrisk.assess.damage.distances import arm_distances
from advrisk.core.errors import LedgerError, RiskError
from advrisk.core.flags import BLACK_BOX
from advrisk.ledger import EVALUATED_CELL, Ledger

_FLAGS = f"""
    SELECT flag, c.model, c.arm, count(*) AS n_flagged, any_value(n.n) AS n_cells,
           avg(seen ORDER BY seen) AS share -- in one order, or the last digit depends on how the work was shared
    FROM (SELECT *, CASE flag WHEN 'zero-gradients' THEN zero_gradients WHEN 'not-increasing' THEN not_increasing
                              WHEN 'still-gaining' THEN still_gaining WHEN 'no-start' THEN no_start END AS seen
          FROM (SELECT *, unnest(flags) AS flag FROM cells WHERE {EVALUATED_CELL})) c
    JOIN (SELECT model, arm, count(*) AS n FROM cells WHERE {EVALUATED_CELL} GROUP BY ALL) n
      ON c.model = n.model AND c.arm = n.arm
    GROUP BY ALL ORDER BY ALL
"""


def run_flags(context: Context) -> list[dict[str, Any]]:
    """The flags of a run, by flag, model and arm."""
    return flagged_arms(context.ledger, _leads(context))


def _leads(context: Context) -> tuple[Lead, ...]:
    """Black-box attacks that outperformed those with gradients, if arms can be compared."""
    if not has_black_box(context.ledger):
        return ()
    try:
        distances = arm_distances(context.ledger, norm=context.norm, arms=context.arms)
        return black_box_leads(context.ledger, distances)
    except (RiskError, LedgerError):  # not finished, or several norms and no study to say which
        return ()


def flagged_arms(ledger: Ledger, leads: Sequence[Lead] = ()) -> list[dict[str, Any]]:
    """For each flag, model and arm: how many cells are flagged, and the mean share seen in them, if there is one.

    A black-box arm that did better than arms with gradients (`leads`) did so in all its cells together.
    """
    rows: list[dict[str, Any]] = ledger.query(_FLAGS).to_pylist()
    cells = ledger.query(f"SELECT model, arm, count(*) AS n FROM cells WHERE {EVALUATED_CELL} GROUP BY ALL").to_pylist()
    n_cells = {(row["model"], row["arm"]): row["n"] for row in cells}
    for lead in leads:
        n = n_cells[lead.model, lead.arm]
        named = {"flag": BLACK_BOX, "model": lead.model, "arm": lead.arm}
        rows.append(named | {"n_flagged": n, "n_cells": n, "share": lead.share})
    return rows
