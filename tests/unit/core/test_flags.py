"""Flags are counted in one unit, with its name."""

from advrisk.core.flags import flagged_text


def test_cells_and_pairs_are_counted_apart() -> None:
    rows = [{"model": model, "arm": "pgd", "n_flagged": n} for model, n in (("a", 8), ("b", 3))]
    assert flagged_text(rows) == "11 flagged cells, 2 attack-model pairs"
    assert flagged_text([rows[0] | {"n_flagged": 1}]) == "1 flagged cell, 1 attack-model pair"
