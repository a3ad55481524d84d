"""Files of tensors: weights of trained models, and fitted states of detectors."""

from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor

from advrisk.core.files import whole_file


def write_tensors(target: Path, tensors: Mapping[str, Tensor], note: Mapping[str, str]) -> None:
    """A safetensors file with a note in its header."""
    with whole_file(target) as file:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, file, metadata=dict(note))
        file.chmod(0o644)  # safetensors makes files that only their owner can read
