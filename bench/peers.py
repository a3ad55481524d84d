"""Other libraries' attacks, called as their users call them. Each function takes a module and returns the attack.

An attack maps inputs and their classes to perturbed inputs and to what the library calls a success, or None where it
does not say. Imports are inside the functions: a library that is not installed raises ImportError when it is asked for.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

Attack = Callable[[Tensor, Tensor], tuple[Tensor, Tensor | None]]
Maker = Callable[..., Attack]


def art_pgd(module: nn.Module, *, eps: float, step: float, steps: int) -> Attack:
    from art.attacks.evasion import ProjectedGradientDescent

    settings = {"eps": eps, "eps_step": step, "max_iter": steps, "num_random_init": 1}
    return _by_art(module, ProjectedGradientDescent, **settings)


def art_deepfool(module: nn.Module, *, steps: int, candidates: int) -> Attack:
    from art.attacks.evasion import DeepFool

    return _by_art(module, DeepFool, max_iter=steps, epsilon=0.02, nb_grads=candidates)


def art_carlini_wagner(module: nn.Module, *, searches: int, steps: int, step: float, const: float) -> Attack:
    from art.attacks.evasion import CarliniL2Method

    settings = {"binary_search_steps": searches, "max_iter": steps, "learning_rate": step, "initial_const": const}
    return _by_art(module, CarliniL2Method, clean_where_failed=True, **settings)


def art_hopskipjump(module: nn.Module, *, norm: str, steps: int) -> Attack:
    """One sample at a time. With NumPy 2 it hands float64 to the module, which is put right here."""
    from art.attacks.evasion import HopSkipJump

    return _by_art(_InFloat32(module), HopSkipJump, norm={"l2": 2, "linf": np.inf}[norm], max_iter=steps)


class _InFloat32(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.module(x.float())
        return answer


def _by_art(module: nn.Module, attack: Any, *, clean_where_failed: bool = False, **settings: Any) -> Attack:
    from art.estimators.classification import PyTorchClassifier

    def run(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor | None]:
        classifier = PyTorchClassifier(
            module, nn.CrossEntropyLoss(), x.shape[1:], 10, clip_values=(0, 1), device_type="cpu"
        )
        made = attack(classifier, batch_size=len(x), verbose=False, **settings)
        x_adv = torch.from_numpy(made.generate(x.numpy(), np.eye(10, dtype=np.float32)[y.numpy()]))
        return x_adv, _moved(x_adv, x) if clean_where_failed else None

    return run


def foolbox_pgd(module: nn.Module, *, eps: float, step: float, steps: int) -> Attack:
    import foolbox

    return _by_foolbox(module, foolbox.attacks.LinfPGD(abs_stepsize=step, steps=steps), eps)


def foolbox_deepfool(module: nn.Module, *, steps: int, candidates: int) -> Attack:
    import foolbox

    return _by_foolbox(module, foolbox.attacks.L2DeepFoolAttack(steps=steps, candidates=candidates), None)


def foolbox_carlini_wagner(module: nn.Module, *, searches: int, steps: int, step: float, const: float) -> Attack:
    import foolbox

    settings = {"binary_search_steps": searches, "steps": steps, "stepsize": step, "initial_const": const}
    return _by_foolbox(module, foolbox.attacks.L2CarliniWagnerAttack(**settings), None)


def foolbox_hopskipjump(module: nn.Module, *, norm: str, steps: int) -> Attack:
    import foolbox

    return _by_foolbox(module, foolbox.attacks.HopSkipJumpAttack(steps=steps, constraint=norm), None)


def _by_foolbox(module: nn.Module, attack: Any, eps: float | None) -> Attack:
    import foolbox

    wrapped = foolbox.PyTorchModel(module, bounds=(0, 1), device="cpu")

    def run(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor | None]:
        _, x_adv, success = attack(wrapped, x, y, epsilons=eps)
        return x_adv, success

    return run


def torchattacks_pgd(module: nn.Module, *, eps: float, step: float, steps: int) -> Attack:
    import torchattacks

    return _plain(torchattacks.PGD(module, eps=eps, alpha=step, steps=steps))


def torchattacks_deepfool(module: nn.Module, *, steps: int, candidates: int) -> Attack:  # noqa: ARG001  (it takes all)
    import torchattacks

    return _plain(torchattacks.DeepFool(module, steps=steps))


SIZES = (0.001, 0.01, 0.03, 0.1, 0.3, 1, 3)  # of Klemenc & Trittenbach; at size 0 nothing moves


def foolbox_at_sizes(module: nn.Module, x: Tensor, y: Tensor, *, sizes: Sequence[float] = SIZES) -> list[Tensor]:
    """The points of the 24 configurations that Klemenc & Trittenbach used."""
    import foolbox

    attacks = (foolbox.attacks.LinfPGD(), foolbox.attacks.LinfAdamPGD(), foolbox.attacks.LinfDeepFoolAttack())
    model = foolbox.PyTorchModel(module, bounds=(0, 1), device="cpu")
    torch.manual_seed(0)
    return [attack(model, x, y, epsilons=eps)[1] for attack in attacks for eps in sizes]


def foolbox_minimum_norm(module: nn.Module, x: Tensor, y: Tensor, *, norm: str, steps: int) -> list[Tensor]:
    """The points of Foolbox's attacks for minimal distances in l2 or l1 (Brendel & Bethge's, far slower, left out)."""
    from foolbox import PyTorchModel, attacks

    search = {"binary_search_steps": 6, "steps": steps, "initial_const": 0.01}
    chosen = {
        "l2": lambda: (
            attacks.L2DeepFoolAttack(),
            attacks.DDNAttack(steps=steps),
            attacks.L2FMNAttack(steps=steps),
            attacks.L2CarliniWagnerAttack(stepsize=0.05, **search),
        ),
        "l1": lambda: (attacks.EADAttack(**search), attacks.L1FMNAttack(steps=steps)),
    }
    model = PyTorchModel(module, bounds=(0, 1), device="cpu")
    torch.manual_seed(0)
    return [attack(model, x, y, epsilons=None)[1].clamp(0, 1) for attack in chosen[norm]()]


def adv_lib_fmn(module: nn.Module, x: Tensor, y: Tensor, *, norm: str, steps: int) -> list[Tensor]:
    with _stand_ins():
        from adv_lib.attacks import fmn

    return [fmn(module, x, y, norm={"linf": float("inf"), "l2": 2, "l1": 1}[norm], steps=steps).clamp(0, 1)]


def adv_lib_deepfool(module: nn.Module, *, steps: int, candidates: int) -> Attack:  # noqa: ARG001  (it takes all)
    with _stand_ins():
        from adv_lib.attacks import df

    return _plain(lambda x, y: df(module, x, y, steps=steps), clean_where_failed=True)


def secml_torch_pgd(module: nn.Module, *, eps: float, step: float, steps: int) -> Attack:
    """Its own implementation; what it calls by default is Foolbox's."""
    with _stand_ins():
        from secmlt.adv.evasion.pgd import PGD
        from secmlt.models.pytorch.base_pytorch_nn import BasePyTorchClassifier
    settings = {"num_steps": steps, "step_size": step, "random_start": True, "backend": "native"}
    attack = PGD(perturbation_model="linf", epsilon=eps, **settings)
    model = BasePyTorchClassifier(module)

    def run(x: Tensor, y: Tensor) -> Tensor:
        batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=len(x))
        return torch.cat([x_adv for x_adv, _ in attack(model, batches)])

    return _plain(run)


