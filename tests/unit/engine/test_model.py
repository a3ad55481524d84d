from dataclasses import replace

import pytest
import torch

from advrisk.core.errors import ModelError
from advrisk.engine import predicted
from advrisk.testing import toys


def test_small_batches_are_padded_and_cut_again():
    conv, record = toys.recorded(toys.conv_net())
    answer = conv.ask(toys.images(3))
    assert answer.shape == (3, 4)
    assert [len(x) for x, _ in record.passes] == [16]
    assert torch.equal(answer, record.passes[0][1][:3])


def test_large_batches_and_models_that_charge_per_query_are_not_padded():
    conv, record = toys.recorded(toys.conv_net())
    conv.ask(toys.images(17))
    toy, charged = toys.recorded(toys.linear().model)
    toy.ask(toys.linear().inputs(1))
    assert (record.n_rows, charged.n_rows) == (17, 1)


@pytest.mark.parametrize("n", [3, 40])
def test_every_pass_has_one_layout_whatever_that_of_its_input(n):
    """Kernels for channels last round in another way, so that rows would depend on how a data set lies in memory."""
    conv, record = toys.recorded(toys.conv_net())
    x = toys.images(n)
    for given in (x, x.contiguous(memory_format=torch.channels_last), x.transpose(2, 3).contiguous().transpose(2, 3)):
        conv.ask(given)
    strides = {tuple(seen.stride()) for seen, _ in record.passes}
    assert strides == {torch.empty(max(n, 16), *x.shape[1:]).stride()}


def test_padding_does_not_reach_the_gradient():
    conv = toys.conv_net()
    x = toys.images(2).requires_grad_(True)
    (padded,) = torch.autograd.grad(conv.ask(x).sum(), x)
    (plain,) = torch.autograd.grad(conv.answer(x).sum(), x)
    torch.testing.assert_close(padded, plain)


@pytest.mark.parametrize(("model", "shapes"), [("scores", r"\(5, 4\).*\(5, 3\)"), ("labels", r"\(5, 1\).*\(5,\)")])
def test_an_answer_of_the_wrong_shape_is_refused_with_both_shapes(model, shapes):
    toy = toys.linear().model
    if model == "labels":
        wrong = replace(toy, capability="labels", answer=lambda x: toy.answer(x).argmax(1, keepdim=True))
    else:
        wrong = toys.answering_wrong_shape(toy)
    with pytest.raises(ModelError, match=shapes):
        wrong.ask(toys.linear().inputs(5))


def test_the_prediction_is_the_largest_score_or_the_label_itself():
    toy = toys.linear()
    x = toy.inputs(9)
    expected = (x.double() @ toy.weight.double().T + toy.bias.double()).argmax(1)
    for model in (toy.model, toys.score_only(toy.model), toys.label_only(toy.model)):
        assert torch.equal(predicted(model, model.ask(x)), expected)
