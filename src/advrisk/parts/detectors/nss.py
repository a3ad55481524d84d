"""Natural scene statistics: whether neighbouring pixels are related as in clean images."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated

import torch
import torch.nn.functional as F  # noqa: N812
from annotated_types import Ge, Gt, Le
from torch import Tensor

from advrisk.core.errors import DataError
from advrisk.core.traits import DetectorTraits
from advrisk.engine import Model
from advrisk.parts.detectors.registry import Examples, State, detectors

if TYPE_CHECKING:
    from sklearn.svm import SVC

WINDOW, SIGMA = 7, 7 / 6
CONTRAST = 1 / 255  # one step of 8 bits, where inputs lie between 0 and 1: keeps flat regions from being divided by 0
LUMA = (0.2125, 0.7154, 0.0721)  # red, green, blue: BT.709, as in the authors' code
SHAPES = (0.2, 10.0)  # the range of the generalised Gaussians' shape
PENALTIES, WIDTHS = (1.0, 10.0, 100.0), (0.003, 0.03, 0.3)  # the grid of C and gamma
N_FOLDS = 3
_SEARCHED = 2000  # examples for the choice of C and gamma
_ROWS = 256  # images per batch of features
_TINY = 1e-12  # a variance below counts as 0


@detectors.register(
    "nss",
    traits=DetectorTraits("attacks leave unnatural grain on images", images=True, learns="attacks"),
)
@dataclass(frozen=True, kw_only=True)
class NaturalSceneStatistics:
    """Kherchouche et al. (2020), "Detection of Adversarial Examples … with Natural Scene Statistics": an SVM on those.

    The statistics are those of BRISQUE (Mittal et al. 2012): each pixel's distance from the mean of its surroundings,
    in units of their deviation, follows a generalised Gaussian (shape, variance), and the product of neighbours an
    asymmetric one (shape, mean, left and right variance) in each of four directions. That makes 18 numbers on each of
    `scales`: the image, and one of half its size (the authors' own code takes the first only). An RBF kernel SVM
    separates clean from attacked; the score is its decision function. Cross-validation chooses its `c` and `gamma`
    where they are None. Colour images become gray first, as in the authors' code. The detector never queries the model.
    """

    c: Annotated[float, Gt(0)] | None = None
    gamma: Annotated[float, Gt(0)] | None = None
    scales: Annotated[int, Ge(1), Le(2)] = 2

    def fit(self, examples: Examples, model: Model, *, on_progress: Callable[[float], None]) -> State:
        _refuse_few(examples)
        x = torch.cat([examples.clean, examples.adversarial])
        features = self._features_of_all(x, model, lambda share: on_progress(share / 2))
        mean, scale = features.mean(0), features.std(0, correction=0)
        scale = torch.where(scale > _TINY, scale, 1.0)
        attacked = torch.arange(len(x)) >= len(examples.clean)
        standard = (features - mean) / scale
        fold = _folds(examples)
        svm = self._svm(standard, attacked, fold, examples.seed, lambda share: on_progress(0.5 + share / 2))
        return {
            "mean": mean,
            "scale": scale,
            "vectors": torch.from_numpy(svm.support_vectors_.copy()),
            "weights": torch.from_numpy(svm.dual_coef_[0].copy()),
            "intercept": torch.from_numpy(svm.intercept_.copy()),
            "gamma": torch.tensor([svm.gamma], dtype=torch.float64),
        }

    def score(self, x: Tensor, model: Model, state: State) -> Tensor:
        local = {name: value.to(x.device) for name, value in state.items()}
        standard = (statistics(x, model.bounds, scales=self.scales) - local["mean"]) / local["scale"]
        return decision(standard, local)

    def _features_of_all(self, x: Tensor, model: Model, on_progress: Callable[[float], None]) -> Tensor:
        parts = []
        with torch.no_grad():
            for start in range(0, len(x), _ROWS):
                parts.append(statistics(x[start : start + _ROWS], model.bounds, scales=self.scales).cpu())
                on_progress(min(1.0, (start + _ROWS) / len(x)))
        return torch.cat(parts)

    def _svm(
        self, features: Tensor, attacked: Tensor, fold: Tensor, seed: int, on_progress: Callable[[float], None]
    ) -> "SVC":
        """An SVM fitted to all examples, with the best C and gamma of a cross-validation on some of them."""
        grid = [(c, gamma) for c in _fixed_or(self.c, PENALTIES) for gamma in _fixed_or(self.gamma, WIDTHS)]
        chosen = grid[0]
        if len(grid) > 1:
            few = _some_of_each(attacked, fold, seed)
            areas = []
            for index, (c, gamma) in enumerate(grid):
                areas.append(_area(features[few], attacked[few], fold[few], c=c, gamma=gamma))
                on_progress((index + 1) / (len(grid) + 2))
            chosen = grid[areas.index(max(areas))]
        svm = _fitted(features, attacked, c=chosen[0], gamma=chosen[1])
        on_progress(1.0)
        return svm


def statistics(x: Tensor, bounds: tuple[float, float], *, scales: int = 2) -> Tensor:
    """n images -> n × 18·scales numbers, in float64."""
    low, high = bounds
    image = gray((x.double() - low) / (high - low))
    if min(image.shape[-2:]) < 2**scales:
        problem = f"images of {image.shape[-2]} × {image.shape[-1]} have too few neighbours for {scales} scales"
        raise DataError(f"nss: {problem}; they need {2**scales} × {2**scales}, or another detector")
    columns = list(_of_one_scale(image))
    if scales == 2:
        columns += _of_one_scale(F.avg_pool2d(image[:, None], 2)[:, 0])
    return torch.stack(columns, 1)


def gray(x: Tensor) -> Tensor:
    """n × channels × height × width -> n × height × width: the luma of three channels, the mean of any other number."""
    n_channels = x.shape[1]
    shares = LUMA if n_channels == 3 else (1 / n_channels,) * n_channels
    return torch.stack([share * x[:, channel] for channel, share in enumerate(shares)]).sum(0)


def _of_one_scale(image: Tensor) -> Iterator[Tensor]:
    m = normalised(image)
    yield from symmetric_parameters(m.flatten(1))
    for product in (
        m[:, :, :-1] * m[:, :, 1:],
        m[:, :-1] * m[:, 1:],
        m[:, :-1, :-1] * m[:, 1:, 1:],
        m[:, 1:, :-1] * m[:, :-1, 1:],
    ):
        yield from asymmetric_parameters(product.flatten(1))


def normalised(image: Tensor) -> Tensor:
    """Mean-subtracted contrast-normalised pixels: (x − μ) / (σ + C), by a Gaussian window; beyond the edges is black.

    μ is summed from differences, so that x − μ is exactly 0 wherever the window is flat.
    """
    offset = _less_itself(image, 1)
    offset = offset + _less_itself(image + offset, 2)  # μ − x
    square = image**2
    mean_square = square + _less_itself(square, 1)
    mean_square = mean_square + _less_itself(mean_square, 2)
    return -offset / (_root(mean_square - (image + offset) ** 2) + CONTRAST)


def _less_itself(image: Tensor, axis: int) -> Tensor:
    """Σ_k w_k (x_k − x) over a window along one axis: its weighted mean, less the pixel itself."""
    reach = WINDOW // 2
    weights = [math.exp(-(k**2) / (2 * SIGMA**2)) for k in range(-reach, reach + 1)]
    size = image.shape[axis]
    padded = F.pad(image, (0, 0, reach, reach) if axis == 1 else (reach, reach))
    total = torch.zeros_like(image)
    for offset, weight in enumerate(weights):
        total = total + weight / sum(weights) * (padded.narrow(axis, offset, size) - image)
    return total


def symmetric_parameters(x: Tensor) -> tuple[Tensor, Tensor]:
    """Shape and variance of the generalised Gaussian with each row's moments E|x| and E x²."""
    variance = (x**2).mean(1)
    return shape_of(x.abs().mean(1) ** 2 / (variance + _TINY)), variance


def asymmetric_parameters(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Shape, mean, left and right variance of an asymmetric generalised Gaussian, by each row's moments.

    Lasmar, Stitou & Berthoumieu (2009): with l² and r² the mean squares below and from 0 on, the shape ν solves
    ρ(ν) = (E|x|)² / E x² · (l³ + r³)(l + r) / (l² + r²)², and the mean is (r − l) · √ρ(ν). So zeros, of which flat
    regions make many, count on the right, as 0 does in the density of BRISQUE's paper; its code counts them on no side.
    """
    below = x < 0
    left = torch.where(below, x**2, 0.0).sum(1) / below.sum(1).clamp_min(1)
    right = torch.where(below, 0.0, x**2).sum(1) / (~below).sum(1).clamp_min(1)
    l, r = _root(left), _root(right)  # noqa: E741
    ratio = x.abs().mean(1) ** 2 / ((x**2).mean(1) + _TINY)
    ratio = ratio * (l**3 + r**3) * (l + r) / ((left + right) ** 2 + _TINY**2)
    shape = shape_of(ratio)
    return shape, (r - l) * ratio.clamp(*_ratio_range()).sqrt(), left, right


def shape_of(ratio: Tensor) -> Tensor:
    """The shape α with ρ(α) = Γ(2/α)² / (Γ(1/α) Γ(3/α)), by interpolation; one outside SHAPES is the nearest in it."""
    ratios, shapes = (table.to(ratio.device) for table in _table())
    within = ratio.clamp(*_ratio_range())
    index = torch.searchsorted(ratios, within.detach()).clamp(1, len(ratios) - 1)
    low, high = ratios[index - 1], ratios[index]
    return shapes[index - 1] + (within - low) / (high - low) * (shapes[index] - shapes[index - 1])


@cache
def _table() -> tuple[Tensor, Tensor]:
    shapes = torch.exp(torch.linspace(math.log(SHAPES[0]), math.log(SHAPES[1]), 4000, dtype=torch.float64))
    log_ratio = 2 * torch.lgamma(2 / shapes) - torch.lgamma(1 / shapes) - torch.lgamma(3 / shapes)
    return log_ratio.exp(), shapes


def _ratio_range() -> tuple[float, float]:
    ratios, _ = _table()
    return float(ratios[0]), float(ratios[-1])


def _root(x: Tensor) -> Tensor:
    """√x, and 0 with a slope of 0 where x is 0 but for rounding."""
    some = x > _TINY
    return torch.where(some, torch.where(some, x, 1.0).sqrt(), 0.0)


def decision(standard: Tensor, state: State) -> Tensor:
    """SVC.decision_function in torch: Σ_i w_i exp(−γ ‖x − v_i‖²) + b. Rows are summed one by one."""
    distance = torch.cdist(standard, state["vectors"], compute_mode="donot_use_mm_for_euclid_dist")
    kernel = torch.exp(-state["gamma"] * distance**2)
    return (kernel * state["weights"]).sum(1) + state["intercept"]


def _fitted(features: Tensor, attacked: Tensor, *, c: float, gamma: float) -> "SVC":
    from sklearn.svm import SVC

    return SVC(C=c, gamma=gamma, class_weight="balanced", random_state=0).fit(features.numpy(), attacked.numpy())


def _area(features: Tensor, attacked: Tensor, fold: Tensor, *, c: float, gamma: float) -> float:
    """The mean AUROC of the folds, each scored by an SVM fitted to the others."""
    from sklearn.metrics import roc_auc_score

    areas = []
    for one in range(N_FOLDS):
        out = fold == one
        svm = _fitted(features[~out], attacked[~out], c=c, gamma=gamma)
        areas.append(float(roc_auc_score(attacked[out].numpy(), svm.decision_function(features[out].numpy()))))
    return sum(areas) / N_FOLDS


def _folds(examples: Examples) -> Tensor:
    """The fold of each example: that of its clean input, so that all folds have both kinds."""
    origin = examples.origin.cpu()
    attacked = torch.zeros(len(examples.clean), dtype=torch.bool)
    attacked[origin] = True
    shuffled = torch.randperm(len(attacked), generator=torch.Generator().manual_seed(examples.seed))
    order = shuffled[(~attacked[shuffled]).long().argsort(stable=True)]  # those that were attacked are dealt out first
    fold = torch.empty_like(order)
    fold[order] = torch.arange(len(order)) % N_FOLDS
    return torch.cat([fold, fold[origin]])


def _some_of_each(attacked: Tensor, fold: Tensor, seed: int) -> Tensor:
    """At most _SEARCHED examples: of each kind and fold an equal share."""
    share = _SEARCHED // (2 * N_FOLDS)
    shuffled = torch.randperm(len(attacked), generator=torch.Generator().manual_seed(seed))
    groups = [
        (attacked[shuffled] == kind) & (fold[shuffled] == one) for kind in (False, True) for one in range(N_FOLDS)
    ]
    return torch.cat([shuffled[group][:share] for group in groups])


def _fixed_or(value: float | None, grid: tuple[float, ...]) -> tuple[float, ...]:
    return grid if value is None else (value,)


def _refuse_few(examples: Examples) -> None:
    n_attacked = len(set(examples.origin.tolist()))
    if n_attacked < N_FOLDS:
        raise DataError(
            f"nss learns from successful attacks on at least {N_FOLDS} inputs, found {n_attacked} among "
            f"{len(examples.clean)}; let it learn from a stronger attack or from more inputs of the split `train`"
        )
