"""Hidden layers, found by hooks, against the same computed by hand; dropout against masks written out."""

import gc
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from advrisk.core.errors import ModelError
from advrisk.core.seeds import generator
from advrisk.engine import Model, Suspicion
from advrisk.engine.layers import (
    activations,
    all_layers,
    dropout_layers,
    has_dropout,
    hidden_layers,
    last_hidden,
    last_layer,
    named_layers,
    refuse_without_dropout,
)
from advrisk.engine.suspicion import scored
from advrisk.engine.thinning import thinned_answers
from advrisk.engine.threads import one_thread
from advrisk.parts.models.quick import quickened
from advrisk.parts.models.torch_module import Normalised
from advrisk.testing import toys


@pytest.fixture(autouse=True, scope="module")
def single_thread() -> Iterator[None]:
    """As in a run: sums that are split over threads depend on the size of the batch."""
    with one_thread():
        yield


def model_of(make: Callable[[], nn.Module], *, shape: tuple[int, ...] = (1, 8, 8), classes: int = 4) -> Model:
    """An untrained module as a model."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        module = make().eval().requires_grad_(False)
    return Model("net", module, "gradients", shape, classes, (0.0, 1.0), digest="net", min_rows=16)


def inputs(n: int = 20, *, shape: tuple[int, ...] = (1, 8, 8), seed: int = 0) -> Tensor:
    return torch.rand(n, *shape, generator=torch.Generator().manual_seed(seed))


def module_in(model: Model) -> Any:
    return model.answer


class Functional(nn.Module):
    """Its activations are functions: they have no name."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3, padding=1)
        self.norm = nn.BatchNorm2d(3)
        self.hidden = nn.Linear(3 * 64, 6)
        self.head = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm(self.conv(x)), inplace=True)
        answer: Tensor = self.head(input=F.relu(self.hidden(x.flatten(1))))
        return answer


