"""Damage as a study asks for it, or as somebody asks instead: which question, which curve, whose answers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from advrisk.answers.file import AnswerRows
from advrisk.answers.records import Answer, read_answers
from advrisk.assess.context import Context
from advrisk.assess.damage.assessment import DamageAssessment, assess_damage
from advrisk.assess.damage.distances import smallest_distances
from advrisk.assess.damage.examples import nearest_examples
from advrisk.assess.damage.monte_carlo import detector_answers
from advrisk.assess.damage.sections import quantities, sections
from advrisk.assess.protocol import Assessment
from advrisk.assess.stopping import stopping_words
from advrisk.core.errors import LedgerError, RiskError
from advrisk.core.estimate import NamedEstimate
from advrisk.core.sections import Section, Unanswered
from advrisk.ledger import Ledger
from advrisk.ledger.layout import EVASION_FILE, read_extent, read_labels
from advrisk.risk.evasion import Evasion, ThresholdEvasion, evasion_notes, read_evasion, threshold
from advrisk.study import AVERAGE, OPTIONS, AlarmSpec, DamageSpec, Norm, assessments, validated

AnyEvasion = Evasion | Path | str | float  # a curve, a file, `average`, or a size


@dataclass(frozen=True)
class DamageQuestion:
    """What is asked, the evasion curve that it names, and notes on that; and what needs no study."""

    asked: DamageSpec
    curve: Evasion | None = None
    notes: tuple[str, ...] = ()
    cost: float | None = None  # in place of that which is asked
    answers: str | None = None  # the address of the database with what people said


@assessments.register("damage")
class Damage(Assessment):
    """Which model suffers least from successful, undetected attacks."""

    kind = DamageAssessment

    def question(self, context: Context, given: Mapping[str, Any]) -> DamageQuestion:
        """The study's question with what was given instead; a curve is read now."""
        changed = {name: value for name, value in {**context.asked, **given}.items() if value is not None}
        paid = {name: changed.pop(name, None) for name in ("cost", "answers")}
        return replace(damage_question(context, **changed), **paid)

    def assess(self, context: Context, question: DamageQuestion) -> DamageAssessment | Unanswered:
        """The answer, beside what people said (from the database that is asked for, or the run's own)."""
        asked = question.asked
        said, unread = _said(context.folder, question.answers, asked.norm)
        stopped = stopping_words(context.stopping, context.study, level=asked.level)
        try:
            found = assess_damage(
                context.ledger,
                asked,
                seed=context.seed,
                evasion=question.curve,
                answers=said,
                cost=asked.cost if question.cost is None else question.cost,
                samples_left=context.samples_left,
                written=context.written,
                notes=(*stopped, *question.notes, *unread),
            )
        except RiskError as error:  # corruptions alone, say
            return Unanswered(" ".join([str(error), *stopping_words(context.stopping, context.study)]))
        return replace(found, part=tuple(context.view.sentences()))

    def asked(self, context: Context) -> Mapping[str, Any]:
        """Always."""
        del context
        return {}

    def sections(self, result: DamageAssessment, models: Sequence[str]) -> Iterable[Section]:
        """The models, least damage first, and what tells them apart."""
        return sections(result, models)

    def quantities(self, result: DamageAssessment) -> Iterable[NamedEstimate]:
        """Every estimate of every model."""
        return quantities(result)

    def illustrated(self, folder: Path, ledger: Ledger, result: DamageAssessment) -> DamageAssessment:
        """With the nearest successes."""
        examples = tuple(nearest_examples(folder, ledger, result.distances))
        return replace(result, examples=examples, labels=read_labels(folder))


def damage_question(
    context: Context, *, norm: Norm | None = None, evasion: AnyEvasion | None = None, **given: Any
) -> DamageQuestion:
    """The study's question with what was given instead."""
    asked = context.study.assess.damage if context.study else DamageSpec(norm=norm or context.norm)
    if context.decision_level is not None:
        given = {"level": context.decision_level} | given
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
    asked = validated(DamageSpec, asked.model_dump() | given, OPTIONS)
    refuse_beyond_data(context.folder, asked, curve)
    if curve is not None or asked.evasion in (None, AVERAGE):
        return DamageQuestion(asked, curve, notes)
    if asked.evasion_file is None:
        return DamageQuestion(asked, threshold(float(asked.evasion or 0.0)))
    path = context.folder / EVASION_FILE if evasion is None else Path(asked.evasion_file)  # the study's is kept here
    return DamageQuestion(asked, read_evasion(path, norm=asked.norm), evasion_notes(path))


def refuse_beyond_data(folder: Path, asked: DamageSpec, curve: Evasion | None = None) -> None:
    """A size, also that of a threshold, beyond any two inputs of the run's data; where the run says how far that is."""
    if (extent := read_extent(folder)) is None:
        return
    evasion = curve.tau if isinstance(curve, ThresholdEvasion) else asked.evasion
    sizes = [("thresholds", size) for size in asked.thresholds or ()]
    sizes += [("evasion", evasion)] if isinstance(evasion, float) else []
    for place, size in sizes:
        if complaint := extent.complaint(size, asked.norm):
            raise OPTIONS.error((place,), complaint)


def answers_of_detector(
    context: Context, detector: Mapping[str, Any], *, norm: Norm | None, arms: list[str] | None
) -> tuple[AnswerRows, Norm]:
    """What a detector says of clean inputs and nearest successes, and the norm of the sizes."""
    asked = damage_question(context, norm=norm, evasion=AVERAGE, **({} if arms is None else {"arms": arms})).asked
    alarm = validated(AlarmSpec, detector, OPTIONS)
    distances = smallest_distances(context.ledger, norm=asked.norm, arms=asked.arms)
    found = detector_answers(context.ledger, distances, alarm.name, threshold=alarm.alarm)
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
