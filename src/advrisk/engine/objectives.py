"""Objectives that attacks maximise: one number per row, larger is worse for the model.

Every objective is a function of the scores and the goal. Their formulas keep slopes exact where a model is very
confident and probabilities round to 0 and 1: they use leads of the other classes over one class, or square roots of
probabilities.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from advrisk.core.registry import Registry
from advrisk.core.traits import ObjectiveTraits
from advrisk.engine.goal import Goal

objectives: Registry[ObjectiveTraits] = Registry("objectives")

NEUTRAL = "margin"  # for attacks without an objective of their own: how near a point is to success
_TINY = 1e-12


@objectives.register("ace", traits=ObjectiveTraits("nothing speaks for another", targeted=True))
def adversarial_cross_entropy(scores: Tensor, goal: Goal) -> Tensor:
    """Cross-entropy of the reference class, −log q_y; with a target t, log q_t.

    `scores` are logits or log-probabilities: log-softmax is correct for both.
    """
    if goal.target is not None:
        return -_surprise(scores, goal.target)
    return _surprise(scores, goal.reference)


@objectives.register(
    "kl", traits=ObjectiveTraits("you follow MEAD: it moves away from the clean prediction", from_clean=True)
)
def kullback_leibler(scores: Tensor, goal: Goal) -> Tensor:
    """Kullback–Leibler divergence from the clean prediction q: Σ q log(q / q').

    Its slope vanishes at the clean input, so an attack needs a random start.
    """
    clean = _clean(goal).to(scores.dtype)
    predicted = clean.argmax(1)
    q = clean.softmax(1)
    constant = (q * clean.log_softmax(1)).sum(1)
    others = q.scatter(1, predicted[:, None], 0.0)  # the predicted class leads itself by 0; its slope would be 1 − 1
    return _surprise(scores, predicted) - (others * _leads(scores, predicted)).sum(1) + constant


@objectives.register(
    "fisher-rao", traits=ObjectiveTraits("you follow MEAD: it moves away from the clean prediction", from_clean=True)
)
def fisher_rao(scores: Tensor, goal: Goal) -> Tensor:
    """Fisher–Rao distance from the clean prediction q: 2 arccos(Σ √(q q')) = 4 arcsin(½ ‖√q − √q'‖).

    The second form has an infinite slope only at the clean input, where the slope is set to zero: an attack needs a
    random start.
    """
    apart = ((scores.log_softmax(1) / 2).exp() - (_clean(goal).to(scores.dtype).log_softmax(1) / 2).exp()).square()
    half = apart.sum(1) / 4
    moved = half > 0
    return torch.where(moved, 4 * torch.where(moved, half, 1.0).clamp_max(0.5).sqrt().arcsin(), 0.0)


@objectives.register(
    "gini", traits=ObjectiveTraits("you follow MEAD: it makes the model unsure, whatever it then predicts")
)
def gini_impurity(scores: Tensor, goal: Goal) -> Tensor:  # noqa: ARG001  (it needs no goal)
    """Gini impurity of the prediction, 1 − √(Σ q'²)."""
    best = scores.detach().argmax(1)
    others = _leads(scores, best).scatter(1, best[:, None], -torch.inf).exp()
    return -torch.expm1(others.square().sum(1).log1p() / 2 - others.sum(1).log1p())


@objectives.register("margin", traits=ObjectiveTraits("slopes vanish: it counts in logits", targeted=True))
def margin(scores: Tensor, goal: Goal) -> Tensor:
    """Carlini & Wagner's margin: max of the other scores − the reference's; with a target, its lead over all others."""
    if goal.target is not None:
        return -_best_lead(scores, goal.target)
    return _best_lead(scores, goal.reference)


@objectives.register(
    "dlr",
    traits=ObjectiveTraits(
        "the model's logits are scaled up and hide slopes", targeted=True, logits=True, classes=(3, 4)
    ),
)
def difference_of_logits_ratio(scores: Tensor, goal: Goal) -> Tensor:
    """Difference of logits ratio (Croce & Hein 2020, arXiv:2003.01690), with z sorted downwards:

    −(z_y − max of the others) / (z_1 − z_3); with a target t, −(z_y − z_t) / (z_1 − (z_3 + z_4) / 2).
    Scaling the logits does not change it.
    """
    top = scores.topk(min(4, scores.shape[1]), dim=1).values
    if goal.target is None:
        return _best_lead(scores, goal.reference) / (top[:, 0] - top[:, 2]).clamp_min(_TINY)
    own, wanted = (scores.gather(1, column[:, None]).squeeze(1) for column in (goal.reference, goal.target))
    return (wanted - own) / (top[:, 0] - (top[:, 2] + top[:, -1]) / 2).clamp_min(_TINY)


def value(name: str, scores: Tensor, goal: Goal) -> Tensor:
    """The value of the named objective, for each row.

    On the CPU in float64: torch's exp and log differ in the last bit between the body and the tail of a vector, so in
    float32 a row's slope would depend on its place in the batch.
    """
    exact = scores.double() if scores.device.type == "cpu" else scores
    result: Tensor = objectives.get(name).function(exact, goal)
    return result


def _leads(scores: Tensor, over: Tensor) -> Tensor:
    return scores - scores.gather(1, over[:, None])


def _best_lead(scores: Tensor, over: Tensor) -> Tensor:
    """The largest lead of another class over `over`."""
    own = over[:, None]
    return scores.scatter(1, own, -torch.inf).amax(1) - scores.gather(1, own).squeeze(1)


def _surprise(scores: Tensor, over: Tensor) -> Tensor:
    """−log of the probability of a class, as log(1 + exp(lead of all others together)).

    The slope of log-softmax is made of 1 − q, which rounds to zero from a lead of 17 on; this one's is exact.
    """
    own = over[:, None]
    others = scores.scatter(1, own, -torch.inf).logsumexp(1)
    return F.softplus(others - scores.gather(1, own).squeeze(1))


def _clean(goal: Goal) -> Tensor:
    if goal.clean is None:
        raise ValueError("this objective measures from the clean prediction, and the goal has none")
    return goal.clean
