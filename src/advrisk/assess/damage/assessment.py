"""Assess damage from a ledger: which model to ship, what an attack costs, and how certain that is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from advrisk.answers.records import Answer
from advrisk.assess.damage.clean import clean_shares, correct_samples
from advrisk.assess.damage.conflicts import conflict_text
from advrisk.assess.damage.detector import DetectedDamage, DetectorDamage, detect
from advrisk.assess.damage.distances import Distances, measured_nothing, smallest_distances, surrogates, tried_sizes
from advrisk.assess.damage.examples import Example
from advrisk.assess.damage.people import damage_by_people
from advrisk.assess.damage.queries import on_queries, read_queries
from advrisk.assess.damage.robust import Robustness
from advrisk.assess.damage.rows import COLUMNS, damage_rows
from advrisk.assess.damage.sizes import on_threshold, on_unmeasured, on_untried, tried_attacks, usual_thresholds
from advrisk.assess.damage.walk import nearest_arms
from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.labels import NUMBERED, Labels
from advrisk.core.numbers import size_text
from advrisk.core.plain import InJson, plain, plain_fields
from advrisk.core.seeds import generator
from advrisk.core.tables import Columns, Row, Tabular
from advrisk.ledger import Ledger
from advrisk.risk.absolute import EvasionComparison, compare_damage, costed
from advrisk.risk.conflicts import Stated
from advrisk.risk.convergence import Convergence, convergence
from advrisk.risk.damage import (
    DamageComparison,
    PerturbationSize,
    detector_free_damage,
    mean_perturbation_size,
    minimal_perturbation_size,
)
from advrisk.risk.decision import Pair, ahead_of, decided_pairs, undecided_with
from advrisk.risk.evasion import Evasion, Floats, ThresholdEvasion
from advrisk.risk.mean_share import mean_difference
from advrisk.risk.monte_carlo import MonteCarloDamage
from advrisk.risk.queries import QueryPoints, TriedAttack, was_tried
from advrisk.study import DamageSpec

AnyComparison = DamageComparison | EvasionComparison | MonteCarloDamage

LEAST = "least damage"  # the verdict on the model to ship


@dataclass(frozen=True)
class ModelDamage:
    """The numbers of one model; sizes are None where no attack succeeded on a correctly classified sample."""

    model: str
    clean_accuracy: Estimate | None  # None where an imported run holds no clean rows
    clean_rejection: Estimate | None  # share of clean inputs refused; None where no model of the run refuses anything
    clean_loss: Estimate | None  # clean accuracy given up against the best clean model, paired; None: it is the best
    robust_accuracy: Mapping[float, Estimate]  # eps -> share correct clean and not broken within it; none of a target
    success_ratio: Mapping[float, Estimate]  # eps -> share of samples broken within it: the attack success rate. For a
    # random model, a share of queries, as is its robust accuracy
    damage: Estimate | None  # a probability, under an evasion curve or with a detector; None without
    relative_damage: Estimate | None  # without either; None for a single model: the number is relative
    clean_error_part: float | None
    extrapolated: float | None  # share of samples at distances that the detector was not asked about
    by_detector: DetectorDamage | None  # None where no detector was named
    by_people: Estimate | None  # None where people did not label this model's attacks one by one
    operational_risk: Estimate | None  # damage x cost
    probability_best: float | None
    minimal_size: PerturbationSize | None
    mean_size: PerturbationSize | None
    verdict: str

    in_json: ClassVar[InJson] = {
        **dict.fromkeys(("robust_accuracy", "success_ratio")),
        "minimal_size": "minimal_distance",
        "mean_size": "mean_distance",
    }

    @property
    def ranked_by(self) -> Estimate | None:
        """The damage that ranks the models."""
        return self.damage or self.relative_damage


@dataclass(frozen=True)
class DamageAssessment(Tabular):
    """Comparison of models on the same samples, by the smallest perturbation that any arm needed."""

    distances: Distances
    targeted: bool
    level: float
    thresholds: tuple[float, ...]
    models: tuple[ModelDamage, ...]  # least damage first
    comparison: AnyComparison | None
    pairs: tuple[Pair, ...]
    best_clean: str | None = None  # the model with the highest clean accuracy
    written: Mapping[float, str] = field(default_factory=dict)  # size -> how the study writes it, where as a fraction
    untried: tuple[float, ...] = ()  # sizes that no attack had, so that shares there are bounds at best
    samples_left: int | None = None  # samples of the data set not evaluated yet; None: unknown
    curve: Evasion | None = None  # Ψ
    detector: MonteCarloDamage | None = None  # damage from the detector's scores of the attacks themselves
    cost: float | None = None  # of one damage
    crafted_on: tuple[str, ...] = ()  # compared models that transfer arms were crafted on
    part: tuple[str, ...] = ()  # which models and samples of the run these are, if not all
    notes: tuple[str, ...] = ()  # caveats
    robustness: Robustness | None = field(default=None, repr=False, compare=False)  # at any size
    examples: tuple[Example, ...] = field(default=(), repr=False)  # for pages, which alone show pictures
    labels: Labels = NUMBERED  # of classes and features in the examples

    columns: ClassVar[Columns] = COLUMNS

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """Damage by model: relative damage without an evasion curve."""
        if self.comparison is None:
            raise RiskError(
                "relative damage compares models, and this run holds one; add another to the study, or give an "
                "evasion curve"
            )
        return self.comparison.estimates

    @property
    def relative(self) -> bool:
        """Whether damage is relative to the compared models."""
        return self.comparison is None or isinstance(self.comparison, DamageComparison)

    @property
    def decided(self) -> bool:
        """Whether the evidence names one model."""
        return self.models[0].verdict == LEAST

    @property
    def least_bad(self) -> str | None:
        """The model with the least damage, or None where the evidence does not decide."""
        return self.models[0].model if self.decided else None

    def size_text(self, eps: float) -> str:
        """A size as the study writes it."""
        return size_text(eps, self.written)

    def of(self, model: str) -> ModelDamage | None:
        """The numbers of a model; None if it was not compared."""
        return next((row for row in self.models if row.model == model), None)

    def as_dict(self) -> dict[str, Any]:
        """All fields as plain values, for JSON."""
        relative = self.comparison if isinstance(self.comparison, DamageComparison) else None
        fields = {
            "norm": self.distances.norm,
            "targeted": self.targeted,
            "n_samples": len(self.distances.samples),
            "n_unfinished": self.distances.n_unfinished,
            "n_without_verdict": self.distances.n_without_verdict,
            "arms": self.distances.arms,
            "relative": self.relative,
            "cost": self.cost,
            "detector": _detector_dict(self.detector),
            "decided": self.decided,
            "least_bad": self.least_bad,
            "sizes": [
                {"eps": eps, "written": self.size_text(eps), "tried": eps not in self.untried}
                for eps in self.thresholds
            ],
            "best_clean": self.best_clean,
            "samples_left": self.samples_left,
            "crafted_on": self.crafted_on,
            "models": [_model_dict(row, self.size_text) for row in self.models],
            "pairs": self.pairs,
            "order_changes": relative.order_changes if relative else [],
            "ties": {model: values._asdict() for model, values in relative.tied.items()} if relative else {},
            "part": self.part,
            "notes": self.notes,
        }
        return dict(plain(fields))

    def rows(self) -> list[Row]:
        """Every number of every model, then every pairwise difference."""
        return damage_rows(self)


def assess_damage(
    ledger: Ledger,
    question: DamageSpec,
    *,
    seed: int,
    evasion: Evasion | None = None,
    answers: Sequence[Answer] = (),
    cost: float | None = None,
    notes: Sequence[str] = (),
    samples_left: int | None = None,
    written: Mapping[float, str] | None = None,
) -> DamageAssessment:
    """Assess damage from a run's ledger; without an evasion curve or a detector it is relative."""
    distances = smallest_distances(ledger, norm=question.norm, arms=question.arms)
    _refuse_corruptions(ledger, distances.arms)
    detection = None
    if question.detector:
        detection = detect(ledger, distances, question.detector, level=question.level, rng=generator("detector", seed))
    clean = clean_shares(ledger, level=question.level)
    queries = read_queries(ledger, norm=distances.norm, arms=distances.arms, samples=distances.samples)
    crafted_on = {surrogate for arm, surrogate in surrogates(ledger).items() if arm in distances.arms}
    sizes, fixed_eps = tried_sizes(ledger, distances), measured_nothing(ledger, distances)
    requested = tuple(question.thresholds or ())
    attacks = tried_attacks(ledger, distances.norm, distances.arms)
    beyond = [eps for eps in requested if sizes and eps > sizes[-1] and not was_tried(eps, attacks)]
    random = {model: points for model, points in queries.items() if model in distances.by_model}
    unmeasured = [eps for eps in (*requested, *sizes) if not all(points.measured(eps) for points in random.values())]
    thresholds = tuple(eps for eps in requested if eps not in (*beyond, *unmeasured))
    loose = on_untried(beyond, thresholds, sizes, attacks, written or {}) if sizes else ()
    loose += on_threshold(evasion, attacks, sizes, written or {})
    loose += on_unmeasured([eps for eps in requested if eps in unmeasured and eps not in beyond], random, written or {})
    limit = [evasion.tau] if isinstance(evasion, ThresholdEvasion) else []
    stated = Stated(
        sizes=tuple(sorted({*sizes, *thresholds} - {*unmeasured})),
        untried=tuple(eps for eps in (*thresholds, *limit) if not was_tried(eps, attacks)),
        fixed_eps=fixed_eps,
        correct=correct_samples(ledger, distances),
        targeted=_targeted(ledger),
        written=written or {},
        queries=random,
    )
    return assess_distances(
        distances,
        question,
        thresholds=thresholds or tuple(usual_thresholds([eps for eps in sizes if eps not in unmeasured])),
        stated=stated,
        attacks=attacks,
        accuracy=clean.accuracy,
        rejection=clean.rejection,
        samples_left=samples_left,
        crafted_on=tuple(sorted(crafted_on & distances.by_model.keys())) if len(distances.by_model) > 1 else (),
        evasion=evasion,
        detection=detection,
        people=_unnoticed_by_people(ledger, answers, distances, question.level, seed),
        queries=queries,
        cost=cost,
        notes=(*notes, *loose, *on_queries(model for model in queries if model in distances.by_model)),
        rng=generator("damage", seed),
    )


