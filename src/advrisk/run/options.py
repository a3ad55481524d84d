"""Options of how to run a study; its questions are in the study."""

from dataclasses import dataclass
from typing import Literal

from advrisk.study import StoppingTarget

ExecutorName = Literal["local", "ray"]


@dataclass(frozen=True)
class Options:
    """Options of a run; none of them changes a row."""

    workers: int | None = None
    device: str | None = None
    max_s: float | None = None  # no cell begins after this time
    retry_errors: bool = False
    publish_every_s: float = 3.0
    on: ExecutorName = "local"
    address: str | None = None  # of a Ray cluster
    max_passes: int | None = None
    targets: tuple[StoppingTarget, ...] = ()  # the run stops early once they are met


DEFAULTS = Options()
