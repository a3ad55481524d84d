"""Detection: the performance of a detector against every arm that broke a sample (Granese et al., MEAD).

`roc` and `performance` are the method on arrays; `arm_sets` and `resampling` give its uncertainty; `groups` and `table`
combine arms as the paper does; `arms` ranks the arms that evade a detector.
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
