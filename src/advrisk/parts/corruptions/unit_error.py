"""Numbers of a table that were given in another unit."""

from typing import Annotated

import torch
from annotated_types import Ge, Gt, Le
from torch import Tensor

from advrisk.core.traits import CorruptionTraits
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions.columns import named, numeric, rounded
from advrisk.parts.corruptions.registry import corruptions


@corruptions.register(
    "unit-error",
    traits=CorruptionTraits(
        "numbers come from several sources, or are typed in by people",
        cause="table",
        inputs="tables",
        # Miles and kilometres, inches and centimetres, metres and feet, centimetres and millimetres, kilos and grams.
        levels={"factor": (1.609, 2.54, 3.281, 10.0, 1000.0)},
    ),
)
def unit_error(
    x: Tensor,
    noise: Noise,
    rows: Tensor,
    space: Space,
    *,
    factor: Annotated[float, Gt(0)],
    column: Annotated[int, Ge(0)] | None = None,
    row_share: Annotated[float, Ge(0), Le(1)] = 1.0,
) -> Tensor:
    """One number is `factor` times what it should be, in each row with probability `row_share`.

    It is the one in `column` (its index, from 0); without it, one is drawn for every row, uniformly from the columns
    that hold numbers and are not immutable. Whole numbers are rounded; numbers beyond the bounds become the bounds.
    """
    drawn = noise.uniform(rows, (2,))
    if column is None:
        columns = numeric(x, space).flatten().nonzero().flatten()
        chosen = columns[(drawn[:, 1] * len(columns)).long().clamp_max(len(columns) - 1)]
        struck = torch.nn.functional.one_hot(chosen, x[0].numel()).bool().view_as(x)
    else:
        struck = named(x, space, column)
    wrong = (drawn[:, 0] < row_share).view(-1, *[1] * (x.dim() - 1))
    return torch.where(wrong & struck, rounded(x * factor, space), x)
