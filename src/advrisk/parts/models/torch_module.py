"""torch models: a module from a factory with weights, a module object, a TorchScript or export file."""

import copy
import importlib
import inspect
import os
import re
import struct
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from pickle import UnpicklingError
from typing import Annotated, Any

import torch
from annotated_types import Ge
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from advrisk.core.digest import digest, digest_array, digest_bytes
from advrisk.core.errors import ModelError
from advrisk.core.names import counted, did_you_mean
from advrisk.core.traits import SourceTraits
from advrisk.parts.models.registry import Loaded, models
from advrisk.parts.models.source_code import source_digest

Classes = Annotated[int, Ge(2)]
# Below about 16 rows torch's CPU kernels sum in another order: see `engine.model.Model`.
MIN_ROWS = 16
# Members that torch.export.save writes, now and before torch 2.8: no pickled objects or compiled libraries, which
# would run when loaded.
_EXPORT_MEMBER = re.compile(
    r"[^/]+/(archive_format|archive_version|byteorder|version|\.data/\w+|models/model\.json|extra/.*"
    r"|data/weights/(weight_\d+|model_weights_config\.json)|data/constants/(tensor_\d+|model_constants_config\.json)"
    r"|data/sample_inputs/model\.pt)|version|serialized_\w+\.(json|pt)|extra_files/.*"
)
# Errors that torch raises for damaged or foreign files.
_DAMAGED = (
    *(RuntimeError, ValueError, EOFError, OSError, LookupError, TypeError, AttributeError, AssertionError),
    *(MemoryError, struct.error),
)


