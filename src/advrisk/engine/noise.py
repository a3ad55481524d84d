"""Random numbers for rows; those of a row depend on its own key alone.

A row's stream does not change with its batch mates, with the order of the samples, or with which
other rows are still being attacked: counters are kept per row. The generator is SplitMix64
(Steele, Lea & Flood 2014) evaluated at (key, counter), so any number of rows is drawn at once,
and the same on every device.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from advrisk.core.digest import digest_array
from advrisk.core.seeds import key
from advrisk.engine.rows import occurrence

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_BLOCK = 2**15  # words that are mixed at once: they stay in the cache of a processor


class Noise:
    """The random streams of a shard: one per sample, addressed by row number."""

    def __init__(self, keys: Sequence[int], *, device: torch.device | str = "cpu") -> None:
        self._keys = np.array(keys, dtype=np.uint64)
        self._drawn = np.zeros(len(keys), dtype=np.uint64)
        self._device = device

    def uniform(self, rows: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Uniform on [0, 1): `shape` numbers per row; a repeated row gets new numbers each time."""
        return self._tensor(self._unit(rows, math.prod(shape)), shape)

    def normal(self, rows: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Standard normal (Box–Muller): `shape` numbers per row; a repeated row gets new numbers each time."""
        count = math.prod(shape)
        unit = self._unit(rows, 2 * count)
        radius = np.sqrt(-2 * np.log1p(-unit[:, :count]))
        return self._tensor(radius * np.cos(2 * np.pi * unit[:, count:]), shape)

    def bell(self, rows: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Whole numbers from −4 to 4, nearly normal with variance 2: heads less tails of 8 coins, halved.

        Much less work than `normal`, and their sums are exact in whatever order they are added up.
        """
        count = math.prod(shape)
        words = self._words(rows, -(-count // 8))
        heads = np.bitwise_count(words.view(np.uint8))[:, :count]
        return torch.from_numpy(heads.astype(np.float32)).sub_(4).view(-1, *shape).to(self._device)

    def seed(self, rows: Tensor) -> int:
        """One number that depends on the keys of all these rows: for generators without rows."""
        return key(*map(int, self._keys[rows.cpu().numpy()]))

    def _unit(self, rows: Tensor, count: int) -> npt.NDArray[np.float64]:
        # 24 bits: exact in float32, where rounding 53 bits could give 1.0.
        return (self._words(rows, count) >> np.uint64(40)).astype(np.float64) * 2.0**-24

    def _words(self, rows: Tensor, count: int) -> npt.NDArray[np.uint64]:
        rows = rows.cpu()
        index = rows.numpy()
        before = self._drawn[index] + occurrence(rows).numpy().astype(np.uint64) * np.uint64(count)
        np.add.at(self._drawn, index, np.uint64(count))
        first = np.add(self._keys[index], before * _GOLDEN, dtype=np.uint64)
        words = np.empty((len(index), count), dtype=np.uint64)
        steps = np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN
        size = max(1, _BLOCK // max(1, count))
        for start in range(0, len(index), size):
            some = slice(start, start + size)
            _mix(np.add(first[some, None], steps, out=words[some]))
        return words

    def _tensor(self, values: npt.NDArray[np.float64], shape: tuple[int, ...]) -> Tensor:
        return torch.from_numpy(values.astype(np.float32)).view(-1, *shape).to(self._device)


@dataclass(frozen=True)
class Draw:
    """The random numbers of one batch: each row takes them from the stream of its sample."""

    noise: Noise
    rows: Tensor

    @classmethod
    def by_content(cls, x: Tensor) -> "Draw":
        """A draw for inputs that belong to no sample: equal inputs get equal numbers."""
        plain = x.detach().cpu().numpy()
        keys = [key("content", digest_array(row)) for row in plain]
        return cls(Noise(keys, device=x.device), torch.arange(len(keys)))

    def normal(self, shape: tuple[int, ...]) -> Tensor:
        """Standard normal: `shape` numbers for each row."""
        return self.noise.normal(self.rows, shape)

    def uniform(self, shape: tuple[int, ...]) -> Tensor:
        """Uniform on [0, 1): `shape` numbers for each row."""
        return self.noise.uniform(self.rows, shape)


def _mix(z: npt.NDArray[np.uint64]) -> None:
    """Writes into its argument."""
    spare = np.empty_like(z)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z ^= np.right_shift(z, np.uint64(shift), out=spare)
        z *= np.uint64(factor)
    z ^= np.right_shift(z, np.uint64(31), out=spare)
