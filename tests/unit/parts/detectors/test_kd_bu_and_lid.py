"""KD-BU and LID: their parts against other libraries and brute force, and both on attacks against a trained net."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from safetensors.torch import load, save
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from advrisk.core.errors import AdvriskError, DataError, ModelError, StudyError
from advrisk.core.seeds import generator
from advrisk.engine import Model
from advrisk.engine.layers import activations, hidden_layers
from advrisk.engine.threads import one_thread
from advrisk.parts.detectors import Examples, State, detectors
from advrisk.parts.detectors.contrast import contrast, fit_logistic, log_odds
from advrisk.parts.detectors.kd_bu import FOLDS, Density, bandwidths, cross_validated_bandwidth, dropout_variance
from advrisk.parts.detectors.kd_bu import DensityAndUncertainty as KdBu
from advrisk.parts.detectors.lid import LocalIntrinsicDimension as Lid
from advrisk.parts.detectors.neighbours import squared_distances
from advrisk.testing import toys

BOTH: list[Any] = [KdBu(draws=20), Lid(minibatch=80, neighbours=15)]
each_detector = pytest.mark.parametrize("detector", BOTH, ids=["kd-bu", "lid"])


@pytest.fixture(autouse=True, scope="module")
def single_thread() -> Iterator[None]:
    """As in a run: sums that are split over threads depend on the size of the batch."""
    with one_thread():
        yield


def net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.1),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 32),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(32, 10),
    )


class _Double(nn.Module):
    """A copy that works in float64."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = copy.deepcopy(inner).double().eval().requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.inner(x.double())
        return answer


@dataclass(frozen=True)
class World:
    """A trained model, what detectors may learn from, and clean and adversarial inputs that they have never seen."""

    model: Model
    examples: Examples
    clean: Tensor
    adversarial: Tensor


def attacked(module: nn.Module, x: Tensor, label: Tensor, eps: float, steps: int = 10) -> Tensor:
    moved = x.clone()
    for _ in range(steps):
        moved.requires_grad_(True)
        (slope,) = torch.autograd.grad(F.cross_entropy(module(moved), label, reduction="sum"), moved)
        moved = (moved.detach() + eps / 4 * slope.sign()).clamp(x - eps, x + eps).clamp(0, 1)
    return moved


@pytest.fixture(scope="module")
def world() -> World:
    """Digits of 8 × 8 pixels; PGD in linf at 0.2."""
    x, label = (torch.from_numpy(part) for part in load_digits(return_X_y=True))
    x = (x / 16).float().view(-1, 1, 8, 8)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        module = net()
        optimiser = torch.optim.Adam(module.parameters(), 3e-3)
        for _ in range(6):
            for rows in torch.randperm(1000).split(32):
                loss = F.cross_entropy(module(x[rows]), label[rows])
                optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
    module.eval().requires_grad_(False)
    model = Model("digits", module, "gradients", (1, 8, 8), 10, (0.0, 1.0), digest="digits", min_rows=16)
    moved = attacked(module, x, label, 0.2)
    fooled = (module(moved).argmax(1) != label) & (module(x).argmax(1) == label)
    origin = fooled[:1000].nonzero().squeeze(1)
    return World(
        model,
        Examples(x[:1000], label[:1000], moved[origin], origin, seed=5),
        x[1000:],
        moved[1000:][fooled[1000:]],
    )


@pytest.fixture(scope="module")
def states(world: World) -> dict[str, State]:
    return {type(one).__name__: fitted(one, world.examples, world.model) for one in BOTH}


def fitted(detector: Any, examples: Examples, model: Model) -> State:
    state: State = detector.fit(examples, model, on_progress=lambda _: None)
    return state


def alike(one: State, other: State) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


