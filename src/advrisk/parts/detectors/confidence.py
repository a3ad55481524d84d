"""The model's lack of confidence in its own answer."""

from dataclasses import dataclass

from torch import Tensor

from advrisk.core.traits import DetectorTraits
from advrisk.engine import Model
from advrisk.parts.detectors.registry import detectors


@detectors.register(
    "confidence",
    traits=DetectorTraits("you want a baseline for one pass; any other should do better", needs="scores"),
)
@dataclass(frozen=True, kw_only=True)
class Confidence:
    """Hendrycks & Gimpel (2017), "A Baseline for Detecting Misclassified …": 1 − the largest probability.

    1 − max_k p_k, with p the softmax of the model's answer: logits and log-probabilities give the same.
    """

    def score(self, x: Tensor, model: Model) -> Tensor:
        """With S the sum of exp(f_k − f_best) over the other classes, it is S / (1 + S).

        So it has all its digits where 1 − p would round to 0: it still ranks very confident answers.
        """
        answer = model.ask(x).double()
        best = answer.max(1, keepdim=True)
        others = (answer - best.values).exp().scatter(1, best.indices, 0.0).sum(1)
        return others / (1 + others)
