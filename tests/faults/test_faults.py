"""Faults at random moments: one of some kinds here, a quarter of `python -m tests.faults` in `make slow`."""

import shutil
from collections.abc import Iterator

import numpy as np
import pytest

from tests.faults.campaign import Ground, inject, prepared
from tests.faults.kinds import KINDS, UNABLE
from tests.faults.numbers import LEAST, TRIALS
from tests.faults.trial import Trial


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    with prepared() as made:
        yield made


@pytest.mark.parametrize("kind", ["driver killed", "model misbehaves"])
def test_one_fault(kind: str, ground: Ground) -> None:
    tally = inject(kind, 1, ground, seed=1)
    assert tally.bugs == []
    assert tally.n == 1


def test_bounds_that_were_lost_are_written_again(ground: Ground) -> None:
    home = ground.home / "bounds"
    home.mkdir()
    trial = Trial(home, ground.studied, ground.reference, np.random.default_rng(0))
    shutil.copytree(ground.reference.folder, trial.out)
    (trial.out / "inputs" / "bounds.npy").unlink()
    trial.finish()
    trial.verify()


def test_more_than_two_hundred_faults_are_planned_and_of_every_kind() -> None:
    assert TRIALS.keys() == KINDS.keys()
    assert sum(TRIALS.values()) >= LEAST


@pytest.mark.slow
def test_enough_can_be_injected_here() -> None:
    """`test_many_faults` injects as many as are planned of each kind; of some, nothing may be possible here."""
    left_out = {kind: reason for kind, unable in UNABLE.items() if (reason := unable())}
    assert sum(n for kind, n in TRIALS.items() if kind not in left_out) >= LEAST, left_out


@pytest.mark.slow
@pytest.mark.parametrize("kind", TRIALS)
def test_many_faults(kind: str, ground: Ground) -> None:
    n = -(-TRIALS[kind] // 4)
    tally = inject(kind, n, ground)
    if tally.skipped:
        pytest.skip(f"{n} faults of this kind were not injected: {tally.skipped}")
    assert tally.bugs == []
    assert tally.n == n
