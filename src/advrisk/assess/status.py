"""The progress of a run, counted from its ledger."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from advrisk.assess.certificate.deciding import is_decided
from advrisk.assess.damage.clean import clean_shares
from advrisk.assess.stopping import stopping_words
from advrisk.core.plain import InJson
from advrisk.core.tables import Columns, Row, Tabular
from advrisk.ledger import Ledger
from advrisk.ledger.frozen import LostQuestionError, frozen_lists
from advrisk.ledger.searches import read_searches
from advrisk.ledger.stopping import Look, Stopping
from advrisk.study import StudySpec

_PLAN = """
    SELECT count(DISTINCT model) FILTER (origin <> 'surrogate') AS n_models,
           count(DISTINCT model) - n_models AS n_surrogates,
           count(DISTINCT arm) FILTER (origin NOT IN ('surrogate', 'search', 'frozen')) AS n_arms,
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
# The tuning and calibration splits are counted apart; samples without a split were imported.
_OUTCOMES = """
    SELECT outcome AS name, count(*) AS n FROM outcomes LEFT JOIN samples USING (sample)
    WHERE coalesce(split IN ('tune', 'calibrate'), false) = {elsewhere} GROUP BY ALL ORDER BY ALL
"""
_CALIBRATED = """
    SELECT model, arm, count(*) AS n FROM cells
    WHERE shard IN (SELECT shard FROM samples WHERE split = 'calibrate') GROUP BY ALL
"""
_ARMS = "SELECT model, arm, kind, origin, repeats, params FROM arms WHERE origin IN ('study', 'surrogate', 'frozen')"
_MESSAGES = """
    SELECT message AS name, count(*) AS n FROM outcomes WHERE outcome IN ('error', 'timeout')
    GROUP BY ALL ORDER BY n DESC LIMIT 20
"""


@dataclass(frozen=True)
class Status(Tabular):
    """How complete a run is."""

    study: str
    n_models: int
    n_surrogates: int  # models that points were crafted on only
    n_arms: int
    n_samples: int  # of the study
    n_cells: int
    n_cells_expected: int  # on the samples of the run so far
    outcomes: Mapping[str, int]
    flags: Mapping[str, int]
    messages: Mapping[str, int]
    n_passes: int
    n_imported: int  # rows from other programs
    clean_accuracy: Mapping[str, float] = field(default_factory=dict)  # model -> share of clean inputs that are correct
    clean_rejection: Mapping[str, float] = field(
        default_factory=dict
    )  # model -> share of refused ones; empty if no model refuses
    elsewhere: Mapping[str, int] = field(default_factory=dict)  # outcomes on the tuning and calibration splits
    n_rounds: int = 0  # of all searches
    n_rounds_expected: int = 0
    n_calibrated: int = 0  # cells on the calibration split
    n_calibrated_expected: int | None = 0  # None until the certified attacks are frozen
    n_samples_run: int = 0  # fewer if the run stopped early; every other count is of these
    rests: bool = False  # whether it stopped early
    stopped: str = ""  # why it stopped early, and the results of interim analyses
    looks: tuple[Look, ...] = ()  # the last at each target

    columns: ClassVar[Columns] = {"what": "text", "name": "text", "value": "number"}
    in_json: ClassVar[InJson] = {"complete": "complete"}

    @property
    def complete(self) -> bool:
        """Whether all cells of the study are done; a run that stopped early is not complete."""
        return self.done and not self.rests

    @property
    def done(self) -> bool:
        """Whether nothing is left to do on the samples of the run so far."""
        searched = self.n_rounds == self.n_rounds_expected
        return self.n_cells == self.n_cells_expected and searched and self.n_calibrated == self.n_calibrated_expected

    @property
    def rested(self) -> str:
        """`stopped early: 32 of 320 samples`; empty if it did not."""
        return f"stopped early: {self.n_samples_run:,} of {self.n_samples:,} samples" if self.rests else ""

    @property
    def so_far(self) -> str:
        """`12 of 20 cells, 3 of 51 rounds of searches and 0 of 24 cells to calibrate`."""
        parts = [f"{self.n_cells} of {self.n_cells_expected} cells"]
        if self.n_rounds_expected:
            parts.append(f"{self.n_rounds} of {self.n_rounds_expected} rounds of searches")
        if self.n_calibrated_expected is None:
            parts.append("no cell to calibrate")
        elif self.n_calibrated_expected:
            parts.append(f"{self.n_calibrated} of {self.n_calibrated_expected} cells to calibrate")
        return " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)

    def rows(self) -> list[Row]:
        """A row for every count, and for clean accuracy and rejection by model."""
        single = [("run", name, value) for name, value in vars(self).items() if isinstance(value, int)]
        several = [
            (name, key, value)
            for name, values in vars(self).items()
            if isinstance(values, Mapping)
            for key, value in values.items()
        ]
        return [{"what": what, "name": name, "value": float(value)} for what, name, value in single + several]


