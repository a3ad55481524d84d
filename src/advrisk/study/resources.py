"""What one cell occupies while it is carried out: how many of them go side by side on a machine."""

from typing import Annotated

from pydantic import AfterValidator, Field

from advrisk.study.fields import Number, Strict


def _a_share_or_whole(value: float) -> float:
    if value > 1 and value != int(value):
        raise ValueError(f"above 1, only whole numbers can be set aside; found {value:g}")
    return value


_Quantity = Annotated[Number, Field(le=1024), AfterValidator(_a_share_or_whole)]


class ResourcesSpec(Strict):
    """Cores and accelerators that a worker is given; a share, such as 0.25, lets several have the same one.

    Whatever is said here, a worker computes on one thread, so that no row depends on it.
    """

    cpus: Annotated[_Quantity, Field(ge=0.01)] = 1.0
    gpus: Annotated[_Quantity, Field(ge=0)] = 0.0

    def fitting(self, cpus: float, gpus: float) -> int:
        """How many workers a machine with so many cores and accelerators has room for."""
        room = _whole(cpus / self.cpus)
        if self.gpus > 1:
            room = min(room, _whole(gpus / self.gpus))
        elif self.gpus:  # shares of two accelerators do not make one
            room = min(room, int(gpus) * _whole(1 / self.gpus))
        return room


def _whole(quotient: float) -> int:
    """1 / 0.1 is ten, however the division is rounded."""
    return int(quotient + 1e-9)
