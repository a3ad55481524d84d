"""The estimates that requirements are checked against, each assessed once."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from advrisk.assess.certificate.records import CertificateAssessment, ListCertificate
from advrisk.assess.certificate.words import rate
from advrisk.assess.context import Context
from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.damage.conflicts import conflict_text
from advrisk.assess.damage.distances import Distances, smallest_distances
from advrisk.assess.damage.queries import read_queries
from advrisk.assess.damage.question import AnyEvasion
from advrisk.assess.damage.sizes import tried_attacks, untried
from advrisk.assess.detection.assessment import DetectionAssessment
from advrisk.assess.detection.details import row_label
from advrisk.assess.gate.estimates import (
    Flags,
    GateEstimate,
    both_settle,
    counted_rows,
    damage_estimate,
    damage_pair_estimate,
    number_estimate,
    pair_estimate,
    scaled,
    share_estimate,
    standard_error,
)
from advrisk.assess.gate.reading import (
    CleanAnswers,
    clean_answers,
    error_rows,
    find_own_detector,
    judged_by_distances,
    n_labelled,
)
from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.protocol import Finding, ask
from advrisk.assess.status import Status
from advrisk.assess.survival.assessment import SurvivalAssessment
from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.names import did_you_mean
from advrisk.core.numbers import size_text
from advrisk.core.seeds import generator
from advrisk.risk.absolute import EvasionComparison
from advrisk.risk.damage import DamageComparison
from advrisk.risk.evasion import Floats, ThresholdEvasion
from advrisk.risk.indicators.comparison import ScenarioResult
from advrisk.risk.monte_carlo import MonteCarloDamage
from advrisk.risk.queries import QueryPoints
from advrisk.study import DamageSpec, Requirement, Term, assessment_of

Shares = tuple[Flags | Floats, Flags]  # of each sample, and whether it is known


class Quantities:
    """The estimates of a run at a level, cached."""

    def __init__(
        self, run: Context, level: float | None, *, evasion: AnyEvasion | None = None, cost: float | None = None
    ) -> None:
        if level is not None and not 0 < level < 1:
            raise RiskError(f"level must lie between 0 and 1, found {level}")
        self.run, self._level, self._options = run, level, {"evasion": evasion, "cost": cost}

    def of(self, requirement: Requirement) -> GateEstimate:
        """The estimate that a requirement is checked against."""
        left, right = requirement.left, requirement.right
        alone: dict[str, Callable[[Term], GateEstimate]] = {
            "auroc": self._detection,
            "fpr": self._detection,
            "survival": self._survival,
            "certificate": self._certificate,
            "certified_wrong": self._certified_share,
            "certified_broken": self._certified_share,
            "error_rows": self._errors,
            "flagged": self._flagged,
        }
        either: dict[str, Callable[[Term, Term | None], GateEstimate]] = {
            "damage": self._damage,
            "cost": self._cost,
            "broken": self._broken,
            "robust_accuracy": self._robust,
            "clean_accuracy": self._clean,
            "clean_rejection": self._clean,
            "risk": self._risk,
        }
        if left.quantity in alone:
            return alone[left.quantity](left)
        if left.quantity not in either:
            return self._further(left)
        return either[left.quantity](left, right)

    # Cached results

    @property
    def level(self) -> float:
        """The level of shares: the given one, or the study's for damage."""
        return self._level if self._level is not None else self._question.level

    @cached_property
    def _question(self) -> DamageSpec:
        return self.run.study.assess.damage if self.run.study else DamageSpec()

    @cached_property
    def _damages(self) -> DamageAssessment:
        found: DamageAssessment = self.run.result("damage", level=self._level, **self._options)
        return found

    @cached_property
    def _distances(self) -> Distances:
        return smallest_distances(self.run.ledger, norm=self.run.norm, arms=self._question.arms)

    @cached_property
    def _queries(self) -> dict[str, QueryPoints]:
        """The points that queries to models that answer at random meet."""
        found = self._distances
        return read_queries(self.run.ledger, norm=found.norm, arms=found.arms, samples=found.samples)

    @cached_property
    def _answers(self) -> CleanAnswers:
        return clean_answers(self.run.ledger)

    @cached_property
    def _indicators(self) -> IndicatorAssessment:
        found: IndicatorAssessment = self.run.result("indicators", level=self._level)
        return found

    @cached_property
    def _detectors(self) -> DetectionAssessment:
        found: DetectionAssessment = self.run.result("detection", level=self._level)
        return found

    @cached_property
    def _survivals(self) -> SurvivalAssessment:
        found: SurvivalAssessment = self.run.result("survival", level=self._level)
        return found

    @cached_property
    def _certificates(self) -> CertificateAssessment:
        found: CertificateAssessment = self.run.result("certificate")
        return found

    @cached_property
    def state(self) -> Status:
        """The progress of the run."""
        return self.run.status

    @property
    def pending(self) -> str:
        """Why estimates other than shares are not final: the run is not finished; else empty."""
        state = self.state
        return "" if state.n_cells >= state.n_cells_expected else f"the run is not finished: {state.so_far} are done"

    def _further(self, left: Term) -> GateEstimate:
        """A quantity of a registered assessment."""
        name = assessment_of(left.quantity) or ""
        key = left.quantity if left.subject is None else f"{left.quantity}.{left.subject}"
        finding = ask(self.run, name, level=self._level)
        if not isinstance(finding, Finding):
            raise RiskError(str(finding))
        estimates = {one.name: one.estimate for one in finding.quantities}
        if key not in estimates:
            raise RiskError(f"{name} has no {key}; {did_you_mean(key, estimates)}")
        return number_estimate(estimates[key], n=estimates[key].n, pending=self.pending)

    # Shares

    def _share(self, first: Shares, second: Shares | None, n_more: int) -> GateEstimate:
        """The share of one model, or the difference of two; `n_more` further samples have no verdict."""
        known = first[1] if second is None else first[1] & second[1]
        n_unknown = n_more + int((~known).sum())
        if second is None:
            return share_estimate(first[0][known], level=self.level, n_unknown=n_unknown)
        return pair_estimate(first[0][known], second[0][known], level=self.level, n_unknown=n_unknown)

    def _broken(self, left: Term, right: Term | None) -> GateEstimate:
        distances = self._distances
        known = np.ones(len(distances.samples), np.bool_)

        def shares(term: Term) -> Shares:
            model, eps = str(term.subject), term.size or 0.0
            if model in self._queries:
                return self._queries[model].broken(eps), known
            return distances.by_model[model] <= eps, known

        measured = self._share(shares(left), None if right is None else shares(right), distances.n_samples - known.size)
        return replace(measured, untried=self._untried(left))

    def _robust(self, left: Term, right: Term | None) -> GateEstimate:
        distances = self._distances

        def shares(term: Term) -> Shares:
            model = str(term.subject)
            if model in self._queries:
                return self._queries[model].correct(term.size or 0.0), self._answers.among(distances.samples, model)[1]
            unbroken = distances.by_model[model] > (term.size or 0.0)
            if judged_by_distances(self.run.ledger, model):  # an incorrect clean input has the distance 0
                return unbroken, np.ones(unbroken.size, np.bool_)
            correct, known = self._answers.among(distances.samples, model)
            return unbroken & (correct == 1), known

        n_more = distances.n_samples - len(distances.samples)
        measured = self._share(shares(left), None if right is None else shares(right), n_more)
        return replace(measured, untried=self._untried(left))

    def _untried(self, term: Term) -> str:
        """Why the size of a term was not tried; empty if it was."""
        attacks = tried_attacks(self.run.ledger, self._distances.norm, self._distances.arms)
        return untried(term.size or 0.0, attacks, term.size_text)

    def _clean(self, left: Term, right: Term | None) -> GateEstimate:
        name = "correct" if left.quantity == "clean_accuracy" else "refused"
        first = self._answers.shares(str(left.subject), name)
        return self._share(first, None if right is None else self._answers.shares(str(right.subject), name), 0)

    # Damage

    def _damage(self, left: Term, right: Term | None, cost: float = 1.0) -> GateEstimate:
        assessment = self._damages
        comparison, n_unknown = (
            assessment.comparison,
            assessment.distances.n_samples - len(assessment.distances.samples),
        )
        first, second = str(left.subject), None if right is None else str(right.subject)
        if isinstance(comparison, MonteCarloDamage):
            known = np.ones(comparison.n, np.bool_)
            of = {model: (flags, known) for model, flags in comparison.damaged.items()}
            return scaled(self._share(of[first], None if second is None else of[second], n_unknown), cost)
        rng = generator("damage", self.run.seed)
        if isinstance(comparison, EvasionComparison):
            if second is None:
                measured = damage_estimate(comparison, first, n_unknown=n_unknown, rng=rng, cost=cost)
            else:
                measured = damage_pair_estimate(comparison, first, second, n_unknown=n_unknown, rng=rng, cost=cost)
            return replace(measured, untried=self._untried_threshold(comparison))
        if not isinstance(comparison, DamageComparison) or second is None:
            raise RiskError("relative damage compares models; it is undefined for one model")
        return self._relative(comparison, first, second, n_unknown)

    def _untried_threshold(self, comparison: EvasionComparison) -> str:
        """Why the size up to which everything goes undetected was not tried; empty if it was, or for other curves."""
        if not isinstance(comparison.evasion, ThresholdEvasion):
            return ""
        attacks = tried_attacks(self.run.ledger, self._damages.distances.norm, self._damages.distances.arms)
        return untried(comparison.evasion.tau, attacks, self._damages.size_text(comparison.evasion.tau))

    def _relative(self, comparison: DamageComparison, first: str, second: str, n_left_out: int) -> GateEstimate:
        difference = comparison.difference(first, second)
        order = comparison.order(*((first, second) if difference.value < 0 else (second, first)))
        obstacles = order.obstacles() if difference.value else ()
        measured = number_estimate(
            difference,
            n=comparison.n,
            unit=1.0,
            n_left_out=n_left_out,
            pending=self.pending,
            disputed="; ".join(map(conflict_text, comparison.conflicts(first, second))),
            obstacle="; ".join(map(conflict_text, obstacles)),
            notes=(f"damage is relative to {', '.join(comparison.models)}",),
        )
        gain = order.gain_to_come if difference.value else None
        return measured if gain is None else both_settle(measured, number_estimate(gain, n=comparison.n), limit=0.0)

    def _cost(self, left: Term, right: Term | None) -> GateEstimate:
        if self._damages.cost is None:
            raise RiskError("no cost of one damage is stated")
        return self._damage(left, right, self._damages.cost)

    # Quantities with intervals of their own

    def attacked(self, term: Term) -> bool:
        """Whether the scenario of a risk requirement includes attacks."""
        try:
            (tree, *_) = (row.tree for row in self._scenario(term).models)
        except RiskError:  # checking the requirement reports why
            return False
        attacks = self.run.ledger.query("SELECT DISTINCT arm FROM arms WHERE kind = 'attack'")["arm"].to_pylist()
        return not {arm for leaf in tree.leaves() for arm in leaf.arms}.isdisjoint(attacks)

    def _scenario(self, term: Term) -> ScenarioResult:
        names = dict(zip(term.what.inside, term.inside, strict=False))
        return self._indicators.of(names.get("scenario", self._indicators.scenarios[0]), names.get("loss"))

    def _risk(self, left: Term, right: Term | None) -> GateEstimate:
        result = self._scenario(left)
        branch, model = result.branches[""], str(left.subject)
        span = result.bounds[1] - result.bounds[0]
        unit = span if np.isfinite(span) else 0.0
        if right is None:
            tree = next(row.tree for row in result.models if row.model == model)
            estimate = tree.value
            floor = float(np.sqrt(tree.weights_part)) * standard_error(estimate)
        else:
            other = str(right.subject)
            estimate, floor = branch.difference(model, other), branch.standard_errors(model, other)[1]
        return number_estimate(
            estimate,
            n=len(result.samples),
            unit=unit,
            floor=floor,
            on_floor="the weights of the scenario are too uncertain; narrow them" if floor else "",
            n_left_out=result.n_without_verdict,
            pending=self.pending,
        )

    def _detection(self, left: Term) -> GateEstimate:
        model = left.inside[0]
        table = self._detectors.of(model, find_own_detector(self.run.ledger, str(left.subject)))
        entry = table.overall
        estimate = entry.auroc if left.quantity == "auroc" else entry.fpr_at_tpr
        if estimate is None:
            raise RiskError(f"there was nothing to detect: {entry.reason}")
        chance = entry.chance_auroc if left.quantity == "auroc" else entry.chance_fpr
        notes = () if chance is None else (f"chance would be {chance:.3f} against these attacks",)
        if table.table.average.left_out:
            notes = (*notes, f"{row_label(table.table.average)}: the others are not in every column")
        left_out = self._detectors.left_out.get(model, 0)
        return number_estimate(estimate, n=table.n, unit=0.0, n_left_out=left_out, pending=self.pending, notes=notes)

    def _survival(self, left: Term) -> GateEstimate:
        assessed = self._survivals
        model = assessed.of(str(left.subject))
        if model.mean is None:
            raise RiskError("no attempt on it has a duration")
        failed, cut = model.tally.error, model.tally.timeout
        notes = [f"mean up to {assessed.until:g} {assessed.unit}"]
        notes += [f"{cut} rows ended in a timeout, and count as held until then"] if cut else []
        n = n_labelled(self.run.ledger) or model.mean.n
        measured = number_estimate(model.mean, n=n, n_left_out=failed, pending=self.pending, notes=tuple(notes))
        early = assessed.asked_until is not None and assessed.asked_until > assessed.until
        beyond = f"attacks ended at {assessed.until:g}, before the limit of {assessed.asked_until:g}" if early else ""
        return replace(measured, untried=beyond, on_untried="attacks that last longer, or an earlier limit (`until`)")

    def certificate_flags(self, term: Term) -> tuple[str, ...]:
        """Flags of the attacks on the calibration split, which limit a certificate."""
        try:
            attacks = [attack for one in self._lists(term) for attack in one.attacks]
        except RiskError:  # there is no certificate; `of` reports why
            return ()
        return tuple(dict.fromkeys(flag for attack in attacks for flag in attack.flags))

    def _lists(self, term: Term) -> list[ListCertificate]:
        lists = self._certificates.of(str(term.subject)).lists
        return [one for one in lists if term.size is None or one.eps == term.size]

    def _certificate(self, left: Term) -> GateEstimate:
        lists = self._lists(left)
        if not lists:
            raise RiskError(f"nothing was certified of {left.subject} at {left.size_text}")
        missing = [one for one in lists if not one.certified]
        written = self.run.study.written if self.run.study else {}
        shown = ", ".join(f"{one.norm} {size_text(one.eps, written)}: {one.verdict}" for one in lists)
        level = 1 - self._certificates.zeta
        estimate = Estimate(
            float(not missing), float(not missing), float(not missing), level, len(lists), "certificate"
        )
        if any(one.pending for one in missing):
            return GateEstimate(None, why_not=f"not finished ({shown})")
        model = self._certificates.of(str(left.subject))
        terms = f"alpha {self._certificates.alpha:g}, zeta {self._certificates.zeta:g}"
        clean = f"clean error {rate(model.clean_error.value)}"
        notes = (f"{terms}; {shown}; {clean}", *self._certificates.notes)
        return GateEstimate(estimate, notes=notes, caveats=model.caveats)

    def _certified_share(self, left: Term) -> GateEstimate:
        """The bound that the calibration split certifies, the largest of the matching lists."""
        lists = self._lists(left)
        if not lists:
            raise RiskError(f"nothing was certified of {left.subject} at {left.size_text}")
        tests = [
            one.certificate.wrong if left.quantity == "certified_wrong" else one.certificate.union
            for one in lists
            if one.certificate is not None and not one.pending
        ]
        if len(tests) < len(lists):
            return GateEstimate(None, why_not=f"not finished ({len(tests)} of {len(lists)} lists are)")
        certificates, model = self._certificates, self._certificates.of(str(left.subject))
        estimate = certificates.bound(test for test in tests if test is not None)
        clean = f"clean error {rate(model.clean_error.value)}"
        n = certificates.calibration.n
        terms = f"zeta {certificates.zeta:g}, taken by itself, on {n:,} samples to calibrate; {clean}"
        return GateEstimate(estimate, notes=(terms, *certificates.notes), caveats=model.caveats)

    # Counts

    def _errors(self, left: Term) -> GateEstimate:
        rows_by_model = error_rows(self.run.ledger)
        own = [rows for model, rows in rows_by_model.items() if left.subject in (None, model)]
        return replace(
            counted_rows(sum(n for n, _ in own), level=self.level, of=sum(n for _, n in own)), pending=self.pending
        )

    def _flagged(self, left: Term) -> GateEstimate:
        rows = [row for row in self.run.flags if left.subject in (None, row["model"])]
        rows = [row for row in rows if not left.inside or row["flag"] == left.inside[0]]
        n = sum(row["n_flagged"] for row in rows)
        return replace(counted_rows(n, level=self.level, of=self.state.n_cells), pending=self.pending)
