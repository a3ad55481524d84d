"""Presets: named lists of arms, as a study would write them.

A preset is a function of its settings that returns entries of `arms`. A preset named after a paper has its arms.
"""

from typing import Any

from advrisk.core.registry import Registry
from advrisk.core.traits import SourceTraits

presets: Registry[SourceTraits] = Registry("presets")

Lines = list[dict[str, Any]]

_MEAD_OBJECTIVES = ["ace", "kl", "fisher-rao", "gini"]

# Corruptions of any image. A colour cast is not among them: it only changes the brightness of gray images.
_SENSOR = (
    "blur",
    "brightness",
    "contrast",
    "defocus",
    "hot-pixels",
    "jpeg",
    "motion-blur",
    "pixelation",
    "rotation",
    "shadow",
)
_NOISE = ("gaussian-noise", "salt-and-pepper", "shot-noise", "speckle-noise", "uniform-noise")


@presets.register("first-look", traits=SourceTraits("you want a first idea of a model within minutes"))
def first_look(*, norm: str = "linf", eps: tuple[float, ...]) -> Lines:
    """FGSM, BIM and PGD at each eps."""
    return [{"attack": ["fgsm", "bim", "pgd"], "norm": norm, "eps": list(eps)}]


@presets.register("minimal-distance", traits=SourceTraits("you ask how near a success is: all that damage needs"))
def minimal_distance(*, norm: str = "linf") -> Lines:
    """The attack `minimum-norm`: few passes; in linf as near as all of `damage-paper` on nearly all samples."""
    return [{"attack": "minimum-norm", "norm": norm}]


@presets.register("autoattack", traits=SourceTraits("others must be able to compare the verdict within eps"))
def autoattack(*, norm: str = "linf", eps: tuple[float, ...]) -> Lines:
    """AutoAttack, standard version: APGD-CE, targeted APGD-DLR, targeted FAB and Square, each on unbroken samples."""
    return [{"attack": "autoattack", "norm": norm, "eps": list(eps)}]


@presets.register("damage-paper", traits=SourceTraits("you want the arms of Klemenc & Trittenbach; inputs in [0, 1]"))
def damage_paper() -> Lines:
    """PGD, PGD-Adam and DeepFool in linf at eps 0, 0.001, 0.01, 0.03, 0.1, 0.3, 1 and 3."""
    return [{"attack": ["pgd", "pgd-adam", "deepfool"], "norm": "linf", "eps": [0, 0.001, 0.01, 0.03, 0.1, 0.3, 1, 3]}]


@presets.register("mead-mnist", traits=SourceTraits("you want the arms of MEAD (Granese et al.) for MNIST"))
def mead_mnist() -> Lines:
    """PGD in l1, l2 and linf, FGSM and BIM, each with four objectives; DeepFool, Carlini & Wagner, HopSkipJump, Square
    and the spatial attack."""
    return _mead(square_eps=0.3125, rotation=60, translation=2.8)  # 10 % of 28 pixels


@presets.register("mead-cifar10", traits=SourceTraits("you want the arms of MEAD (Granese et al.) for CIFAR-10"))
def mead_cifar10() -> Lines:
    """The same as `mead-mnist`, with the sizes of Square and of the spatial attack for CIFAR-10."""
    return _mead(square_eps=0.125, rotation=30, translation=2.56)  # 8 % of 32 pixels


def _mead(*, square_eps: float, rotation: float, translation: float) -> Lines:
    """The arms of both data sets, which differ in the sizes of Square and of the spatial attack.

    The last point of an attack counts, success or not. Minimum-norm attacks keep the smallest perturbation, and Square
    keeps the first success, where the paper's implementation ends. The paper's 0.01 for Carlini & Wagner in l2 is the
    first constant of its search: as a size it would allow nothing. The spatial attack tries a grid up to the paper's
    largest rotation and shift, where the paper's implementation tries one corner of it.
    """
    climbed = {"objective": _MEAD_OBJECTIVES, "keep": "last"}
    linf = [0.03125, 0.0625, 0.125, 0.25, 0.3125, 0.5]
    return [
        {"attack": "pgd", "norm": "l1", "eps": [5, 10, 15, 20, 25, 30, 40], **climbed},
        {"attack": "pgd", "norm": "l2", "eps": [0.125, 0.25, 0.3125, 0.5, 1, 1.5, 2], **climbed},
        {"attack": "deepfool", "norm": "l2"},
        {"attack": "carlini-wagner", "norm": "l2", "initial_const": 0.01},
        {"attack": "hopskipjump", "norm": "l2", "steps": 30, "initial_evaluations": 10, "max_evaluations": 100},
        {"attack": ["fgsm", "bim", "pgd"], "norm": "linf", "eps": linf, **climbed},
        {"attack": "carlini-wagner", "norm": "linf", "eps": 0.3125},
        {"attack": "square", "norm": "linf", "eps": square_eps},
        {"attack": "spatial", "max_rotation": rotation, "max_translation": translation},
    ]


