"""Asking a model about recorded clean inputs again, without a trace in the run."""

import copy
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from advrisk.core.seeds import key
from advrisk.engine import Model, Noise
from advrisk.engine.threads import one_thread
from advrisk.ledger import Ledger
from advrisk.run.identity.comparing import AnswerComparison, OtherAnswer, compared
from advrisk.run.identity.recorded import Answers, RecordedShard, recorded_answers
from advrisk.run.loading import Material
from advrisk.run.redrawing import redrawn

_ROWS = 256  # asked about at a time


def asked_aside(model: Model) -> Model:
    """The model as it was given; one that answers at random, as a copy.

    So it is asked from generators that are not its own, and the run is the same as without this.
    """
    given = model.owner or model.answer
    if model.random and isinstance(given, nn.Module):
        with suppress(Exception):  # whatever the user's module does when it is copied: then it is asked itself
            return replace(model, answer=copy.deepcopy(given), owner=None)
    return model


def ask_again(
    model: Model, shards: Sequence[RecordedShard], ledger: Ledger, material: Material, *, seed: int
) -> AnswerComparison:
    """Ask about whole shards, as when the rows were made: so answers that depend on batch mates are the same, too."""
    found, model = AnswerComparison(), asked_aside(model)
    recorded = recorded_answers(ledger, shards)
    for shard in shards:
        names = [name for name in shard.samples if name in material.rows]
        if names and recorded[shard.cell]:
            found += _of_shard(model, names, recorded[shard.cell], material, seed=seed)
    return found


def clean_classes(model: Model, x: NDArray[np.float32]) -> list[int]:
    """The class of each clean input, refused or not, of a model that does not draw."""
    given = torch.from_numpy(x).to(model.device)
    with one_thread(), torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        replies = [redrawn(model, part, torch.arange(len(part)), None) for part in torch.split(given, _ROWS)]
    return [int(label) for reply in replies for label in reply.labels[0]]


def _of_shard(
    model: Model, names: Sequence[str], recorded: Answers, material: Material, *, seed: int
) -> AnswerComparison:
    x = torch.from_numpy(material.data.x[[material.rows[name] for name in names]]).to(model.device)
    chance = Noise([key("clean", seed, name) for name in names], device=model.device)
    with one_thread(), torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        try:
            replies = redrawn(model, x, torch.arange(len(names), device=model.device), chance)
        except Exception as error:  # whatever the user's model does with inputs that it answered before
            failed = f"{type(error).__name__}: {error}"
            other = OtherAnswer(next(iter(recorded)), "an answer", failed, certain=True)
            return AnswerComparison(len(recorded), (other,))
    return compared(model, names, recorded, replies)
