"""MagNet against scipy, its own definitions and attacks on the demo's model."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from safetensors.torch import load_file, save_file
from scipy.spatial.distance import jensenshannon
from sklearn.metrics import roc_auc_score
from torch import Tensor

from advrisk.core.errors import DataError, StudyError
from advrisk.engine import Model
from advrisk.parts.data import data
from advrisk.parts.detectors import Examples, detectors, magnet
from advrisk.parts.detectors.magnet import MagNet, jensen_shannon, restored, thresholds
from advrisk.parts.models import checked_model, models
from advrisk.parts.training.inner import perturbed
from advrisk.testing import toys

MODEL = toys.conv_net()
QUICK: dict[str, Any] = {"epochs": 2, "batch": 16}


def clean_examples(x: Tensor, *, seed: int = 3) -> Examples:
    return Examples(x, torch.zeros(len(x), dtype=torch.long), x[:0], torch.zeros(0, dtype=torch.long), seed)


def fitted(x: Tensor, model: Model = MODEL, *, seed: int = 3, **settings: Any) -> tuple[MagNet, dict[str, Tensor]]:
    part = detectors.get("magnet")
    detector = part.function(**part.bind(QUICK | settings))
    return detector, dict(detector.fit(clean_examples(x, seed=seed), model, on_progress=lambda share: None))


class TestJensenShannon:
    def test_it_is_the_square_of_scipys_distance(self) -> None:
        one, other = (5 * torch.randn(2, 20, 7, generator=torch.Generator().manual_seed(0))).unbind()
        for temperature in (1.0, 10.0, 40.0):
            p, q = (torch.softmax(logits.double() / temperature, 1).numpy() for logits in (one, other))
            expected = jensenshannon(p, q, axis=1) ** 2  # in nats
            assert jensen_shannon(one, other, temperature).numpy() == pytest.approx(expected, rel=1e-7, abs=1e-15)

    def test_its_ends(self) -> None:
        sure = torch.tensor([[1e4, 0.0], [1e4, 0.0], [0.0, -torch.inf]])
        other = torch.tensor([[0.0, 1e4], [1e4, 0.0], [-torch.inf, 0.0]])
        assert jensen_shannon(sure, other, 1.0).tolist() == pytest.approx([math.log(2), 0.0, math.log(2)])

    def test_it_can_be_differentiated(self) -> None:
        one, other = torch.randn(2, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).unbind()
        assert torch.autograd.gradcheck(lambda x: jensen_shannon(x, other, 10.0), one.requires_grad_(True))


class TestThresholds:
    @pytest.mark.parametrize(("rate", "n_above"), [(0.0, 0), (0.001, 1), (0.005, 5), (0.0049, 4), (0.1, 100)])
    def test_no_more_than_the_rate_lie_above(self, rate: float, n_above: int) -> None:
        marks = torch.rand(1000, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
        found = thresholds(marks, rate)
        assert (marks > found).sum(0).tolist() == [n_above] * 3
        assert (marks >= found).sum(0).tolist() == [n_above + 1] * 3

    def test_none_is_zero(self) -> None:
        assert (thresholds(torch.zeros(5, 2), 0.1) > 0).all()


class TestConvolution:
    def test_values_and_slopes_are_those_of_torch(self) -> None:
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(2, 2, 5, 4, dtype=torch.float64, generator=generator).requires_grad_(True)
        weight = torch.randn(3, 2, 3, 3, dtype=torch.float64, generator=generator).requires_grad_(True)
        bias = torch.randn(3, dtype=torch.float64, generator=generator).requires_grad_(True)
        found = magnet._Convolution.apply(x, weight, bias)
        expected = F.conv2d(x, weight, bias, padding=1)
        assert torch.equal(found, expected)
        slopes = [torch.autograd.grad((value**2).sum(), (x, weight, bias)) for value in (found, expected)]
        for ours, theirs in zip(*slopes, strict=True):
            torch.testing.assert_close(ours, theirs)


class TestAutoEncoders:
    @pytest.mark.parametrize(("channels", "size"), [(1, 8), (3, 9), (2, 5)])
    def test_any_size_is_restored_to_itself(self, channels: int, size: int) -> None:
        model = toys.conv_net(channels=channels, size=size)
        x = toys.images(20, channels=channels, size=size)
        detector, state = fitted(x, model)
        for name in ("pooled", "shallow"):
            assert restored(x, name, (0.0, 1.0), state).shape == x.shape
        assert detector.score(x, model, state).isfinite().all()

    def test_height_and_width_may_differ(self) -> None:
        x = torch.rand(20, 1, 7, 12, generator=torch.Generator().manual_seed(0))
        model = Model("sums", lambda x: x.flatten(1)[:, :3], "gradients", (1, 7, 12), 3, (0.0, 1.0), digest="sums")
        detector, state = fitted(x, model)
        assert detector.score(x, model, state).shape == (20,)

    def test_layers_are_those_of_the_paper(self) -> None:
        _, state = fitted(toys.images(20), filters=3)
        shapes = {name: tuple(value.shape) for name, value in state.items() if name.endswith("weight")}
        inner = [(3, 3, 3, 3)] * 3
        expected = [(3, 1, 3, 3), *inner, (1, 3, 3, 3)]
        assert [shapes[f"pooled.{place}.weight"] for place in range(5)] == expected
        assert [shapes[f"shallow.{place}.weight"] for place in range(3)] == [expected[0], inner[0], expected[-1]]
        assert len(shapes) == 8

    def test_training_lessens_the_error(self) -> None:
        x = torch.nn.functional.interpolate(toys.images(64, size=2), size=(8, 8))
        errors = []
        for epochs in (1, 60):
            _, state = fitted(x, epochs=epochs, noise=0.0, learning_rate=0.01)
            errors.append(float((restored(x, "shallow", (0.0, 1.0), state) - x).square().mean()))
        assert errors[1] < 0.5 * errors[0]

    def test_what_is_held_out_is_not_trained_on(self) -> None:
        """Other inputs there change thresholds and no weight; one other among the rest changes the weights."""
        x = toys.images(40)
        order = torch.randperm(40, generator=torch.Generator().manual_seed(3))
        held, rest = (x.clone() for _ in range(2))
        held[order[:20]] = 1 - held[order[:20]]
        rest[order[20]] = 1 - rest[order[20]]
        (_, plain), (_, other), (_, moved) = (fitted(inputs, held_out=0.5) for inputs in (x, held, rest))
        weights = [name for name in plain if name != "thresholds"]
        assert all(torch.equal(plain[name], other[name]) for name in weights)
        assert not torch.equal(plain["thresholds"], other["thresholds"])
        assert not any(torch.equal(plain[name], moved[name]) for name in weights)

    def test_noise_teaches_it_to_restore_what_lies_below(self) -> None:
        x = torch.nn.functional.interpolate(toys.images(64, size=2), size=(8, 8))
        noise = 0.3 * torch.randn(x.shape, generator=torch.Generator().manual_seed(5))
        errors = []
        for level in (0.0, 0.3):
            _, state = fitted(x, epochs=100, noise=level, learning_rate=0.03, pooled=False, temperatures=[])
            gap = restored((x + noise).clamp(0, 1), "shallow", (0.0, 1.0), state) - x
            errors.append(float(gap.square().mean()))
        assert errors[1] < 0.75 * errors[0]

    def test_bounds_do_not_matter_but_for_rounding(self) -> None:
        x = toys.images(40)
        wide = replace(MODEL, answer=lambda x: MODEL.answer((x + 2) / 4), bounds=(-2.0, 2.0))
        detector, state = fitted(x)
        same, other = fitted(4 * x - 2, wide)
        expected = detector.score(x, MODEL, state)
        torch.testing.assert_close(same.score(4 * x - 2, wide, other), expected, rtol=1e-2, atol=0)


class TestDetector:
    def test_marks_are_their_definitions(self) -> None:
        x = toys.images(20)
        detector, state = fitted(x, temperatures=[10.0, 40.0])
        pooled, shallow = (restored(x, name, (0.0, 1.0), state).double().numpy() for name in ("pooled", "shallow"))
        given = x.double().numpy()
        p, q = (MODEL.ask(inputs).double() for inputs in (x, restored(x, "pooled", (0.0, 1.0), state)))
        expected = [
            ((given - pooled) ** 2).mean((1, 2, 3)),
            np.abs(given - shallow).mean((1, 2, 3)),
            *(
                jensenshannon(torch.softmax(p / t, 1).numpy(), torch.softmax(q / t, 1).numpy(), axis=1) ** 2
                for t in (10.0, 40.0)
            ),
        ]
        marks = detector.marks(x, MODEL, state)
        assert marks.numpy() == pytest.approx(np.stack(expected, 1), rel=1e-5, abs=1e-10)
        ratios = marks / state["thresholds"]
        assert torch.equal(detector.score(x, MODEL, state), ratios.amax(1))

    def test_thresholds_hold_their_rate_on_what_was_held_out(self) -> None:
        x = toys.images(100)
        detector, state = fitted(x, held_out=0.5, false_alarms=0.1, temperatures=[10.0])
        order = torch.randperm(100, generator=torch.Generator().manual_seed(3))
        held = detector.marks(x[order[:50]], MODEL, state)
        assert (held > state["thresholds"]).sum(0).tolist() == [5, 5, 5]

    def test_without_pooling_the_shallow_one_does_it_all(self) -> None:
        x = toys.images(20)
        detector, state = fitted(x, pooled=False, temperatures=[])
        assert not any(name.startswith("pooled") for name in state)
        gap = x.double() - restored(x, "shallow", (0.0, 1.0), state).double()
        expected = torch.stack([gap.square().mean((1, 2, 3)), gap.abs().mean((1, 2, 3))], 1)
        torch.testing.assert_close(detector.marks(x, MODEL, state), expected, rtol=1e-5, atol=0)

    def test_without_temperatures_the_model_is_not_asked(self) -> None:
        detector, state = fitted(toys.images(20), toys.raising(MODEL), temperatures=[])
        assert detector.score(toys.images(3), toys.raising(MODEL), state).shape == (3,)

    def test_log_probabilities_give_the_same_as_logits(self) -> None:
        x = toys.images(20)
        detector, state = fitted(x)
        found = detector.score(x, toys.score_only(MODEL), state)
        torch.testing.assert_close(found, detector.score(x, MODEL, state), rtol=1e-3, atol=1e-6)

    def test_the_same_seed_gives_the_same_state_and_another_another(self) -> None:
        x = toys.images(40)
        before = torch.random.get_rng_state()
        (_, first), (_, again), (_, other) = fitted(x), fitted(x), fitted(x, seed=4)
        assert first.keys() == again.keys() == other.keys()
        assert all(torch.equal(first[name], again[name]) for name in first)
        assert not any(torch.equal(first[name], other[name]) for name in first)
        assert torch.equal(torch.random.get_rng_state(), before)

    def test_what_was_learned_can_be_stored_as_safetensors(self, tmp_path: Path) -> None:
        detector, state = fitted(toys.images(20))
        save_file(state, tmp_path / "magnet.safetensors")
        again = load_file(tmp_path / "magnet.safetensors")
        x = toys.images(5, seed=1)
        assert torch.equal(detector.score(x, MODEL, again), detector.score(x, MODEL, state))

    def test_rows_do_not_depend_on_their_batch(self) -> None:
        x = toys.images(40)
        detector, state = fitted(x)
        whole = detector.score(x, MODEL, state)
        for rows in (range(1), range(3, 8), range(39, -1, -1), range(0, 40, 2)):
            assert torch.equal(detector.score(x[list(rows)], MODEL, state), whole[list(rows)])

    def test_the_score_can_be_differentiated(self) -> None:
        sums = Model("sums", lambda x: 3 * x.flatten(1)[:, :4], "gradients", (1, 8, 8), 4, (0.0, 1.0), digest="sums")
        detector, state = fitted(toys.images(20), sums)
        exact = {name: value.double() for name, value in state.items()}
        x = toys.images(2).double().requires_grad_(True)
        for settings in (detector, replace(detector, temperatures=())):
            chosen = exact | {"thresholds": exact["thresholds"][: 2 + len(settings.temperatures)]}
            assert torch.autograd.gradcheck(lambda x, s=settings, c=chosen: s.score(x, sums, c), x, atol=1e-4)

    def test_progress_is_told_up_to_the_end(self) -> None:
        told: list[float] = []
        MagNet(epochs=3).fit(clean_examples(toys.images(20)), MODEL, on_progress=told.append)
        assert told == pytest.approx([k / 6 for k in range(1, 7)])

    def test_too_few_inputs_are_refused(self) -> None:
        with pytest.raises(DataError, match="at least 10 clean inputs, found 9; give the split"):
            fitted(toys.images(9))

    def test_impossible_settings_are_refused(self) -> None:
        for settings, message in (
            ({"temperatures": [10, 0]}, r"temperatures: must be more than 0, found \[10.0, 0.0\]"),
            ({"false_alarms": 1}, "less than 1"),
            ({"held_out": 0}, "more than 0"),
            ({"epochs": 0}, "at least 1"),
        ):
            with pytest.raises(StudyError, match=message):
                fitted(toys.images(20), **settings)

    def test_attacks_on_the_demo_score_higher_than_clean_digits(self) -> None:
        digits = data.get("mnist-5k").function()
        model = checked_model("plain", models.get("demo").function(name="plain"), digits)
        train, test = (digits.split == "train").nonzero()[0][::10], (digits.split == "test").nonzero()[0][::10]
        detector, state = fitted(torch.from_numpy(digits.x[train]), model, epochs=12, batch=8)
        clean, label = torch.from_numpy(digits.x[test]), torch.from_numpy(digits.y[test])
        generator = torch.Generator().manual_seed(0)
        attacked = perturbed(
            model.answer,
            clean,
            lambda logits: F.cross_entropy(logits, label),
            generator,
            eps=0.3,
            steps=5,
            step_size=None,
        )
        with torch.no_grad():
            scores = [detector.score(inputs, model, state).numpy() for inputs in (clean, attacked)]
        assert roc_auc_score(np.r_[np.zeros(100), np.ones(100)], np.concatenate(scores)) > 0.9