class Residual(nn.Module):
    """One ReLU module, used three times, and a part that returns two things."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 3, 3, padding=1)
        self.second = nn.Conv2d(3, 3, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)
        self.pair = Pair()
        self.head = nn.Linear(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.first(x))
        x = self.relu(x + self.second(x))
        _, x = self.pair(x)
        answer: Tensor = self.head(self.relu(x))
        return answer


class Pair(nn.Module):
    def forward(self, x: Tensor) -> tuple[str, Tensor]:
        return "pooled", x.mean((2, 3)) - 0.1


class TestNames:
    def test_activations_of_a_sequential(self) -> None:
        model = toys.conv_net()
        assert hidden_layers(model) == ("1", "3")
        assert last_layer(model) == "5"
        assert [layer.name for layer in all_layers(model)] == ["0", "1", "2", "3", "4", "5"]

    def test_they_are_looked_for_once_and_by_nobodys_passes(self) -> None:
        calls: list[int] = []

        class Counting(Functional):
            def forward(self, x: Tensor) -> Tensor:
                calls.append(len(x))
                return super().forward(x)

        model = model_of(Counting)
        found = all_layers(model)
        assert all_layers(replace(model, name="again")) == found
        assert calls == [17]
        assert len(all_layers(replace(model, min_rows=20))) == len(found)  # other inputs may go other ways
        assert calls == [17, 20]
        assert all_layers(model_of(Residual)) != found

        def count(x: Tensor, watched: Model) -> Tensor:
            assert hidden_layers(watched)
            return x.flatten(1)[:, 0]

        x = inputs(3)
        fresh = model_of(Counting)
        assert scored(Suspicion("names", count), fresh, x, fresh.ask(x)).n_forward == 0

    def test_what_is_known_of_a_module_goes_with_it(self) -> None:
        model = model_of(Functional)
        gone = weakref.ref(module_in(model))
        assert all_layers(model)
        del model
        gc.collect()
        assert gone() is None

    def test_layers_with_weights_where_activations_are_functions(self) -> None:
        assert hidden_layers(model_of(Functional)) == ("conv", "hidden")
        assert last_layer(model_of(Functional)) == "head"

    def test_one_activation_alone_is_not_enough(self) -> None:
        net = model_of(lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 5), nn.ReLU(), nn.Linear(5, 4)))
        assert hidden_layers(net) == ("1",)

    def test_a_module_that_is_used_again(self) -> None:
        assert hidden_layers(model_of(Residual)) == ("relu", "relu#2", "relu#3")

    def test_what_lies_before_the_first_or_behind_the_last_weights_is_not_hidden(self) -> None:
        net = model_of(
            lambda: nn.Sequential(
                nn.Tanh(), nn.Flatten(), nn.Linear(64, 5), nn.ReLU(), nn.Tanh(), nn.Linear(5, 4), nn.ELU(), nn.Tanh()
            )
        )
        assert hidden_layers(net) == ("3", "4")
        assert last_layer(net) == "5"

    def test_normalisation_and_a_quicker_version_change_no_answer(self) -> None:
        net = model_of(lambda: Normalised(Functional(), (0.5,), (0.25,)))
        quick = replace(net, answer=quickened(module_in(net), inputs(17)), owner=net.answer)
        assert quick.answer is not net.answer
        assert hidden_layers(quick) == ("module.conv", "module.hidden")
        for one, other in zip(*(activations(m, inputs(), ["module.norm"]) for m in (net, quick)), strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=0)

    def test_weight_norm_is_weights(self) -> None:
        def make() -> nn.Module:
            hidden = nn.utils.parametrizations.weight_norm(nn.Linear(64, 17))
            return nn.Sequential(nn.Flatten(), hidden, nn.Linear(17, 4))

        assert hidden_layers(model_of(make)) == ("1",)

    def test_names_are_checked(self) -> None:
        model = model_of(Residual)
        assert named_layers(model, ["pair", "first"]) == ("pair", "first")
        with pytest.raises(ModelError, match=r"net has no layer 'relu#4'; did you mean 'relu#3'\?"):
            named_layers(model, ["relu#4"])

    def test_a_layer_without_rows_cannot_be_named(self) -> None:
        class Turned(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                return x.T

        def make() -> nn.Module:
            return nn.Sequential(nn.Flatten(), nn.Linear(64, 5), Turned(), Turned(), nn.Linear(5, 4))

        with pytest.raises(ModelError, match="the output of layer '2' has no row for each input"):
            named_layers(model_of(make), ["2"])


class TestRefusals:
    def test_a_function(self) -> None:
        with pytest.raises(ModelError, match=r"linear is no torch module but .*answer: it has no hidden layers"):
            hidden_layers(toys.linear().model)

    def test_scores_alone(self) -> None:
        with pytest.raises(ModelError, match="conv-scores gives scores only, so its hidden layers cannot be read"):
            hidden_layers(toys.score_only(toys.conv_net()))

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def test_torchscript(self) -> None:
        model = toys.conv_net()
        traced = torch.jit.trace(module_in(model), toys.images(2))  # type: ignore[no-untyped-call]
        with pytest.raises(ModelError, match="conv is TorchScript, which hides its layers"):
            has_dropout(replace(model, answer=traced))

    def test_torch_export(self) -> None:
        model = toys.conv_net()
        rows = ({0: torch.export.Dim("batch")},)
        program = torch.export.export(module_in(model), (toys.images(3),), dynamic_shapes=rows)
        with pytest.raises(ModelError, match="conv has no hidden layer: no layer with weights runs as a module"):
            hidden_layers(replace(model, answer=program.module()))

    @pytest.mark.parametrize("names", [hidden_layers, last_layer])
    def test_a_linear_model(self, names: Callable[[Model], object]) -> None:
        net = model_of(lambda: nn.Sequential(nn.Flatten(), nn.ReLU(), nn.ReLU(), nn.Linear(64, 4)))
        with pytest.raises(ModelError, match="net has no hidden layer: one layer with weights runs"):
            names(net)
        with pytest.raises(ModelError, match="no layer with weights"):
            names(model_of(lambda: nn.Linear(64, 4), shape=(64,)))

    def test_an_answer_of_the_wrong_shape(self) -> None:
        with pytest.raises(ModelError, match=r"answered with shape \(20, 4\); expected \(20, 5\)"):
            activations(replace(model_of(Functional), n_classes=5), inputs(), ["conv"])


class TestActivations:
    def test_they_are_what_the_layers_give(self) -> None:
        model, x = model_of(Functional), inputs()
        net = module_in(model)
        conv = net.conv(x)
        hidden = net.hidden(F.relu(net.norm(conv)).flatten(1))
        answer, found = activations(model, x, ["hidden", "conv"])
        torch.testing.assert_close(answer, net(x))
        torch.testing.assert_close(found[0], hidden)
        torch.testing.assert_close(found[1], conv.flatten(1))

    def test_calls_are_told_apart_though_the_module_works_in_place(self) -> None:
        model, x = model_of(Residual), inputs()
        net = module_in(model)
        one = F.relu(net.first(x))
        two = F.relu(one + net.second(one))
        three = F.relu(two.mean((2, 3)) - 0.1)
        _, found = activations(model, x, ["first", "relu", "relu#2", "pair", "relu#3"])
        expected = [net.first(x), one, two, two.mean((2, 3)) - 0.1, three]
        for given, wanted in zip(found, expected, strict=True):
            torch.testing.assert_close(given, wanted.flatten(1))

    @pytest.mark.parametrize("make", [Functional, Residual])
    def test_what_goes_into_the_last_layer(self, make: Callable[[], nn.Module]) -> None:
        model, x = model_of(make), inputs()
        answer, hidden = last_hidden(model, x, last="head")
        torch.testing.assert_close(module_in(model).head(hidden), answer)

    def test_a_row_does_not_depend_on_its_batch_mates(self) -> None:
        model, x = model_of(Functional), inputs(40)
        _, whole = activations(model, x, ["conv", "hidden"])
        _, last = last_hidden(model, x, last="head")
        for rows in ([3], [5, 3], list(range(30, 40)), list(range(17))):
            answer, found = activations(model, x[rows], ["conv", "hidden"])
            assert len(answer) == len(rows)
            assert all(torch.equal(part, all_of_it[rows]) for part, all_of_it in zip(found, whole, strict=True))
            assert torch.equal(last_hidden(model, x[rows], last="head")[1], last[rows])

    def test_reduced_as_soon_as_they_are_there(self) -> None:
        model, x = model_of(Residual), inputs(5)
        _, found = activations(model, x, ["relu", "relu#2"])
        factor = {"relu": 1, "relu#2": 3}
        _, sums = activations(model, x, list(factor), each=lambda name, given: factor[name] * given.sum(1))
        assert [part.shape for part in sums] == [(5,), (5,)]
        torch.testing.assert_close(sums, [found[0].sum(1), 3 * found[1].sum(1)])

    def test_slopes_go_through(self) -> None:
        model = model_of(lambda: Functional().double())
        x = inputs(16).double().requires_grad_(True)
        assert torch.autograd.gradcheck(lambda x: activations(model, x, ["hidden"])[1][0][:2], x, fast_mode=True)

    def test_no_hook_is_left_behind_even_by_an_error(self) -> None:
        class Failing(Functional):
            def forward(self, x: Tensor) -> Tensor:
                self.conv(x)
                raise RuntimeError("no")

        for make in (Functional, Failing):
            model = model_of(make)
            try:
                activations(model, inputs(), ["conv"])
            except RuntimeError:
                assert make is Failing
            assert not any(layer._forward_hooks for layer in module_in(model).modules())


def dropping(*, kind: Callable[..., nn.Module] = nn.Dropout, p: float = 0.3) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1),
        nn.ReLU(inplace=True),
        kind(p),
        nn.Conv2d(3, 2, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(128, 4),
    )


def mask(seed: int, draw: int, name: str, shape: tuple[int, ...], p: float) -> Tensor:
    """What a draw keeps, as it is said to be drawn."""
    kept = generator("dropout", seed, draw, name).random(shape) >= p
    return torch.from_numpy(kept).float() / (1 - p)


class TestDropout:
    def test_only_modules_that_run_and_drop_count(self) -> None:
        assert dropout_layers(model_of(dropping)) == ("2", "6")
        assert not has_dropout(model_of(Functional))
        assert not has_dropout(model_of(lambda: nn.Sequential(nn.Flatten(), nn.Dropout(0.0), nn.Linear(64, 4))))

        class Unused(Functional):
            def __init__(self) -> None:
                super().__init__()
                self.drop = nn.Dropout(0.5)

        assert not has_dropout(model_of(Unused))
        with pytest.raises(ModelError, match="net has no dropout to draw from"):
            refuse_without_dropout(model_of(Unused))
        with pytest.raises(ModelError, match="net has no dropout to draw from"):
            next(thinned_answers(model_of(Unused), inputs(), draws=1, seed=0))

    @pytest.mark.parametrize(("kind", "shape"), [(nn.Dropout, (3, 8, 8)), (nn.Dropout2d, (3, 1, 1))])
    def test_answers_are_those_of_networks_thinned_by_hand(
        self, kind: Callable[..., nn.Module], shape: tuple[int, ...]
    ) -> None:
        model, x = model_of(lambda: dropping(kind=kind)), inputs()
        net = module_in(model)
        for draw, answer in enumerate(thinned_answers(model, x, draws=4, seed=9)):
            hidden = F.relu(net[0](x)) * mask(9, draw, "2", shape, 0.3)
            hidden = F.relu(net[3](hidden)).flatten(1) * mask(9, draw, "6", (128,), 0.5)
            torch.testing.assert_close(answer, net[7](hidden))

    def test_layers_that_are_changed_in_place_are_given_again_unchanged(self) -> None:
        class InPlace(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first, self.drop, self.head = nn.Linear(64, 6), nn.Dropout(0.4), nn.Linear(6, 4)

            def forward(self, x: Tensor) -> Tensor:
                answer: Tensor = self.head(self.drop(self.first(x.flatten(1)).mul_(2)))
                return answer

        model, x = model_of(InPlace), inputs()
        net = module_in(model)
        with torch.no_grad():
            for draw, answer in enumerate(thinned_answers(model, x, draws=4, seed=1)):
                expected = net.head(2 * net.first(x.flatten(1)) * mask(1, draw, "drop", (6,), 0.4))
                torch.testing.assert_close(answer, expected)
        with torch.inference_mode():
            torch.testing.assert_close(list(thinned_answers(model, x, draws=4, seed=1))[-1], expected)

    def test_a_layer_that_gives_a_tensor_only_the_second_time(self) -> None:
        class Fickle(nn.Module):
            def forward(self, x: Tensor, *, pair: bool) -> Any:
                return (x, 2 * x) if pair else 3 * x

        class Asking(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.fickle, self.drop, self.head = Fickle(), nn.Dropout(0.4), nn.Linear(64, 4)

            def forward(self, x: Tensor) -> Tensor:
                x = self.fickle(x.flatten(1), pair=True)[1]
                answer: Tensor = self.head(self.drop(self.fickle(x, pair=False)))
                return answer

        model, x = model_of(Asking), inputs()
        for draw, answer in enumerate(thinned_answers(model, x, draws=3, seed=1)):
            expected = module_in(model).head(6 * x.flatten(1) * mask(1, draw, "drop", (64,), 0.4))
            torch.testing.assert_close(answer, expected)

    def test_layers_before_the_dropout_run_once(self) -> None:
        class Counting(nn.Linear):
            calls = 0

            def forward(self, input: Tensor) -> Tensor:  # noqa: A002
                self.calls += 1
                return super().forward(input)

        model = model_of(
            lambda: nn.Sequential(nn.Flatten(), Counting(64, 6), nn.ReLU(), nn.Dropout(0.5), Counting(6, 4))
        )
        list(thinned_answers(model, inputs(), draws=10, seed=0))
        looking = 1  # the pass that finds the layers
        assert module_in(model)[1].calls == looking + 1
        assert module_in(model)[4].calls == looking + 10

    def test_a_layer_used_before_and_behind_the_dropout(self) -> None:
        class Again(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.mix, self.drop, self.head = nn.Linear(64, 64), nn.Dropout(0.4), nn.Linear(64, 4)

            def forward(self, x: Tensor) -> Tensor:
                x = self.mix(self.mix(x.flatten(1)))
                answer: Tensor = self.head(self.drop(self.mix(self.drop(x))))
                return answer

        model, x = model_of(Again), inputs()
        net = module_in(model)
        for draw, answer in enumerate(thinned_answers(model, x, draws=3, seed=1)):
            hidden = net.mix(net.mix(x.flatten(1))) * mask(1, draw, "drop", (64,), 0.4)
            hidden = net.mix(hidden) * mask(1, draw, "drop#2", (64,), 0.4)
            torch.testing.assert_close(answer, net.head(hidden))

    def test_the_module_is_as_before_and_no_generator_moved(self) -> None:
        model, x = model_of(dropping), inputs()
        before, state = model.ask(x), torch.get_rng_state()
        list(thinned_answers(model, x, draws=3, seed=0))
        assert torch.equal(torch.get_rng_state(), state)
        assert torch.equal(model.ask(x), before)
        for layer in module_in(model).modules():
            assert not layer._forward_hooks
            assert "forward" not in vars(layer)
            assert not layer.training

    def test_draws_seeds_and_only_those_make_a_difference(self) -> None:
        model, x = model_of(dropping), inputs(40)
        one, two = thinned_answers(model, x, draws=2, seed=0)
        (other,) = thinned_answers(model, x, draws=1, seed=1)
        assert not torch.allclose(one, two)
        assert not torch.allclose(one, other)
        for rows in ([7], [8, 7], list(range(20, 40))):
            some = list(thinned_answers(model, x[rows], draws=2, seed=0))
            assert torch.equal(some[0], one[rows])
            assert torch.equal(some[1], two[rows])

    def test_slopes_are_those_of_networks_thinned_by_hand(self) -> None:
        model, x = model_of(dropping), inputs().requires_grad_(True)
        net = module_in(model)
        found = torch.stack(list(thinned_answers(model, x, draws=3, seed=9)))
        expected = []
        for draw in range(3):
            hidden = F.relu(net[0](x)) * mask(9, draw, "2", (3, 8, 8), 0.3)
            expected.append(net[7](F.relu(net[3](hidden)).flatten(1) * mask(9, draw, "6", (128,), 0.5)))
        weights = torch.randn(3, 20, 4, generator=torch.Generator().manual_seed(0))
        slopes = [torch.autograd.grad((part * weights).sum(), x) for part in (found, torch.stack(expected))]
        torch.testing.assert_close(*slopes)
        assert not any(layer._forward_hooks or "forward" in vars(layer) for layer in net.modules())

    @pytest.mark.parametrize(
        "kind", [nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout]
    )
    def test_values_are_those_that_torch_drops_to(self, kind: Callable[..., nn.Module]) -> None:
        inner = {nn.Dropout1d: 1, nn.Dropout3d: 3}.get(kind, 2)  # type: ignore[call-overload]
        shape = (50, *[2] * inner)
        drop = kind(0.3)
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(0)
            expected = drop.train()(torch.ones(40, *shape))
        answer = nn.Sequential(nn.Unflatten(1, shape), drop.eval(), nn.Flatten())
        model = Model("drop", answer, "gradients", (expected[0].numel(),), expected[0].numel(), (1, 1), digest="drop")
        (found,) = thinned_answers(model, torch.ones(2, expected[0].numel()), draws=1, seed=0)
        assert found.unique().tolist() == pytest.approx(expected.unique().tolist())
        assert torch.equal(found[0], found[1])
        by_channel = "Feature" in kind.__name__ or kind.__name__[-1] == "d"
        assert (found[0].view(50, -1).std(1).amax() == 0) == by_channel

    def test_the_share_that_is_dropped(self) -> None:
        drop = nn.Sequential(nn.Identity(), nn.Dropout(0.3))
        model = Model("drop", drop, "gradients", (100_000,), 100_000, (0.0, 1.0), digest="drop")
        (found,) = thinned_answers(model, torch.ones(1, 100_000), draws=1, seed=0)
        assert float((found == 0).float().mean()) == pytest.approx(0.3, abs=0.01)

    def test_dropout_over_something_else_than_rows_is_refused(self) -> None:
        class Turned(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.drop, self.head = nn.Dropout(0.5), nn.Linear(64, 4)

            def forward(self, x: Tensor) -> Tensor:
                answer: Tensor = self.head(self.drop(x.flatten(1).T).T)
                return answer

        with pytest.raises(ModelError, match="net: dropout 'drop' does not work on rows of inputs"):
            has_dropout(model_of(Turned))
        with pytest.raises(ModelError, match="let rows come first"):
            next(thinned_answers(model_of(Turned), inputs(16), draws=1, seed=0))