def _cells_by_flag(flagged: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    n_cells: dict[str, int] = {}
    for row in flagged:
        n_cells[row["flag"]] = n_cells.get(row["flag"], 0) + row["n_flagged"]
    return n_cells


def run_status(
    ledger: Ledger, study: StudySpec | None, flagged: Sequence[Mapping[str, Any]], stopping: Stopping | None = None
) -> Status:
    """The status of a run; `flagged` has a row for each flag, model and arm."""

    def row(sql: str) -> dict[str, int]:
        found: dict[str, int] = ledger.query(sql).to_pylist()[0]
        return found

    def tally(sql: str) -> dict[str, int]:
        return {one["name"]: one["n"] for one in ledger.query(sql).to_pylist()}

    plan, samples, clean = row(_PLAN), row(_SAMPLES), clean_shares(ledger)
    rests = stopping is not None and stopping.rests
    n_rounds, n_rounds_expected = _rounds(ledger, study)
    n_calibrated, n_calibrated_expected = _calibrated(ledger, study)
    return Status(
        study=study.name if study else ledger.path.parent.name,
        n_models=plan["n_models"],
        n_surrogates=plan["n_surrogates"],
        n_arms=plan["n_arms"],
        n_samples=stopping.n_samples if rests and stopping else samples["n"],
        n_cells=row(_DONE)["n"],
        n_cells_expected=plan["n_pairs"] * samples["n_shards"],
        outcomes=tally(_OUTCOMES.format(elsewhere="false")),
        flags=_cells_by_flag(flagged),
        messages=tally(_MESSAGES),
        n_passes=row(_PASSES)["n"],
        n_imported=row(_IMPORTED)["n"],
        clean_accuracy={model: share.value for model, share in clean.accuracy.items()},
        clean_rejection={model: share.value for model, share in clean.rejection.items()},
        elsewhere=tally(_OUTCOMES.format(elsewhere="true")),
        n_rounds=n_rounds,
        n_rounds_expected=n_rounds_expected,
        n_calibrated=n_calibrated,
        n_calibrated_expected=n_calibrated_expected,
        n_samples_run=samples["n"],
        rests=rests,
        stopped=" ".join(stopping_words(stopping, study)),
        looks=stopping.latest if stopping else (),
    )


def _rounds(ledger: Ledger, study: StudySpec | None) -> tuple[int, int]:
    """Rounds of searches that are done, and that are asked for: a search that found its worst needs no more."""
    if study is None or not study.search:
        return 0, 0
    found = read_searches(ledger)
    done = sum(one.n_rounds if one.finished else max(0, one.n_rounds_done - 1) for one in found)  # the last goes on
    return done, sum(one.n_rounds for one in found) or 1


def _calibrated(ledger: Ledger, study: StudySpec | None) -> tuple[int, int | None]:
    """Cells on samples to calibrate that are done, and that the frozen lists ask for: no more once all are decided."""
    if study is None or study.assess.certificate is None:
        return 0, 0
    try:
        lists = frozen_lists(ledger)
    except LostQuestionError:
        lists = []  # nothing can be certified any more; the certificate says why
    if not lists:
        return 0, None
    shown, ledger = ledger, ledger.by_id()  # lists hold ids
    arms = {(row["model"], row["arm"]): row for row in ledger.query(_ARMS).to_pylist()}
    wanted = {place for place, row in arms.items() if row["kind"] == "clean" and row["origin"] != "surrogate"}
    wanted |= {(one.model, arm) for one in lists for arm in one.arms}
    params = [json.loads(arms[place]["params"] or "{}") for place in wanted if place in arms]
    wanted |= {(str(given["from"]), str(given["arm"])) for given in params if {"from", "arm"} <= given.keys()}
    n_shards = ledger.query("SELECT count(DISTINCT shard) AS n FROM samples WHERE split = 'calibrate'")["n"][0].as_py()
    done = {(row["model"], row["arm"]): row["n"] for row in ledger.query(_CALIBRATED).to_pylist()}
    expected = sum((arms[place]["repeats"] or 1) * n_shards for place in wanted if place in arms)
    n_done = sum(done.get(place, 0) for place in wanted)
    if n_done < expected and is_decided(shown, study.assess.certificate):
        expected = n_done  # bets hold whenever one stops
    return n_done, expected
