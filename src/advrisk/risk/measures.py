"""Measures of a run: numbers about models at clean inputs, such as CLEVER, averaged over samples."""

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.ledger import Ledger

# Of the models that the study assesses, at the samples that it evaluates.
_VALUES = """
    SELECT o.model, m.measure, m.value
    FROM measures m
    JOIN outcomes o ON o.cell = m.cell AND o.sample = m.sample AND o.kind = 'clean'
    JOIN arms a ON a.model = o.model AND a.arm = o.arm AND a.origin = 'study'
    JOIN samples s ON s.sample = m.sample AND s.split = 'evaluate'
    WHERE m.value IS NOT NULL  -- where the measure failed
    ORDER BY o.model, m.measure, m.sample
"""


def read_measures(ledger: Ledger, *, level: float = 0.95) -> dict[str, dict[str, Estimate]]:
    """Model -> measure, by its full name -> the mean over samples; empty where nothing was measured."""
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in ledger.query(_VALUES).to_pylist():
        values[row["model"], row["measure"]].append(row["value"])
    found: dict[str, dict[str, Estimate]] = defaultdict(dict)
    for (model, measure), each in values.items():
        found[model][measure] = mean_estimate(each, level=level)
    return dict(found)


def mean_estimate(values: Sequence[float], *, level: float = 0.95) -> Estimate:
    """Student (1908): the mean with its t interval; of one value alone, nothing is known of how far it may be off."""
    from scipy.special import stdtrit

    each = np.asarray(values, dtype=np.float64)
    if not each.size or not np.isfinite(each).all():
        raise RiskError(f"a mean needs finite values, at least one; found {len(each)}: {each[:5].tolist()}")
    if not 0 < level < 1:
        raise RiskError(f"level must lie between 0 and 1, found {level}")
    mean, n = float(each.mean()), len(each)
    half = float(stdtrit(n - 1, (1 + level) / 2) * each.std(ddof=1) / math.sqrt(n)) if n > 1 else math.inf
    return Estimate(mean, mean - half, mean + half, level, n, "t interval of the mean")
