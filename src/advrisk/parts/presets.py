"""Presets: named lists of arms, as a study would write them.

A preset is a function of its settings that returns entries of `arms`.
"""

from typing import Any

from advrisk.core.registry import Registry
from advrisk.core.traits import SourceTraits

presets: Registry[SourceTraits] = Registry("presets")


@presets.register("first-look", traits=SourceTraits("a first idea of a model within minutes"))
def first_look(*, norm: str = "linf", eps: tuple[float, ...]) -> list[dict[str, Any]]:
    """FGSM, BIM and PGD at each eps."""
    return [{"attack": ["fgsm", "bim", "pgd"], "norm": norm, "eps": list(eps)}]
