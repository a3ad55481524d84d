"""What models make of clean inputs: how many they have right, and how many they refuse to answer."""

from advrisk.core.estimate import Estimate
from advrisk.ledger import Ledger
from advrisk.risk.proportion import proportion

# Of all samples to be evaluated, also those that an attack gave no verdict on. What is refused says no class.
CLEAN_ROWS = """
    SELECT o.model, o.sample, coalesce(o.prediction = s.label, false) AS is_right, o.outcome = 'rejected' AS is_refused
    FROM outcomes o JOIN samples s USING (sample)
    WHERE o.kind = 'clean' AND s.split = 'evaluate' AND s.label IS NOT NULL
      AND (o.prediction IS NOT NULL OR o.outcome = 'rejected')
"""
_CLEAN = f"""
    SELECT model, count(*) AS n, count(*) FILTER (is_right) AS right_ones, count(*) FILTER (is_refused) AS refused
    FROM ({CLEAN_ROWS}) GROUP BY model ORDER BY model
"""
_REFUSING = "SELECT DISTINCT model::VARCHAR AS model FROM outcomes WHERE outcome = 'rejected' OR n_rejected > 0"


def clean_accuracy(ledger: Ledger, *, level: float = 0.95) -> dict[str, Estimate]:
    """Model -> share of clean inputs that it answers rightly; one that it refuses to answer is not among them."""
    rows = ledger.query(_CLEAN).to_pylist()
    return {row["model"]: proportion(row["right_ones"], row["n"], level=level) for row in rows}


def clean_rejection(ledger: Ledger, *, level: float = 0.95) -> dict[str, Estimate]:
    """Model -> share of clean inputs that it refuses to answer; of no model, if none of them ever refuses anything."""
    if not len(ledger.query(_REFUSING)):
        return {}
    rows = ledger.query(_CLEAN).to_pylist()
    return {row["model"]: proportion(row["refused"], row["n"], level=level) for row in rows}


def on_rejection(rejection: dict[str, Estimate]) -> list[str]:
    """In words, of the models that refuse clean inputs, if any do: what is refused costs nothing, and is no use."""
    some = {model: share for model, share in rejection.items() if share.value > 0}
    if not some:
        return []
    shares = ", ".join(
        f"{model} {share.value:.1%} [{share.low:.1%}, {share.high:.1%}]" for model, share in some.items()
    )
    return [
        f"Clean inputs that are refused: {shares}. A refused input is neither right nor wrong, and no attack's "
        "success; its loss is 0 but under the loss `rejected`."
    ]
