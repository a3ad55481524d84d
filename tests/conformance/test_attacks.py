"""Every registered attack against the toys, in every norm it offers; and the kit itself against broken attacks."""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from advrisk.core.errors import ModelError
from advrisk.core.registry import Registry
from advrisk.core.traits import AttackTraits
from advrisk.engine import Goal, Noise, Probe, Space, Task
from advrisk.parts.attacks import attacks
from advrisk.testing import ConformanceError, check_attack, toys
from advrisk.testing.conformance import N_SAMPLES, cases, checkable

EVERY = [(part.name, norm) for part in checkable(attacks) for norm in part.traits.norms]
# In each norm it works alike, and against detectors with and without slopes: one norm will do every day.
LONG = {("adaptive", "l2"), ("adaptive", "l1")}
WITHOUT_NORM = [part.name for part in checkable(attacks) if not part.traits.norms]


@pytest.mark.parametrize(
    ("name", "norm"), [pytest.param(*pair, marks=pytest.mark.slow if pair in LONG else ()) for pair in EVERY]
)
def test_keeps_its_promises(name, norm, quick):
    check_attack(attacks.get(name), params=quick.get(name), norms=[norm])


@pytest.mark.parametrize("name", WITHOUT_NORM)
def test_keeps_its_promises_without_a_norm(name, quick):
    check_attack(attacks.get(name), params=quick.get(name))


@pytest.mark.parametrize("name", WITHOUT_NORM)
def test_images_are_neither_hopeless_nor_trivial_without_a_norm(name, verdict_of, quick):
    (case,) = cases("gradients", images=True)
    verdict, _ = verdict_of(case.model, case.x0, None, name, norm=None, eps=None, params=quick.get(name))
    assert set(verdict.outcome) == {"success", "resisted"}
    assert verdict.n_unconfirmed == 0
    hit = torch.tensor([outcome == "success" for outcome in verdict.outcome])
    assert all(bool((distance[hit] > 0).all()) for distance in verdict.distances.values())


@pytest.mark.parametrize(
    ("name", "norm"), [(name, norm) for name, norm in EVERY if not attacks.get(name).traits.needs_eps]
)
def test_the_last_point_of_a_search_for_the_smallest_is_what_it_found(name, norm, verdict_of, quick):
    """Not the clean input, nor a point that it tried in vain."""
    case = cases("gradients")[0]
    settings = {"norm": norm, "eps": None, "params": quick.get(name), "space": case.space}
    smallest, last = (
        verdict_of(case.model, case.x0, None, name, keep=keep, **settings)[0] for keep in ("smallest", "last")
    )
    assert last.outcome == smallest.outcome
    assert "success" in last.outcome


@pytest.mark.parametrize(
    ("name", "norm"), [("fmn", "l2"), ("fmn", "linf"), ("minimum-norm", "l2"), ("minimum-norm", "l1")]
)
def test_whole_numbers_are_reached_by_short_steps(name, norm, verdict_of):
    toy = toys.linear(features=12, classes=3)
    space = replace(Space.box(*toy.bounds), integer=torch.ones(12, dtype=torch.bool))
    x0 = toy.inputs(20).round()
    verdict, _ = verdict_of(toy.model, x0, None, name, norm=norm, eps=None, keep="smallest", space=space)
    assert Counter(verdict.outcome)["success"] >= 18


@pytest.mark.parametrize(("name", "norm"), EVERY)
@pytest.mark.parametrize("case", cases("gradients"), ids=lambda case: case.name)
def test_the_toys_are_neither_hopeless_nor_trivial(name, norm, case, verdict_of, quick):
    """Else the promises above would hold for want of a success, or of a failure."""
    settings = {"norm": norm, "eps": case.eps[norm], "params": quick.get(name), "space": case.space}
    verdict, _ = verdict_of(case.model, case.x0, None, name, **settings)
    count = Counter(verdict.outcome)
    assert count["success"] + count["resisted"] == N_SAMPLES
    assert count["success"] > 0
    if (norm, case.name) not in (("l0", "linear"), ("l0", "table")):  # one feature, moved to a bound, is enough there
        assert count["resisted"] > 0
    assert verdict.n_unconfirmed == 0


