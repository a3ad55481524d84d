"""Presets: named lists of arms, as a study would write them.

A preset is a function of its settings that returns entries of `arms`. Those named after a paper hold the paper's arms
as far as their attacks are there; the docstring says what is missing.
"""

from typing import Any

from advrisk.core.registry import Registry
from advrisk.core.traits import SourceTraits

presets: Registry[SourceTraits] = Registry("presets")

Lines = list[dict[str, Any]]

_MEAD_OBJECTIVES = ["ace", "kl", "fisher-rao", "gini"]


@presets.register("first-look", traits=SourceTraits("a first idea of a model within minutes"))
def first_look(*, norm: str = "linf", eps: tuple[float, ...]) -> Lines:
    """FGSM, BIM and PGD at each eps."""
    return [{"attack": ["fgsm", "bim", "pgd"], "norm": norm, "eps": list(eps)}]


@presets.register("minimal-distance", traits=SourceTraits("how far the nearest success is: all that damage needs"))
def minimal_distance(*, norm: str = "linf") -> Lines:
    """The attack `minimum-norm`: few passes, and in linf on nearly all samples as near as all of `damage-paper`."""
    return [{"attack": "minimum-norm", "norm": norm}]


@presets.register("autoattack", traits=SourceTraits("a verdict within eps that others can compare"))
def autoattack(*, norm: str = "linf", eps: tuple[float, ...]) -> Lines:
    """AutoAttack, standard version: APGD-CE, targeted APGD-DLR, targeted FAB and Square, each on what is left."""
    return [{"attack": "autoattack", "norm": norm, "eps": list(eps)}]


@presets.register("damage-paper", traits=SourceTraits("the arms of Klemenc & Trittenbach; inputs in [0, 1]"))
def damage_paper() -> Lines:
    """PGD, PGD-Adam and DeepFool in linf at eps 0, 0.001, 0.01, 0.03, 0.1, 0.3, 1 and 3."""
    return [{"attack": ["pgd", "pgd-adam", "deepfool"], "norm": "linf", "eps": [0, 0.001, 0.01, 0.03, 0.1, 0.3, 1, 3]}]


@presets.register("mead-mnist", traits=SourceTraits("the arms of MEAD (Granese et al.) for MNIST"))
def mead_mnist() -> Lines:
    """MEAD's arms for MNIST, but HopSkipJump and the spatial attack, which are not in it yet."""
    return _mead(square_eps=0.3125)


@presets.register("mead-cifar10", traits=SourceTraits("the arms of MEAD (Granese et al.) for CIFAR-10"))
def mead_cifar10() -> Lines:
    """MEAD's arms for CIFAR-10, but HopSkipJump and the spatial attack, which are not in it yet."""
    return _mead(square_eps=0.125)


def _mead(*, square_eps: float) -> Lines:
    """The arms of both data sets, which differ in Square's eps.

    The last point of an attack counts, success or not; those that look for the smallest perturbation keep that, and
    Square keeps the first success, where the paper's implementation ends. The paper's 0.01 for Carlini & Wagner in l2
    is the constant its search begins with: as a size it would allow nothing.
    """
    climbed = {"objective": _MEAD_OBJECTIVES, "keep": "last"}
    linf = [0.03125, 0.0625, 0.125, 0.25, 0.3125, 0.5]
    return [
        {"attack": "pgd", "norm": "l1", "eps": [5, 10, 15, 20, 25, 30, 40], **climbed},
        {"attack": "pgd", "norm": "l2", "eps": [0.125, 0.25, 0.3125, 0.5, 1, 1.5, 2], **climbed},
        {"attack": "deepfool", "norm": "l2"},
        {"attack": "carlini-wagner", "norm": "l2", "initial_const": 0.01},
        {"attack": ["fgsm", "bim", "pgd"], "norm": "linf", "eps": linf, **climbed},
        {"attack": "carlini-wagner", "norm": "linf", "eps": 0.3125},
        {"attack": "square", "norm": "linf", "eps": square_eps},
    ]


@presets.register("survival-paper", traits=SourceTraits("the arms of Meyers et al.; inputs in [0, 1]"))
def survival_paper() -> Lines:
    """FGM and PGD in l1, l2 and linf and DeepFool, ten steps; HopSkipJump, Pixel and Threshold are not in it yet."""
    grid = {"norm": ["l1", "l2", "linf"], "eps": [0.001, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.8, 1]}
    return [
        {"attack": "fgsm", **grid},
        {"attack": "pgd", "steps": 10, **grid},
        {"attack": "deepfool", "norm": "l2", "candidates": [1, 3, 5, 10], "steps": 10},
    ]
