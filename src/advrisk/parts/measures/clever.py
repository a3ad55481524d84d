"""An estimated distance to the nearest other class, from slopes around a clean input."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
import torch
from annotated_types import Ge, Gt
from numpy.typing import NDArray
from torch import Tensor

from advrisk.core.traits import MeasureTraits
from advrisk.engine import Model, Noise, Space
from advrisk.engine.norms import random_in_ball
from advrisk.parts.measures.extremes import end_points
from advrisk.parts.measures.registry import measures

_RADIUS = {"l2": 5.0, "linf": 0.3, "l1": 40.0}
_POINTS = 256  # per batch


def _passes(settings: Mapping[str, Any], n_classes: int) -> tuple[int, int]:
    points = settings["batches"] * settings["batch"]
    return points + 1, points * (n_classes - 1)


@measures.register(
    "clever",
    traits=MeasureTraits("you want a number to compare with the literature; it is no bound", passes=_passes),
)
def clever(
    x: Tensor,
    label: int,
    model: Model,
    space: Space,
    noise: Noise,
    *,
    norm: Literal["l2", "linf", "l1"] = "l2",
    radius: Annotated[float, Gt(0)] | None = None,
    batches: Annotated[int, Ge(10)] = 50,
    batch: Annotated[int, Ge(1)] = 64,
) -> float:
    """Weng et al. (2018), "Evaluating the Robustness of Neural Networks" (CLEVER): an estimated distance.

    min over other classes j of min(m_j / L_j, `radius`). m_j is the lead of the model's class c over j at the input.
    L_j, the steepest possible fall of the lead, is the location of a reverse Weibull law fitted to the largest slopes
    ‖∇(f_c − f_j)‖* of `batches` batches of `batch` points, uniform in the ball of `radius` (by default 5 in l2, 0.3 in
    linf, 40 in l1; in units of the space's scale) and clipped to the bounds. 0 where the prediction is incorrect.
    """
    radius = _RADIUS[norm] if radius is None else radius
    with torch.no_grad():
        scores = model.ask(x)[0].double()
    if int(scores.argmax()) != label:
        return 0.0
    others = [other for other in range(model.n_classes) if other != label]
    lead = (scores[label] - scores[others]).cpu().numpy()
    slopes = []
    for start in range(0, batches * batch, _POINTS):
        points = _around(x, space, noise, norm, radius, min(_POINTS, batches * batch - start))
        slopes.append(_slopes(points, label, others, model, space, norm))
    steepest = end_points(np.concatenate(slopes).reshape(batches, batch, len(others)).max(1))
    with np.errstate(divide="ignore"):
        distance = np.where(steepest > 0, lead / steepest, np.inf)
    return float(min(distance.min(), radius))


def _around(x: Tensor, space: Space, noise: Noise, norm: Any, radius: float, count: int) -> Tensor:
    """Points uniform in the ball around x, within the bounds; immutable features and categories stay."""
    free = torch.ones(x.shape[1:], dtype=torch.bool, device=x.device)
    for fixed in (space.immutable, space.category):
        free = free if fixed is None else free & ~fixed
    rows = torch.zeros(count, dtype=torch.int64)
    move = torch.zeros(count, *x.shape[1:], device=x.device)
    move[:, free] = random_in_ball(noise, rows, (int(free.sum()),), norm, radius)
    return torch.clamp(x + move * space.scale, space.low, space.high)


def _slopes(
    points: Tensor, label: int, others: list[int], model: Model, space: Space, norm: Any
) -> NDArray[np.float64]:
    """The fall of each lead by a step of length one from each point: points × other classes."""
    points = points.detach().requires_grad_()
    with torch.enable_grad():
        scores = model.ask(points)
        leads = [(scores[:, label] - scores[:, other]).sum() for other in others]
        slopes = [
            space.steepness(torch.autograd.grad(lead, points, retain_graph=True)[0].double(), norm) for lead in leads
        ]
    return torch.stack(slopes, 1).cpu().numpy()
