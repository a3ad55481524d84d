"""Samples that stand in two splits under different ids: what was tuned or certified on them would be worth nothing."""

from collections.abc import Mapping

import numpy as np

from advrisk.core.digest import digest_array
from advrisk.core.names import counted
from advrisk.parts.data import Dataset
from advrisk.study import StudySpec

_SHOWN = 3


def refuse_overlaps(study: StudySpec, data: Dataset, chosen: Mapping[str, str]) -> None:
    """The same input in `tune` or `calibrate` and in another split, or among what the source marks as `train`.

    Ids cannot stand in two splits; equal contents are found by a hash of the input, whatever its label.
    """
    if not study.search and study.assess.certificate is None:
        return
    split_of = {row: chosen[name] for row, name in enumerate(data.ids) if name in chosen}
    if data.split is not None:
        split_of |= {int(row): "train" for row in np.flatnonzero(data.split == "train") if int(row) not in split_of}
    first: dict[str, int] = {}
    found: list[tuple[int, int]] = []
    for row, split in split_of.items():
        before = first.setdefault(digest_array(data.x[row]), row)
        if split != split_of[before] and {split, split_of[before]} & {"tune", "calibrate"}:
            found.append((before, row))
    if found:
        pairs = [f"{data.ids[a]} ({split_of[a]}) and {data.ids[b]} ({split_of[b]})" for a, b in found[:_SHOWN]]
        raise study.where.error(
            ("data",),
            f"the same input stands in two splits, {counted(len(found), 'time')}: {'; '.join(pairs)}; what attacks are "
            "tuned on, or certified on, must not have been seen elsewhere, so remove such doubles from the data",
        )
