"""Sections with names from outside: what files and scripts call them differs, whatever people call things."""

from advrisk.core.sections import (
    Alternatives,
    Column,
    Figure,
    Group,
    Headline,
    Table,
    distinct_columns,
    every,
    without_twins,
)


def figure(title: str) -> Figure:
    return Figure(title, {"data": [], "layout": {}}, "x")


def test_of_sections_that_machines_call_the_same_the_later_are_numbered() -> None:
    table = Table("a b", (Column("x"),), ())
    inner = Group("g", (figure("a b"), Alternatives("by", (figure("A_B"),))))
    shown = without_twins([Headline("a b"), figure("a-b"), inner, table, table])
    assert [one.title for one in every(shown) if isinstance(one, Figure)] == ["a-b", "a b", "A_B"], "people read names"
    assert [one.key for one in every(shown) if isinstance(one, Figure)] == ["a_b", "a_b_2", "a_b_3"]
    assert [one.key for one in every(shown) if isinstance(one, Table)] == ["a_b", "a_b_2"]
    assert shown[0] == Headline("a b")


def test_columns_named_after_models_never_clash() -> None:
    names = ["model", "a-b", "a b", "Model", "x", "x_low", "y_high", "y"]
    columns = distinct_columns(Column(name) for name in names)
    assert [one.name for one in columns] == names
    assert [one.key for one in columns] == ["model", "a_b", "a_b_2", "model_2", "x", "x_low_2", "y_high", "y_2"]
    assert Table("t", columns, ()).columns == columns
