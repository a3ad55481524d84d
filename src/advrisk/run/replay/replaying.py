"""Attack a few samples of a finished run again, with its own seeds, and compare the rows.

Digests show that rows are as they were written, not that an attack made them: whoever can write rows can write their
digests. Only another attack shows that.

A row depends on its own seeds alone, not on its shard, so the drawn samples are attacked without the others. Rows of
arms that are accounted by batch, and of models that draw from torch's generator, depend on their batch: for those the
whole shard is attacked again. So it is for a row that a replay of the drawn samples alone does not give bit by bit.
"""

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import randbelow
from typing import Any

from torch import nn

from advrisk.engine.threads import one_thread
from advrisk.ledger import Ledger
from advrisk.plan import Cell
from advrisk.run.cell import perturb_and_judge
from advrisk.run.options import Options
from advrisk.run.planning import outline_study, plan_study
from advrisk.run.preparation import add_detectors, load_bench
from advrisk.run.replay.choosing import EVERYTHING, Drawn, Row, Scope, cells_by_name, draw_samples, part_of
from advrisk.run.replay.comparing import difference, likeness
from advrisk.run.replay.record import Replay, ReplayCounts
from advrisk.run.rows import judged_result
from advrisk.run.workbench import Workbench
from advrisk.study import StudySpec

_FAILED = ("error", "timeout")
_IMPORTED = "imported from elsewhere"
_CUT_SHORT = "a time limit cut their cell short, so they depend on a clock"


def replay(
    study: StudySpec,
    ledger: Ledger,
    k: int,
    *,
    seed: int | None = None,
    scope: Scope = EVERYTHING,
    device: str | None = None,
    modules: Mapping[str, nn.Module] | None = None,
) -> Replay:
    """Replay `k` samples, drawn with `seed` or a new random one; `study` says where models and data are here."""
    ledger, seed = ledger.by_id(), randbelow(2**32) if seed is None else seed
    drawn = draw_samples(ledger, k, seed, scope)
    bench = load_bench(study, ledger.path.parent, Options(device=device), modules)
    plan = plan_study(outline_study(bench, add_detectors(bench, {})), ledger, bench)
    cells = cells_by_name(bench, plan, drawn.samples)
    with tempfile.TemporaryDirectory(prefix="advrisk-replay-") as empty, one_thread():
        # Nothing is written, and nothing that the run kept is read: transfers are crafted again, too.
        quiet = study.model_copy(update={"keep_inputs": "none", "max_cell_s": None})
        again = _Replayed(replace(bench, study=quiet, folder=Path(empty)), cells)
        again.replay(_by_cell(drawn, cells, again, _digests(ledger)))
    return again.result(drawn, seed)


def _digests(ledger: Ledger) -> dict[str, str]:
    return {row["model"]: row["digest"] for row in ledger.query("SELECT model, digest FROM models").to_pylist()}


def _by_cell(
    drawn: Drawn, cells: Mapping[str, Cell], again: "_Replayed", digests: Mapping[str, str]
) -> dict[str, list[Row]]:
    """The rows that can be replayed, by cell; the others are counted."""
    chosen: dict[str, list[Row]] = {}
    for row in drawn.rows:
        if row["origin"] == "import":
            again.unreplayed[_IMPORTED] += 1
        elif row["cell"] not in cells:
            again.foreign[_why_foreign(row["model"], again.bench, digests)] += 1
        elif row["cut_short"]:
            again.unreplayed[_CUT_SHORT] += 1
        else:
            chosen.setdefault(row["cell"], []).append(row)
    return chosen


def _why_foreign(name: str, bench: Workbench, digests: Mapping[str, str]) -> str:
    model = bench.material.models.get(name)
    if model is None:
        return f"the study has no model {name}"
    if model.digest != digests.get(name):
        return f"{name} is another model here: its digest is {model.digest}, and in the run {digests.get(name)}"
    return (
        f"the study gives no such cell of {name}: was its seed, success, data or an attack changed, or another version "
        "of advrisk installed? Or somebody wrote them"
    )


