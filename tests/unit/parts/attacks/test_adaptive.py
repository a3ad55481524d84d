"""The attack that knows the detector: against problems whose answer is known, and against plain search."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from advrisk.engine import Goal, Noise, Probe, Space, Suspicion, Task
from advrisk.parts.attacks import attacks
from advrisk.parts.data import data
from advrisk.parts.detectors import detectors
from advrisk.parts.models import checked_model, models
from advrisk.testing import toys

ATTACK = attacks.get("adaptive")
FEATURES = 12
N = 20
TOY = toys.linear(features=FEATURES, classes=2)
X0 = TOY.inputs(N)
WAY = torch.randn(FEATURES, generator=torch.Generator().manual_seed(5)).double()  # the score is its product with x
EPS = {"linf": 0.6, "l2": 1.2}


def linear_score(x, model):
    return x.flatten(1).double() @ WAY


def run(score=linear_score, *, model=TOY.model, x0=X0, norm="linf", eps=None, differentiable=True, passes=0, **given):
    settings = {key: given.pop(key) for key in ("keep", "max_queries", "space") if key in given}
    with torch.no_grad():
        clean = model.ask(x0)
    task = Task(
        x0=x0,
        goal=Goal(clean.argmax(1), clean=clean),
        norm=norm,
        eps=EPS[norm] if eps is None else eps,
        within_eps=False,
        suspicion=Suspicion("toy", score, passes, differentiable),
        **({"keep": "strongest", "space": Space.box(-10, 10)} | settings),
    )
    probe = Probe(model, task, Noise(range(len(x0))))
    ATTACK.function(probe, **ATTACK.bind(given))
    assert not probe.memory.failed
    return probe.memory


def lead():
    """How far each sample is from the other class, and the slope of that lead of the other one."""
    scores = X0.double() @ TOY.weight.double().T + TOY.bias.double()
    best = scores.argmax(1)
    gap = scores.gather(1, best[:, None]) - scores.gather(1, 1 - best[:, None])
    return gap.squeeze(1).numpy(), (TOY.weight[1 - best] - TOY.weight[best]).double().numpy()


def least_change(norm):
    """The least change of the score that breaks a sample: min h·δ with g·δ ≥ gap and δ in the ball; NaN: none does."""
    h, eps = WAY.numpy(), EPS[norm]
    found = []
    for gap, g in zip(*lead(), strict=True):
        if norm == "linf":
            best = linprog(h, A_ub=-g[None], b_ub=[-gap], bounds=[(-eps, eps)] * FEATURES)
            found.append(best.fun if best.status == 0 else np.nan)
            continue
        free = -eps * h / np.linalg.norm(h)
        if g @ free >= gap:
            found.append(h @ free)
            continue
        along, way = gap / (g @ g) * g, h - (h @ g) / (g @ g) * g  # on the boundary: the foot, and the rest of eps
        rest = eps**2 - along @ along
        found.append(h @ along - np.sqrt(rest) * np.linalg.norm(way) if rest >= 0 else np.nan)
    return np.array(found)


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize(
    ("model", "differentiable", "settings", "share"),
    [
        (TOY.model, True, {}, 0.99),
        (TOY.model, False, {"samples": 20}, 0.97),
        (toys.score_only(TOY.model), False, {"samples": 20}, 0.97),
    ],
    ids=["slopes", "score-estimated", "both-estimated"],
)
def test_comes_near_the_best_point_of_a_linear_problem(norm, model, differentiable, settings, share):
    """Of the way from the least change that breaks a sample to the most that any point can have."""
    best = least_change(norm)
    memory = run(norm=norm, model=model, differentiable=differentiable, **settings)
    broken = memory.success.numpy()
    breakable = ~np.isnan(best)
    assert 5 < breakable.sum() < N
    assert not broken[~breakable].any()
    assert broken.sum() == breakable.sum() or (settings and broken.sum() == breakable.sum() - 1)
    change = ((memory.kept - X0).double() @ WAY).numpy()[broken]
    dual = {"linf": 1, "l2": 2}[norm]
    worst = EPS[norm] * np.linalg.norm(WAY.numpy(), ord=dual)
    reached = (worst - change) / (worst - best[broken])
    assert (reached <= 1 + 1e-4).all()
    assert reached.mean() >= share
    assert reached.min() >= share - 0.05


def test_is_far_less_suspicious_than_an_attack_that_does_not_look():
    best = least_change("linf")
    blind = run(lambda x, model: 0 * linear_score(x, model))
    knowing = run()
    change = [((memory.kept - X0).double() @ WAY).numpy()[~np.isnan(best)].mean() for memory in (blind, knowing)]
    assert change[1] < change[0] - 1


@pytest.mark.parametrize("times", [1e-9, 1e9])
def test_the_scale_of_a_score_does_not_matter(times):
    plain, scaled = run(), run(lambda x, model: times * linear_score(x, model))
    torch.testing.assert_close(scaled.kept, plain.kept, atol=1e-3, rtol=0)
    assert torch.equal(scaled.success, plain.success)


def test_no_single_weight_does_better_than_the_search():
    """A plain loop with a fixed λ on the same problem, for λ over six powers of ten."""
    model, x0, eps = toys.conv_net(), toys.images(16), 0.1
    label = model.ask(x0).argmax(1)

    def score(x, model):
        wave = torch.linspace(0, 6, x[0].numel()).sin().view(x.shape[1:]).double()
        return (x.double() * wave).flatten(1).sum(1).exp()

    def fixed(weight):
        least = torch.full((16,), torch.inf, dtype=torch.float64)
        x = x0.clone()
        for place in range(120):
            x.requires_grad_(True)
            scores, suspicion = model.ask(x), score(x, model)
            hit = scores.argmax(1) != label
            least = torch.where(hit, torch.minimum(least, suspicion.detach()), least)
            own = torch.nn.functional.cross_entropy(scores, label, reduction="sum")
            (slope,) = torch.autograd.grad(own - weight * suspicion.sum(), x)
            step = eps / 10 * min(1, 2 * (1 - place / 120))
            x = (x.detach() + step * slope.sign()).clamp(x0 - eps, x0 + eps).clamp(0, 1)
        return least

    grid = torch.stack([fixed(10.0**power) for power in np.linspace(-4, 2, 13)]).amin(0)
    memory = run(score, model=model, x0=x0, eps=eps, space=Space.box(0, 1))
    found = torch.where(memory.success, score(memory.kept, model), torch.inf)
    broken = grid.isfinite()
    assert int(broken.sum()) > 4
    assert bool(found[broken].isfinite().all())
    start = score(x0, model)
    better = (found - start)[broken] <= (grid - start)[broken] + 0.02 * start[broken]
    assert better.double().mean() >= 0.8
    assert found[broken].sum() <= 1.01 * grid[broken].sum()


def test_steps_that_shorten_find_what_steps_of_one_length_pass_over(monkeypatch):
    """On digits, against the model's own confidence: of nearly every sample a less suspicious success."""
    digits = data.get("mnist-5k").function()
    model = checked_model("plain", models.get("demo").function(name="plain"), digits)
    x0 = torch.from_numpy(digits.x[(digits.split == "test").nonzero()[0][:40]])
    detector = detectors.get("confidence").function()

    def found():
        memory = run(detector.score, model=model, x0=x0, eps=0.1, passes=1, space=Space.box(0, 1))
        with torch.no_grad():
            return torch.where(memory.success, detector.score(memory.kept, model), torch.nan)

    shortened = found()
    monkeypatch.setitem(ATTACK.function.__globals__, "_shortened", lambda share: 1.0)
    constant = found()
    broken = shortened.isfinite()
    assert torch.equal(broken, constant.isfinite())
    assert int(broken.sum()) > 15
    assert float((shortened < constant)[broken].double().mean()) > 0.9