class TestBoth:
    @each_detector
    def test_it_finds_attacks_on_inputs_it_has_never_seen(
        self, detector: Any, world: World, states: dict[str, State]
    ) -> None:
        state = states[type(detector).__name__]
        with torch.no_grad():
            clean, found = (detector.score(x, world.model, state) for x in (world.clean, world.adversarial))
        assert len(found) > 200
        truth = np.r_[np.zeros(len(clean)), np.ones(len(found))]
        assert roc_auc_score(truth, torch.cat([clean, found]).numpy()) > 0.65

    @each_detector
    def test_a_row_stands_alone(self, detector: Any, world: World, states: dict[str, State]) -> None:
        state, x = states[type(detector).__name__], torch.cat([world.clean[:30], world.adversarial[:30]])
        with torch.no_grad():
            whole = detector.score(x, world.model, state)
            assert whole.shape == (60,)
            assert whole.dtype == torch.float64
            for rows in ([0], [59], [31, 4], list(range(10, 50)), list(range(17)), list(reversed(range(60)))):
                assert torch.equal(detector.score(x[rows], world.model, state), whole[rows])

    @each_detector
    def test_a_slope_stands_alone(self, detector: Any, world: World, states: dict[str, State]) -> None:
        def slopes(rows: list[int]) -> Tensor:
            x = world.clean[rows].requires_grad_(True)
            (slope,) = torch.autograd.grad(detector.score(x, world.model, states[type(detector).__name__]).sum(), x)
            return slope

        whole = slopes(list(range(50)))
        assert bool((whole.flatten(1).abs().amax(1) > 0).all())
        for rows in ([3], [40, 2], list(range(20, 45))):
            assert torch.equal(slopes(rows), whole[rows])

    @each_detector
    def test_the_seed_decides_and_nothing_else(self, detector: Any, world: World, states: dict[str, State]) -> None:
        few = replace(world.examples, clean=world.examples.clean[:400], label=world.examples.label[:400])
        some = few.origin < 400
        few = replace(few, adversarial=few.adversarial[some], origin=few.origin[some])
        before = torch.get_rng_state(), str(np.random.get_state())
        one, again = fitted(detector, few, world.model), fitted(detector, few, world.model)
        assert alike(one, again)
        assert not alike(one, fitted(detector, replace(few, seed=6), world.model))
        assert torch.equal(torch.get_rng_state(), before[0])
        assert str(np.random.get_state()) == before[1]

    @each_detector
    def test_its_state_survives_a_file(self, detector: Any, world: World, states: dict[str, State]) -> None:
        state, x = states[type(detector).__name__], world.clean[:20]
        loaded = load(save(dict(state)))
        assert alike(state, loaded)
        assert torch.equal(detector.score(x, world.model, state), detector.score(x, world.model, loaded))

    @each_detector
    def test_slopes_are_right(self, detector: Any, world: World, states: dict[str, State]) -> None:
        """By differences, on a float64 copy of the model, along random directions."""
        exact = replace(world.model, answer=_Double(world.model.answer))
        state = states[type(detector).__name__]
        # With noise, so that no ReLU lies on its kink.
        noise = torch.rand(16, 1, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        x = world.clean[:16] + 0.01 * noise
        x.requires_grad_(True)
        (slope,) = torch.autograd.grad(detector.score(x, exact, state).sum(), x)
        way = torch.randn(x.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        step = 1e-7
        with torch.no_grad():
            ahead, behind = (detector.score(x + sign * step * way, exact, state) for sign in (1, -1))
        found = (slope * way).flatten(1).sum(1)
        assert found.numpy() == pytest.approx(((ahead - behind) / (2 * step)).numpy(), rel=1e-4, abs=1e-5)

    @each_detector
    def test_progress_goes_up_to_one(self, detector: Any, world: World) -> None:
        shares: list[float] = []
        detector.fit(world.examples, world.model, on_progress=shares.append)
        assert shares == sorted(shares)
        assert shares[-1] == 1
        assert len(shares) > 3

    @each_detector
    def test_scores_stay_finite_far_from_everything(
        self, detector: Any, world: World, states: dict[str, State]
    ) -> None:
        x = torch.stack([torch.zeros(1, 8, 8), torch.ones(1, 8, 8), torch.full((1, 8, 8), 1e4)])
        drawn = generator("lid", world.examples.seed).permutation(1000)[:2]  # among LID's neighbours
        x = torch.cat([x, world.examples.clean[torch.from_numpy(drawn)]])
        assert bool(torch.isfinite(detector.score(x, world.model, states[type(detector).__name__])).all())

    @each_detector
    @pytest.mark.parametrize(
        ("model", "message"),
        [
            (toys.linear().model, "linear is no torch module"),
            (toys.score_only(toys.conv_net()), "gives scores only"),
        ],
        ids=["function", "scores"],
    )
    def test_models_that_cannot_be_looked_into_are_refused(
        self, detector: Any, model: Model, message: str, world: World
    ) -> None:
        with pytest.raises(ModelError, match=message):
            fitted(detector, world.examples, model)

    @each_detector
    def test_too_few_successes_are_refused(self, detector: Any, world: World) -> None:
        few = replace(world.examples, adversarial=world.examples.adversarial[:2], origin=world.examples.origin[:2])
        with pytest.raises(
            DataError, match=r"learns from successful attacks on digits: found \d, but it needs at least 5"
        ):
            fitted(detector, few, world.model)

    def test_traits(self) -> None:
        for name, dropout in (("kd-bu", True), ("lid", False)):
            traits = detectors.get(name).traits
            assert (traits.needs, traits.learns, traits.inside, traits.dropout) == (
                "gradients",
                "attacks",
                True,
                dropout,
            )
            assert traits.differentiable


class TestContrast:
    def test_noise_is_as_long_as_the_attack(self, world: World) -> None:
        wide = replace(world.model, bounds=(-9.0, 9.0))  # nothing is cut off
        learned = contrast(world.examples, wide, "test")
        n = len(world.examples.adversarial)
        assert len(learned.x) == 1000 + 2 * n
        noisy, moved = learned.x[1000:-n], learned.x[-n:]
        clean = world.examples.clean[world.examples.origin]
        lengths = [(part - clean).flatten(1).norm(dim=1) for part in (noisy, moved)]
        torch.testing.assert_close(*lengths)
        assert not torch.allclose(noisy, moved)
        assert torch.equal(learned.attacked.nonzero().squeeze(1), torch.arange(1000 + n, 1000 + 2 * n))
        assert torch.equal(learned.origin[-n:], world.examples.origin)

    def test_noise_stays_within_the_bounds(self, world: World) -> None:
        x = contrast(world.examples, world.model, "test").x
        assert 0 <= float(x.min()) <= float(x.max()) <= 1

    def test_rows_that_are_left_out_and_a_limit(self, world: World) -> None:
        without = torch.arange(100, 300)
        learned = contrast(world.examples, world.model, "test", without=without, most=50)
        assert len(learned.x) == 150
        assert not torch.isin(learned.origin, without).any()
        moved = world.examples.clean[learned.origin] - learned.x
        size = moved.abs().flatten(1).amax(1)
        assert torch.equal(size[:50], torch.zeros(50))
        assert bool((size[100:] <= 0.2 + 1e-6).all())

    def test_the_regression_is_that_of_scikit_learn(self) -> None:
        rng = np.random.default_rng(0)
        attacked = np.arange(300) < 60
        features = rng.normal(size=(300, 3)) * [1, 100, 1e-6] + attacked[:, None] * [1, 50, -1e-6]
        state = fit_logistic(torch.from_numpy(features), torch.from_numpy(attacked), toys.linear().model)
        scaler = StandardScaler().fit(features)
        z = scaler.transform(features)
        expected = LogisticRegression(class_weight="balanced").fit(z, attacked)
        found = log_odds(torch.from_numpy(features), state)
        assert found.numpy() == pytest.approx(expected.decision_function(z), rel=1e-6, abs=1e-8)
        assert torch.sigmoid(found).numpy() == pytest.approx(expected.predict_proba(z)[:, 1], rel=1e-6)

    def test_a_feature_that_never_changes_and_one_that_is_not_finite(self) -> None:
        features = torch.randn(40, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        features[:, 1] = 3
        state = fit_logistic(features, torch.arange(40) < 20, toys.linear().model)
        assert bool(torch.isfinite(log_odds(features, state)).all())
        features[4, 1] = torch.inf
        with pytest.raises(ModelError, match="the outputs of its layers are not finite for 1 example of 40"):
            fit_logistic(features, torch.arange(40) < 20, toys.linear().model)


class TestDensity:
    def test_it_is_that_of_the_predicted_class(self) -> None:
        hidden = torch.randn(90, 4, generator=torch.Generator().manual_seed(0))
        span = torch.tensor([[0, 30], [30, 90]])
        density = Density(hidden, span, 0.8, torch.arange(90))
        x = torch.randn(20, 4, generator=torch.Generator().manual_seed(1))
        classes = torch.arange(20) % 2
        expected = [
            KernelDensity(bandwidth=0.8).fit(hidden[slice(*span[number])]).score_samples(row[None])[0]
            for row, number in zip(x, classes, strict=True)
        ]
        assert density.log(x, classes).numpy() == pytest.approx(expected, rel=1e-6)

    def test_an_input_is_not_compared_with_itself(self) -> None:
        hidden = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
        density = Density(hidden, torch.tensor([[0, 30]]), 0.8, torch.arange(100, 130))
        found = density.log(hidden, torch.zeros(30, dtype=torch.long), origin=torch.arange(100, 130))
        expected = [
            KernelDensity(bandwidth=0.8).fit(np.delete(hidden.numpy(), i, 0)).score_samples(row[None])[0]
            for i, row in enumerate(hidden.numpy())
        ]
        assert found.numpy() == pytest.approx(expected, rel=1e-6)

    def test_while_fitting_no_input_is_compared_with_itself_nor_what_was_made_from_it_with_it(
        self, world: World
    ) -> None:
        """Mean and spread of the log-density that the regression learned from, written out."""
        module: Any = world.model.answer
        state = fitted(KdBu(draws=2, bandwidth=0.5), world.examples, world.model)
        learned = contrast(world.examples, world.model, "kd-bu")
        points, rows = (module[:9](x).double().numpy() for x in (world.examples.clean, learned.x))
        same = world.model.ask(learned.x).argmax(1)[:, None] == world.examples.label
        kernels = -cdist(rows, points, "sqeuclidean") / (2 * 0.5**2)
        means = []
        for allowed in (same, same & (learned.origin[:, None] != torch.arange(1000))):
            kept = np.where(allowed, kernels, -np.inf)
            constant = points.shape[1] / 2 * np.log(2 * np.pi * 0.5**2)
            found = logsumexp(kept, axis=1) - np.log(allowed.sum(1).numpy()) - constant
            means.append((found.mean(), found.std()))
        assert (float(state["mean"][0]), float(state["scale"][0])) == pytest.approx(means[1], rel=1e-4)
        assert abs(means[0][0] - means[1][0]) > 0.05 * abs(means[1][0]), "it matters"

    @pytest.mark.parametrize("seed", [0, 1, 2])
    def test_the_bandwidth_is_that_of_a_grid_search(self, seed: int) -> None:
        points = torch.randn(83, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * 40
        grid = bandwidths([squared_distances(points, points)], 3)
        assert grid[20] == pytest.approx(float(points.std(0).square().mean().sqrt()), rel=1e-9)
        fold = generator("folds", seed).permutation(83) % FOLDS
        cut = [(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(FOLDS)]
        search = GridSearchCV(KernelDensity(), {"bandwidth": grid}, cv=cut).fit(points.numpy())
        assert cross_validated_bandwidth([points], seed) == search.best_params_["bandwidth"]
        assert grid[0] < search.best_params_["bandwidth"] < grid[-1]

    def test_points_that_are_all_the_same_still_give_a_bandwidth(self) -> None:
        assert 0 < cross_validated_bandwidth([torch.ones(20, 3)], 0) < 10

    def test_a_class_with_few_points_takes_those_of_all(self, world: World) -> None:
        few = (world.examples.label != 3) | (torch.arange(1000) < 30)  # a handful of threes
        assert 0 < int((world.examples.label[few] == 3).sum()) < 10
        state = fitted(
            KdBu(draws=2, points=50),
            Examples(
                world.examples.clean[few],
                world.examples.label[few],
                world.examples.adversarial[:50],
                torch.arange(50),
                seed=0,
            ),
            world.model,
        )
        assert state["span"].tolist() == [
            *([50 * k, 50 * k + 50] for k in range(3)),
            [450, 500],
            *([50 * k - 50, 50 * k] for k in range(4, 10)),
        ]
        assert state["points"].shape == (500, 32)
        threes = world.clean[world.model.ask(world.clean).argmax(1) == 3]
        assert len(threes) > 20
        assert bool(torch.isfinite(KdBu(draws=2).score(threes, world.model, state)).all())

    def test_points_are_what_goes_into_the_last_layer_unless_one_is_named(self, world: World) -> None:
        module: Any = world.model.answer
        plain = fitted(KdBu(draws=2, bandwidth=0.5), world.examples, world.model)
        named = fitted(KdBu(draws=2, bandwidth=0.5, layer="7"), world.examples, world.model)
        assert float(plain["bandwidth"]) == 0.5
        order = world.examples.label.argsort(stable=True)
        hidden = module[:7](world.examples.clean[order])
        torch.testing.assert_close(named["points"], module[7](hidden))
        torch.testing.assert_close(plain["points"], F.relu(module[7](hidden)))

    def test_an_unknown_layer_is_refused(self, world: World) -> None:
        with pytest.raises(ModelError, match="digits has no layer 'head'"):
            fitted(KdBu(layer="head"), world.examples, world.model)

    def test_few_clean_inputs_are_refused_without_the_name_that_the_run_says(self, world: World) -> None:
        few = replace(world.examples, clean=world.examples.clean[:9], label=world.examples.label[:9])
        few = replace(few, origin=torch.arange(9), adversarial=few.adversarial[:9])
        with pytest.raises(DataError, match=r"^kd-bu learns from at least 10 clean inputs, found 9"):
            fitted(KdBu(draws=2), few, world.model)

    def test_no_dropout_is_refused(self, world: World) -> None:
        examples = replace(world.examples, label=world.examples.label % 4)
        with pytest.raises(ModelError, match="conv has no dropout to draw from"):
            fitted(KdBu(), examples, toys.conv_net())


class TestUncertainty:
    def test_it_is_the_variance_over_masks_written_out(self, world: World) -> None:
        module: Any = world.model.answer
        x, passes = world.clean[:20], []
        for draw in range(7):
            one = torch.from_numpy(generator("dropout", 3, draw, "3").random((8, 4, 4)) >= 0.1) / 0.9
            two = torch.from_numpy(generator("dropout", 3, draw, "9").random(32) >= 0.3) / 0.7
            hidden = F.max_pool2d(F.relu(module[0](x)), 2) * one.float()
            hidden = F.relu(module[7](F.relu(module[4](hidden)).flatten(1))) * two.float()
            passes.append(torch.softmax(module[10](hidden).double(), 1))
        expected = np.stack(passes).var(0).mean(1)
        assert dropout_variance(world.model, x, draws=7, seed=3).numpy() == pytest.approx(expected, rel=1e-4)

    def test_many_draws_reach_the_closed_form(self) -> None:
        """Two classes, logits ±Σ w_i x_i m_i / (1 − p) that are small: the probability is nearly linear in them.

        p_1 ≈ ½ + s/2 with s = Σ w_i x_i m_i / (1 − p), so its variance is ¼ Σ (w_i x_i)² p / (1 − p).
        """
        weight = torch.linspace(-1, 1, 30, dtype=torch.float64) * 1e-3
        head = nn.Linear(30, 2, bias=False)
        head.weight = nn.Parameter(torch.stack([weight, -weight]))
        model = Model(
            "linear", _Double(nn.Sequential(nn.Dropout(0.3), head)), "gradients", (30,), 2, (0.0, 1.0), "linear"
        )
        x = torch.rand(3, 30, generator=torch.Generator().manual_seed(0))
        expected = 0.25 * ((weight * x) ** 2).sum(1) * 0.3 / 0.7
        found = dropout_variance(model, x, draws=4000, seed=0)
        assert found.numpy() == pytest.approx(expected.numpy(), rel=0.1)


class TestLid:
    def test_dimensions_are_those_of_the_formula_in_every_layer(self, world: World) -> None:
        """The logistic regression is made to hand one layer through, which is compared with plain loops."""
        x, reference = world.clean[:6], world.examples.clean[:60]
        layers = hidden_layers(world.model)
        assert layers == ("1", "5", "8")
        _, kept = activations(world.model, reference, layers)
        for place, layer in enumerate(layers):
            state = {
                **{f"reference.{number}": given for number, given in enumerate(kept)},
                "mean": torch.zeros(3, dtype=torch.float64),
                "scale": torch.ones(3, dtype=torch.float64),
                "coefficients": torch.eye(3, dtype=torch.float64)[place],
                "intercept": torch.zeros(1, dtype=torch.float64),
            }
            _, (rows,) = activations(world.model, x, [layer])
            _, (points,) = activations(world.model, reference, [layer])
            expected = []
            for row in rows.double():
                halves = []
                for half in (points[:30], points[30:]):
                    radii = np.sort((half.double() - row).norm(dim=1).numpy())[:10]
                    halves.append(-1 / np.log(radii / radii[-1]).mean())
                expected.append(np.mean(halves))
            found = Lid(neighbours=10, minibatch=30, batches=2).score(x, world.model, state)
            assert found.numpy() == pytest.approx(np.array(expected), rel=1e-6)

    def test_what_is_kept_is_what_the_layers_gave_for_the_minibatches(self, world: World) -> None:
        """Passed through the model together with what is scored, they give the same dimensions."""
        module: Any = world.model.answer
        detector = Lid(minibatch=40, neighbours=7, batches=2)
        state = fitted(detector, world.examples, world.model)
        drawn = torch.from_numpy(generator("lid", 5).permutation(1000)[:80])
        x = world.clean[:30]
        columns = []
        for place, end in enumerate((2, 6, 9)):
            hidden = module[:end](torch.cat([x, world.examples.clean[drawn]])).flatten(1).double()
            torch.testing.assert_close(state[f"reference.{place}"].double(), hidden[30:])
            radii = torch.cdist(hidden[:30], hidden[30:]).view(30, 2, 40).sort(2).values[..., :7]
            columns.append((-1 / (radii / radii[..., -1:]).log().mean(2)).mean(1))
        expected = log_odds(torch.stack(columns, 1), state)
        assert detector.score(x, world.model, state).numpy() == pytest.approx(expected.numpy(), rel=1e-4, abs=1e-4)

    def test_a_state_of_the_older_form_is_refused(self, world: World, states: dict[str, State]) -> None:
        older = {name: given for name, given in states["LocalIntrinsicDimension"].items() if "reference" not in name}
        older["reference"] = world.examples.clean[:80]
        with pytest.raises(DataError, match="its fit for digits is stored in an older form"):
            BOTH[1].score(world.clean[:3], world.model, older)

    def test_layers_can_be_named(self, world: World) -> None:
        state = fitted(Lid(layers=("0", "7"), minibatch=50), world.examples, world.model)
        assert state["coefficients"].shape == (2,)
        with pytest.raises(ModelError, match="digits has no layer '77'; did you mean '7'"):
            fitted(Lid(layers=("77",)), world.examples, world.model)

    def test_what_was_made_from_the_reference_is_not_learned_from(self, world: World) -> None:
        """Only inputs of the reference were attacked: nothing is left to learn from."""
        drawn = torch.from_numpy(generator("lid", 5).permutation(1000)[:100])
        inside = torch.isin(world.examples.origin, drawn)
        only = replace(
            world.examples, adversarial=world.examples.adversarial[inside], origin=world.examples.origin[inside]
        )
        assert len(only.origin) > 5
        with pytest.raises(DataError, match="found 0, but"):
            fitted(Lid(), only, world.model)

    def test_settings_that_do_not_fit(self, world: World) -> None:
        with pytest.raises(StudyError, match="found neighbours 20 and minibatch 20"):
            Lid(minibatch=20)
        with pytest.raises(StudyError, match="an empty list of layers"):
            Lid(layers=())
        with pytest.raises(DataError, match=r"^lid learns from more than 1000 clean inputs .*, found 1000"):
            fitted(Lid(batches=10), world.examples, world.model)
        assert issubclass(DataError, AdvriskError)
