"""What 40 steps of PGD miss: predictions that stand within eps according to PGD, minimal-distance and AutoAttack.

With $ADVRISK_ZOO and $ADVRISK_DATA, on classifiers that others trained; else on the demo's.
"""

import torch

from bench import zoo
from bench.cells import shop
from bench.distances import found_by

FOREIGN = {  # the largest of the sizes that the collection's own table gives at which PGD leaves something standing
    "mnist_colt_0.1": 0.3,
    "mnist_wong_0.1": 0.1,
    "mnist_wong_small_0.3": 0.3,
    "mnist_cnn_a_adv": 0.3,
    "mnist_advertorch_lenet5_adv": 0.3,
    "mnist_advertorch_lenet5_std": 0.1,
    "fmnist_wong_0.1": 0.1,
    "cifar10_cnn_a_adv": 8 / 255,
    "cifar10_cnn_a_mix": 8 / 255,
    "cifar10_wong_small_8px": 8 / 255,
    "cifar10_resnet20_std": 2 / 255,
}
DEMO = {"plain": 0.06, "noise-augmented": 0.1, "pgd-trained": 0.2, "trades": 0.2}


def main(*, tiny: bool = False) -> None:
    """Print a line for each model; a tiny one is one sample that falls at once, as AutoAttack takes long else."""
    samples = 1 if tiny else 100
    models = {"plain": 0.5} if tiny else FOREIGN if zoo.folder() else DEMO
    print(f"{samples} samples, linf. Standing: predictions that no attack changed within eps. All: the three together.")
    print("                                       standing                              passes per sample")
    print("  model                        eps     PGD-40  minimal  AutoAttack   all     PGD-40  minimal  AutoAttack")
    for name, eps in models.items():
        _print_model(name, eps, samples)


def _print_model(name: str, eps: float, samples: int) -> None:
    arms = [
        {"attack": "pgd", "norm": "linf", "eps": eps, "steps": 40},
        {"preset": "minimal-distance", "norm": "linf"},
        {"preset": "autoattack", "norm": "linf", "eps": eps},
    ]
    with shop(arms, samples=samples, shard=samples, **zoo.data_and_model(name)) as place:
        tried = [found_by(place, cell, "linf") for cell in place.cells]
    standing = [found.distance > eps * (1 + 1e-5) for found in tried]  # eps itself, but for rounding
    everywhere = torch.stack(standing).all(0)
    pgd, minimal, auto, together = (int(one.sum()) for one in (*standing, everywhere))
    passes = [found.n_passes for found in tried]
    print(
        f"  {name:28} {eps:.4f} {pgd:6} {minimal:8} {auto:11} {together:6} "
        f"{passes[0]:10.0f} {passes[1]:8.0f} {passes[2]:11.0f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
