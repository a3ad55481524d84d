"""The four small models of the package, trained by its recipe."""

from importlib.resources import as_file, files
from typing import Literal

from advrisk.core.traits import SourceTraits
from advrisk.parts.models.registry import Loaded, models
from advrisk.parts.models.torch_module import torch_factory


@models.register("demo", traits=SourceTraits("you try this out: models for mnist-5k that come with the package"))
def demo(*, name: Literal["plain", "noise-augmented", "pgd-trained", "trades"]) -> Loaded:
    """One of the demo's models: plain, noise-augmented, pgd-trained or trades."""
    with as_file(files("advrisk.demo") / f"{name}.safetensors") as weights:
        return torch_factory(factory="advrisk.parts.models.small:SmallCnn", weights=weights)
