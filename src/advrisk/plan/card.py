"""A loaded model as planning sees it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from advrisk.core.traits import Capability


@dataclass(frozen=True)
class ModelCard:
    """What planning needs to know of a loaded model."""

    name: str
    digest: str
    capability: Capability
    n_classes: int
    takes_images: bool = True  # inputs are channels × height × width
    surrogate: bool = False  # not assessed: points are crafted on it
    opaque: Mapping[str, str] = field(default_factory=dict)  # detector -> why it cannot see the layers it looks at
    undropped: str = ""  # why its dropout cannot be switched on; empty where it can
    random: bool = False  # it answers the same input differently each time
