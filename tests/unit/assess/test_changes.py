"""The features of a row that moved most."""

import numpy as np

from advrisk.assess.changes import Change, changes, n_changes


def test_the_largest_change_beside_what_it_was_comes_first() -> None:
    before, after = np.array([1.0, 200.0, 0.0, 5.0]), np.array([1.0, 210.0, 0.5, 4.0])
    assert n_changes(before, after) == 3
    assert changes(before, after) == (Change(2, 0, 0.5), Change(3, 5, 4), Change(1, 200, 210))
    assert changes(before, after, most=1) == (Change(2, 0, 0.5),)
    assert changes(before, before) == ()
