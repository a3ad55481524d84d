"""Names of classes and features in place of numbers."""

from typing import Any

import pytest

from advrisk.core.labels import NUMBERED, Labels


def test_names_stand_in_place_of_numbers_where_there_are_some() -> None:
    labels = Labels(("cat", "dog"), ("age",))
    assert [labels.class_name(number) for number in (0, 1, 2, -1)] == ["cat", "dog", "2", "-1"]
    assert [labels.feature_name(number) for number in (0, 1)] == ["age", "no. 1"]
    assert (NUMBERED.class_name(3), NUMBERED.feature_name(3)) == ("3", "no. 3")


@pytest.mark.parametrize("found", [{}, {"classes": "cat"}, {"classes": [1, 2]}, {"features": None}])
def test_a_record_without_names_has_none(found: dict[str, Any]) -> None:
    assert Labels.from_dict(found) == NUMBERED
