"""The terms of the page in plain words, and a picture of what a size looks like."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from advrisk.core.errors import LedgerError
from advrisk.core.numbers import size_text
from advrisk.core.pictures import UNIT, Array, Bounds, is_image, png
from advrisk.core.sections import Picture, Pictures
from advrisk.ledger import Ledger
from advrisk.ledger.inputs import read_bounds, read_inputs, shard_inputs

_SIDE = 28  # pixels of a picture that is made up


@dataclass(frozen=True)
class Term:
    """A term, what it means, and how it is recognised in a sentence (default: as it is written)."""

    name: str
    meaning: str
    pattern: str = ""

    @property
    def matched(self) -> str:
        """A regular expression, for Python and for the script of the page."""
        return self.pattern or rf"\b{re.escape(self.name)}\b".replace("\\ ", " ").replace("\\-", "-")


TERMS = (
    Term(
        "adversarial distance",
        "The size of the smallest change that makes a model misclassify a sample. No attack finds a smaller one for "
        "sure, so the true distance may be smaller.",
        r"\badversarial distances?\b",
    ),
    Term(
        "adversarial example",
        "An input that an attack changed until the model misclassified it.",
        r"\badversarial examples?\b",
    ),
    Term(
        "arm",
        "One fully configured way to change inputs: an attack or a corruption with its norm, eps and other settings.",
        r"\barms?\b",
    ),
    Term(
        "attack success rate",
        "The share of samples that some attack broke within the stated size. Samples that are incorrect from the start "
        "count as broken.",
        r"\battack success rates?\b",
    ),
    Term(
        "AUROC",
        "The probability that a detector scores an attacked input higher than a clean one. 0.5 is chance, 1 "
        "is perfect.",
    ),
    Term(
        "certificate",
        "A statement that holds with a stated confidence: on new inputs, these attacks break at most a stated share.",
        r"\bcertificates?\b",
    ),
    Term("clean accuracy", "The share of unchanged samples that the model classifies correctly."),
    Term("damage probability", "The probability that an attack succeeds and goes undetected."),
    Term("eps", "The largest size of change that an attack may use."),
    Term(
        "interval",
        "The range in brackets. If the evaluation were repeated on new samples, intervals made this way would contain "
        "the true value as often as their level states, for example in 95 % of cases.",
        r"\bintervals?\b",
    ),
    Term(
        "key risk indicator",
        "One number for one part of a scenario: the mean loss if that part happens.",
        r"\bkey risk indicators?\b",
    ),
    Term("l0", "The number of values that changed."),
    Term("l1", "The sum of all changes, each without its sign."),
    Term("l2", "The length of a change: the root of the sum of its squares over all values."),
    Term(
        "linf",
        "The largest change of any single value. On images with values from 0 to 1, linf 0.1 changes no pixel by more "
        "than 0.1.",
    ),
    Term("loss", "The harm of one answer as a number, for example 1 if it is incorrect and 0 otherwise."),
    Term(
        "pass",
        "One evaluation of the model for one sample, forward or backward. It measures an attacker's work independently "
        "of the machine.",
        r"\b(?:forward|backward) pass(?:es)?\b|\bpasses (?:per|until|of|to)\b|\b(?:in|their|[\d,]+) passes\b",
    ),
    Term(
        "Ψ",
        "Psi, the evasion curve: the share of changes of a given size that go undetected. It falls as the size grows.",
        "Ψ",
    ),
    Term(
        "relative damage",
        "How often attacks succeed undetected, if the compared models themselves stand in for a detector. It ranks "
        "these models from 0 (best) to 1 and is no probability.",
    ),
    Term(
        "resampling",
        "The evaluation repeated on random draws of the same samples, to see how much the result depends on them.",
        r"\bresampled\b|\bresamples?\b",
    ),
    Term(
        "robust accuracy",
        "The share of samples that the model classifies correctly and that no attack of this run broke within the "
        "stated size. It is an upper bound: a better attack can only lower it.",
    ),
    Term("scenario", "A deployment as numbers: how likely each kind of input and attack is.", r"\bscenarios?\b"),
    Term(
        "survival",
        "How much work an attacker needs until a model fails, as the share of samples not broken yet.",
    ),
    Term("uncertain weight", "A weight of a scenario that the study gives as a range.", r"\buncertain weights?\b"),
)


def terms_in(text: str) -> list[Term]:
    """The terms that occur in a text, in the order of the alphabet."""
    return [term for term in TERMS if re.search(term.matched, text)]


def size_pictures(folder: Path, ledger: Ledger, norm: str, eps: float) -> Pictures | None:
    """A sample of the run unchanged and with a random change of this size; without kept inputs, a gradient.

    None where inputs are no images, or no picture shows the norm.
    """
    found = next(_kept_images(ledger), None)
    if found is None:
        shapes = ledger.query("SELECT input_shape FROM models")["input_shape"].to_pylist()
        if not any(len(shape or ()) == 3 for shape in shapes):
            return None
        found = np.broadcast_to(np.linspace(0.15, 0.85, _SIDE), (1, _SIDE, _SIDE))
        bounds = UNIT
    else:
        bounds = read_bounds(folder)
    changed = _changed(found, norm, eps, bounds)
    if changed is None:
        return None
    size = f"{norm} {size_text(eps)}"
    before = Picture(png(found, bounds), "an unchanged sample", "unchanged")
    after = Picture(png(changed, bounds), f"the same with a random change of {size}", f"{size}, at random")
    return Pictures(f"What {size} looks like", (before, after))


def _kept_images(ledger: Ledger) -> Iterator[Array]:
    storage = ledger.storage
    rows = ledger.query(
        "SELECT sample, shard FROM samples WHERE split = 'evaluate' ORDER BY sample LIMIT 1"
    ).to_pylist()
    for row in rows:
        try:
            kept = read_inputs(storage.fetch(shard_inputs(storage.folder, str(row["shard"])))).get(row["sample"])
        except LedgerError:  # not kept, or deleted
            continue
        if kept is not None and is_image(kept):
            yield kept


def _changed(image: Array, norm: str, eps: float, bounds: Bounds) -> Array | None:
    """With a random change of this size: of linf each value by eps, of l2 in a random direction."""
    draws = np.random.default_rng(0).standard_normal(image.shape)
    if norm == "linf":
        change = eps * np.sign(draws)
    elif norm == "l2":
        change = eps * draws / np.linalg.norm(draws)
    else:
        return None
    return np.clip(image + change, *bounds)