def assess_distances(
    distances: Distances,
    question: DamageSpec,
    *,
    thresholds: tuple[float, ...] = (),
    stated: Stated | None = None,
    attacks: tuple[TriedAttack, ...] = (),
    accuracy: Mapping[str, Estimate] | None = None,
    rejection: Mapping[str, Estimate] | None = None,
    samples_left: int | None = None,
    crafted_on: tuple[str, ...] = (),
    evasion: Evasion | None = None,
    detection: DetectedDamage | None = None,
    people: Mapping[str, Estimate] | None = None,
    queries: Mapping[str, QueryPoints] | None = None,
    cost: float | None = None,
    notes: Sequence[str] = (),
    rng: np.random.Generator,
) -> DamageAssessment:
    """Assess damage from distances; `queries` belong to models that answer at random."""
    stated = stated or Stated(sizes=thresholds)
    comparison = _compared(distances, question, evasion, detection, cost, rng, stated=stated)
    pairs = decided_pairs(comparison, text=conflict_text) if comparison else ()
    best_clean = _best_clean(accuracy or {}, distances)
    robustness = Robustness(
        distances.by_model, question.level, stated.targeted, stated.correct, dict(queries or {}), attacks
    )
    rows = [
        ModelDamage(
            model=model,
            clean_accuracy=(accuracy or {}).get(model),
            clean_rejection=(rejection or {}).get(model),
            clean_loss=_clean_loss(model, best_clean, stated.correct, question.level),
            robust_accuracy={} if stated.targeted else {eps: robustness.robust(model, eps) for eps in thresholds},
            success_ratio={eps: robustness.broken(model, eps) for eps in thresholds},
            minimal_size=minimal_perturbation_size(sizes, level=question.level) if _has_sizes(sizes) else None,
            mean_size=mean_perturbation_size(sizes, level=question.level) if _has_sizes(sizes) else None,
            verdict=_verdict(model, pairs, distances),
            by_detector=detection.of(model) if detection else None,
            by_people=(people or {}).get(model),
            **_damage_fields(model, comparison, cost, pairs),
        )
        for model, sizes in distances.by_model.items()
    ]
    rows.sort(key=lambda row: row.ranked_by.value if row.ranked_by else 0.0)
    return DamageAssessment(
        distances=distances,
        targeted=stated.targeted,
        level=question.level,
        thresholds=thresholds,
        models=tuple(rows),
        comparison=comparison,
        pairs=pairs,
        best_clean=best_clean,
        untried=stated.untried,
        samples_left=samples_left,
        written=stated.written,
        curve=_curve(comparison, detection),
        detector=detection.monte_carlo if detection else None,
        cost=cost,
        crafted_on=crafted_on,
        notes=(*notes, *(detection.notes if detection else ())),
        robustness=robustness,
    )