@dataclass
class _Replayed:
    """Cells that are run again, and the tallies of their rows."""

    bench: Workbench
    cells: Mapping[str, Cell]
    tallies: dict[str, ReplayCounts] = field(default_factory=dict)
    unreplayed: Counter[str] = field(default_factory=Counter)
    foreign: Counter[str] = field(default_factory=Counter)
    ended_otherwise: int = 0
    n_whole: int = 0

    def replay(self, chosen: Mapping[str, Sequence[Row]]) -> None:
        """Replay cell by cell, clean ones first: they show whether this machine computes as the run's did."""
        for name, rows in chosen.items():
            self._replay_cell(self.cells[name], rows)

    def _replay_cell(self, cell: Cell, rows: Sequence[Row]) -> None:
        tally = self.tallies.setdefault(cell.model, ReplayCounts())
        whole = _depends_on_batch(cell, self.bench)
        again = self._rows(cell if whole else part_of(cell, [row["sample"] for row in rows]), len(rows))
        if again is None:
            return
        unlike = [row for row in rows if self._likeness(row, again) != "equal"]
        if unlike and not whole and tally.same_arithmetic and len(rows) < len(cell.shard.samples):
            again, whole = self._rows(cell, len(rows)) or again, True
        self.n_whole += len(rows) if whole else 0
        if cell.arm.kind == "clean":
            alike = [self._likeness(row, again) for row in rows if row["logits"] is not None]
            tally.n_clean_equal += alike.count("equal")
            tally.n_clean_rounded += alike.count("rounded")
        for row in rows:
            self._add(tally, row, again[row["sample"]])

    def _likeness(self, row: Row, again: Mapping[str, Row]) -> str:
        return "equal" if row["outcome"] in _FAILED else likeness(row, again[row["sample"]])[0]

    def _add(self, tally: ReplayCounts, row: Row, again: Row) -> None:
        if row["outcome"] in _FAILED:
            self.ended_otherwise += again["outcome"] not in _FAILED
            self.unreplayed[f"recorded as {row['outcome']}, which need not happen again"] += 1
            return
        if again["outcome"] in _FAILED:
            self.unreplayed[f"the replay failed: {again['message']}"] += 1
            return
        alike, columns = likeness(row, again)
        if alike == "equal":
            tally.n_equal += 1
        elif alike == "rounded":
            tally.n_rounded += 1
        else:
            tally.differences.append(difference(row, again, columns))

    def _rows(self, cell: Cell, n: int) -> dict[str, Row] | None:
        """Sample -> its row, attacked again; None where the cell cannot be run here."""
        bench = replace(self.bench, _targets={}, crafted={})
        try:
            target, attempt, verdict = perturb_and_judge(cell, bench)
        except Exception as error:  # the cell boundary
            self.unreplayed[f"their cell could not be run here: {type(error).__name__}: {error}"] += n
            return None
        given: Any = {"run": "", "criterion": bench.study.criterion, "wall_s": 0.0, "process_s": 0.0}
        tables = judged_result(cell, target, attempt, verdict, **given).tables
        outputs = {row["sample"]: row for row in tables["outputs"].to_pylist()} if "outputs" in tables else {}
        return {
            row["sample"]: row | {name: outputs.get(row["sample"], {}).get(name) for name in ("logits", "classes")}
            for row in tables["outcomes"].to_pylist()
        }

    def result(self, drawn: Drawn, seed: int) -> Replay:
        return Replay(
            seed=seed,
            samples=drawn.samples,
            n_eligible=drawn.n_eligible,
            models=self.tallies,
            unreplayed=dict(self.unreplayed),
            foreign=dict(self.foreign),
            ended_otherwise=self.ended_otherwise,
            n_whole=self.n_whole,
        )


def _depends_on_batch(cell: Cell, bench: Workbench) -> bool:
    """Whether rows depend on the other samples of their shard: attacks of other libraries, torch's own generator."""
    model, arm = bench.material.models[cell.model], cell.arm
    draws = model.random and (model.unkeyed or model.keyed is None)
    by_batch = arm.kind == "attack" and bench.registries.attacks.get(arm.family).traits.accounting == "batch"
    return draws or by_batch or any(_depends_on_batch(need, bench) for need in cell.needs)