def test_samples_that_cannot_go_unseen_are_broken_all_the_same():
    """A detector that gives every other class away: no success is less suspicious than another."""

    def score(x, model):
        return (model.ask(x).argmax(1) != model.ask(x0_like(x)).argmax(1)).double()

    def x0_like(x):
        nearest = torch.cdist(x.flatten(1), X0.flatten(1)).argmin(1)
        return X0[nearest]

    seen = run(score, differentiable=False, passes=1, samples=4, rounds=2)
    assert seen.success.tolist() == (~np.isnan(least_change("linf"))).tolist()


class TestPasses:
    """Exactly as many as the model sees, and as the settings say."""

    @staticmethod
    def run(suspicion, **settings):
        model, record = toys.recorded(TOY.model)
        memory = run(
            suspicion.score,
            model=model,
            differentiable=suspicion.differentiable,
            passes=suspicion.passes,
            keep="last",
            **settings,
        )
        assert record.n_rows - N == int(memory.n_forward.sum())  # one more for the clean answers of the goal
        return memory

    def test_with_slopes(self):
        memory = self.run(toys.suspicion(), steps=6, rounds=2, restarts=2)
        assert memory.n_forward.unique().tolist() == [2 * 2 * (6 + 1) * 2]
        broken = memory.n_forward_first >= 0
        assert memory.n_backward[~broken].unique().tolist() == [24]  # whose score never mattered
        assert int(memory.n_backward.max()) <= 24 * (1 + 2)
        assert int(memory.n_backward[broken].min()) > 24

    def test_with_estimates(self):
        memory = self.run(toys.suspicion(differentiable=False), steps=6, rounds=2, samples=10)
        assert int(memory.n_forward.max()) <= (2 * 7 + 2 * 6 * 10) * 2
        assert memory.n_backward.unique().tolist() == [12]
        broken = memory.n_forward_first >= 0
        assert memory.n_forward[~broken].unique().tolist() == [2 * 7 * 2]  # nothing is estimated before a success


def test_without_a_detector_it_says_so():
    task = Task(X0, Goal(TOY.model.ask(X0).argmax(1)), Space.box(-10, 10), "linf", 0.6, within_eps=False)
    with pytest.raises(ValueError, match="knows no detector"):
        ATTACK.function(Probe(TOY.model, replace(task, suspicion=None), Noise(range(N))))
