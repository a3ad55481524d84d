"""A requirement that more samples would settle asks for them only where the data set has them."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from advrisk.assess.gate.estimates import share_estimate
from advrisk.assess.gate.question import _checked
from advrisk.study import parse_requirement


def settle(left: int | None) -> tuple[str, int | None]:
    found = share_estimate(np.arange(40) < 18, level=0.95, n_unknown=0)  # 45 %
    measures: Any = SimpleNamespace(of=lambda requirement: found)
    run: Any = SimpleNamespace(samples_left=left, flags=[])
    checked = _checked(parse_requirement("clean_accuracy.m >= 50 %"), "study", measures, run, strict_flags=False)
    assert checked.verdict == "undecided"
    return checked.settle, checked.more_samples


def test_samples_are_asked_for_only_where_there_are_some() -> None:
    said, n = settle(None)
    assert n is not None
    assert said == f"about {n:,} more samples would probably settle it" == settle(n)[0]
    assert settle(0)[0] == "these samples do not settle it, and the data set has no more"
    assert settle(3)[0] == "the data set has 3 more samples, probably too few to settle it"
    assert settle(0)[1] == n, "the number itself stays for machines"


@pytest.mark.parametrize("left", [0, 1, None])
def test_the_verdict_does_not_depend_on_it(left: int | None) -> None:
    assert settle(left)[1] is not None
