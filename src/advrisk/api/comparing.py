"""An old run against a new one: is the new model worse by more than a margin, in anything that both runs tell?"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.seeds import generator
from advrisk.ledger.layout import EVASION_FILE
from advrisk.risk.absolute import compare_damage
from advrisk.risk.compare.pairing import PairedDistances, Pairing, chosen_attacks, paired_distances, paired_runs
from advrisk.risk.compare.records import Compared, RunComparison
from advrisk.risk.distances import smallest_distances
from advrisk.risk.evasion import Evasion, read_evasion, threshold
from advrisk.risk.gate.measured import Flags, Measured, measured_damage_pair, measured_number, measured_pair
from advrisk.risk.gate.reading import clean_answers
from advrisk.risk.gate.verdict import decide, settling
from advrisk.risk.indicators import RiskTensor, Scenario
from advrisk.risk.indicators.comparison import compare_models
from advrisk.risk.indicators.reading import read_tensor
from advrisk.risk.monte_carlo import monte_carlo_damage
from advrisk.risk.paired_share import at_least
from advrisk.risk.proportion import proportion
from advrisk.study import AVERAGE, DamageSpec, Norm, Source, validated

if TYPE_CHECKING:
    from advrisk.api.damage import AnyEvasion
    from advrisk.api.run import Run

Pair = tuple[str, str]


def compare_runs(
    old: "Run",
    new: "Run",
    *,
    margin: float = 0.0,
    models: Mapping[str, str] | None = None,
    sizes: Sequence[float] | None = None,
    norm: Norm | None = None,
    evasion: "AnyEvasion | None" = None,
    level: float | None = None,
) -> RunComparison:
    """Every number that both runs tell, on the samples and under the arms that both hold."""
    _check(margin, level)
    pairing = paired_runs(old.ledger, new.ledger, models)
    comparing = _Comparing(old, new, pairing, margin, level, _shared_norm(old, new, norm))
    curve, notes = _curve(old, new, evasion, comparing.norm)
    results: list[Compared] = []
    for pair in pairing.models:
        results += comparing.of(pair, sizes, curve)
    if not results:
        raise RiskError("the two runs have nothing in common that could be compared; see `advrisk status` of both")
    return RunComparison(
        old=old.name,
        new=new.name,
        margin=margin,
        level=comparing.level,
        n_samples=len(pairing.samples),
        arms={f"{one} -> {other}": [row["arm"] for row in arms] for (one, other), arms in pairing.arms.items()},
        results=tuple(results),
        notes=(*pairing.notes, *_differences(old, new), *notes, *dict.fromkeys(comparing.notes)),
    )


def _check(margin: float, level: float | None) -> None:
    if not 0 <= margin < 1:
        raise RiskError(f"a margin is a share, at least 0 and less than 1, found {margin}; 2 % is 0.02")
    if level is not None and not 0 < level < 1:
        raise RiskError(f"level must lie between 0 and 1, found {level}")


def _shared_norm(old: "Run", new: "Run", given: Norm | None) -> Norm:
    if given is not None:
        return given
    if old.norm != new.norm:
        raise RiskError(
            f"distances count in {old.norm} in the old run and in {new.norm} in the new one; say which norm (`--norm`)"
        )
    return new.norm


def _differences(old: "Run", new: "Run") -> list[str]:
    """What else is not the same in the two."""
    notes = []
    if old.seed != new.seed:
        notes.append(f"The seeds differ ({old.seed} and {new.seed}): random arms drew differently.")
    if old.study and new.study and old.study.success != new.study.success:
        raise RiskError(
            "success means something else in the two runs (another target); run both with the same `success`"
        )
    for run, which in ((old, "old"), (new, "new")):
        state = run.status()
        if state.n_cells < state.n_cells_expected:
            notes.append(f"The {which} run is not finished: {state.so_far} are done.")
    return notes


def _curve(old: "Run", new: "Run", given: "AnyEvasion | None", norm: Norm) -> tuple[Evasion | None, list[str]]:
    """The evasion curve that both go by: the one given, or that of both studies, if it is the same."""
    if given is not None:
        if given == AVERAGE:
            raise RiskError("relative damage depends on the compared models, and cannot be held against a margin")
        if callable(given):
            return given, []
        asked = validated(DamageSpec, {"norm": norm, "evasion": str(given)}, Source())
        if asked.evasion_file is None:
            return threshold(float(asked.evasion or 0.0)), []
        return read_evasion(Path(asked.evasion_file), norm=norm), []
    told = [run.study.assess.damage.evasion if run.study else None for run in (old, new)]
    named = [one not in (None, AVERAGE) for one in told]
    if not any(named):
        detected = any(run.study and run.study.assess.damage.detector for run in (old, new))
        return None, [] if detected else [
            "Damage is relative here, and not compared; say what goes unnoticed (`--evasion`)."
        ]
    files = [run.folder / EVASION_FILE for run in (old, new)]
    if all(named) and all(file.is_file() for file in files):
        if files[0].read_bytes() == files[1].read_bytes():
            return read_evasion(files[1], norm=norm), []
    elif all(named) and told[0] == told[1] and isinstance(told[1], float):
        return threshold(told[1]), []
    return None, [
        "The two studies go by different evasion curves, so that damage is not compared; give one (`--evasion`)."
    ]


class _Comparing:
    """Two runs, what they share, and what was said of it so far."""

    def __init__(
        self, old: "Run", new: "Run", pairing: Pairing, margin: float, level: float | None, norm: Norm
    ) -> None:
        self.old, self.new, self.pairing, self.margin, self.norm = old, new, pairing, margin, norm
        usual = new.study.assess.damage.level if new.study else 0.95
        self.level = usual if level is None else level
        self.notes: list[str] = []

    def of(self, pair: Pair, sizes: Sequence[float] | None, curve: Evasion | None) -> Iterator[Compared]:
        """All numbers of an old and a new model."""
        yield from self._clean(pair)
        patterns = self.new.study.assess.damage.arms if self.new.study else None
        attacks = chosen_attacks(self.pairing.arms[pair], patterns)
        if attacks:
            found = paired_distances(self.old.ledger, self.new.ledger, self.pairing, pair, norm=self.norm, arms=attacks)
            yield from self._broken(pair, found, attacks, sizes)
            yield from self._damage(pair, found, attacks, curve)
        else:
            self.notes.append(f"No attack is shared by {' and '.join(dict.fromkeys(pair))}, so none is compared.")
        yield from self._risk(pair)

    def _clean(self, pair: Pair) -> Iterator[Compared]:
        answers = [clean_answers(run.ledger) for run in (self.old, self.new)]
        names = [[one for one, _ in self.pairing.samples], [one for _, one in self.pairing.samples]]
        if not all(model in own.told for model, own in zip(pair, answers, strict=True)):
            self.notes.append("Clean accuracy is not compared: a run holds no clean rows.")
            return
        (was, told_was), (now, told_now) = (
            own.among(samples, model) for own, samples, model in zip(answers, names, pair, strict=True)
        )
        yield from self._shares(pair, "clean accuracy", was, now, told_was & told_now, harmful=False)

    def _broken(
        self, pair: Pair, found: PairedDistances, attacks: Sequence[dict[str, Any]], sizes: Sequence[float] | None
    ) -> Iterator[Compared]:
        own = sorted({row["eps"] for row in attacks if row["norm"] == self.norm and row["eps"]})
        endless = any(row["norm"] == self.norm and row["eps"] is None for row in attacks)
        wanted = sizes or (self.new.study.assess.damage.thresholds if self.new.study else None)
        for size in wanted or sorted({*own[:1], *own[-1:]}):
            if not endless and (not own or size > own[-1]):
                told = (
                    f"the largest eps of a shared attack is {own[-1]:g}"
                    if own
                    else f"no shared attack is in {self.norm}"
                )
                self.notes.append(f"Broken within {size:g} is not compared: {told}.")
                continue
            yield from self._shares(pair, f"broken within {size:g}", found.old <= size, found.new <= size, found.told)

    def _shares(
        self, pair: Pair, quantity: str, was: Flags, now: Flags, told: Flags, *, harmful: bool = True
    ) -> Iterator[Compared]:
        if not told.any():
            self.notes.append(f"{quantity}: no sample has a verdict in both runs.")
            return
        n = int(told.sum())
        old, new = (proportion(int(flags[told].sum()), n, level=self.level) for flags in (was, now))
        worse, better = (now[told], was[told]) if harmful else (was[told], now[told])
        found = measured_pair(worse, better, level=self.level, n_unknown=int((~told).sum()))
        up, down = int((worse & ~better).sum()), int((better & ~worse).sum())
        p = at_least(up + found.n_unknown, down, n + found.n_unknown, self.margin)
        yield self._compared(pair, quantity, old, new, found, p=p)

    def _damage(
        self, pair: Pair, found: PairedDistances, attacks: Sequence[dict[str, Any]], curve: Evasion | None
    ) -> Iterator[Compared]:
        if not found.told.any():
            return
        if curve is None:
            yield from self._detected(pair, attacks)
            return
        rng = generator("compare", self.new.seed)
        own = {"new": found.new[found.told], "old": found.old[found.told]}
        made = compare_damage(own, curve, level=self.level, rng=rng)
        measured = measured_damage_pair(made, "new", "old", n_unknown=found.n_unknown, rng=rng)
        yield self._compared(pair, "damage", made.estimates["old"], made.estimates["new"], measured)

    def _detected(self, pair: Pair, attacks: Sequence[dict[str, Any]]) -> Iterator[Compared]:
        """Damage with the detector that both studies name, each in front of its own model."""
        alarms = [run.study.assess.damage.detector if run.study else None for run in (self.old, self.new)]
        if alarms[0] is None or alarms[1] is None:
            return
        if alarms[0] != alarms[1]:
            self.notes.append("The two studies name different detectors or thresholds, so that damage is not compared.")
            return
        flags: list[dict[str, bool]] = []
        for run, model in ((self.old, pair[0]), (self.new, pair[1])):
            try:
                distances = smallest_distances(run.ledger, norm=self.norm, arms=[row["arm"] for row in attacks])
                asked = alarms[1]
                seen = monte_carlo_damage(
                    run.ledger, distances, asked.name, threshold=asked.alarm, rng=generator("compare", run.seed)
                )
            except RiskError as error:
                self.notes.append(f"Damage with {alarms[1].name} is not compared: {error}.")
                return
            flags.append(dict(zip(distances.samples, seen.damaged[model].tolist(), strict=True)))
        told = np.array([one in flags[0] and other in flags[1] for one, other in self.pairing.samples])
        was = np.array([flags[0].get(one, False) for one, _ in self.pairing.samples])
        now = np.array([flags[1].get(other, False) for _, other in self.pairing.samples])
        yield from self._shares(pair, f"damage with {alarms[1].name}", was, now, told)

    def _risk(self, pair: Pair) -> Iterator[Compared]:
        """Scenarios and losses that both studies state alike; losses from 0 to 1 only, as the margin is a share."""
        studies = self.old.study, self.new.study
        if studies[0] is None or studies[1] is None:
            return
        losses = [entry for entry in studies[1].loss_entries() if entry in studies[0].loss_entries()]
        if not losses and (studies[0].losses or studies[1].losses):
            return
        for name, tree in studies[1].scenarios.items():
            if studies[0].scenarios.get(name) != tree:
                self.notes.append(f"The scenario {name} is not the same in both studies, and not compared.")
                continue
            try:
                yield from self._scenario(pair, Scenario.from_mapping(name, tree), losses)
            except RiskError as error:
                self.notes.append(f"The scenario {name} is not compared: {error}.")

    def _scenario(self, pair: Pair, scenario: Scenario, losses: Sequence[object]) -> Iterator[Compared]:
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
            rng = generator("compare", self.new.seed, scenario.name)
            found = compare_models(tensors, scenario, loss=loss, level=self.level, rng=rng, details=False)
            branch = found.branches[""]
            measured = measured_number(
                branch.difference("new", "old"),
                n=len(found.samples),
                unit=1.0,
                floor=branch.standard_errors("new", "old")[1],
                on_floor="the weights of the scenario are known too little; narrow them",
                n_left_out=found.n_without_verdict + found.n_unfinished,
            )
            values = branch.estimates
            yield self._compared(pair, f"risk, {scenario.name}, {loss}", values["old"], values["new"], measured)

    def _tensor(self, run: "Run", model: str, place: int, losses: Sequence[object], arms: Sequence[str]) -> RiskTensor:
        """With the same names for the same samples in both runs: their places among those that both hold."""
        found = read_tensor(run.ledger, model, losses, arms=arms)
        names = [pair[place] for pair in self.pairing.samples]
        data = found.data.sel(sample=names)
        return RiskTensor(data.assign_coords(sample=[str(number) for number in range(len(names))]))

    def _compared(
        self, pair: Pair, quantity: str, old: Estimate, new: Estimate, found: Measured, *, p: float | None = None
    ) -> Compared:
        assert found.estimate is not None
        verdict = decide(found.estimate, "<=", self.margin)
        reason = _REASONS[verdict].format(margin=f"{self.margin:g}")
        settle, more = settling(found, "<=", self.margin) if verdict == "undecided" else ("", None)
        if verdict == "pass" and found.n_left_out:
            verdict, reason = "undecided", found.on_unknown
        if verdict == "pass" and found.estimate.low > 0:
            reason += "; worse it is"
        cautions = (found.on_unknown,) if found.on_unknown and reason != found.on_unknown else ()
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
            cautions=cautions,
        )


_REASONS = {
    "pass": "not worse by more than {margin}",
    "fail": "worse by more than {margin}",
    "undecided": "the margin of {margin} lies within the interval",
}
