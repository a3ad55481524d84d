"""How far a run is, counted from its ledger."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from advrisk.ledger import Ledger
from advrisk.risk.clean import clean_accuracy, clean_rejection

_PLAN = """
    SELECT count(DISTINCT model) FILTER (origin <> 'surrogate') AS n_models,
           count(DISTINCT model) - n_models AS n_surrogates,
           count(DISTINCT arm) FILTER (origin <> 'surrogate') AS n_arms,
           coalesce(sum(repeats) FILTER (origin IN ('study', 'surrogate')), 0)::BIGINT AS n_pairs
    FROM arms WHERE origin <> 'dropped'
"""
_SAMPLES = "SELECT count(*) AS n, count(DISTINCT shard) AS n_shards FROM samples WHERE split = 'evaluate'"
_DONE = """
    SELECT count(*) AS n FROM cells JOIN arms USING (model, arm, recipe)
    WHERE origin IN ('study', 'surrogate') AND shard IN (SELECT shard FROM samples WHERE split = 'evaluate')
"""
_IMPORTED = "SELECT coalesce(sum(n_samples), 0)::BIGINT AS n FROM cells WHERE accounting = 'imported'"
_PASSES = "SELECT coalesce(sum(n_forward + n_backward + n_judge), 0)::BIGINT AS n FROM outcomes"
_OUTCOMES = "SELECT outcome AS name, count(*) AS n FROM outcomes GROUP BY ALL ORDER BY ALL"
_MESSAGES = """
    SELECT message AS name, count(*) AS n FROM outcomes WHERE outcome IN ('error', 'timeout')
    GROUP BY ALL ORDER BY n DESC LIMIT 20
"""


@dataclass(frozen=True)
class Status:
    """How complete a run is."""

    study: str
    n_models: int
    n_surrogates: int  # models that points were crafted on, and nothing else
    n_arms: int
    n_samples: int
    n_cells: int
    n_cells_expected: int
    outcomes: Mapping[str, int]
    flags: Mapping[str, int]
    messages: Mapping[str, int]
    n_passes: int
    n_imported: int  # rows that somebody else's program made
    clean_accuracy: Mapping[str, float] = field(
        default_factory=dict
    )  # model -> share of clean inputs that are answered rightly
    clean_rejection: Mapping[str, float] = field(
        default_factory=dict
    )  # the same of those refused; empty if none ever is

    @property
    def complete(self) -> bool:
        return self.n_cells == self.n_cells_expected


def run_status(ledger: Ledger, study: str, flags: Mapping[str, int]) -> Status:
    """What a ledger holds of what its study asks for; `flags` counts the cells that are flagged."""

    def row(sql: str) -> dict[str, int]:
        found: dict[str, int] = ledger.query(sql).to_pylist()[0]
        return found

    def tally(sql: str) -> dict[str, int]:
        return {one["name"]: one["n"] for one in ledger.query(sql).to_pylist()}

    plan, samples = row(_PLAN), row(_SAMPLES)
    return Status(
        study=study,
        n_models=plan["n_models"],
        n_surrogates=plan["n_surrogates"],
        n_arms=plan["n_arms"],
        n_samples=samples["n"],
        n_cells=row(_DONE)["n"],
        n_cells_expected=plan["n_pairs"] * samples["n_shards"],
        outcomes=tally(_OUTCOMES),
        flags=flags,
        messages=tally(_MESSAGES),
        n_passes=row(_PASSES)["n"],
        n_imported=row(_IMPORTED)["n"],
        clean_accuracy={model: share.value for model, share in clean_accuracy(ledger).items()},
        clean_rejection={model: share.value for model, share in clean_rejection(ledger).items()},
    )
