"""The registry of attacks.

An attack is a function `attack(probe, *, …settings) -> None` that proposes points through the probe
and returns nothing: the probe remembers what was found.
"""

from advrisk.core.registry import Registry
from advrisk.core.traits import AttackTraits

attacks: Registry[AttackTraits] = Registry("attacks")
