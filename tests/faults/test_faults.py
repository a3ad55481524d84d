"""Faults at random moments: one of some kinds here, more than two hundred in `make slow`."""

from collections.abc import Iterator

import pytest

from tests.faults.campaign import Ground, inject, prepared
from tests.faults.kinds import KINDS
from tests.faults.numbers import TRIALS


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    with prepared() as made:
        yield made


@pytest.mark.parametrize("kind", ["driver killed", "worker killed", "model misbehaves", "files damaged"])
def test_one_fault(kind: str, ground: Ground) -> None:
    tally = inject(kind, 1, ground, seed=1)
    assert tally.bugs == []
    assert tally.n == 1


def test_more_than_two_hundred_faults_are_planned_and_of_every_kind() -> None:
    assert TRIALS.keys() == KINDS.keys()
    assert sum(TRIALS.values()) > 200


@pytest.mark.slow
@pytest.mark.parametrize("kind", TRIALS)
def test_many_faults(kind: str, ground: Ground) -> None:
    tally = inject(kind, TRIALS[kind], ground)
    if tally.skipped:
        pytest.skip(tally.skipped)
    assert tally.bugs == []
    assert tally.n == TRIALS[kind]
