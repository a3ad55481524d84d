"""What a loader is held against: some good files, how they are spoiled, and who reads them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.mutations import Mutation


@dataclass(frozen=True)
class Loader:
    """`load` is given what stands in a spoiled file, and the place of the good one among `seeds`."""

    seeds: Sequence[bytes]
    ways: Sequence[Mutation]
    load: Callable[[bytes, int], object]


def written(path: Path, content: bytes) -> Path:
    """The file, with that in it."""
    path.write_bytes(content)
    return path
