"""How to run a study, as opposed to what it asks."""

from dataclasses import dataclass
from typing import Literal

from advrisk.study import StoppingTarget

ExecutorName = Literal["local", "ray"]


@dataclass(frozen=True)
class Options:
    """None of these changes a row."""

    workers: int | None = None
    device: str | None = None
    max_s: float | None = None  # after which no cell begins
    retry_errors: bool = False
    publish_every_s: float = 3.0
    on: ExecutorName = "local"
    address: str | None = None  # of a Ray cluster
    max_passes: int | None = None
    targets: tuple[StoppingTarget, ...] = ()  # the run stops early once they are met


DEFAULTS = Options()
