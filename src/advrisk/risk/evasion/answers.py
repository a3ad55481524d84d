"""A detector's answers: the size of each perturbation, and whether it went undetected."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advrisk.core.errors import RiskError
from advrisk.core.names import counted
from advrisk.risk.evasion.curve import Flags, Floats, checked_sizes

_MOST_SIZES = 400


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers in the order in which they were given."""

    sizes: Floats
    undetected: Flags
    labellers: tuple[str, ...] | None = None  # who gave each answer
    images: tuple[str, ...] | None = None  # what each answer is about

    @property
    def n(self) -> int:
        return int(self.sizes.size)

    def pooled_counts(self) -> tuple[Floats, Floats, Floats]:
        """`counts` with at most about _MOST_SIZES sizes; neighbours beyond are pooled at their mean size.

        Each pool has so few answers that a curve hardly changes within it. Size 0 stays separate.
        """
        sizes, total, undetected = self.counts()
        if sizes.size <= _MOST_SIZES:
            return sizes, total, undetected
        pool = np.ceil(np.cumsum(total) * _MOST_SIZES / self.n)
        pool[sizes == 0] = 0
        starts = np.flatnonzero(np.diff(pool, prepend=-1))
        of_pool = np.add.reduceat(total, starts)
        return np.add.reduceat(sizes * total, starts) / of_pool, of_pool, np.add.reduceat(undetected, starts)

    def counts(self) -> tuple[Floats, Floats, Floats]:
        """The distinct sizes, ascending, with the numbers of answers and of undetected ones."""
        sizes, index = np.unique(self.sizes, return_inverse=True)
        total = np.bincount(index, minlength=sizes.size).astype(np.float64)
        undetected = np.bincount(index[self.undetected], minlength=sizes.size).astype(np.float64)
        return sizes, total, undetected


def checked_answers(sizes: ArrayLike, undetected: ArrayLike) -> Answers:
    """At least two answers, some detected and some not."""
    answers = any_answers(sizes, undetected)
    if answers.n < 2:
        raise RiskError(f"found {counted(answers.n, 'answer')}, and a curve needs two or more; ask the detector again")
    if answers.undetected.all():
        raise RiskError(
            f"all {answers.n} perturbations up to size {answers.sizes.max():g} went undetected, so the size where "
            "detection begins is unknown; ask about larger ones"
        )
    if not answers.undetected.any():
        raise RiskError(
            f"all {answers.n} perturbations down to size {answers.sizes.min():g} were detected, so the size where "
            "detection ends is unknown; ask about smaller ones"
        )
    return answers


def numbered(names: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """The distinct names in order of first occurrence, and the index of each entry among them."""
    indices = {name: index for index, name in enumerate(dict.fromkeys(names))}
    return tuple(indices), np.array([indices[name] for name in names], dtype=np.intp)


def checked_names(names: Iterable[object] | None, n: int, what: str) -> tuple[str, ...] | None:
    """One name per answer, or None."""
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise RiskError(f"{what}s: one for each answer is needed, found {names!r}")
    texts = tuple(str(name) for name in names)
    if len(texts) != n:
        raise RiskError(f"there are {n} answers and {len(texts)} {what}s; each answer needs its {what}")
    return texts


def any_answers(sizes: ArrayLike, undetected: ArrayLike) -> Answers:
    """Valid answers of any number."""
    array = checked_sizes(sizes, "sizes of the answers")
    if array.ndim != 1:
        raise RiskError(f"one size per answer is needed, found an array of shape {array.shape}")
    if np.isinf(array).any():
        raise RiskError(
            f"sizes of the answers: found inf at index {int(np.flatnonzero(np.isinf(array))[0])}; "
            "only a perturbation that exists can be shown to a detector"
        )
    flags = _flags(undetected)
    if flags.shape != array.shape:
        raise RiskError(f"there are {array.size} sizes and {flags.size} answers; each size needs its answer")
    return Answers(array, flags)


def _flags(undetected: ArrayLike) -> NDArray[np.bool_]:
    try:
        array = np.asarray(undetected, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RiskError(f"answers: True (undetected) or False is needed ({error})") from None
    wrong = ~np.isin(array, (0.0, 1.0))
    if wrong.any():
        index = int(np.flatnonzero(wrong.ravel())[0])
        raise RiskError(f"answers: found {array.ravel()[index]} at index {index}; 1 is undetected and 0 detected")
    return array.astype(np.bool_)
