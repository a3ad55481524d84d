"""A loaded model as planning sees it."""

from dataclasses import dataclass

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
    opaque: str = ""  # why its hidden layers cannot be seen; empty where they can
    undropped: str = ""  # why its dropout cannot be switched on; empty where it can
