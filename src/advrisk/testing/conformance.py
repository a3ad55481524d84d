"""Checks that a part keeps the promises every part makes. Call them from the tests of your own package:

    from advrisk.core.traits import AttackTraits
    from advrisk.parts.attacks import attacks
    from advrisk.testing import check_attack

    @attacks.register("mine", traits=AttackTraits(needs="scores", norms=("l2",), passes=…, use_when="…"))
    def mine(probe, *, steps: int = 20) -> None: ...

    def test_mine() -> None:
        check_attack(attacks.get("mine"), params={"steps": 5})

A broken promise raises `ConformanceError`, which says what was promised and what was seen. The part is
run against toys that give no more than it says it needs: a linear model, a convolutional one, and a
table with immutable and integer columns. An attack that knows a detector is handed a toy one.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from advrisk.core.registry import Part
from advrisk.core.seeds import key
from advrisk.core.traits import AttackTraits, Capability, CorruptionTraits, Keep, Watch, gives
from advrisk.engine import Goal, Model, Noise, Probe, Space, Suspicion, Task, predicted, within_rounding
from advrisk.engine.memory import Memory
from advrisk.engine.objectives import NEUTRAL
from advrisk.engine.replies import clear_lead
from advrisk.engine.threads import one_thread
from advrisk.study import Norm
from advrisk.testing import toys

KEEPS: tuple[Keep, ...] = ("first", "smallest", "strongest", "last")
N_SAMPLES = 20
# Cuts of those samples into shards: in two, backwards, interleaved, and two of them alone.
CUTS: tuple[tuple[range, ...], ...] = (
    (range(3), range(3, N_SAMPLES)),
    (range(N_SAMPLES - 1, -1, -1),),
    (range(0, N_SAMPLES, 2), range(1, N_SAMPLES, 2)),
    (range(1), range(N_SAMPLES - 1, N_SAMPLES)),
)
_CONV_EPS: dict[Norm, float] = {"linf": 0.06, "l2": 0.4, "l1": 2.5, "l0": 4}


class ConformanceError(AssertionError):
    """A part broke a promise."""


@dataclass(frozen=True)
class ToyCase:
    """Samples that a toy model has right, what they may become, and how far they may go in each norm."""

    name: str
    model: Model
    space: Space
    x0: Tensor
    eps: Mapping[Norm, float]
    minimal: Mapping[Norm, Tensor]  # distances that nothing can beat, where they are known

    @property
    def reference(self) -> Tensor:
        return self.goal.reference

    @property
    def goal(self) -> Goal:
        """To lose the class the model gives them."""
        with torch.no_grad():
            answer = self.model.ask(self.x0)
        return Goal(predicted(self.model, answer), clean=answer if gives(self.model.capability, "scores") else None)


def check_attack(
    part: Part[AttackTraits], *, params: Mapping[str, object] | None = None, norms: Sequence[Norm] | None = None
) -> None:
    """Check an attack in every norm it offers (or the given ones), with its defaults but for `params`.

    One that has no norm is checked without.
    """
    if part.traits.accounting != "sample":
        raise ConformanceError(f"{part.name} is not counted by sample, so it makes none of these promises")
    settings = part.bind(params or {})
    with one_thread(), global_generators_untouched(part.name):
        for norm in norms or part.traits.norms or (None,):
            for needs, suspicion in _opponents(part.traits):
                for case in cases(needs, images=part.traits.images):
                    trial = _Trial(part, settings, case, norm, suspicion)
                    trial.check_points()
                    trial.check_passes()
                    trial.check_max_queries()
                    trial.check_rows_stand_alone()
                    trial.check_nothing_forgotten()


def _opponents(traits: AttackTraits) -> list[tuple[Capability, Suspicion | None]]:
    """What models give, and the detector that is known; both with and without slopes, for an attack that knows one."""
    if not traits.watches:
        return [(traits.needs, None)]
    blind = toys.suspicion(differentiable=False)
    return [("gradients", toys.suspicion()), ("gradients", blind), (traits.needs, blind)]


def checkable(parts: Iterable[Part[AttackTraits]]) -> list[Part[AttackTraits]]:
    """The attacks that make the promises of `check_attack`.

    Those of other libraries do not: they see a whole batch, are counted for it as a whole, and keep one point only.
    """
    return [part for part in parts if part.traits.accounting == "sample"]


def cases(needs: Capability, *, images: bool = False) -> list[ToyCase]:
    """The toys an attack is run against, or the images among them: each gives what the attack needs, nothing more."""
    lessen: dict[Capability, Callable[[Model], Model]] = {
        "gradients": lambda model: model,
        "scores": toys.score_only,
        "labels": toys.label_only,
    }
    toy = toys.linear()
    x0 = toy.inputs(N_SAMPLES)
    known: tuple[Norm, ...] = ("linf", "l2", "l1")
    minimal = {norm: toy.minimal_distances(x0, norm) for norm in known}
    eps: dict[Norm, float] = {norm: float(distance.median()) for norm, distance in minimal.items()} | {"l0": 2}
    table, columns = _table(x0)
    conv = lessen[needs](toys.conv_net())
    plain = lessen[needs](toy.model)
    found = [
        ToyCase("linear", plain, Space.box(*toy.bounds), x0, eps, minimal),
        ToyCase("table", plain, table, columns, {norm: 2 * size for norm, size in eps.items()}, {}),
        ToyCase("conv", conv, Space.box(0, 1), toys.images(N_SAMPLES), _CONV_EPS, {}),
    ]
    return [case for case in found if case.x0.dim() == 4 or not images]


def _table(x0: Tensor) -> tuple[Space, Tensor]:
    """Columns 0 and 1 never change, 2 to 4 hold whole numbers, and the units differ."""
    features = x0.shape[1]
    column = torch.arange(features)
    whole = (column >= 2) & (column < 5)
    space = Space(
        low=torch.full((features,), -10.0),
        high=torch.full((features,), 10.0),
        scale=torch.linspace(0.5, 2, features),
        immutable=column < 2,
        integer=whole,
    )
    return space, torch.where(whole, (3 * x0).round(), x0).clamp(-10, 10)


@dataclass(frozen=True)
class _Trial:
    """One attack against one case in one norm."""

    part: Part[AttackTraits]
    settings: Mapping[str, object]
    case: ToyCase
    norm: Norm | None
    suspicion: Suspicion | None = None

    @property
    def eps(self) -> float | None:
        return None if self.norm is None else self.case.eps[self.norm]

    @property
    def keeps(self) -> tuple[Keep, ...]:
        """Without a norm nothing is the smallest."""
        return KEEPS if self.norm else tuple(keep for keep in KEEPS if keep != "smallest")

    def run(
        self,
        *,
        keep: Keep,
        rows: Sequence[int] = range(N_SAMPLES),
        model: Model | None = None,
        seed: int = 0,
        eps: float | None = None,
        max_queries: int | None = None,
    ) -> Memory:
        """What the probe remembers after the attack on some of the samples."""
        task = Task(
            x0=self.case.x0[list(rows)],
            goal=self.case.goal.of(torch.tensor(list(rows))),
            space=self.case.space,
            norm=self.norm,
            eps=self.eps if eps is None else eps,
            objective=self.part.traits.objective or NEUTRAL,
            keep=keep,
            max_queries=max_queries,
            within_eps=self.part.traits.stays_within_eps(self.norm),
            suspicion=self.suspicion,
        )
        noise = Noise([key("conformance", seed, row) for row in rows])
        probe = Probe(model or self.case.model, task, noise)
        returned = self.part.function(probe, **self.settings)
        self.promise(returned is None, f"to return nothing, but it returned {type(returned).__name__}")
        return probe.memory

    @cached_property
    def whole(self) -> dict[Keep, Memory]:
        """Of all samples at once, for each way to keep."""
        return {keep: self.run(keep=keep) for keep in self.keeps}

    @property
    def watch(self) -> Watch | None:
        """What the traits are told of the detector."""
        if self.suspicion is None:
            return None
        follows_model = gives(self.case.model.capability, "gradients")
        return Watch(self.suspicion.passes, follows_model and self.suspicion.differentiable, follows_model)

    def distance(self, x: Tensor, x0: Tensor) -> Tensor:
        """In the trial's norm; without one, no point is farther than another."""
        return torch.zeros(len(x)) if self.norm is None else self.case.space.distance(x, x0, self.norm)

    def reach(self, eps: float | None) -> float:
        if self.norm is None or eps is None:
            return torch.inf
        return within_rounding(eps, self.case.space, self.norm, tuple(self.case.x0.shape[1:]))

    def promise(self, kept: bool, what: str) -> None:
        if not kept:
            raise ConformanceError(f"{self.part.name} ({self.norm or 'no norm'}, {self.case.name}) is {what}")

    def check_points(self) -> None:
        """Points lie in the space and within eps; a success is one, and no miracle."""
        for eps in (None,) if self.norm is None else (self.eps, 0.0):
            for keep in self.keeps:
                memory = self.run(eps=eps, keep=keep) if eps == 0 else self.whole[keep]
                self.promise(not memory.failed, f"to stay in the space and within eps; seen: {memory.failed}")
                self.check_kept(memory, eps)

    def check_kept(self, memory: Memory, eps: float | None) -> None:
        case = self.case
        self.promise(memory.kept.shape == case.x0.shape, f"to keep shape {tuple(case.x0.shape)}")
        self.promise(bool(case.space.valid(memory.kept, case.x0).all()), "to keep points inside the space")
        with torch.no_grad():
            fooled = predicted(case.model, case.model.ask(memory.kept)) != case.reference
        self.promise(bool(fooled[memory.success].all()), "to keep points that change the prediction")
        distance = self.distance(memory.kept.double(), case.x0.double())[memory.success]
        self.promise(bool((distance <= self.reach(eps)).all()), f"to succeed within eps = {eps}, seen: {distance}")
        if self.norm is not None and self.norm in case.minimal:
            bound = case.minimal[self.norm][memory.success]
            self.promise(bool((distance >= bound * (1 - 1e-4)).all()), f"to need {bound}, but it took {distance}")

    def check_passes(self) -> None:
        """No sample takes more passes than the traits say, and the model saw as many points as were counted."""
        passes = self.part.traits.passes
        self.promise(passes is not None, "to say how many passes it takes at most")
        assert passes is not None
        n_forward, n_backward = passes({**self.settings, "watch": self.watch}, self.case.model.n_classes)
        model, record = toys.recorded(self.case.model)
        memory = self.run(model=_unpadded(model), keep="last")
        spent = int(memory.n_forward.max()), int(memory.n_backward.max())
        self.promise(spent[0] <= n_forward, f"to take at most {n_forward} forward passes, seen: {spent[0]}")
        self.promise(spent[1] <= n_backward, f"to take at most {n_backward} backward passes, seen: {spent[1]}")
        counted = int(memory.n_forward.sum())
        self.promise(record.n_rows == counted, f"to ask through the probe: {counted} counted, {record.n_rows} seen")

    def check_max_queries(self) -> None:
        """No sample is asked more often than max_queries, by the model's own count."""
        most = int(self.whole["last"].n_forward.max())
        for limit in sorted({1, 2, max(1, most // 2), most}):
            for keep in ("first", "last"):
                model, record = toys.recorded(self.case.model)
                memory = self.run(model=_unpadded(model), keep=keep, max_queries=limit)
                seen = int(memory.n_forward.max())
                self.promise(seen <= limit, f"to stop after {limit} queries, seen: {seen}")
                self.promise(record.n_rows == int(memory.n_forward.sum()), "to ask through the probe only")

    def check_rows_stand_alone(self) -> None:
        """The same seed gives the same bytes, whatever shares the batch, in whatever order."""
        for keep in ("first", "last"):
            whole = self.whole[keep]
            self.promise(_same(whole, self.run(keep=keep)), "to do the same for the same seed")
            for cut in CUTS:
                for rows in cut:
                    apart = self.run(rows=rows, keep=keep)
                    what = f"to treat samples {list(rows)} alike whatever their batch mates (keep: {keep})"
                    self.promise(_same(whole, apart, rows), what)
        other = self.run(keep="last", seed=1)
        if not self.part.traits.random:
            self.promise(_same(self.whole["last"], other), "not to be random, as its traits say")

    def check_nothing_forgotten(self) -> None:
        """Of every point a sample was asked at, the nearest success is kept, and the first one is noticed.

        Without a norm, some success is.
        """
        for row in range(6):
            model, record = toys.recorded(self.case.model)
            memory = self.run(rows=[row], model=_unpadded(model), keep="smallest" if self.norm else "strongest")
            nearest, n_first = self.successes(record, row)
            found = bool(memory.success[0])
            self.promise(found == (nearest < torch.inf), f"to notice every success (sample {row})")
            if found:
                distance = self.distance(memory.kept, self.case.x0[[row]])
                self.promise(float(distance) == nearest, f"to keep the nearest success, at {nearest}")
                seen = int(memory.n_forward_first[0])
                self.promise(seen == n_first, f"to have its first success after {n_first} passes, noted: {seen}")

    def successes(self, record: toys.Record, row: int) -> tuple[float, int]:
        """The least distance of a success (not by rounding only) in the record, and the passes up to the first."""
        case = self.case
        reach = self.reach(self.eps)
        nearest, n_first, n_passes = torch.inf, -1, 0
        for x, answer in record.passes:
            n_passes += len(x)
            x0 = case.x0[[row]].expand_as(x)
            distance = self.distance(x, x0)
            hit = (predicted(case.model, answer) != case.reference[row]) & (distance <= reach)
            hit &= case.space.valid(x, x0)
            if self.norm and answer.is_floating_point():
                hit &= clear_lead(answer)
            if bool(hit.any()):
                nearest = min(nearest, float(distance[hit].min()))
                beside = 0 if self.suspicion is None else self.suspicion.passes * len(x)  # which it asks right after
                n_first = n_passes + beside if n_first < 0 else n_first
        return nearest, n_first


def check_corruption(
    part: Part[CorruptionTraits], *, params: Mapping[str, object] | None = None, x: Tensor | None = None
) -> None:
    """Check a corruption on toy images, gray and coloured, or on inputs of your own (at least 20, in [0, 1])."""
    settings = part.bind(params or {})
    for x0 in (toys.images(N_SAMPLES), toys.images(N_SAMPLES, channels=3, size=16)) if x is None else (x,):
        with one_thread(), global_generators_untouched(part.name):
            _check_corruption(part, settings, x0)


def _check_corruption(part: Part[CorruptionTraits], settings: Mapping[str, object], x0: Tensor) -> None:
    def run(rows: Sequence[int], seed: int = 0) -> Tensor:
        given = x0[list(rows)]
        noise = Noise([key("conformance", seed, row) for row in rows])
        result: Tensor = part.function(given, noise, torch.arange(len(rows)), Space.box(0.0, 1.0), **settings)
        promise(torch.equal(given, x0[list(rows)]), "to leave its input as it is")
        return result

    def promise(kept: bool, what: str) -> None:
        if not kept:
            raise ConformanceError(f"{part.name} on inputs of shape {tuple(x0.shape[1:])} is {what}")

    every = range(N_SAMPLES)
    whole = run(every)
    promise(whole.shape == x0[: len(every)].shape, f"to keep the shape, seen: {tuple(whole.shape)}")
    promise(whole.dtype == x0.dtype, f"to keep the type {x0.dtype}, seen: {whole.dtype}")
    promise(bool(torch.isfinite(whole).all()), "to give finite numbers")
    promise(torch.equal(whole, run(every)), "to do the same for the same seed")
    for cut in CUTS:
        for rows in cut:
            promise(
                torch.equal(whole[list(rows)], run(rows)), f"to treat {list(rows)} alike whatever their batch mates"
            )
    varies = not torch.equal(whole, run(every, seed=1))
    promise(varies == part.traits.random, f"{'' if part.traits.random else 'not '}to be random, as its traits say")


def check_model(model: Model, x: Tensor) -> None:
    """Check a loaded model on at least 20 inputs: shapes, repeatability, rows that stand alone, frozen weights."""

    def promise(kept: bool, what: str) -> None:
        if not kept:
            raise ConformanceError(f"{model.name} is {what}")

    if isinstance(model.answer, nn.Module):
        frozen = not any(parameter.requires_grad for parameter in model.answer.parameters())
        promise(frozen, "to have frozen parameters")
    with one_thread(), global_generators_untouched(model.name):
        whole = _answers(model, x)
        if not model.random:
            promise(_equal(whole, _answers(model, x)), "to answer the same twice, or to say that it is random")
            for cut in CUTS:
                for rows in cut:
                    alike = _equal([part[list(rows)] for part in whole], _answers(model, x[list(rows)]))
                    promise(
                        alike, f"to answer {list(rows)} alike whatever their batch mates; a larger min_rows may help"
                    )
    promise(all(bool(torch.isfinite(part).all()) for part in whole), "to give finite numbers")


def _answers(model: Model, x: Tensor) -> list[Tensor]:
    """The answers, and their slopes if the model gives gradients."""
    if not gives(model.capability, "gradients"):
        with torch.no_grad():
            return [model.ask(x)]
    x = x.clone().requires_grad_(True)
    answer = model.ask(x)
    (slope,) = torch.autograd.grad(answer.amax(1).sum(), x)
    return [answer.detach(), slope]


def _equal(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def _same(whole: Memory, other: Memory, rows: Sequence[int] = range(N_SAMPLES)) -> bool:
    """Whether some rows of one memory equal another memory, but for seconds."""
    firsts = ("n_forward_first", "n_backward_first", "n_forward_before", "n_backward_before")
    names = ("kept", "success", "n_forward", "n_backward", "n_confirm", *firsts)
    return _equal([getattr(whole, name)[list(rows)] for name in names], [getattr(other, name) for name in names])


def _unpadded(model: Model) -> Model:
    """For counting: padding rows would be seen by the model and belong to nobody."""
    return replace(model, min_rows=1)


@contextmanager
def global_generators_untouched(name: str) -> Iterator[None]:
    def state() -> tuple[bytes, str, tuple[object, ...]]:
        return torch.random.get_rng_state().numpy().tobytes(), str(np.random.get_state()), random.getstate()

    before = state()
    yield
    if state() != before:
        raise ConformanceError(f"{name} is to draw from its noise, but a global random generator moved")
