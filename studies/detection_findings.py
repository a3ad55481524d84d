"""What a run says of its detectors, model by model, read through advrisk's Python interface."""

from pathlib import Path

from advrisk import Run
from advrisk.assess.detection.assessment import DetectionAssessment, DetectorTable
from advrisk.core.errors import RiskError
from advrisk.risk.detection.entries import Entry
from advrisk.risk.detection.groups import MULTI_ARMED
from advrisk.risk.detection.table import DetectionTable
from studies.detection_sections import Findings, Group, Judged


def findings(folder: Path) -> list[Findings]:
    """Every model of a run; a run with unfinished samples is refused, since others would be assessed than asked for."""
    run = Run.open(folder)
    assessment = run.detection()
    status = run.status()
    if not status.complete:
        raise RiskError(
            f"{folder}: {status.n_cells} of {status.n_cells_expected} cells are done; finish the run (the same command "
            "goes on)"
        )
    return [_findings(run, assessment, model, several=len(assessment.models) > 1) for model in assessment.models]


def _findings(run: Run, assessment: DetectionAssessment, model: str, *, several: bool) -> Findings:
    tables = [one for one in assessment.tables if one.model == model]
    clean = next(row["share"] for row in run.arms() if row["model"] == model and row["kind"] == "clean")
    study = run.study.name if run.study else run.folder.name
    return Findings(
        name=f"{study}-{model}" if several else study,
        run=run,
        model=model,
        n=tables[0].n,
        accuracy=1 - clean,
        groups=tuple(Group(row.label, row.entries[MULTI_ARMED]) for row in tables[0].table.rows if row.kind == "group"),
        judged=tuple(_judged(one) for one in tables),
        pairs=assessment.pairs[model],
        notes=assessment.notes,
        left_out=tables[0].table.average.left_out,  # arms and successes are the same for all detectors
    )


def _judged(one: DetectorTable) -> Judged:
    return Judged(
        detector=one.detector,
        columns=one.table.average.entries,
        norms=_norms(one.table),
        oftenest=one.defeat.most_often,
        cheapest=one.defeat.cheapest,
        survival=one.table.adaptive,
    )


def _norms(table: DetectionTable) -> dict[str, Entry]:
    """Norm -> its average; a norm with a single group has none but that group."""
    found = {row.norm: row.entries[MULTI_ARMED] for row in table.rows if row.kind == "group"}
    return found | {row.norm: row.entries[MULTI_ARMED] for row in table.rows if row.kind == "norm"}
