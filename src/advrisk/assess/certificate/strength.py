"""Whether the attacks of a list are strong enough: a certificate against weak attacks is meaningless.

Of the tries that broke nothing, the ledger holds how far they moved the sample and how many passes they spent on it. A
list is weak where every attack of it is: ordinary attacks (PGD from 10 steps on, APGD, Square, those that look for the
smallest distance) are not, and FGSM alone is.
"""

from collections.abc import Iterable, Iterator

from advrisk.assess.certificate.reading import AttackRows
from advrisk.core.names import few
from advrisk.core.numbers import size_text

USED = 0.5  # share of eps: an attack with a smaller mean distance does not use its size
FEWEST = 8  # passes on an unbroken sample below which an attack is weak, as in flags


def on_weak_attacks(attacks: Iterable[AttackRows]) -> list[str]:
    """A caveat that names the lists in which every attack is weak, and why; None without such a list."""
    lists: dict[tuple[str, float], list[AttackRows]] = {}
    for attack in attacks:
        if attack.norm is not None and attack.eps:
            lists.setdefault((attack.norm, attack.eps), []).append(attack)
    weak = [
        f"within {norm} {size_text(eps)}, {'; '.join(few(reasons, 'more'))}"
        for (norm, eps), own in sorted(lists.items())
        if len(reasons := list(_weaknesses(own))) == len(own)
    ]
    if not weak:
        return []
    return [
        f"These attacks are weak: {'. '.join(few(weak, 'more sizes'))}. That they break few inputs says little of the "
        "model: certify against stronger attacks (PGD with 10 steps or more, APGD), on new samples in a new folder."
    ]


def _weaknesses(attacks: Iterable[AttackRows]) -> Iterator[str]:
    for one in attacks:
        if one.moved is not None and _stays_within_eps(one) and one.moved < USED * (one.eps or 0.0):
            yield f"{one.arm} moves unbroken samples by {one.moved:.3g} on average"
        elif one.passes is not None and one.family != "transfer" and one.passes < FEWEST:
            yield f"{one.arm} spends {one.passes:.3g} passes on an unbroken sample"


def _stays_within_eps(attack: AttackRows) -> bool:
    """Not so for a search of the smallest distance: it keeps none of its points beyond eps, where it looks, too."""
    return attack.objective is not None or attack.keep != "smallest"
