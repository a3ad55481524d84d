"""Krippendorff's alpha, against another library and his own example."""

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advrisk.core.errors import RiskError
from advrisk.risk.labelling import krippendorff_alpha


@given(
    st.integers(2, 5).flatmap(
        lambda coders: st.lists(
            st.lists(st.sampled_from([0.0, 1.0, np.nan]), min_size=coders, max_size=coders), min_size=1, max_size=12
        )
    )
)
def test_alpha_is_that_of_the_other_library(units: list[list[float]]) -> None:
    table = np.array(units).T
    pairable = table[:, (~np.isnan(table)).sum(0) >= 2]
    found = krippendorff_alpha(table)
    if len(np.unique(pairable[~np.isnan(pairable)])) < 2:
        assert found is None
    else:
        assert found == pytest.approx(krippendorff.alpha(table, level_of_measurement="nominal", value_domain=[0, 1]))


def test_alpha_of_krippendorffs_own_example() -> None:
    """Krippendorff 2011, example C: three observers, missing values; alpha nominal = 0.691."""
    nan = np.nan
    rows = [
        [nan, nan, nan, nan, nan, 3, 4, 1, 2, 1, 1, 3, 3, nan, 3],
        [1, nan, 2, 1, 3, 3, 4, 3, nan, nan, nan, nan, nan, nan, nan],
        [nan, nan, 2, 1, 3, 4, 4, nan, 2, 1, 1, 3, 3, nan, 4],
    ]
    assert krippendorff_alpha(rows) == pytest.approx(0.691, abs=5e-4)


def test_alpha_of_nothing_is_none() -> None:
    assert krippendorff_alpha(np.full((2, 3), np.nan)) is None
    assert krippendorff_alpha([[1.0, 1.0], [1.0, 1.0]]) is None
    assert krippendorff_alpha(np.empty((2, 0))) is None
    with pytest.raises(RiskError, match="labellers, units"):
        krippendorff_alpha([1.0, 0.0])
