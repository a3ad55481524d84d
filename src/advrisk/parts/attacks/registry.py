"""The registry of attacks.

An attack is a function `attack(probe, *, …settings) -> None` that proposes points through the probe
and returns nothing: the probe remembers its successes.
"""

from advrisk.core.registry import Registry
from advrisk.core.traits import AttackTraits

attacks: Registry[AttackTraits] = Registry("attacks")
