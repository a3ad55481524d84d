"""The question of damage: its spec, evasion curve and answers, from the study or from options that replace it."""

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
    """A validated spec, its evasion curve with notes, and options that need no study."""

    spec: DamageSpec
    curve: Evasion | None = None
    notes: tuple[str, ...] = ()
    cost: float | None = None  # replaces the cost of the spec
    answers: str | None = None  # the URL of the database with the answers of people


@assessments.register("damage")
class Damage(Assessment):
    """Which model suffers least from successful, undetected attacks."""

    kind = DamageAssessment

    def question(self, context: Context, options: Mapping[str, Any]) -> DamageQuestion:
        """The study's question, changed by the options; reads the evasion curve."""
        changed = {name: value for name, value in {**context.asked, **options}.items() if value is not None}
        other = {name: changed.pop(name, None) for name in ("cost", "answers")}
        return replace(damage_question(context, **changed), **other)

    def assess(self, context: Context, question: DamageQuestion) -> DamageAssessment | Unanswered:
        """Assess damage, with the answers of people from the named database or the run's own."""
        spec = question.spec
        answers, unread = _answers(context.folder, question.answers, spec.norm)
        stopped = stopping_words(context.stopping, context.study, level=spec.level)
        try:
            assessment = assess_damage(
                context.ledger,
                spec,
                seed=context.seed,
                evasion=question.curve,
                answers=answers,
                cost=spec.cost if question.cost is None else question.cost,
                samples_left=context.samples_left,
                written=context.written,
                notes=(*stopped, *question.notes, *unread),
            )
        except RiskError as error:  # corruptions alone, say
            return Unanswered(" ".join([str(error), *stopping_words(context.stopping, context.study)]))
        return replace(assessment, part=tuple(context.view.sentences()))

    def asked(self, context: Context) -> Mapping[str, Any]:
        """Always."""
        del context
        return {}

    def sections(self, result: DamageAssessment, models: Sequence[str]) -> Iterable[Section]:
        """The models, least damage first, and their differences."""
        return sections(result, models)

    def quantities(self, result: DamageAssessment) -> Iterable[NamedEstimate]:
        """Every estimate of every model."""
        return quantities(result)

    def illustrated(self, folder: Path, ledger: Ledger, result: DamageAssessment) -> DamageAssessment:
        """With the nearest successes."""
        examples = tuple(nearest_examples(folder, ledger, result.distances))
        return replace(result, examples=examples, labels=read_labels(folder))


def damage_question(
    context: Context, *, norm: Norm | None = None, evasion: AnyEvasion | None = None, **options: Any
) -> DamageQuestion:
    """The study's question, changed by the options."""
    spec = context.study.assess.damage if context.study else DamageSpec(norm=norm or context.norm)
    if context.decision_level is not None:
        options = {"level": context.decision_level} | options
    curve = evasion if callable(evasion) else None
    notes: tuple[str, ...] = ()
    if evasion == AVERAGE:
        if spec.cost is not None:
            notes = (f"The study's cost of {spec.cost:,.10g} is left out: relative damage has none.",)
        options = {"detector": None, "cost": None} | options | {"evasion": AVERAGE}
    elif evasion is not None and curve is None:
        options |= {"evasion": str(evasion)}
    elif evasion is None and norm not in (None, spec.norm) and spec.evasion not in (None, AVERAGE):
        raise RiskError(
            f"the study's evasion curve is for {spec.norm}, and damage is asked for in {norm}; give a curve for "
            f"{norm}, or `{AVERAGE}`"
        )
    if norm is not None and norm != spec.norm:  # sizes in one norm mean nothing in another
        options = {"norm": norm, "thresholds": None} | options
    spec = validated(DamageSpec, spec.model_dump() | options, OPTIONS)
    refuse_beyond_data(context.folder, spec, curve)
    if curve is not None or spec.evasion in (None, AVERAGE):
        return DamageQuestion(spec, curve, notes)
    if spec.evasion_file is None:
        return DamageQuestion(spec, threshold(float(spec.evasion or 0.0)))
    path = context.folder / EVASION_FILE if evasion is None else Path(spec.evasion_file)  # the run keeps the study's
    return DamageQuestion(spec, read_evasion(path, norm=spec.norm), evasion_notes(path))


def refuse_beyond_data(folder: Path, spec: DamageSpec, curve: Evasion | None = None) -> None:
    """Refuse sizes larger than the distance of any two inputs of the run's data, if the run records it."""
    if (extent := read_extent(folder)) is None:
        return
    evasion = curve.tau if isinstance(curve, ThresholdEvasion) else spec.evasion
    sizes = [("thresholds", size) for size in spec.thresholds or ()]
    sizes += [("evasion", evasion)] if isinstance(evasion, float) else []
    for option, size in sizes:
        if complaint := extent.complaint(size, spec.norm):
            raise OPTIONS.error((option,), complaint)


def answers_of_detector(
    context: Context, detector: Mapping[str, Any], *, norm: Norm | None, arms: list[str] | None
) -> tuple[AnswerRows, Norm]:
    """A detector's answers to clean inputs and nearest successes, and the norm of the sizes."""
    spec = damage_question(context, norm=norm, evasion=AVERAGE, **({} if arms is None else {"arms": arms})).spec
    alarm = validated(AlarmSpec, detector, OPTIONS)
    distances = smallest_distances(context.ledger, norm=spec.norm, arms=spec.arms)
    answers = detector_answers(context.ledger, distances, alarm.name, threshold=alarm.alarm)
    rows = AnswerRows(tuple(answers.sizes.tolist()), tuple(answers.undetected.tolist()), answers.models, answers.arms)
    return rows, spec.norm


def _answers(folder: Path, url: str | None, norm: Norm) -> tuple[list[Answer], list[str]]:
    """The answers of people, or a note if the database is unreadable; raises an error only if it was named."""
    try:
        return read_answers(folder, url, norm=norm), []
    except LedgerError as error:
        if url is not None:
            raise
        return [], [f"Answers of people are left out: {error}."]
