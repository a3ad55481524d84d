"""Damage at first sight: tiles, the figure, and one adversarial example."""

from dataclasses import replace

from advrisk.assess.changes import Change
from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.damage.examples import Example, NearestSuccess
from advrisk.assess.damage.front import front
from advrisk.core.labels import Labels
from advrisk.core.sections import Badge, Figure, Pictures, Table
from advrisk.core.values import value_text
from tests.damages import BETTER, EPS, OPEN, assessed

HITS = (
    NearestSuccess("std", 1, 0.7, 0.01, "pgd", b"std", b"change"),
    NearestSuccess("adv", 0, 0.7, 0.04, "pgd", b"adv", b"change"),
)
NAMED = Labels(("cat", "dog", "owl"), ("age", "income"))


def shown(found: DamageAssessment) -> dict[str, dict[str, str]]:
    return {
        tile.model: {column.name: value_text(value, column) for column, value in tile.facts}
        for tile in front(found, {}).tiles
    }


def test_each_model_has_a_tile_with_its_verdict_and_the_numbers_of_the_table() -> None:
    found = assessed(**BETTER)
    assert shown(found)["adv"] == {
        "robust accuracy at 8/255": "42.0 % [32.2, 52.3]",
        "clean accuracy": "92.0 % [84.8, 96.5]",
    }
    assert [tile.badges for tile in front(found, {}).tiles] == [
        (Badge("least damage", "best"),),
        (Badge("more damage than adv", "worst"),),
    ]
    assert {tile.badges for tile in front(assessed(**OPEN), {}).tiles} == {(Badge("undecided", "open"),)}
    assert front(found, {}).size == ("linf", EPS)


def test_the_figure_and_one_example_stand_there_with_the_names_of_the_classes() -> None:
    found = assessed(**BETTER, attacks=((None, "smallest"),))
    found = replace(found, examples=(Example("s1", 2, b"clean", HITS, {}),), labels=NAMED)
    figure, pictures = front(found, {}).sections
    assert isinstance(figure, Figure)
    assert figure.title == "Robust accuracy by size"
    assert isinstance(pictures, Pictures)
    assert [(one.png, one.caption) for one in pictures.pictures] == [
        (b"clean", "original\nclass owl"),
        (b"adv", "adv\nreads cat, linf 0.0400"),
        (b"std", "std\nreads dog, linf 0.0100"),
    ]


def test_of_a_table_the_columns_that_changed_are_listed() -> None:
    hits = (
        replace(HITS[0], changes=(Change(1, 20.0, 25.0),), n_changed=3),
        replace(HITS[1], changes=(Change(0, 3.0, 4.0), Change(1, 20.0, 21.0)), n_changed=2),
    )
    found = replace(assessed(**BETTER), examples=(Example("s1", 2, b"", hits, {}),), labels=NAMED)
    (table,) = front(found, {}).sections
    assert isinstance(table, Table)
    assert [column.name for column in table.columns] == [
        *("feature", "original: class owl", "std: reads dog", "adv: reads cat"),
    ]
    assert table.rows == (("income", 20.0, 25.0, 21.0), ("age", 3.0, None, 4.0))
    assert table.notes[-1] == "Further features that changed: std 2."
