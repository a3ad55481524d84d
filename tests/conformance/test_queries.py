"""`max_queries` is exact, and an attack learns of a model what the model says of points, and nothing else.

Every registered attack is taken through the runner's own path (study, plan, perturb, judge, rows) against a model that
gives what the attack needs and raises at everything else. It knows its samples by a pixel that nothing can change, and
counts who was asked how often, by the attack and by the runner.
"""

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from advrisk import Study
from advrisk.core.registry import Registry
from advrisk.core.traits import CAPABILITIES, AttackTraits, SourceTraits, gives
from advrisk.ledger import Ledger, Storage
from advrisk.parts import REGISTRIES
from advrisk.parts.attacks import attacks
from advrisk.parts.data import Dataset
from advrisk.parts.models.registry import Loaded
from advrisk.run.cell import run_cell
from advrisk.run.planning import outline_study, plan_study
from advrisk.run.preparation import add_detectors
from advrisk.run.walk_back import TURNS, walks_back
from advrisk.run.workbench import Workbench
from advrisk.testing import toys
from advrisk.testing.conformance import checkable

N = 6
LIMITS = (1, 2, 7, 100)
CONV = toys.conv_net()
# Some samples fall within these sizes, and some do not.
EPS = {"linf": 0.06, "l2": 0.4, "l1": 2.5, "l0": 4}
EVERY = [
    (part.name, capability, keep)
    for part in checkable(attacks)
    for capability in CAPABILITIES
    if gives(capability, part.traits.needs)
    for keep in sorted({"first", "last", part.traits.keep})
]


class TooMuchError(AssertionError):
    """The model was asked for what it does not give, or by somebody who must not ask."""


@dataclass
class Guard:
    """A model that says what its capability allows, to whom it may say it, and counts."""

    capability: str
    attacking: bool = False
    by_attack: Counter = field(default_factory=Counter)
    by_runner: Counter = field(default_factory=Counter)

    def answer(self, x):
        """What the attack may ask, through the probe."""
        if not self.attacking:
            raise TooMuchError("the runner is to ask the model as its owner gave it")
        self.by_attack.update(samples_in(x))
        return self.said(x)

    def owner(self, x):
        """What the runner asks, for clean inputs and for verdicts."""
        if self.attacking:
            raise TooMuchError("an attack asked the owner's model")
        self.by_runner.update(samples_in(x))
        return self.said(x)

    def said(self, x):
        if self.capability == "gradients":
            return CONV.answer(x)
        if x.requires_grad or torch.is_grad_enabled():
            raise TooMuchError(f"a model that gives {self.capability} was asked for slopes")
        scores = F.log_softmax(CONV.answer(x), 1)
        return scores.argmax(1) if self.capability == "labels" else scores

    @contextmanager
    def under_attack(self):
        self.attacking = True
        try:
            yield
        finally:
            self.attacking = False


class Closed:
    """A function that has nothing but its call: no module, no weights."""

    __slots__ = ("_call",)

    def __init__(self, call):
        object.__setattr__(self, "_call", call)

    def __call__(self, x):
        return object.__getattribute__(self, "_call")(x)

    def __getattribute__(self, name):
        raise TooMuchError(f"the model was asked for its {name}")


def samples_in(x):
    """The numbers of the samples, from the pixel that cannot change."""
    return (x.detach()[:, 0, 0, 0] * 100).round().int().tolist()


def samples():
    x = toys.images(N).numpy()
    x[:, 0, 0, 0] = np.arange(N) / 100
    still = np.zeros(x.shape[1:], dtype=bool)
    still[0, 0, 0] = True
    with torch.no_grad():
        y = CONV.answer(torch.from_numpy(x)).argmax(1).numpy()
    return Dataset("guarded", x, y, CONV.n_classes, masks={"immutable": still})


def registered(kind, name, function, traits):
    registry = Registry(kind)
    registry.register(name, traits=traits)(function)
    return registry


def watched(part, guard):
    """The same attack; the guard knows when it is at work."""

    @wraps(part.function)
    def attack(probe, **settings):
        with guard.under_attack():
            return part.function(probe, **settings)

    return registered("attacks", part.name, attack, part.traits)


def set_up(part, guard, arms, folder):
    """A workbench and the cells of a study with these arms, the clean one first."""
    traits = SourceTraits("tests")
    loaded = Loaded(lambda x: guard.said(x), "guarded", guard.capability, n_classes=CONV.n_classes)
    registries = replace(
        REGISTRIES,
        attacks=watched(part, guard),
        models=registered("models", "guarded", lambda: loaded, traits),
        data=registered("data", "guarded", samples, traits),
    )
    content = {"name": "queries", "data": {"source": "guarded", "evaluate": N}, "device": "cpu", "keep_inputs": "none"}
    content |= {"models": {"model": {"source": "guarded"}}, "arms": arms, "success": "prediction"}
    if part.traits.watches:
        content["detectors"] = ["confidence"]
    study = Study.from_dict(content).spec
    bench = Workbench.set_up(study, registries, folder=folder, run="run", device="cpu")
    detectors = add_detectors(bench, {})
    model = replace(bench.material.models["model"], answer=Closed(guard.answer), owner=Closed(guard.owner))
    bench = replace(bench, material=replace(bench.material, models={"model": model}))
    bench._warm.add("model")  # which is asked once before any clock runs, on behalf of no sample, too
    cells = list(plan_study(outline_study(bench, detectors), Ledger(Storage(folder)), bench).cells())
    for cell in cells:
        bench.suspicion(cell.model, cell.arm)  # which is tried out once, on behalf of no sample
    return bench, cells


