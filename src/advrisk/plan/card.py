"""A loaded model's properties for planning."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from advrisk.core.traits import Capability


@dataclass(frozen=True)
class ModelCard:
    """The properties of a loaded model that planning needs."""

    name: str
    digest: str
    capability: Capability
    n_classes: int
    takes_images: bool = True  # inputs are channels × height × width
    surrogate: bool = False  # not assessed: points are crafted on it
    opaque: Mapping[str, str] = field(default_factory=dict)  # detector -> why it cannot read the layers that it needs
    undropped: str = ""  # why its dropout cannot be switched on; "" if it can
    random: bool = False  # it answers the same input differently each time
