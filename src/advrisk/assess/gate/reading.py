"""Clean answers by sample, and the models, attacks and detectors that requirements may name, from a run's ledger."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from advrisk.assess.damage.clean import clean_arrays
from advrisk.assess.damage.walk import find_detector, own_detectors
from advrisk.assess.gate.estimates import Flags
from advrisk.core.errors import RiskError
from advrisk.core.names import matches
from advrisk.ledger import Ledger
from advrisk.risk.evasion import Floats
from advrisk.study import detector_names

_MODELS = """
    SELECT DISTINCT model FROM arms WHERE origin IN ('study', 'import') AND kind IS DISTINCT FROM 'clean' ORDER BY model
"""
_LABELLED = "SELECT sample, weight FROM samples WHERE split = 'evaluate' AND label IS NOT NULL ORDER BY sample"
_HAS_CLEAN = """
    SELECT 1 FROM outcomes WHERE kind = 'clean' AND model = $model
    UNION ALL SELECT 1 FROM arms WHERE kind = 'clean' AND model = $model AND origin IN ('study', 'import') LIMIT 1
"""
_NOT_IMPORTED = """
    SELECT 1 FROM arms WHERE model = $model AND origin = 'study'
    UNION ALL SELECT 1 FROM outcomes
    WHERE model = $model AND kind = 'attack' AND criterion IS DISTINCT FROM 'label' LIMIT 1
"""
_TARGETED = "SELECT 1 FROM outcomes WHERE criterion = 'target' LIMIT 1"
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
    """Each model's clean answers on the labelled samples of the evaluation split; `answered` marks existing ones."""

    samples: tuple[str, ...]
    correct: Mapping[str, Floats]  # 0 or 1; for a model that answers at random, the share of draws
    refused: Mapping[str, Floats]
    answered: Mapping[str, Flags]

    def shares(self, model: str, name: str) -> tuple[Floats, Flags]:
        """The share `correct` or `refused` of each sample, and whether it was answered."""
        none = np.zeros(len(self.samples))
        own = (self.correct if name == "correct" else self.refused).get(model, none)
        return own, self.answered.get(model, none.astype(np.bool_))

    def among(self, samples: Sequence[str], model: str) -> tuple[Floats, Flags]:
        """The share correct of each of these samples, and whether it was answered."""
        if not self.samples:
            return np.zeros(len(samples)), np.zeros(len(samples), np.bool_)
        index = {name: number for number, name in enumerate(self.samples)}
        correct, answered = self.shares(model, "correct")
        indices = np.array([index.get(name, -1) for name in samples])
        present = (indices >= 0) & answered[indices]
        return np.where(present, correct[indices], 0.0), present


def clean_answers(ledger: Ledger) -> CleanAnswers:
    """Read the clean rows of a run; refuse samples of different weights, which would count equally here."""
    labelled = ledger.query(_LABELLED)
    if len(set(labelled["weight"].to_pylist())) > 1:
        raise RiskError(
            "samples of different weights: clean answers weight all samples equally, so they are refused here; "
            "require `risk` under a scenario instead, which weighs them"
        )
    samples = tuple(labelled["sample"].to_pylist())
    arrays = clean_arrays(ledger, samples)
    return CleanAnswers(
        samples,
        correct={model: one.correct for model, one in arrays.items()},
        refused={model: one.refused for model, one in arrays.items()},
        answered={model: one.answered for model, one in arrays.items()},
    )


def n_labelled(ledger: Ledger) -> int:
    """The number of labelled samples in the evaluation split."""
    return len(ledger.query(_LABELLED))


def has_clean(ledger: Ledger, model: str) -> bool:
    """Whether the run has, or plans, clean rows of a model."""
    return len(ledger.query(_HAS_CLEAN, {"model": model})) > 0


def judged_by_distances(ledger: Ledger, model: str) -> bool:
    """Whether a distance of 0 is the only record of clean errors: imported rows with the criterion `label`."""
    return not has_clean(ledger, model) and not len(ledger.query(_NOT_IMPORTED, {"model": model}))


def is_targeted(ledger: Ledger) -> bool:
    """Whether success means a target class."""
    return len(ledger.query(_TARGETED)) > 0


def find_own_detector(ledger: Ledger, name: str) -> str:
    """The full name of a detector of the run, which takes precedence over those of earlier studies in the folder."""
    own = detector_names(own_detectors(ledger)).get(name, ())
    return own[0] if len(own) == 1 else find_detector(ledger, name)


def assessed_models(ledger: Ledger) -> list[str]:
    """The models of a run, without surrogates."""
    return [str(name) for name in ledger.query(_MODELS)["model"].to_pylist()]


def attack_sizes(ledger: Ledger, norm: str, patterns: Sequence[str] | None) -> tuple[list[float], bool]:
    """The eps of the matching attacks in a norm, and whether one of them has none."""
    rows = ledger.query(_ATTACKS, {"norm": norm}).to_pylist()
    sizes = [row["eps"] for row in rows if patterns is None or matches(row["arm"], patterns)]
    return sorted(size for size in sizes if size is not None), None in sizes


def error_rows(ledger: Ledger) -> dict[str, tuple[int, int]]:
    """Model -> its number of rows with an error or a timeout, and of all rows, on the evaluation split."""
    return {row["model"]: (row["n"], row["n_rows"]) for row in ledger.query(_ERRORS).to_pylist()}
