"""Measures of a run: numbers about models at clean inputs, such as CLEVER, averaged over samples."""

from collections import defaultdict
from collections.abc import Sequence

from advrisk.core.estimate import Estimate
from advrisk.ledger import Ledger
from advrisk.risk.proportion import mean_estimate

# Of the models that the study assesses, at the samples that it evaluates.
_VALUES = """
    SELECT o.model, m.measure, m.value, s.weight
    FROM measures m
    JOIN outcomes o ON o.cell = m.cell AND o.sample = m.sample AND o.kind = 'clean'
    JOIN arms a ON a.model = o.model AND a.arm = o.arm AND a.origin = 'study'
    JOIN samples s ON s.sample = m.sample AND s.split = 'evaluate'
    WHERE m.value IS NOT NULL  -- where the measure failed
    ORDER BY o.model, m.measure, m.sample
"""


def read_measures(
    ledger: Ledger, *, models: Sequence[str] | None = None, level: float = 0.95
) -> dict[str, dict[str, Estimate]]:
    """Model -> full name of a measure -> its weighted mean over samples; empty without measures.

    `models` selects some; by default all.
    """
    rows: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for row in ledger.query(_VALUES).to_pylist():
        if models is None or row["model"] in models:
            rows[row["model"], row["measure"]].append((row["value"], 1.0 if row["weight"] is None else row["weight"]))
    by_model: dict[str, dict[str, Estimate]] = defaultdict(dict)
    for (model, measure), each in rows.items():
        if any(weight > 0 for _, weight in each):
            values, weights = zip(*each, strict=True)
            by_model[model][measure] = mean_estimate(values, weights, level=level)
    return dict(by_model)
