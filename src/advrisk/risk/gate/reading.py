"""What clean inputs are answered, sample by sample, and what requirements may speak of in a run; from its ledger."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from advrisk.core.names import matches
from advrisk.ledger import Ledger
from advrisk.risk.clean import CLEAN_ROWS
from advrisk.risk.gate.measured import Flags

_MODELS = """
    SELECT DISTINCT model FROM arms WHERE origin IN ('study', 'import') AND kind IS DISTINCT FROM 'clean' ORDER BY model
"""
_LABELLED = "SELECT sample FROM samples WHERE split = 'evaluate' AND label IS NOT NULL ORDER BY sample"
_ATTACKS = """
    SELECT DISTINCT arm, norm, eps FROM arms
    WHERE origin IN ('study', 'import') AND kind = 'attack' AND norm = $norm ORDER BY ALL
"""
_ERRORS = """
    SELECT model::VARCHAR AS model, count(*) FILTER (outcome IN ('error', 'timeout')) AS n, count(*) AS n_rows
    FROM outcomes JOIN samples USING (sample) WHERE split = 'evaluate' GROUP BY ALL
"""


@dataclass(frozen=True, eq=False)
class CleanAnswers:
    """What each model makes of the labelled samples to be evaluated; nothing is known of those that are not `told`."""

    samples: tuple[str, ...]
    right: Mapping[str, Flags]
    refused: Mapping[str, Flags]
    told: Mapping[str, Flags]

    def flags(self, model: str, name: str) -> tuple[Flags, Flags]:
        """Which samples are `right` or `refused`, and of which that is known."""
        none = np.zeros(len(self.samples), np.bool_)
        return (self.right if name == "right" else self.refused).get(model, none), self.told.get(model, none)

    def among(self, samples: Sequence[str], model: str) -> tuple[Flags, Flags]:
        """Of these samples, those that the model has right, and those of which that is known."""
        place = {name: number for number, name in enumerate(self.samples)}
        right, told = self.flags(model, "right")
        places = np.array([place.get(name, -1) for name in samples])
        known = (places >= 0) & told[places] if len(self.samples) else np.zeros(len(samples), np.bool_)
        return known & (right[places] if len(self.samples) else known), known


def clean_answers(ledger: Ledger) -> CleanAnswers:
    """From the clean rows of a run."""
    samples = tuple(ledger.query(_LABELLED)["sample"].to_pylist())
    place = {name: number for number, name in enumerate(samples)}
    found: dict[str, tuple[Flags, Flags, Flags]] = {}
    for row in ledger.query(CLEAN_ROWS).to_pylist():
        own = found.setdefault(row["model"], tuple(np.zeros(len(samples), np.bool_) for _ in range(3)))  # type: ignore[arg-type]
        where = place[row["sample"]]
        own[0][where], own[1][where], own[2][where] = row["is_right"], row["is_refused"], True
    columns = [{model: own[number] for model, own in found.items()} for number in range(3)]
    return CleanAnswers(samples, *columns)


def assessed_models(ledger: Ledger) -> list[str]:
    """The models of a run, without surrogates."""
    return [str(name) for name in ledger.query(_MODELS)["model"].to_pylist()]


def attack_sizes(ledger: Ledger, norm: str, patterns: Sequence[str] | None) -> tuple[list[float], bool]:
    """The eps of the attacks in a norm that count, and whether one of them has none."""
    rows = ledger.query(_ATTACKS, {"norm": norm}).to_pylist()
    sizes = [row["eps"] for row in rows if patterns is None or matches(row["arm"], patterns)]
    return sorted(size for size in sizes if size is not None), None in sizes


def error_rows(ledger: Ledger) -> dict[str, tuple[int, int]]:
    """Model -> rows on samples to be evaluated that ended in an error or a timeout, and all of its rows there."""
    return {row["model"]: (row["n"], row["n_rows"]) for row in ledger.query(_ERRORS).to_pylist()}
