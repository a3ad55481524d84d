"""The registry of measures.

A measure is a function `measure(x, label, model, space, noise, *, …parameters) -> float` of one clean input (`x` is a
batch of one) with its true class. It queries the model by `model.ask`, through which torch can differentiate where the
model gives gradients. Random numbers come from row 0 of `noise`, so that a sample's number depends only on seed,
measure, model and sample.
"""

from advrisk.core.registry import Registry
from advrisk.core.traits import MeasureTraits

measures: Registry[MeasureTraits] = Registry("measures")
