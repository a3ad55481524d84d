"""What clean inputs are answered, sample by sample, and what requirements may speak of in a run; from its ledger."""

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
    """What each model makes of the labelled samples to be evaluated; nothing is known of those that are not `told`."""

    samples: tuple[str, ...]
    correct: Mapping[str, Floats]  # 0 or 1; of a model that answers at random, the share of draws
    refused: Mapping[str, Floats]
    told: Mapping[str, Flags]

    def shares(self, model: str, name: str) -> tuple[Floats, Flags]:
        """How far each sample is `correct` or `refused`, and where that is known."""
        none = np.zeros(len(self.samples))
        own = (self.correct if name == "correct" else self.refused).get(model, none)
        return own, self.told.get(model, none.astype(np.bool_))

    def among(self, samples: Sequence[str], model: str) -> tuple[Floats, Flags]:
        """Of these samples, how far the model has each correct, and where that is known."""
        if not self.samples:
            return np.zeros(len(samples)), np.zeros(len(samples), np.bool_)
        place = {name: number for number, name in enumerate(self.samples)}
        correct, told = self.shares(model, "correct")
        places = np.array([place.get(name, -1) for name in samples])
        known = (places >= 0) & told[places]
        return np.where(known, correct[places], 0.0), known


def clean_answers(ledger: Ledger) -> CleanAnswers:
    """From the clean rows of a run; samples of different weight are refused, for they count alike here."""
    labelled = ledger.query(_LABELLED)
    if len(set(labelled["weight"].to_pylist())) > 1:
        raise RiskError(
            "samples of different weight: clean answers count every sample alike, so it is refused here; "
            "require `risk` under a scenario instead, which weighs them"
        )
    samples = tuple(labelled["sample"].to_pylist())
    found = clean_arrays(ledger, samples)
    return CleanAnswers(
        samples,
        correct={model: one.correct for model, one in found.items()},
        refused={model: one.refused for model, one in found.items()},
        told={model: one.answered for model, one in found.items()},
    )


def n_labelled(ledger: Ledger) -> int:
    """Samples to be evaluated that have a label."""
    return len(ledger.query(_LABELLED))


def has_clean(ledger: Ledger, model: str) -> bool:
    """Whether a model was, or is to be, shown clean inputs: an error there is no sign that nobody asked."""
    return len(ledger.query(_HAS_CLEAN, {"model": model})) > 0


def told_by_distances(ledger: Ledger, model: str) -> bool:
    """Whether a distance of 0 is all that is known of clean inputs: rows that were imported, judged by the label."""
    return not has_clean(ledger, model) and not len(ledger.query(_NOT_IMPORTED, {"model": model}))


def is_targeted(ledger: Ledger) -> bool:
    """Whether success meant one certain class."""
    return len(ledger.query(_TARGETED)) > 0


def find_own_detector(ledger: Ledger, name: str) -> str:
    """The full name of a detector of the run: what an earlier study in the same folder called so is another one."""
    own = detector_names(own_detectors(ledger)).get(name, ())
    return own[0] if len(own) == 1 else find_detector(ledger, name)


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
