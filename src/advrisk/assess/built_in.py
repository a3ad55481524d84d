"""The questions that advrisk answers itself: importing this registers them."""

from advrisk.assess.attacks.question import Attacks
from advrisk.assess.certificate.question import Certificates
from advrisk.assess.convergence.question import Settling
from advrisk.assess.damage.question import Damage
from advrisk.assess.detection.question import Detection
from advrisk.assess.failures.question import Failures
from advrisk.assess.gate.question import Gate
from advrisk.assess.indicators.question import Indicators
from advrisk.assess.search.question import Searches
from advrisk.assess.survival.question import Survival

__all__ = [
    "Attacks",
    "Certificates",
    "Damage",
    "Detection",
    "Failures",
    "Gate",
    "Indicators",
    "Searches",
    "Settling",
    "Survival",
]