def _unnoticed_by_people(
    ledger: Ledger, answers: Sequence[Answer], distances: Distances, level: float, seed: int
) -> dict[str, Estimate]:
    """Damage by Algorithm 1 with human detectors: people labelled the model's samples in random order."""
    if not answers:
        return {}
    arms = nearest_arms(ledger, distances)
    walks = damage_by_people(answers, distances.samples, distances.by_model, seed=seed, nearest_arms=arms)
    return {model: walk.estimate(level=level) for model, walk in walks.items() if walk.samples}


def assessed_convergence(
    assessment: DamageAssessment, *, points: int = 40, resamples: int = 50, rng: np.random.Generator
) -> Convergence:
    """Convergence of the numbers of an assessment as samples are added."""
    if (comparison := assessment.comparison) is None:
        raise RiskError(
            "relative damage compares models, and this run holds one, so its convergence is undefined; "
            "give an evasion curve"
        )
    return convergence(
        assessment.distances.by_model,
        evasion=comparison.evasion if isinstance(comparison, EvasionComparison) else None,
        damage=comparison.damaged if isinstance(comparison, MonteCarloDamage) else None,
        thresholds=assessment.thresholds,
        written=assessment.written,
        points=points,
        resamples=resamples,
        rng=rng,
    )


def _compared(
    distances: Distances,
    question: DamageSpec,
    evasion: Evasion | None,
    detection: DetectedDamage | None,
    cost: float | None,
    rng: np.random.Generator,
    *,
    stated: Stated,
) -> AnyComparison | None:
    """The comparison; None for a single model without a curve, whose damage would be relative to itself."""
    if evasion is not None:
        return compare_damage(distances.by_model, evasion, level=question.level, rng=rng)
    if detection is not None:
        return detection.monte_carlo
    if cost is not None:
        raise RiskError(
            "found a cost, but no evasion curve and no detector: relative damage is not a probability and has no "
            "cost; give a curve (`evasion`)"
        )
    if len(distances.by_model) == 1 and question.evasion is None:
        return None
    options: dict[str, Any] = {"level": question.level, "resamples": question.resamples}
    return detector_free_damage(distances.by_model, rng=rng, stated=stated, **options)


