"""Answers to clean inputs, as recorded and now: the same but for rounding, or another model's.

**Rounding.** The same weights answer a little differently on another processor, batch size or version of torch:
float32 sums by about 1e-6 of the logits' spread, TF32 by 1e-3, half precision and int8 by some hundredths. An answer
counts as another one where a logit moved by more than `FINE` (`COARSE` for half precision and int8) of the median
spread of the recorded logits, at least ten times what those explain. Classes need no rule of their own then: where no
logit moved, the class can change only between classes that were nearly equal.

**Classes alone.** Where no logits are recorded (models that give labels, refusals), a near tie cannot be recognised.
So a share of `FEW` of the samples may differ.

**Random models** are compared by their draws: another model's answer is one where all recorded draws say one class and
all draws now say one other. The same model does that with a probability below 2 · 2^-22 for 11 draws each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from advrisk.engine import Model
from advrisk.run.identity.recorded import Answers, RecordedAnswer
from advrisk.run.redrawing import Redrawn

FINE, COARSE = 0.02, 0.1
FEW = 0.01
_COARSE_TYPES = ("bfloat16", "float16", "int8")


@dataclass(frozen=True)
class OtherAnswer:
    """One sample that is answered in another way now."""

    sample: str
    recorded: str
    now: str
    certain: bool  # logits or draws say so; else a class alone, which may be a near tie

    def __str__(self) -> str:
        return f"sample {self.sample}: recorded {self.recorded}, now {self.now}"


@dataclass(frozen=True)
class AnswerComparison:
    """How many samples were compared, and which are answered in another way."""

    n: int = 0
    others: tuple[OtherAnswer, ...] = field(default=())

    def __add__(self, more: "AnswerComparison") -> "AnswerComparison":
        return replace(self, n=self.n + more.n, others=self.others + more.others)

    @property
    def differs(self) -> bool:
        """Whether these are answers of two models."""
        return any(one.certain for one in self.others) or len(self.others) > FEW * self.n

    @property
    def shown(self) -> OtherAnswer:
        """The sample to name: one that is certain, if there is one."""
        return next((one for one in self.others if one.certain), self.others[0])


def compared(model: Model, samples: Sequence[str], recorded: Answers, replies: Redrawn) -> AnswerComparison:
    """Compare what a model says now of the clean `samples` with what is recorded of them."""
    if model.random:
        return _compared_draws(samples, recorded, replies)
    answer = None if model.capability == "labels" else replies.answer.double().cpu().numpy()
    limit = _limit(model, recorded)
    n, others = 0, list[OtherAnswer]()
    for row, sample in enumerate(samples):
        if (was := recorded.get(sample)) is None:
            continue
        n += 1
        now, refused = int(replies.labels[0, row]), bool(replies.rejected[0, row])
        other = None
        if was.logits is not None and answer is not None:
            other = _other_logits(sample, was, answer[row], now, limit)
        elif was.prediction != now:
            other = OtherAnswer(sample, f"class {was.prediction}", f"class {now}", certain=False)
        if other is None and was.rejected is not None and was.rejected != refused:
            words = "refused", "answered"
            other = OtherAnswer(sample, words[not was.rejected], words[not refused], certain=False)
        others += [] if other is None else [other]
    return AnswerComparison(n, tuple(others))


def _limit(model: Model, recorded: Answers) -> float:
    """How far rounding may move a logit."""
    spreads = [float(np.ptp(one.logits)) for one in recorded.values() if one.logits is not None and len(one.logits)]
    share = COARSE if model.precision in _COARSE_TYPES else FINE
    return share * float(np.median(spreads)) if spreads else 0.0


def _other_logits(
    sample: str, was: RecordedAnswer, answer: NDArray[np.float64], now: int, limit: float
) -> OtherAnswer | None:
    assert was.logits is not None
    again = answer if was.classes is None else answer[was.classes]
    moved = np.abs(again - was.logits).max() if len(again) == len(was.logits) else np.inf
    if moved <= limit:
        return None
    beyond = f"a logit moved by {moved:.3g}, rounding explains {limit:.2g}"
    return OtherAnswer(sample, f"class {was.prediction}", f"class {now} ({beyond})", certain=True)


def _compared_draws(samples: Sequence[str], recorded: Answers, replies: Redrawn) -> AnswerComparison:
    n, others = 0, list[OtherAnswer]()
    for sample, said in zip(samples, replies.classes.cpu().tolist(), strict=True):
        if sample not in recorded or (draws := recorded[sample].draws) is None:
            continue
        n += 1
        if len({*draws}) == len({*said}) == 1 and draws[0] != said[0]:
            texts = (f"class {draws[0]} in all of {len(draws)} draws", f"class {said[0]} in all of {len(said)}")
            others.append(OtherAnswer(sample, *texts, certain=True))
    return AnswerComparison(n, tuple(others))
