import numpy as np
import pytest
import torch
from scipy import optimize

from advrisk.core.errors import ModelError
from advrisk.testing import toys


def smallest_move(normal, lead, norm):
    """min ‖d‖ such that normal·d >= lead, by a linear program (l1, linf) or a general solver (l2)."""
    n = len(normal)
    if norm == "l2":
        start = np.full(n, 0.1)
        constraint = {"type": "ineq", "fun": lambda d: normal @ d - lead, "jac": lambda d: normal}
        found = optimize.minimize(lambda d: d @ d, start, constraints=[constraint], options={"ftol": 1e-14})
        return float(np.linalg.norm(found.x))
    # d = p − q with p, q >= 0; for linf one more variable bounds them all
    split = np.concatenate([normal, -normal])
    if norm == "l1":
        return float(optimize.linprog(np.ones(2 * n), A_ub=[-split], b_ub=[-lead]).fun)
    cost = np.append(np.zeros(2 * n), 1)
    below = np.hstack([np.eye(2 * n), -np.ones((2 * n, 1))])
    limits = np.vstack([np.append(-split, 0), below])
    return float(optimize.linprog(cost, A_ub=limits, b_ub=np.append(-lead, np.zeros(2 * n))).fun)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("classes", [2, 4])
def test_minimal_distances_are_those_of_an_optimiser(norm, classes):
    toy = toys.linear(features=5, classes=classes)
    x = toy.inputs(6)
    weight, scores = toy.weight.double().numpy(), toy.model.ask(x).double().numpy()
    for row, distance in enumerate(toy.minimal_distances(x, norm).tolist()):
        best = scores[row].argmax()
        moves = [
            smallest_move(weight[other] - weight[best], scores[row, best] - scores[row, other], norm)
            for other in range(classes)
            if other != best
        ]
        assert distance == pytest.approx(min(moves), rel=1e-4)


@pytest.mark.parametrize("lessen", [toys.score_only, toys.label_only])
def test_lesser_models_forbid_gradients(lessen):
    model = lessen(toys.linear().model)
    x = toys.linear().inputs(3)
    assert not model.ask(x).requires_grad
    with pytest.raises(ModelError, match="gradients were asked"):
        model.ask(x.requires_grad_(True))


def test_scores_are_log_probabilities():
    scores = toys.score_only(toys.linear().model).ask(toys.linear().inputs(7))
    torch.testing.assert_close(scores.exp().sum(1), torch.ones(7))


def test_everything_but_noise_repeats_itself():
    x = toys.images(4)
    assert torch.equal(x, toys.images(4))
    assert torch.equal(toys.conv_net().ask(x), toys.conv_net().ask(x))
    assert torch.equal(toys.linear().inputs(4), toys.linear().inputs(4))
    noisy = toys.noisy(toys.conv_net())
    assert noisy.random
    assert not torch.equal(noisy.ask(x), noisy.ask(x))


def test_toys_leave_the_global_generator_alone():
    before = torch.random.get_rng_state()
    toys.conv_net()
    toys.noisy(toys.linear().model).ask(toys.linear().inputs(2))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_raising_model_raises_after_as_many_passes_as_it_was_told():
    model = toys.raising(toys.linear().model, after=2, error=TimeoutError("enough"))
    x = toys.linear().inputs(1)
    model.ask(x)
    model.ask(x)
    with pytest.raises(TimeoutError, match="enough"):
        model.ask(x)


def test_nan_is_answered_where_told():
    model = toys.answering_nan(toys.linear().model, where=lambda x: x[:, 0] > 0)
    x = toys.linear().inputs(20)
    assert torch.equal(torch.isnan(model.ask(x)).all(1), x[:, 0] > 0)
    assert torch.isnan(toys.answering_nan(toys.linear().model).ask(x)).all()


def test_a_slow_model_answers_the_same():
    x = toys.linear().inputs(3)
    assert torch.equal(toys.slow(toys.linear().model, pass_s=0.001).ask(x), toys.linear().model.ask(x))


def test_a_record_holds_copies_of_all_that_was_asked():
    model, record = toys.recorded(toys.linear().model)
    x = toys.linear().inputs(3)
    expected = x.clone(), model.ask(x)
    x += 1
    model.ask(x[:2])
    assert record.n_rows == 5
    assert torch.equal(record.passes[0][0], expected[0])
    assert torch.equal(record.passes[0][1], expected[1])