def _curve(comparison: AnyComparison | None, detection: DetectedDamage | None) -> Evasion | None:
    if comparison is None or isinstance(comparison, MonteCarloDamage):
        return detection.by_curve.evasion if detection and detection.by_curve else None
    return comparison.evasion


def _damage_fields(
    model: str, comparison: AnyComparison | None, cost: float | None, pairs: Sequence[Pair]
) -> dict[str, Any]:
    """The damage fields of a model; `probability_best` is None where another number contradicts the order."""
    disputed = any(pair.conflicts for pair in pairs if model in (pair.lower, pair.higher))
    estimate = comparison.estimates[model] if comparison else None
    damage = None if isinstance(comparison, DamageComparison) else estimate
    return {
        "damage": damage,
        "relative_damage": estimate if isinstance(comparison, DamageComparison) else None,
        "clean_error_part": comparison.clean_error[model] if comparison else None,
        "extrapolated": comparison.extrapolated[model] if isinstance(comparison, EvasionComparison) else None,
        "operational_risk": costed(damage, cost) if damage and cost is not None else None,
        "probability_best": (
            comparison.probability_best[model] if comparison and len(comparison.models) > 1 and not disputed else None
        ),
    }


def _verdict(model: str, pairs: Sequence[Pair], distances: Distances) -> str:
    """`least damage`, `more damage than …`, or `undecided` with the reason."""
    if not pairs:
        return "no other model to compare with"
    if distances.too_few:
        n_left_out = distances.n_samples - len(distances.samples)
        return f"undecided: {n_left_out} of {distances.n_samples} samples have no verdict"
    if lower := ahead_of(model, pairs):
        return f"more damage than {', '.join(lower)}"
    undecided = undecided_with(model, pairs)
    return f"undecided against {', '.join(undecided)}" if undecided else LEAST