@pytest.mark.parametrize(("name", "norm"), EVERY)
@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_max_queries_is_spent_to_the_last_if_there_is_more_to_ask(name, norm, limit, quick):
    part = attacks.get(name)
    settings = part.bind(quick.get(name, {}))
    toy = toys.linear()
    suspicion = toys.suspicion() if part.traits.watches else None
    point = 1 if suspicion is None else 1 + suspicion.passes  # passes that are made together, or not at all
    spent = {}
    for max_queries in (None, limit):
        model, record = toys.recorded(toy.model)
        x0 = toy.inputs(6)
        task = Task(
            x0,
            Goal(toy.model.ask(x0).argmax(1)),
            Space.box(-10, 10),
            norm,
            0.1,
            keep="last",
            max_queries=max_queries,
            within_eps=part.traits.stays_within_eps(norm),
            suspicion=suspicion,
        )
        probe = Probe(model, task, Noise(range(6)))
        part.function(probe, **settings)
        spent[max_queries] = probe.memory.n_forward
        assert record.n_rows == int(probe.memory.n_forward.sum())
    assert torch.equal(spent[limit], spent[None].clamp_max(limit // point * point))


@pytest.mark.parametrize(("name", "norm"), EVERY)
class TestWrongModels:
    """Whatever the model does, every sample has a verdict, and none is called robust that was not attacked."""

    @pytest.fixture
    def attacked(self, name, norm, verdict_of, quick):
        def run(model):
            x0 = toys.linear().inputs(8)
            label = toys.linear().model.ask(x0).argmax(1)
            eps = 2 if norm == "l0" else 0.5
            verdict, _ = verdict_of(model, x0, label, name, norm=norm, eps=eps, params=quick.get(name))
            return verdict

        return run

    def test_one_that_answers_nan(self, name, norm, attacked):
        verdict = attacked(toys.answering_nan(toys.linear().model))
        assert set(verdict.outcome) == {"error"}

    def test_one_that_answers_nan_near_by(self, name, norm, attacked):
        clean = toys.linear().inputs(8)
        toy = toys.answering_nan(toys.linear().model, where=lambda x: ~(x[:, None] == clean).all(2).any(1))
        verdict = attacked(toy)
        assert set(verdict.outcome) == {"error"}
        assert set(verdict.message) == {"the model answered with a number that is not finite"}

    def test_one_that_raises_after_the_clean_pass(self, name, norm, attacked):
        verdict = attacked(toys.raising(toys.linear().model, after=1))
        assert set(verdict.outcome) == {"error"}
        assert "as it was told to" in verdict.message[0]

    def test_one_that_gives_scores_only(self, name, norm, attacked):
        if attacks.get(name).traits.needs != "gradients":
            pytest.skip("needs no gradients")
        verdict = attacked(toys.score_only(toys.linear().model))
        assert set(verdict.outcome) <= {"error", "success"}  # a random start may be a success in itself
        assert "error" in verdict.outcome
        assert all("without gradients" in message for message in verdict.message if message)

    def test_one_that_never_answers_the_same(self, name, norm, attacked):
        verdict = attacked(toys.noisy(toys.linear().model, sigma=0.1))
        assert set(verdict.outcome) <= {"success", "resisted", "already_wrong"}


class TestTheKit:
    """Each way to break a promise is noticed."""

    @staticmethod
    def part(function, needs="gradients"):
        traits = AttackTraits(needs=needs, norms=("linf",), passes=lambda *_: (2, 1), use_when="tests", objective="ace")
        registry = Registry("attacks")
        registry.register("part", traits=traits)(function)
        return registry.get("part")

    def refused(self, function, message):
        with pytest.raises(ConformanceError, match=message):
            check_attack(self.part(function))

    @staticmethod
    def step(probe, size=1.0):
        """One honest FGSM step of `size` times eps."""
        rows = probe.active()
        slope = probe.forward(probe.x0[rows], rows).gradient("ace")
        rows = probe.active()
        x = probe.x0[rows] + size * probe.eps * probe.space.scale * slope[rows].sign()
        return x, rows

    def test_an_honest_attack_passes(self):
        def honest(probe):
            x, rows = self.step(probe)
            probe.forward(probe.project(x, rows), rows)

        check_attack(self.part(honest))

    def test_leaving_eps(self):
        def attack(probe):
            x, rows = self.step(probe, 1.01)
            probe.forward(probe.space.project(x, probe.x0[rows]), rows)

        self.refused(attack, "within eps.*left eps")

    def test_leaving_the_space(self):
        def attack(probe):
            x, rows = self.step(probe)
            probe.forward(x, rows)  # in bounds of the linear toy, but the table has whole numbers

        self.refused(attack, "left the space")

    def test_returning_something(self):
        self.refused(lambda probe: probe.x0, "return nothing, but it returned Tensor")

    def test_asking_behind_the_probes_back(self):
        def attack(probe):
            x, rows = self.step(probe)
            x = probe.project(x, rows)
            if len(rows):
                probe.model.ask(x)
            probe.forward(x, rows)

        self.refused(attack, "ask through the probe: 40 counted, 60 seen")

    def test_taking_more_passes_than_promised(self):
        def attack(probe):
            for _ in range(3):
                probe.forward(probe.x0[probe.active()], probe.active())

        self.refused(attack, "at most 2 forward passes, seen: 3")
        self.refused(attack_of_two_gradients, "at most 1 backward passes, seen: 2")

    def test_looking_at_its_batch_mates(self):
        def attack(probe):
            x, rows = self.step(probe)
            share = len(rows) / N_SAMPLES
            probe.forward(probe.project(probe.x0[rows] + share * (x - probe.x0[rows]), rows), rows)

        self.refused(attack, "alike whatever their batch mates")

    def test_looking_at_its_place_in_the_batch(self):
        def attack(probe):
            x, rows = self.step(probe)
            share = torch.linspace(0.2, 1, len(probe.x0))[rows].view(-1, *[1] * (x.dim() - 1))
            probe.forward(probe.project(probe.x0[rows] + share * (x - probe.x0[rows]), rows), rows)

        self.refused(attack, "alike whatever their batch mates")

    @pytest.mark.parametrize("draw", [lambda: torch.rand(1).item(), random.random, np.random.random])
    def test_drawing_from_a_global_generator(self, draw):
        def attack(probe):
            x, rows = self.step(probe)
            probe.forward(probe.project(x, rows), rows)
            draw()

        states = torch.random.get_rng_state(), random.getstate(), np.random.get_state()
        try:
            self.refused(attack, "global random generator moved")
        finally:
            torch.random.set_rng_state(states[0])
            random.setstate(states[1])
            np.random.set_state(states[2])

    def test_being_random_without_saying_so(self):
        def attack(probe):
            rows = probe.active()
            jump = (probe.noise.uniform(rows, tuple(probe.x0.shape[1:])) * 2 - 1) * probe.eps
            probe.forward(probe.project(probe.x0[rows] + jump * probe.space.scale, rows), rows)

        self.refused(attack, "not to be random, as its traits say")

    def test_forgetting_a_success(self):
        """No attack can, through the probe; so this one tampers with the probe's memory."""

        def attack(probe):
            x, rows = self.step(probe)
            probe.forward(probe.project(x, rows), rows)
            probe.memory.success[:] = False

        self.refused(attack, "to notice every success")

    def test_claiming_a_success_that_is_none(self):
        def attack(probe):
            x, rows = self.step(probe)
            probe.forward(probe.project(x, rows), rows)
            probe.memory.success[:] = True

        self.refused(attack, "points that change the prediction|to need .* but it took")

    def test_needing_more_than_it_says(self):
        def attack(probe):
            self.step(probe)

        with pytest.raises(ModelError, match="without gradients"):
            check_attack(self.part(attack, needs="scores"))


def attack_of_two_gradients(probe):
    rows = probe.active()
    if len(rows):
        passed = probe.forward(probe.x0[rows], rows)
        passed.gradient("ace", retain=True)
        passed.gradient("ace")
