"""Models for the engine from loaded ones, after checks of shapes, classes and gradients; their digest."""

import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from advrisk.core.digest import digest, digest_array
from advrisk.core.errors import ModelError
from advrisk.core.seeds import generator
from advrisk.core.traits import Precision
from advrisk.engine import Model
from advrisk.engine.model import wide
from advrisk.engine.threads import one_thread
from advrisk.parts.data import Dataset
from advrisk.parts.models.batches import depends_on_batch, depends_on_neighbours, in_batches
from advrisk.parts.models.optimised import optimised
from advrisk.parts.models.precision import MIXED_ROWS, in_precision, own_precision
from advrisk.parts.models.registry import Loaded

N_FIXED_INPUTS = 8
N_ASKED_AGAIN = 4
_MOST_OWN = 256  # inputs of the data to choose the darkest and the brightest from


def checked_model(
    name: str,
    source: Loaded,
    data: Dataset,
    *,
    device: str = "cpu",
    precision: Precision | None = None,
    batch: int | None = None,
) -> Model:
    """The model, after correct answers to fixed inputs of the data's shape.

    It computes in `precision`, and takes at most `batch` inputs at a time.
    """
    source = source if batch is None else in_batches(source, batch)
    loaded = source if precision is None else in_precision(name, source, precision)
    shape = tuple(data.x.shape[1:])
    if loaded.input_shape is not None and loaded.input_shape != shape:
        raise ModelError(f"{name} takes inputs of shape {loaded.input_shape}, but {data.name} has {shape}")
    bounds = (float(np.min(data.low)), float(np.max(data.high)))
    if loaded.bounds is not None and loaded.bounds != bounds:
        raise ModelError(f"{name} takes inputs within {loaded.bounds}, but {data.name} has {bounds}")
    fixed = _fixed_inputs(shape, data, rows=max(N_FIXED_INPUTS, loaded.min_rows))
    with one_thread():  # so that every process of a run computes the same digest
        answer = _try(name, loaded, fixed, data.name)
        random = _is_random(name, loaded, fixed, data.name, answer)
        fingerprint = None if random else _fingerprint(name, source, loaded, fixed, data.name)
        n_classes = _n_classes(name, loaded, answer, data)
        if not random:
            _check_gradients(name, loaded, fixed)
        dependent = _depends_on_batch(name, loaded, fixed, data)
        if dependent and precision == "int8":
            raise ModelError(f"{name} in int8: {MIXED_ROWS}")
        function = loaded.answer
        if loaded.module is not None and function is loaded.module:
            function = loaded.module.to(device)
            if device == "cpu" and not random and loaded.precision in (None, "float32"):
                function = optimised(loaded.module, fixed)
    return Model(
        name=name,
        answer=function,
        owner=None if function is loaded.answer else loaded.answer,
        capability=loaded.capability,
        input_shape=shape,
        n_classes=n_classes,
        bounds=bounds,
        digest=digest([loaded.content, list(shape), n_classes, fingerprint]),
        min_rows=loaded.min_rows,
        random=random,
        device=device,
        train_s=loaded.train_s,
        train_process_s=loaded.train_process_s,
        train_samples=loaded.train_samples,
        test_accuracy=loaded.test_accuracy,
        precision=own_precision(loaded),
        batch_dependent=dependent,
        source_digest=loaded.source_digest,
    )


def _fixed_inputs(shape: tuple[int, ...], data: Dataset, *, rows: int) -> Tensor:
    unit = generator("fixed inputs", str(shape)).random((rows, *shape))
    low, high = np.asarray(data.low), np.asarray(data.high)
    return torch.from_numpy((low + unit * (high - low)).astype(np.float32))


def _try(name: str, loaded: Loaded, x: Tensor, data_name: str) -> Tensor:
    try:
        copied = x.clone()
        with torch.no_grad():
            answer: Any = loaded.answer(copied)
    except ModelError as error:  # raised by our normalisation
        raise ModelError(f"{name}: {error}") from None
    except Exception as error:  # the user's code
        if loaded.precision is not None:
            raise ModelError(_not_in(name, loaded.precision, error)) from None
        expected = _first_layer(loaded.module)
        raise ModelError(
            f"{name} cannot take the inputs of {data_name}, of shape {tuple(x.shape[1:])}"
            f"{f', its first layer takes {expected}' if expected else ''}: {_first_line(error)}"
        ) from None
    if not torch.equal(copied, x):
        raise ModelError(f"{name} changes its input in place, which would spoil every distance; work on a copy")
    if not isinstance(answer, Tensor):
        raise ModelError(f"{name} answered with {type(answer).__name__}; it must return a tensor")
    if answer.dim() == 0 or len(answer) != len(x):
        raise ModelError(
            f"{name} answered {len(x)} inputs with shape {tuple(answer.shape)}; it must return one row each"
        )
    return answer.detach()


