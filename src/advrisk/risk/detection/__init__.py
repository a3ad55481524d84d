"""Detection: does the detector hold against every arm that broke a sample (Granese et al., MEAD).

`roc` and `performance` are the method on arrays; `measure` and `resampling` carry its uncertainty; `groups` and
`table` put arms together as the paper does; `arms` asks which arm defeats a detector.
"""

from advrisk.risk.detection.performance import DetectionPerformance, detection_performance
from advrisk.risk.detection.roc import Roc, chance_auroc, chance_fpr, chance_roc, worst_case_scores

__all__ = [
    "DetectionPerformance",
    "Roc",
    "chance_auroc",
    "chance_fpr",
    "chance_roc",
    "detection_performance",
    "worst_case_scores",
]
