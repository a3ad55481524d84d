"""One group of arms: its curves, and what is read off them."""

import io
import json

import pytest
from rich.console import Console

from advrisk.assess.detection.curves import group_curves
from advrisk.assess.detection.one_group import group_sections
from advrisk.core.errors import RiskError
from advrisk.core.plain import json_text
from advrisk.core.sections import Table
from advrisk.render.terminal import print_sections
from advrisk.risk.detection.groups import MULTI_ARMED

from .examples import hostile


@pytest.mark.parametrize("width", [60, 160])
def test_one_group_is_shown_beside_its_chance(width: int) -> None:
    found = hostile()
    (curves,) = group_curves(found, "linf-0.1")
    console = Console(file=io.StringIO(), width=width)
    print_sections(group_sections(found, [curves]), console)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(len, lines)) <= width
    measured = next(one for one in group_sections(found, [curves]) if isinstance(one, Table))
    words = " ".join(" ".join(lines).split())
    entry = found.tables[0].table.row("linf 0.1").entries[MULTI_ARMED]
    assert f"[bold]net, linf 0.1: 2 arms broke {entry.n_broken} of 80 attackable samples" in words
    assert f"{entry.chance_auroc:.3f}" in words
    assert dict(zip((column.name for column in measured.columns), measured.rows[0], strict=True))["arms"] == 2
    roc = found.tables[0].table.roc("linf 0.1")
    for rate in (0.01, 0.05, 0.1, 0.2, 0.5):
        by_hand = max(hit for alarm, hit in zip(roc.fpr, roc.tpr, strict=True) if alarm <= rate)
        assert curves.detected(rate) == by_hand
        assert f"{100 * by_hand:.1f} %" in words
        chance = curves.chance_detected(rate)
        assert chance is not None
        assert f"{100 * chance:.1f} %" in words
    record = json.loads(json_text(curves.as_dict()))
    assert (record["group"], len(record["roc"][MULTI_ARMED]["fpr"])) == ("linf 0.1", roc.fpr.size)
    assert record["roc"][MULTI_ARMED]["threshold"][0] is None, "JSON knows no infinity"


def test_a_group_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(RiskError, match=r"there is no group 'linf-0.2'; did you mean 'linf 0.1'\?"):
        group_curves(hostile(), "linf-0.2")


def test_a_group_without_a_success_has_no_curve_and_is_shown_with_dashes() -> None:
    found = hostile()
    (curves,) = group_curves(found, "l2-deepfool")
    assert (curves.roc, curves.chance, curves.detected(0.1), curves.chance_detected(0.1)) == ({}, None, None, None)
    console = Console(file=io.StringIO(), width=120)
    print_sections(group_sections(found, [curves]), console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "1 arm broke 0 of 80 attackable samples" in shown
    assert "–" in shown
