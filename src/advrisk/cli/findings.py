"""What `advrisk show` prints of a run, but for detectors: one function for each thing to be shown."""

import json
from collections.abc import Mapping
from typing import Any, Literal

from advrisk.api import Run
from advrisk.cli.damage import damage_json, print_convergence, print_damage
from advrisk.cli.tables import print_attacks, print_rows

Finding = Literal["damage", "convergence", "attacks", "arms", "models"]
Asked = Mapping[str, Any]  # norm, arms, thresholds, evasion and detector


def show_finding(
    run: Run, what: Finding, asked: Asked, *, cost: float | None, answers: str | None, as_json: bool
) -> None:
    """`advrisk show RUN WHAT`."""
    if what == "damage":
        show_damage(run, asked, cost=cost, answers=answers, as_json=as_json)
    elif what == "convergence":
        show_convergence(run, asked, as_json=as_json)
    elif what == "attacks":
        show_attacks(run, asked, as_json=as_json)
    else:
        show_rows(run, what, asked, as_json=as_json)


def show_damage(run: Run, asked: Asked, *, cost: float | None, answers: str | None, as_json: bool) -> None:
    """Damage and what belongs to it."""
    found = run.damage(**asked, cost=cost, answers=answers)
    print(damage_json(found)) if as_json else print_damage(found)


def show_convergence(run: Run, asked: Asked, *, as_json: bool) -> None:
    """How damage settles as samples are added."""
    found = run.convergence(**asked)
    print(_json(found.as_dict())) if as_json else print_convergence(found)


def show_attacks(run: Run, asked: Asked, *, as_json: bool) -> None:
    """Which arms earn their passes."""
    found = run.attacks(norm=asked["norm"], arms=asked["arms"])
    print(_json(found.as_dict())) if as_json else print_attacks(found)


def show_rows(run: Run, what: Literal["arms", "models"], asked: Asked, *, as_json: bool) -> None:
    """A line for each arm or model."""
    rows = run.arms(arms=asked["arms"]) if what == "arms" else run.models()
    print(_json(rows)) if as_json else print_rows(rows)


def _json(found: object) -> str:
    return json.dumps(found, indent=2, ensure_ascii=False)
