"""The numbers of an old and a new model, one beside the other. What is asked for and cannot be told is undecided."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from advrisk.assess.compare.pairing import (
    PairedDistances,
    Pairing,
    chosen_attacks,
    lost_attacks,
    paired_distances,
    some_arms,
)
from advrisk.assess.compare.records import Compared, margin_text
from advrisk.assess.damage.distances import smallest_distances
from advrisk.assess.damage.monte_carlo import monte_carlo_damage
from advrisk.assess.damage.queries import read_queries
from advrisk.assess.damage.sizes import untried
from advrisk.assess.gate.estimates import Flags, GateEstimate, damage_pair_estimate, number_estimate, pair_estimate
from advrisk.assess.gate.reading import clean_answers, has_clean, is_targeted, judged_by_distances, n_labelled
from advrisk.assess.gate.verdict import AGAIN, UNTRIED, decide, settling, within_data
from advrisk.assess.indicators.reading import read_tensor
from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.numbers import size_text
from advrisk.core.sections import Unanswered
from advrisk.core.seeds import generator
from advrisk.risk.absolute import compare_damage
from advrisk.risk.evasion import Evasion, Floats
from advrisk.risk.indicators import RiskTensor, Scenario
from advrisk.risk.indicators.comparison import compare_models
from advrisk.risk.mean_share import difference_at_least, mean_share
from advrisk.risk.queries import QueryPoints
from advrisk.study import Norm

if TYPE_CHECKING:
    from advrisk.api.run import Run

ModelPair = tuple[str, str]
Arms = Sequence[dict[str, Any]]
_EVALUATED = "SELECT count(*) AS n FROM samples WHERE split = 'evaluate'"


class Comparing:
    """Two runs, what they share, and what was said of it so far."""

    def __init__(
        self,
        old: "Run",
        new: "Run",
        pairing: Pairing,
        margin: float,
        level: float | None,
        norm: Norm,
        *,
        arms: Sequence[str] | None = None,
        pending: Sequence[str] = (),
    ) -> None:
        self.old, self.new, self.pairing, self.margin, self.norm = old, new, pairing, margin, norm
        usual = new.study.assess.damage.level if new.study else 0.95
        looked_at = [run.decision_level for run in (old, new) if run.decision_level is not None]
        self.level = max([usual, *looked_at]) if level is None else level
        self.arms, self.pending = arms, pending
        self.notes: list[str] = []

    @cached_property
    def _samples_left(self) -> int | None:
        """How many samples more both runs may come to hold; None where that is unknown."""
        ends = []
        for run in (self.old, self.new):
            if run.samples_left is None:
                return None
            early = run.stopping if run.stopping and run.stopping.rests else None
            n = early.n_samples_run if early else run.ledger.query(_EVALUATED)["n"][0].as_py()
            ends.append(n + run.samples_left)
        return int(min(ends)) - len(self.pairing.samples)

    def of(
        self, pair: ModelPair, sizes: Sequence[float] | None, curve: Evasion | Unanswered | None
    ) -> Iterator[Compared]:
        """All numbers of an old and a new model, at least one of them of what was done to its inputs.

        A model is not worse than itself: what depends on nothing but models of the same digest passes.
        """
        same = self._same_digest(pair)
        risks = list(self._risk(pair))
        attacked = self._attacked(pair, sizes, curve, told=any(one.worse_by is not None for one in risks))
        for one in (*self._clean(pair), *attacked, *risks):
            yield _identical(one) if same and one.detector is None else one

    def _same_digest(self, pair: ModelPair) -> bool:
        held = [{row["model"]: row["digest"] for row in run.models()} for run in (self.old, self.new)]
        old, new = (digests.get(model) for digests, model in zip(held, pair, strict=True))
        return old is not None and old == new

    # Clean inputs

    def _clean(self, pair: ModelPair) -> Iterator[Compared]:
        each = list(zip((self.old, self.new), pair, strict=True))
        if not any(n_labelled(run.ledger) and has_clean(run.ledger, model) for run, model in each):
            self.notes.append("Clean accuracy is not compared: neither run holds clean inputs with labels.")
            return
        names = [[one for one, _ in self.pairing.samples], [one for _, one in self.pairing.samples]]
        (was, told_was), (now, told_now) = (
            clean_answers(run.ledger).among(samples, model) for (run, model), samples in zip(each, names, strict=True)
        )
        yield self._shares(pair, "clean accuracy", was, now, told_was & told_now, harmful=False)

    # What attacks do

    def _attacked(
        self, pair: ModelPair, sizes: Sequence[float] | None, curve: Evasion | Unanswered | None, *, told: bool
    ) -> Iterator[Compared]:
        """`told`: a risk was compared, which will do where neither run has an attack with a size."""
        attacks = chosen_attacks(self.pairing.arms[pair], self._patterns(self.new))
        if not attacks:
            if self._any_sized(pair) or not told:
                yield self._open(pair, "attacks", "no attack is shared, and what was not tried on both is not compared")
            return
        if lost := lost_attacks(
            self.pairing.old_arms[pair], self.pairing.arms[pair], attacks, self._patterns(self.old)
        ):
            yield self._open(
                pair,
                "attacks of the old run",
                f"nothing is compared by {some_arms(lost)}: missing, configured otherwise or not counted in "
                "the new run",
                settle="the same attacks in both runs, or the arms to compare by (`--arm`)",
            )
        found = paired_distances(self.old.ledger, self.new.ledger, self.pairing, pair, norm=self.norm, arms=attacks)
        numbers = [*self._broken(pair, found, attacks, sizes), *self._damage(pair, found, attacks, curve)]
        yield from numbers
        if not numbers:
            reason = "found no size within which samples may be broken, and no evasion curve"
            yield self._open(pair, "attacks", reason, settle="a size (`--eps`), or a curve (`--evasion`)")

    def _patterns(self, run: "Run") -> Sequence[str] | None:
        """The arms that count: those that were named, or the study's."""
        if self.arms is not None:
            return self.arms
        return run.study.assess.damage.arms if run.study else None

    def _any_sized(self, pair: ModelPair) -> bool:
        rows = (*self.pairing.old_arms[pair], *self.pairing.new_arms[pair])
        return self.arms is not None or any(row["kind"] == "attack" and row["norm"] is not None for row in rows)

    def _broken(
        self, pair: ModelPair, found: PairedDistances, attacks: Arms, sizes: Sequence[float] | None
    ) -> Iterator[Compared]:
        own = [row for row in attacks if row["norm"] == self.norm]
        queries = self._queries(pair, attacks)
        known = sorted({row["eps"] for row in own if row["eps"]})
        if sizes is None and self.new.study:
            sizes = self.new.study.assess.damage.thresholds
        wanted = known if sizes is None else sizes
        robust = self._robust_told(pair)
        name = "attack success rate" if robust is None else "robust accuracy"
        if not own and not wanted:
            yield self._open(pair, name, f"no shared attack is in {self.norm}")
        for size in wanted:
            quantity = f"{name} at {self._size(size)}"
            if any(points is not None and not points.measured(size) for points in queries):
                reason = f"no shared attack had an eps of {self._size(size)}, and the model answers at random"
                yield self._open(pair, quantity, reason, settle=UNTRIED)
            elif any(row["eps"] is None for row in own) or (known and size <= known[-1]):
                little = untried(size, [(row["eps"], row["keep"]) for row in own], self._size(size))
                told = found.told if robust is None else found.told & robust[0][1] & robust[1][1]
                was, now = (
                    _share_at(size, distances, points, None if robust is None else robust[place][0])
                    for place, (distances, points) in enumerate(zip((found.old, found.new), queries, strict=True))
                )
                yield self._shares(pair, quantity, was, now, told, harmful=robust is None, untried=little)
            elif known:
                reason = f"the largest eps of a shared attack is {self._size(known[-1])}"
                yield self._open(pair, quantity, reason, settle=UNTRIED)
            else:
                yield self._open(pair, quantity, f"no shared attack is in {self.norm}", settle=UNTRIED)

    def _size(self, size: float) -> str:
        """A size as the new study writes it."""
        return size_text(size, self.new.study.written if self.new.study else {})

    def _robust_told(self, pair: ModelPair) -> list[tuple[Flags, Flags]] | None:
        """Of both models, which samples are correct clean and where that is known; None: robust accuracy has no sense.

        That is where success is a target, or where neither labels nor imported distances say what is correct.
        """
        found = []
        for place, (run, model) in enumerate(zip((self.old, self.new), pair, strict=True)):
            samples = [names[place] for names in self.pairing.samples]
            if is_targeted(run.ledger):
                return None
            if judged_by_distances(run.ledger, model):  # what is incorrect clean has the distance 0
                found.append((np.ones(len(samples), np.bool_), np.ones(len(samples), np.bool_)))
            elif n_labelled(run.ledger) and has_clean(run.ledger, model):
                correct, told = clean_answers(run.ledger).among(samples, model)
                found.append((correct == 1, told))
            else:
                return None
        return found

    def _queries(self, pair: ModelPair, attacks: Arms) -> list[QueryPoints | None]:
        """What single queries meet, of models that answer at random; None of others."""
        arms, found = [row["arm"] for row in attacks], []
        for place, (run, model) in enumerate(zip((self.old, self.new), pair, strict=True)):
            samples = [names[place] for names in self.pairing.samples]
            found.append(read_queries(run.ledger, norm=self.norm, arms=arms, samples=samples).get(model))
        return found

    def _shares(
        self,
        pair: ModelPair,
        quantity: str,
        was: Flags | Floats,
        now: Flags | Floats,
        told: Flags,
        *,
        harmful: bool = True,
        untried: str = "",
    ) -> Compared:
        if not told.any():
            again = f"a verdict on them ({AGAIN})"
            return self._open(pair, quantity, "no sample has a verdict in both runs", settle=again)
        old, new = (mean_share(values[told], level=self.level) for values in (was, now))
        worse, better = (now[told], was[told]) if harmful else (was[told], now[told])
        found = pair_estimate(worse, better, level=self.level, n_unknown=int((~told).sum()), untried=untried)
        p = difference_at_least(worse, better, self.margin, unknown=found.n_unknown)
        return self._compared(pair, quantity, old, new, found, p=p)

    def _damage(
        self, pair: ModelPair, found: PairedDistances, attacks: Arms, curve: Evasion | Unanswered | None
    ) -> Iterator[Compared]:
        if curve is None:
            yield from self._detected(pair, attacks)
            return
        if isinstance(curve, Unanswered):
            yield self._open(pair, "damage", str(curve))
            return
        if not any(row["norm"] == self.norm for row in attacks):
            yield self._open(pair, "damage", f"no shared attack is in {self.norm}")
            return
        if not found.told.any():
            again = f"a verdict on them ({AGAIN})"
            yield self._open(pair, "damage", "no sample has a verdict in both runs", settle=again)
            return
        rng = generator("compare", self.new.seed)
        own = {"new": found.new[found.told], "old": found.old[found.told]}
        made = compare_damage(own, curve, level=self.level, rng=rng)
        measured = damage_pair_estimate(made, "new", "old", n_unknown=found.n_unknown, rng=rng)
        yield self._compared(pair, "damage", made.estimates["old"], made.estimates["new"], measured)

    def _detected(self, pair: ModelPair, attacks: Arms) -> Iterator[Compared]:
        """Damage with the detector that both studies name, each in front of its own model."""
        alarms = [run.study.assess.damage.detector if run.study else None for run in (self.old, self.new)]
        asked = alarms[1]
        if asked is None and alarms[0] is None:
            self.notes.append("Damage is relative here, and not compared; say what goes unnoticed (`--evasion`).")
            return
        if asked is None or alarms[0] != asked:
            reason = "the two studies do not name the same detector and threshold"
            open_ = self._open(pair, "damage", reason, settle="an evasion curve for both (`--evasion`)")
            yield replace(open_, detector="another")
            return
        name = f"damage with {asked.name}"
        flags: list[dict[str, bool]] = []
        for run, model in ((self.old, pair[0]), (self.new, pair[1])):
            try:
                distances = smallest_distances(run.ledger, norm=self.norm, arms=[row["arm"] for row in attacks])
                seen = monte_carlo_damage(
                    run.ledger, distances, asked.name, threshold=asked.alarm, rng=generator("compare", run.seed)
                )
            except RiskError as error:
                yield replace(self._open(pair, name, str(error)), detector=asked.name)
                return
            flags.append(dict(zip(distances.samples, seen.damaged[model].tolist(), strict=True)))
        told = np.array([one in flags[0] and other in flags[1] for one, other in self.pairing.samples])
        was = np.array([flags[0].get(one, False) for one, _ in self.pairing.samples])
        now = np.array([flags[1].get(other, False) for _, other in self.pairing.samples])
        compared = self._shares(pair, name, was, now, told)
        equal = told.all() and (was == now).all()
        yield replace(compared, detector=None if equal else asked.name)

    # Scenarios

    def _risk(self, pair: ModelPair) -> Iterator[Compared]:
        """Scenarios and losses that both studies state alike; what the old one states alone is undecided."""
        old, new = (run.study.scenarios if run.study else {} for run in (self.old, self.new))
        if alone := [name for name in new if name not in old]:
            self.notes.append(f"Scenarios of the new study only, and not compared: {', '.join(alone)}.")
        if not old:
            return
        losses, lost = self._shared_losses()
        for name, tree in old.items():
            if new.get(name) != tree:
                found = "not the same in" if name in new else "not in"
                yield self._open(pair, f"risk, {name}", f"the scenario is {found} the new study")
                continue
            for loss in lost:
                yield self._open(pair, f"risk, {name}, {loss}", "the new study does not state this loss, or not alike")
            if losses is None:
                continue
            try:
                yield from self._scenario(pair, Scenario.from_mapping(name, tree), losses)
            except RiskError as error:
                yield self._open(pair, f"risk, {name}", str(error))

    def _shared_losses(self) -> tuple[Sequence[object] | None, list[str]]:
        """The losses of both studies (none named: the usual one; None: none is shared), and what the old one calls
        those that it alone states."""
        old, new = (run.study.loss_entries() if run.study else [] for run in (self.old, self.new))
        if old == new:
            return old, []
        shared = [entry for entry in new if entry in old]
        lost = [str(entry.get("as", entry["name"])) for entry in old if entry not in shared]
        if alone := [str(entry.get("as", entry["name"])) for entry in new if entry not in shared]:
            self.notes.append(f"Losses of the new study only, and not compared: {', '.join(alone)}.")
        return shared or None, lost or ([] if old else ["the usual loss"])

    def _scenario(self, pair: ModelPair, scenario: Scenario, losses: Sequence[object]) -> Iterator[Compared]:
        arms = [row["arm"] for row in self.pairing.arms[pair]]
        if not arms:
            raise RiskError("no arm is shared")
        tensors = {
            "old": self._tensor(self.old, pair[0], 0, losses, arms),
            "new": self._tensor(self.new, pair[1], 1, losses, arms),
        }
        for loss in tensors["new"].losses:
            if tensors["new"].range_of(loss) != (0.0, 1.0):
                self.notes.append(
                    f"The loss {loss} does not lie between 0 and 1, and is not compared: a margin is a share."
                )
                continue
            yield self._scenario_loss(pair, scenario, loss, tensors)

    def _scenario_loss(
        self, pair: ModelPair, scenario: Scenario, loss: str, tensors: Mapping[str, RiskTensor]
    ) -> Compared:
        rng = generator("compare", self.new.seed, scenario.name)
        found = compare_models(tensors, scenario, loss=loss, level=self.level, rng=rng, details=False)
        branch = found.branches[""]
        measured = number_estimate(
            branch.difference("new", "old"),
            n=len(found.samples),
            unit=1.0,
            floor=branch.standard_errors("new", "old")[1],
            on_floor="the weights of the scenario are known too little; narrow them",
            n_left_out=found.n_without_verdict + found.n_unfinished,
            pending=" ".join(self.pending),
        )
        values = branch.estimates
        return self._compared(pair, f"risk, {scenario.name}, {loss}", values["old"], values["new"], measured)

    def _tensor(self, run: "Run", model: str, place: int, losses: Sequence[object], arms: Sequence[str]) -> RiskTensor:
        """With the same names for the same samples in both runs: their places among those that both hold."""
        found = read_tensor(run.ledger, model, losses, arms=arms)
        names = [pair[place] for pair in self.pairing.samples]
        data = found.data.sel(sample=names)
        return RiskTensor(data.assign_coords(sample=[str(number) for number in range(len(names))]))

    # Verdicts

    def _open(self, pair: ModelPair, quantity: str, reason: str, *, settle: str = "") -> Compared:
        """What is asked for and cannot be compared."""
        return Compared(*pair, quantity, None, None, None, self.margin, "undecided", reason, settle=settle)

    def _compared(
        self,
        pair: ModelPair,
        quantity: str,
        old: Estimate,
        new: Estimate,
        found: GateEstimate,
        *,
        p: float | None = None,
    ) -> Compared:
        assert found.estimate is not None
        verdict = decide(found.estimate, "<=", self.margin)
        reason = _REASONS[verdict].format(margin=margin_text(self.margin))
        settle, more = settling(found, "<=", self.margin) if verdict == "undecided" else ("", None)
        settle = within_data(settle, more, self._samples_left)
        if verdict == "pass" and found.estimate.high < 0:
            reason = "better: the whole interval is below 0"
        elif verdict == "pass" and found.estimate.low > 0:
            reason += ", but worse"
        if open_ := doubt(found, passes=verdict == "pass"):
            verdict, (reason, settle), more = "undecided", open_, None
        told = (found.on_unknown, found.untried)
        return Compared(
            *pair,
            quantity=quantity,
            old_value=old,
            new_value=new,
            worse_by=found.estimate,
            margin=self.margin,
            verdict=verdict,
            reason=reason,
            p=p,
            settle=settle,
            more_samples=more,
            cautions=tuple(text for text in told if text and text != reason),
        )