@presets.register("weather", traits=SourceTraits("cameras work outdoors: what weather does to images"))
def weather(*, level: tuple[int, ...] = (1, 3, 5)) -> Lines:
    """Rain, fog, snow, frost and sun flare at each level."""
    return [{"corruption": ["rain", "fog", "snow", "frost", "sun-flare"], "level": list(level)}]


@presets.register("table-faults", traits=SourceTraits("inputs are tables: what goes wrong where numbers are collected"))
def table_faults(*, level: tuple[int, ...] = (1, 3, 5)) -> Lines:
    """Missing values, drift of columns, wrong units and noise at each level."""
    return [{"corruption": ["missing-values", "column-drift", "unit-error", "table-noise"], "level": list(level)}]


@presets.register("survival-paper", traits=SourceTraits("you want the arms of Meyers et al.; images in [0, 1]"))
def survival_paper() -> Lines:
    """FGM and PGD in l1, l2 and linf, DeepFool, HopSkipJump, Pixel and Threshold, ten steps each.

    Pixel changes at most 4, 16, 64 and 256 pixels, of however many channels. The paper gives no sizes of Threshold:
    here they go from 1/255 to 1.
    """
    grid = {"norm": ["l1", "l2", "linf"], "eps": [0.001, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.8, 1]}
    return [
        {"attack": "fgsm", **grid},
        {"attack": "pgd", "steps": 10, **grid},
        {"attack": "deepfool", "norm": "l2", "candidates": [1, 3, 5, 10], "steps": 10},
        {"attack": "hopskipjump", "norm": "l2", "steps": 10, "initial_evaluations": 10, "max_evaluations": 10},
        {"attack": "pixel", "pixels": [4, 16, 64, 256], "generations": 10},
        {"attack": "threshold", "eps": ["1/255", "4/255", "16/255", "64/255", 1], "generations": 10},
    ]


@presets.register("prosac-paper", traits=SourceTraits("you want the arms of PROSAC (Feng et al.); inputs in [0, 1]"))
def prosac_paper() -> Lines:
    """AutoAttack, Square (p = 0.05) and NES in l2 and linf, at the paper's sizes.

    In l2, AutoAttack at 0.021, 0.022 … 0.030 and NES at 0.10 … 0.30 and 0.14 … 0.18; in linf, AutoAttack at 1e-5,
    2e-5 … 1e-4. Where the paper gives no sizes, those of AutoAttack apply: to Square, and in linf to NES. The settings
    of NES are the middle of the paper's initial search grid.
    """
    l2 = [round(0.021 + 0.001 * k, 3) for k in range(10)]
    linf = [round(1e-5 * k, 5) for k in range(1, 11)]
    nes = {"attack": "nes", "sigma": 0.01, "step_size": 0.02}
    return [
        {"attack": "autoattack", "norm": "l2", "eps": l2},
        {"attack": "autoattack", "norm": "linf", "eps": linf},
        {"attack": "square", "norm": "l2", "eps": l2, "p_init": 0.05},
        {"attack": "square", "norm": "linf", "eps": linf, "p_init": 0.05},
        nes | {"norm": "l2", "eps": [0.10, 0.14, 0.15, 0.16, 0.17, 0.18, 0.20, 0.25, 0.30]},
        nes | {"norm": "linf", "eps": linf},
    ]


@presets.register("sensor", traits=SourceTraits("you ask what cameras do to images, not what an attacker does"))
def sensor(*, level: tuple[int, ...] = (1, 3, 5)) -> Lines:
    """Ten corruptions by cameras and image files at each level; for colour images, add `colour-cast` yourself."""
    return _corruptions(_SENSOR, level)


@presets.register("noise", traits=SourceTraits("you ask what noise does to images"))
def noise(*, level: tuple[int, ...] = (1, 3, 5)) -> Lines:
    """Gaussian, uniform, shot and speckle noise, and salt and pepper, at each level."""
    return _corruptions(_NOISE, level)


def _corruptions(names: tuple[str, ...], level: tuple[int, ...]) -> Lines:
    return [{"corruption": name, "level": list(level)} for name in names]
