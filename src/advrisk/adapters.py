"""Attack objects of other libraries as arms: decorate a function that makes one, and a study can name it.

    from advrisk import adapters
    from foolbox.attacks import LinfPGD

    @adapters.foolbox("twice-pgd", norm="linf")
    def twice_pgd(*, steps: int = 20):
        return LinfPGD(steps=steps).repeat(2)

An attack that is a class of `foolbox.attacks` or `art.attacks.evasion` needs none of this: a study names it directly.
"""

from advrisk.parts.attacks.art import register as art
from advrisk.parts.attacks.foolbox import register as foolbox

__all__ = ["art", "foolbox"]
