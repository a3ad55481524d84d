"""Claims about single attacks, the paper's own unit, in addition to those about lists.

A list falls with its strongest attack, although a weaker one alone might be certified up to a larger eps. Each attack
has its own sequence of sizes, tested in ascending eps until the first that fails. *Taken by itself* such a sequence is
wrong at most zeta of the time; *together* all of a run share zeta as lists do (`families`).
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from advrisk.assess.certificate.records import AttackClaim, AttackFacts, ListCertificate
from advrisk.risk.certificate.families import certified_sizes

Key = tuple[str, str, str]  # model, norm, attack


def attack_claims(lists: Iterable[ListCertificate], zeta: float) -> tuple[AttackClaim, ...]:
    """A claim for every attack of these lists; unfinished ones are not certified."""
    grids: dict[Key, dict[float, float]] = {}
    for one in sorted(lists, key=lambda one: one.eps):
        tests = {} if one.certificate is None else {test.name: test.p for test in one.certificate.arms}
        for attack in one.attacks:
            grid = grids.setdefault((one.model, one.norm, _name(attack)), {})
            grid[one.eps] = max(grid.get(one.eps, 0.0), tests.get(attack.arm, 1.0))
    shared = certified_sizes(grids, zeta) if grids else {}
    return tuple(
        AttackClaim(*key, tuple(grid), tuple(grid.values()), _alone(grid, zeta), shared[key].largest)
        for key, grid in sorted(grids.items())
    )


def _alone(grid: Mapping[float, float], zeta: float) -> float | None:
    return certified_sizes({"": grid}, zeta)[""].largest


def _name(attack: AttackFacts) -> str:
    """The configuration of an attack without its size; attacks from searches are one attack with their family."""
    name = ", ".join(part for part in (attack.family or attack.arm, attack.objective) if part)
    if attack.origin == "frozen":
        return f"{name}, as searched"
    settings = {"keep": attack.keep, "max_queries": attack.max_queries, **attack.params}
    return ", ".join([name, *(f"{key}={_plain(value)}" for key, value in settings.items() if value is not None)])


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
