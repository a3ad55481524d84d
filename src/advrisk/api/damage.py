"""Damage as a study asks for it, or as somebody asks instead: which question, which curve, whose answers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advrisk.answers.file import AnswerRows
from advrisk.answers.records import Answer, read_answers
from advrisk.assess.damage.assessment import DamageAssessment, assess_damage
from advrisk.assess.damage.distances import smallest_distances
from advrisk.assess.damage.monte_carlo import detector_answers
from advrisk.core.errors import LedgerError, RiskError
from advrisk.ledger.layout import EVASION_FILE, read_extent
from advrisk.plan import refuse_asked_sizes
from advrisk.report.stopping import stopping_words
from advrisk.risk.evasion import Evasion, ThresholdEvasion, evasion_notes, read_evasion, threshold
from advrisk.study import AVERAGE, AlarmSpec, DamageSpec, Norm, Source, validated

if TYPE_CHECKING:
    from advrisk.api.run import Run

AnyEvasion = Evasion | Path | str | float  # a curve, a file, `average`, or a size


@dataclass(frozen=True)
class DamageQuestion:
    """What is asked, the evasion curve that it names, and notes on that."""

    asked: DamageSpec
    curve: Evasion | None = None
    notes: tuple[str, ...] = ()


def damage_question(
    run: "Run", *, norm: Norm | None = None, evasion: AnyEvasion | None = None, **given: Any
) -> DamageQuestion:
    """The study's question with what was given instead."""
    asked = run.study.assess.damage if run.study else DamageSpec(norm=norm or run.norm)
    given = {name: value for name, value in given.items() if value is not None}
    if run.decision_level is not None:
        given = {"level": run.decision_level} | given
    curve = evasion if callable(evasion) else None
    notes: tuple[str, ...] = ()
    if evasion == AVERAGE:
        if asked.cost is not None:
            notes = (f"The study's cost of {asked.cost:,.10g} is left out: relative damage has none.",)
        given = {"detector": None, "cost": None} | given | {"evasion": AVERAGE}
    elif evasion is not None and curve is None:
        given |= {"evasion": str(evasion)}
    elif evasion is None and norm not in (None, asked.norm) and asked.evasion not in (None, AVERAGE):
        raise RiskError(
            f"the study's evasion curve is for {asked.norm}, and damage is asked for in {norm}; give a curve for "
            f"{norm}, or `{AVERAGE}`"
        )
    if norm is not None and norm != asked.norm:  # sizes in one norm mean nothing in another
        given = {"norm": norm, "thresholds": None} | given
    asked = validated(DamageSpec, asked.model_dump() | given, Source())
    refuse_beyond_data(run.folder, asked, curve)
    if curve is not None or asked.evasion in (None, AVERAGE):
        return DamageQuestion(asked, curve, notes)
    if asked.evasion_file is None:
        return DamageQuestion(asked, threshold(float(asked.evasion or 0.0)))
    path = run.folder / EVASION_FILE if evasion is None else Path(asked.evasion_file)  # the study's is kept here
    return DamageQuestion(asked, read_evasion(path, norm=asked.norm), evasion_notes(path))


def refuse_beyond_data(folder: Path, asked: DamageSpec, curve: Evasion | None = None) -> None:
    """A size, also that of a threshold, beyond any two inputs of the run's data; where the run says how far that is."""
    if (extent := read_extent(folder)) is None:
        return
    if isinstance(curve, ThresholdEvasion):
        asked = asked.model_copy(update={"evasion": curve.tau})
    refuse_asked_sizes(asked, extent)


def assessed_damage(
    run: "Run", question: DamageQuestion, *, cost: float | None = None, answers: str | None = None
) -> DamageAssessment:
    """The answer, beside what people said (from the database at the address `answers`, or the run's own)."""
    asked = question.asked
    said, unread = _said(run.folder, answers, asked.norm)
    found = assess_damage(
        run.ledger,
        asked,
        seed=run.seed,
        evasion=question.curve,
        answers=said,
        cost=asked.cost if cost is None else cost,
        samples_left=run.samples_left,
        written=run.study.written if run.study else {},
        notes=(*stopping_words(run.stopping, run.study, level=asked.level), *question.notes, *unread),
    )
    return replace(found, part=tuple(run.view.sentences()))


def answers_of_detector(
    run: "Run", detector: Mapping[str, Any], *, norm: Norm | None, arms: list[str] | None
) -> tuple[AnswerRows, Norm]:
    """What a detector says of clean inputs and nearest successes, and the norm of the sizes."""
    asked = damage_question(run, norm=norm, evasion=AVERAGE, arms=arms).asked
    alarm = validated(AlarmSpec, detector, Source())
    distances = smallest_distances(run.ledger, norm=asked.norm, arms=asked.arms)
    found = detector_answers(run.ledger, distances, alarm.name, threshold=alarm.alarm)
    rows = AnswerRows(tuple(found.sizes.tolist()), tuple(found.undetected.tolist()), found.models, found.arms)
    return rows, asked.norm


def _said(folder: Path, url: str | None, norm: Norm) -> tuple[list[Answer], list[str]]:
    """What people answered; a database that cannot be read is no reason to say nothing, unless it was named."""
    try:
        return read_answers(folder, url, norm=norm), []
    except LedgerError as error:
        if url is not None:
            raise
        return [], [f"What people answered is left out: {error}."]