def _share_at(size: float, distances: Floats, points: QueryPoints | None, correct: Flags | None) -> Flags | Floats:
    """Of each sample, whether an attack within a size succeeds, or whether it stays correct, where that is known."""
    if correct is None:
        return distances <= size if points is None else points.broken(size)
    return (distances > size) & correct if points is None else points.correct(size)


def _identical(one: Compared) -> Compared:
    """A number of models of the same digest: it passes, whatever could be compared."""
    if one.worse_by is None:
        reason = f"the same model; not compared: {one.reason}"
    elif one.worse_by.value == 0:
        reason = "the same model"
    else:
        reason = "the same model; the two values differ by the draws of random arms, or by rows without a verdict"
    return replace(one, verdict="pass", identical=True, reason=reason, settle="", more_samples=None, cautions=())


def doubt(found: GateEstimate, *, passes: bool) -> tuple[str, str] | None:
    """Why a number decides nothing, or lets nothing pass, and what would settle it."""
    if found.pending:
        return found.pending.rstrip("."), "finish the run: the same command resumes it"
    if passes and found.n_left_out:
        return found.on_unknown, f"a verdict on them ({AGAIN})"
    return (found.untried, UNTRIED) if passes and found.untried else None


_REASONS = {
    "pass": "not worse by more than {margin}",
    "fail": "worse by more than {margin}",
    "undecided": "the margin of {margin} lies within the interval",
}
