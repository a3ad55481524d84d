"""Flags: reasons not to trust a cell, each with what it means and what to do."""

from collections.abc import Mapping, Sequence
from typing import Any

from advrisk.core.names import counted

CUT_SHORT = "cut-short"
NO_START = "no-start"
NO_START_MESSAGE = "no random input was a success, so there was nothing to begin from"  # of the rows concerned
BATCH_DEPENDENT = "batch-dependent"
BLACK_BOX = "black-box-beats-white-box"  # the one that no cell can tell alone: arms are compared

FLAGS = {
    "zero-gradients": "gradients were zero in every feature: the model hides its slopes; try another objective "
    "(margin, dlr) or an attack that needs no gradients",
    "not-increasing": "samples that resisted were never moved upwards: the attack may be blind; try another objective "
    "or a random start",
    "still-gaining": "the attack was still getting better when it ended: give it more steps",
    "random-model": "the model answers the same input differently each time: successes were redrawn; "
    "give its arms `draws`, so that they follow the mean of several slopes",
    BATCH_DEPENDENT: "the answer to an input depends on the others in its batch, as with batch normalisation in "
    "training mode: no row can be reproduced by itself; put the model into evaluation mode, or state `batch: 1`",
    "unconfirmed": "the attack claimed successes that the judge did not see, or the other way round",
    CUT_SHORT: "the arm threw an error or ran out of time: what it kept may not be its best; `--retry-errors` runs it "
    "again",
    NO_START: "samples resisted because no point was found to begin from, which says nothing of how near a success is: "
    "allow more starts or queries, or use another attack",
    "not-crafted": "some samples had nothing to transfer: the surrogate has them wrong without an attack or the attack "
    "left them as they were (they count as resisted), or it failed on them (errors)",
    BLACK_BOX: "an attack without gradients broke samples within a size at which attacks with gradients found nothing: "
    "the model may hide its slopes; give those attacks another objective, more steps or restarts",
}

# What the share beside a flag is a share of; the other flags have none.
SHARES = {
    "zero-gradients": "of the gradients were zero",
    "not-increasing": "of the samples that resisted were never moved upwards",
    "still-gaining": "of the samples that took enough passes to tell were still getting better",
    NO_START: "of the samples attacked had nothing to begin from",
    BLACK_BOX: "of the model's samples were broken where attacks with gradients found nothing",
}


def flagged_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """`95 flagged cells, 16 attack-model pairs`: how often a flag was raised, given its row for each model and arm."""
    pairs = {(row["model"], row["arm"]) for row in rows}
    n_cells = sum(int(row["n_flagged"]) for row in rows)
    return f"{counted(n_cells, 'flagged cell')}, {counted(len(pairs), 'attack-model pair')}"