def _is_random(name: str, loaded: Loaded, x: Tensor, data_name: str, answer: Tensor) -> bool:
    """Whether repeated queries give different answers; the same verdict in every process."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        return any(not torch.equal(answer, _try(name, loaded, x, data_name)) for _ in range(N_ASKED_AGAIN))


def _depends_on_batch(name: str, loaded: Loaded, x: Tensor, data: Dataset) -> bool:
    """Whether an answer depends on the others in its batch; the same verdict in every process."""
    low, high = (torch.from_numpy(np.asarray(bound, dtype=np.float32)) for bound in (data.low, data.high))

    def ask(inputs: Tensor) -> Tensor:
        with torch.random.fork_rng(devices=()):  # so that dropout, for example, drops the same
            torch.manual_seed(0)
            return _try(name, loaded, inputs, data.name)

    if depends_on_batch(ask, x, low, high):
        return True
    try:
        return depends_on_neighbours(ask, _own_inputs(data, rows=len(x)))
    except ModelError:  # it fails at some inputs of the data: those become error rows, and the others stay valid
        return False


def _own_inputs(data: Dataset, *, rows: int) -> Tensor:
    """Some inputs of the data, from the darkest to the brightest of a few hundred; an input may occur twice."""
    some = np.asarray(data.x[_spread(len(data.x), min(len(data.x), _MOST_OWN))], dtype=np.float32)
    ordered = some[np.argsort(some.reshape(len(some), -1).mean(1), kind="stable")]
    return torch.from_numpy(ordered[_spread(len(ordered), rows)])


def _spread(n: int, k: int) -> NDArray[np.int64]:
    """`k` equally spaced indices among `n`, with the first and the last."""
    return np.linspace(0, n - 1, k).round().astype(np.int64)


def _check_gradients(name: str, loaded: Loaded, x: Tensor) -> None:
    if loaded.capability != "gradients":
        return
    x = x.clone().requires_grad_(True)
    answer = loaded.answer(x)
    if not isinstance(answer, Tensor) or not answer.requires_grad:
        raise ModelError(
            f"{name} gives no gradients: its forward runs under torch.no_grad, detaches, or does not use the input"
        )
    if loaded.precision is not None:
        try:
            torch.autograd.grad(wide(answer).sum(), x)
        except RuntimeError as error:
            raise ModelError(_not_in(name, loaded.precision, error)) from None


def _not_in(name: str, precision: Precision, error: Exception) -> str:
    """The message for a model that cannot use a precision: torch lacks an operation, or its code fixes a type."""
    return f"{name} cannot compute in {precision} here: {_first_line(error)}; choose another `precision`"


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _first_layer(module: nn.Module | None) -> str:
    for layer in module.modules() if module is not None else ():
        if isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d):
            return f"{layer.in_channels} channels ({type(layer).__name__})"
        if isinstance(layer, nn.Linear):
            return f"{layer.in_features} features (Linear)"
    return ""


def _n_classes(name: str, loaded: Loaded, answer: Tensor, data: Dataset) -> int:
    if loaded.capability == "labels":
        n_classes = loaded.n_classes or data.n_classes
        if answer.dim() != 1 or answer.is_floating_point():
            kind = f"{answer.dtype} of shape {tuple(answer.shape)}".removeprefix("torch.")
            raise ModelError(f"{name} gives labels, one whole number for each input, but answered with {kind}")
        wrong = answer[(answer < 0) | (answer >= n_classes)]
        if len(wrong):
            raise ModelError(
                f"{name} answered with class {int(wrong[0])}; it knows {n_classes}, from 0 on (`n_classes`)"
            )
    else:
        if answer.dim() != 2:
            raise ModelError(f"{name} answered with shape {tuple(answer.shape)}; it must return rows × classes")
        if not bool(torch.isfinite(answer).all()):
            limit = "; float16 holds at most 65504" if loaded.precision == "float16" else ""
            raise ModelError(f"{name} answered fixed inputs with numbers that are not finite{limit}")
        n_classes = answer.shape[1]
        if loaded.capability == "scores" and _are_probabilities(answer):
            raise ModelError(f"{name} answered with probabilities; scores are their logarithms: torch.log(p)")
    if loaded.n_classes is not None and loaded.n_classes != n_classes:
        raise ModelError(f"{name} states {loaded.n_classes} classes, but answers with {n_classes}")
    if n_classes < data.n_classes:
        least = int(data.y.min(initial=data.n_classes))
        shifted = least > 0 and data.n_classes - least <= n_classes
        hint = f"; labels start at 0, and those of {data.name} at {least}: subtract {least}" if shifted else ""
        raise ModelError(f"{name} knows {n_classes} classes, but {data.name} has {data.n_classes}{hint}")
    return n_classes


def _are_probabilities(answer: Tensor) -> bool:
    return bool((answer >= 0).all()) and bool(((answer.sum(1) - 1).abs() < 1e-3).all())


def _fingerprint(name: str, source: Loaded, loaded: Loaded, fixed: Tensor, data_name: str) -> str:
    """A digest of the answers to the fixed inputs, so that models that differ only in code get different digests.

    In float64, rounded to six decimals, so that it is the same on machines whose float32 sums differ, at any precision;
    with three decimals and in the model's precision for modules that cannot compute in float64.
    """
    try:
        exact = copy.deepcopy(source.module).double() if isinstance(source.module, nn.Module) else source.answer
        with torch.no_grad():
            answer = exact(fixed.double() if source.module is not None else fixed)
        return _rounded(answer, 6)
    except Exception:  # the user's code may fail in any way in float64
        return _rounded(_try(name, loaded, fixed, data_name), 3)


def _rounded(answer: Tensor, decimals: int) -> str:
    return digest_array(np.round(answer[:N_FIXED_INPUTS].double().cpu().numpy(), decimals) + 0.0)