class Normalised(nn.Module):
    """A module that takes inputs as they are and normalises them itself: (x − mean) / std."""

    mean: Tensor
    std: Tensor

    def __init__(self, module: nn.Module, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        super().__init__()
        self.module = module
        self.register_buffer("mean", torch.tensor(mean))
        self.register_buffer("std", torch.tensor(std))

    def forward(self, x: Tensor) -> Tensor:
        if len(self.mean) not in (1, x.shape[1]):
            raise ModelError(
                f"`mean` and `std` have {len(self.mean)} entries, and the inputs {counted(x.shape[1], 'channel')}; "
                "give one entry per channel, or one for all"
            )
        per_channel = (1, -1, *[1] * (x.dim() - 2))
        answer: Tensor = self.module((x - self.mean.view(per_channel)) / self.std.view(per_channel))
        return answer


@models.register("torch", traits=SourceTraits("a factory of yours makes a torch module"))
def torch_factory(
    *,
    factory: str,
    weights: Path | None = None,
    args: Mapping[str, Any] = {},
    mean: tuple[float, ...] | None = None,
    std: tuple[float, ...] | None = None,
    input_shape: tuple[int, ...] | None = None,
    classes: Classes | None = None,
    bounds: tuple[float, ...] | None = None,
) -> Loaded:
    """`package.module:factory`, called with `args`; weights as .safetensors, or a state dict for torch.load.

    `mean` and `std` (one per channel, or one for all) are applied inside the model: attacks see the data's own bounds.
    """
    module = build(factory, args)
    training = load_weights(module, weights, factory) if weights is not None else {}
    loaded = from_module(module, mean=mean, std=std, input_shape=input_shape, classes=classes, bounds=bounds)
    return replace(
        loaded,
        train_s=float(training["train_s"]) if "train_s" in training else None,
        train_process_s=float(training["train_process_s"]) if "train_process_s" in training else None,
        train_samples=int(training["train_samples"]) if "train_samples" in training else None,
        test_accuracy=float(training["test_accuracy"]) if "test_accuracy" in training else None,
        source_digest=source_digest(factory, module),
    )


@models.register(
    "torchscript", traits=SourceTraits("you have a TorchScript file: no Python code of the model is needed")
)
def torchscript(*, path: Path, input_shape: tuple[int, ...] | None = None, classes: Classes | None = None) -> Loaded:
    """A file written by torch.jit.save; its answer is the logits."""
    try:
        module = torch.jit.load(str(_existing(path)), map_location="cpu")  # type: ignore[no-untyped-call]
    except _DAMAGED as error:
        raise ModelError(f"{path}: cannot be read as TorchScript: {_first_line(error)}") from None
    return _from_file(module.eval(), path, input_shape, classes)


@models.register(
    "torch-export", traits=SourceTraits("you have a torch.export file: no Python code of the model is needed")
)
def torch_export(*, path: Path, input_shape: tuple[int, ...] | None = None, classes: Classes | None = None) -> Loaded:
    """A .pt2 file written by torch.export.save with a dynamic batch dimension; its answer is the logits."""
    try:
        _refuse_strange_members(_existing(path))
        with _weights_only(), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # torch's own, about its future defaults
            program = torch.export.load(str(path))
    except UnpicklingError:
        raise ModelError(f"{path}: holds more than plain tensors, which is refused; export it again") from None
    except (*_DAMAGED, zipfile.BadZipFile) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{path}: cannot be read as a torch.export file: {_first_line(error)}") from None
    _refuse_fixed_batch(program, path)
    return _from_file(program.module(), path, input_shape, classes)


def from_module(
    module: nn.Module,
    *,
    mean: tuple[float, ...] | None = None,
    std: tuple[float, ...] | None = None,
    input_shape: tuple[int, ...] | None = None,
    classes: int | None = None,
    bounds: tuple[float, ...] | None = None,
) -> Loaded:
    """A module in evaluation mode with frozen parameters: gradients go to the input only."""
    if (mean is None) != (std is None):
        raise ModelError("mean and std go together: set both or neither")
    if mean is not None and std is not None:
        if len(mean) != len(std) or not std or min(std) <= 0:
            raise ModelError(f"mean and std need one entry per channel, std above 0; found {mean} and {std}")
        module = Normalised(module, mean, std)
    if bounds is not None and len(bounds) != 2:
        raise ModelError(f"bounds must be [low, high], found {list(bounds)}")
    module = copy.deepcopy(module).eval().requires_grad_(False)
    return Loaded(
        answer=module,
        content=_content(module),
        module=module,
        input_shape=input_shape,
        n_classes=classes,
        bounds=None if bounds is None else (bounds[0], bounds[1]),
        min_rows=MIN_ROWS,
    )


def build(factory: str, args: Mapping[str, Any]) -> nn.Module:
    """Call `package.module:factory` with these arguments."""
    package, colon, name = factory.partition(":")
    if not colon or not name or not package or package.startswith("."):
        raise ModelError(f"factory must read package.module:name, found {factory!r}")
    try:
        imported = importlib.import_module(package)
    except ImportError as error:
        raise ModelError(
            f"factory {factory!r}: {error}; the folder of the study or recipe file and Python's path are searched"
        ) from None
    except Exception as error:  # the user's code
        raise ModelError(f"factory {factory!r}: {package} cannot be imported: {_described(error)}") from error
    if not hasattr(imported, name):
        raise ModelError(f"factory {factory!r}: {package} has no {name!r}; {did_you_mean(name, vars(imported))}")
    make = getattr(imported, name)
    try:
        with suppress(ValueError):  # a callable without a signature shows below whether it can be called
            inspect.signature(make).bind(**args)
    except TypeError as error:
        raise ModelError(f"factory {factory!r}: args {dict(args)} do not fit: {error}") from None
    with torch.random.fork_rng(devices=()):  # a factory without weights is the same in every process
        torch.manual_seed(0)
        try:
            module = make(**args)
        except Exception as error:  # the user's code
            raise ModelError(f"factory {factory!r} failed with args {dict(args)}: {_described(error)}") from error
    if not isinstance(module, nn.Module):
        raise ModelError(f"factory {factory!r} returned {type(module).__name__}; it must return a torch.nn.Module")
    return module


def load_weights(module: nn.Module, path: Path, owner: str) -> dict[str, str]:
    """Load safetensors, or a state dict with `weights_only`; every name must fit.

    Returns the metadata that `advrisk train` stored in the file: seconds and samples of training.
    """
    training: dict[str, str] = {}
    _existing(path)
    try:
        if path.suffix == ".safetensors":
            state = load_file(path)
            with safe_open(path, framework="pt") as file:
                training = file.metadata() or {}
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except (SafetensorError, *_DAMAGED) as error:
        raise ModelError(f"{path}: cannot be read as weights: {_first_line(error)}") from None
    except UnpicklingError:
        raise ModelError(f"{path}: holds more than plain tensors, which is refused; save a state dict") from None
    try:
        module.load_state_dict(state)
    except (RuntimeError, TypeError, AttributeError) as error:
        problem = " ".join(str(error).split())
        raise ModelError(f"{path}: these weights do not fit {owner}: {problem[:500]}") from None
    return training


def _refuse_strange_members(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    for name in names:
        if not _EXPORT_MEMBER.fullmatch(name):
            raise ModelError(f"{path}: holds {name!r}, which torch.export.save does not write; it is not loaded")


@contextmanager
def _weights_only() -> Iterator[None]:
    """Forbid torch.export.load to fall back to unpickling, by a switch of torch."""
    switch = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
    before = os.environ.get(switch)
    os.environ[switch] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[switch]
        else:
            os.environ[switch] = before


def _refuse_fixed_batch(program: torch.export.ExportedProgram, path: Path) -> None:
    inputs = [node for node in program.graph.nodes if node.name in program.graph_signature.user_inputs]
    sizes = [node.meta["val"].shape for node in inputs if isinstance(node.meta.get("val"), Tensor)]
    if sizes and len(sizes[0]) and isinstance(sizes[0][0], int):
        raise ModelError(
            f"{path}: was exported for batches of exactly {sizes[0][0]}; export it with "
            "dynamic_shapes=({0: torch.export.Dim('batch')},)"
        )


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise ModelError(f"{path}: there is no such file")
    return path


def _from_file(module: nn.Module, path: Path, input_shape: tuple[int, ...] | None, classes: int | None) -> Loaded:
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    content = digest_bytes(path.read_bytes())
    return Loaded(module, content, module=module, input_shape=input_shape, n_classes=classes, min_rows=MIN_ROWS)


def _content(module: nn.Module) -> str:
    """A digest of the weights and of the architecture as torch prints it; the fingerprint covers other differences."""
    state = {name: digest_array(_plain(tensor)) for name, tensor in module.state_dict().items()}
    return digest({"architecture": f"{type(module).__qualname__} {module}", "state": state})


def _plain(tensor: Tensor) -> Any:
    tensor = tensor.detach().cpu()
    try:
        return tensor.numpy()
    except TypeError:  # bfloat16 and other types that numpy lacks
        return tensor.float().numpy()


def _described(error: Exception) -> str:
    """The error of foreign code in one line; its type, where that says more than the message."""
    plain = isinstance(error, TypeError | ValueError | RuntimeError) and not isinstance(error, NotImplementedError)
    return _first_line(error) if plain else f"{type(error).__name__}: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