def pyautoattack_standard(module: nn.Module, *, norm: str, eps: float, seed: int) -> Attack:
    """The code of AutoAttack's authors, packaged; it packs its warnings into a log."""
    import logging

    from pyautoattack import AutoAttack

    logging.getLogger("auto-attack").setLevel(logging.ERROR)
    made = AutoAttack(module, norm=norm.capitalize(), eps=eps, seed=seed, device="cpu")
    return _plain(lambda x, y: made.run_standard_evaluation(x, y, batch_size=len(x))[0], clean_where_failed=True)


def _plain(attack: Callable[[Tensor, Tensor], Tensor], *, clean_where_failed: bool = False) -> Attack:
    """An attack that says nothing of success, or says it by giving back the clean input where it failed."""

    def run(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor | None]:
        x_adv = attack(x, y).detach()
        return x_adv, _moved(x_adv, x) if clean_where_failed else None

    return run


def _moved(x_adv: Tensor, x: Tensor) -> Tensor:
    return (x_adv != x).flatten(1).any(1)


@contextmanager
def _stand_ins() -> Iterator[None]:
    """adv-lib imports torchvision (its wheel wants CUDA) and visdom (which does not build) for parts not used here."""
    absent = [name for name in ("torchvision", "visdom") if find_spec(name) is None]
    for name in absent:
        sys.modules[name] = module_from_spec(ModuleSpec(name, None))
        sys.modules[name].models = None  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


PGD: dict[str, Maker] = {
    "ART": art_pgd,
    "Foolbox": foolbox_pgd,
    "torchattacks": torchattacks_pgd,
    "SecML-Torch": secml_torch_pgd,
}
DEEPFOOL: dict[str, Maker] = {
    "Foolbox": foolbox_deepfool,
    "adv-lib": adv_lib_deepfool,
    "torchattacks": torchattacks_deepfool,
    "ART": art_deepfool,
}
HOPSKIPJUMP: dict[str, Maker] = {"Foolbox": foolbox_hopskipjump, "ART": art_hopskipjump}
CARLINI_WAGNER: dict[str, Maker] = {"Foolbox": foolbox_carlini_wagner, "ART": art_carlini_wagner}