def carried_out(part, guard, arms, folder):
    """The arm of each cell that attacks, its rows by sample, and what the model counted meanwhile."""
    bench, cells = set_up(part, guard, arms, folder)
    for cell in cells:
        guard.by_attack.clear()
        guard.by_runner.clear()
        outcomes = run_cell(cell, bench).tables["outcomes"].to_pylist()
        rows = {int(row["sample"].split("/")[1]): row for row in outcomes}
        if cell.arm.kind == "attack":
            yield cell.arm, rows, Counter(guard.by_attack), Counter(guard.by_runner)


def arms_of(part, params, *, keep):
    """One for each norm and limit."""
    sizes = [{"norm": norm, "eps": EPS[norm]} for norm in part.traits.norms] or [{}]
    params = params | ({"detector": "confidence"} if part.traits.watches else {})
    return [
        {"attack": part.name, "keep": keep, "max_queries": limit, **size, **params}
        for size in sizes
        for limit in LIMITS
    ]


def column(rows, name):
    return Counter({sample: row[name] for sample, row in rows.items() if row[name]})


def slopes_of_the_judge(part, arm, rows):
    """Backward passes of the walk back, which the guard does not see."""
    needs = part.traits.resolved(arm.params, arm.norm, arm.eps).needs
    if not walks_back(arm) or needs != "gradients" or arm.norm == "l0":
        return Counter()
    return Counter({sample: TURNS for sample, row in rows.items() if row["outcome"] == "success"})


@pytest.mark.parametrize(("name", "capability", "keep"), EVERY)
def test_no_sample_is_asked_once_too_often(name, capability, keep, quick, tmp_path):
    part = attacks.get(name)
    arms = arms_of(part, quick.get(name, {}), keep=keep)
    seen = set()
    for arm, rows, by_attack, by_runner in carried_out(part, Guard(capability), arms, tmp_path):
        assert {row["outcome"] for row in rows.values()} <= {"success", "resisted"}, (arm.id, rows)
        assert by_attack == column(rows, "n_forward"), arm.id
        assert by_runner + slopes_of_the_judge(part, arm, rows) == column(rows, "n_judge"), arm.id
        assert max(by_attack.values()) <= arm.max_queries, arm.id
        assert min(by_attack.values()) > 0, arm.id
        if keep == "last" and arm.max_queries == 1:
            assert set(by_attack.values()) == {1}, arm.id
        seen.add((arm.norm, arm.max_queries))
    assert seen == {(norm, limit) for norm in part.traits.norms or (None,) for limit in LIMITS}


class TestTheGuard:
    """What must not happen is noticed."""

    @staticmethod
    def outcome_of(attack, tmp_path, *, needs="labels"):
        traits = AttackTraits(needs=needs, norms=("linf",), passes=lambda *_: (9, 9), use_when="tests")
        part = registered("attacks", "mine", attack, traits).get("mine")
        arms = [{"attack": "mine", "norm": "linf", "eps": 0.1, "max_queries": 1}]
        ((_, rows, by_attack, _),) = carried_out(part, Guard(needs), arms, tmp_path)
        return {row["message"] for row in rows.values()}, by_attack, column(rows, "n_forward")

    @pytest.mark.parametrize(
        ("asks", "message"),
        [
            (lambda probe: probe.model.ask_owner(probe.x0), "an attack asked the owner's model"),
            (lambda probe: probe.model.answer.module, "the model was asked for its module"),
            (lambda probe: probe.model.ask(probe.x0.clone().requires_grad_(True)), "labels was asked for slopes"),
            (lambda probe: probe.model.ask(probe.x0), "labels was asked for slopes"),
            (lambda probe: probe.forward(probe.x0, probe.active()).scores, "gives labels only"),
        ],
    )
    def test_asking_for_more_than_labels(self, asks, message, tmp_path):
        (found,), *_ = self.outcome_of(asks, tmp_path)
        assert message in found

    def test_asking_a_score_model_for_slopes(self, tmp_path):
        def attack(probe):
            probe.forward(probe.x0, probe.active()).gradient("ace")

        (found,), *_ = self.outcome_of(attack, tmp_path, needs="scores")
        assert "without gradients" in found

    def test_asking_behind_the_probes_back(self, tmp_path):
        def attack(probe):
            probe.labels(probe.x0, probe.active())
            with torch.no_grad():
                probe.model.ask(probe.x0)

        _, asked, counted = self.outcome_of(attack, tmp_path)
        assert asked == dict.fromkeys(range(N), 2)
        assert counted == dict.fromkeys(range(N), 1)
