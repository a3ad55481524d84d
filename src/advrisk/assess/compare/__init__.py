"""Two runs held against each other: the old model and the new one, on the samples and arms that both hold."""

from advrisk.assess.compare.pairing import PairedDistances, Pairing, paired_distances, paired_runs
from advrisk.assess.compare.records import Compared, RunComparison

__all__ = ["Compared", "PairedDistances", "Pairing", "RunComparison", "paired_distances", "paired_runs"]
