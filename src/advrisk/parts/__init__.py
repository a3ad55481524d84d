"""The parts a study can name: one file per method, each registered by a decorator.

    models/  data/  attacks/  corruptions/  defences/  detectors/  measures/  training/  presets.py

Other packages add their own through the entry points `advrisk.attacks`, `advrisk.models`, …
"""

from advrisk.core.registries import Registries
from advrisk.engine.objectives import objectives
from advrisk.parts.attacks import attacks
from advrisk.parts.corruptions import corruptions
from advrisk.parts.data import data
from advrisk.parts.defences import defences
from advrisk.parts.detectors import detectors
from advrisk.parts.measures import measures
from advrisk.parts.models import models
from advrisk.parts.presets import presets
from advrisk.parts.training import training

REGISTRIES = Registries(
    attacks=attacks,
    corruptions=corruptions,
    data=data,
    defences=defences,
    detectors=detectors,
    measures=measures,
    models=models,
    objectives=objectives,
    presets=presets,
    training=training,
)

__all__ = ["REGISTRIES"]