def _refuse_corruptions(ledger: Ledger, arms: Sequence[str]) -> None:
    """Refuse arms that are all corruptions: a corruption's size is not an adversarial distance."""
    kinds = ledger.query("SELECT DISTINCT kind FROM arms WHERE list_contains($arms, arm)", {"arms": list(arms)})
    if kinds["kind"].to_pylist() == ["corruption"]:
        raise RiskError(
            f"{', '.join(arms[:3])}{' …' if len(arms) > 3 else ''}: found corruptions alone, and damage is what "
            "attacks do; name attacks too (`--arm`), or see what corruptions do (`advrisk show indicators RUN`)"
        )


def _targeted(ledger: Ledger) -> bool:
    rows = ledger.query("SELECT 1 FROM outcomes WHERE criterion = 'target' LIMIT 1")
    return len(rows) > 0


def _best_clean(accuracy: Mapping[str, Estimate], distances: Distances) -> str | None:
    """The compared model with the highest clean accuracy; of equals, the first by name."""
    accuracies = {model: estimate.value for model, estimate in sorted(accuracy.items()) if model in distances.by_model}
    return max(accuracies, key=accuracies.__getitem__, default=None)


def _clean_loss(model: str, best: str | None, correct: Mapping[str, Floats], level: float) -> Estimate | None:
    """The paired difference of clean accuracy on the compared samples."""
    if best in (None, model) or model not in correct or best not in correct:
        return None
    return mean_difference(correct[best], correct[model], level=level)


def _has_sizes(distances: Floats) -> bool:
    return bool(((distances > 0) & (distances < np.inf)).any())


def _model_dict(row: ModelDamage, size: Callable[[float], str]) -> dict[str, Any]:
    shares = {"robust_accuracy": row.robust_accuracy, "attack_success_rate": row.success_ratio}
    return plain_fields(row) | {
        name: [{"eps": eps, "size": size(eps), **share.as_dict()} for eps, share in by_size.items()]
        for name, by_size in shares.items()
    }


def _detector_dict(detector: MonteCarloDamage | None) -> dict[str, Any] | None:
    if detector is None:
        return None
    return {"name": detector.detector, "thresholds": detector.thresholds, "known_to": detector.known_to}
