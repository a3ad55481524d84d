"""The resources of one worker, which limit the number of parallel cells on a machine."""

from typing import Annotated

from pydantic import AfterValidator, Field

from advrisk.study.fields import Number, Strict


def _a_share_or_whole(value: float) -> float:
    if value > 1 and value != int(value):
        raise ValueError(f"a number above 1 must be whole; found {value:g}")
    return value


_Quantity = Annotated[Number, Field(le=1024), AfterValidator(_a_share_or_whole)]


class ResourcesSpec(Strict):
    """Cores and accelerators of a worker; with a share, such as 0.25, several workers use the same one.

    A worker always computes on one thread, so that no row depends on these numbers.
    """

    cpus: Annotated[_Quantity, Field(ge=0.01)] = 1.0
    gpus: Annotated[_Quantity, Field(ge=0)] = 0.0

    def fitting(self, cpus: float, gpus: float) -> int:
        """The number of workers that fit on a machine with these cores and accelerators."""
        room = _whole(cpus / self.cpus)
        if self.gpus > 1:
            room = min(room, _whole(gpus / self.gpus))
        elif self.gpus:  # shares of two accelerators do not make one
            room = min(room, int(gpus) * _whole(1 / self.gpus))
        return room


def _whole(quotient: float) -> int:
    """The whole part of a quotient, with a tolerance for rounding: 1 / 0.1 is ten."""
    return int(quotient + 1e-9)
