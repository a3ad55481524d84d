"""Racing never changes which settings are the worst."""

from hypothesis import given
from hypothesis import strategies as st

from advrisk.run.search.loop import can_still_win


def worst(finals: list[int], freeze: int) -> list[int]:
    return sorted(range(len(finals)), key=lambda place: (-finals[place], place))[:freeze]


def raced(table: list[list[int]], sizes: list[int], freeze: int, batch: int) -> tuple[list[int], int]:
    """Settings in batches, shard by shard, as the loop runs them; the worst of what is left, and the cells saved."""
    failures = [0] * len(table)
    begun: list[int] = []
    dropped: set[int] = set()
    n_cells = 0
    for start in range(0, len(table), batch):
        now = list(range(start, min(start + batch, len(table))))
        begun += now
        for step in range(len(sizes)):
            for place in now:
                if place not in dropped:
                    failures[place] += table[place][step]
                    n_cells += 1
            for place in now:
                others = [failures[other] for other in begun if other != place]
                if not can_still_win(failures[place] + sum(sizes[step + 1 :]), others, freeze=freeze):
                    dropped.add(place)
    left = [place for place in range(len(table)) if place not in dropped]
    return sorted(left, key=lambda place: (-failures[place], place))[:freeze], n_cells


@st.composite
def counts(draw: st.DrawFn) -> tuple[list[list[int]], list[int]]:
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    row = st.tuples(*(st.integers(0, size) for size in sizes)).map(list)
    return draw(st.lists(row, min_size=1, max_size=12)), sizes


@given(counts(), st.integers(1, 4), st.integers(1, 5))
def test_the_worst_are_the_same_with_and_without_it(
    given_counts: tuple[list[list[int]], list[int]], freeze: int, batch: int
) -> None:
    table, sizes = given_counts
    found, n_cells = raced(table, sizes, freeze, batch)
    assert found == worst([sum(row) for row in table], freeze)
    assert n_cells <= len(table) * len(sizes)


def test_a_setting_that_cannot_catch_up_is_dropped_and_a_tie_is_not() -> None:
    assert not can_still_win(4, [5], freeze=1)
    assert can_still_win(5, [5], freeze=1)
    assert can_still_win(0, [5], freeze=2), "there is but one other"
    table, sizes = [[4, 4], [0, 4], [0, 0]], [4, 4]
    found, n_cells = raced(table, sizes, 1, 1)
    assert (found, n_cells) == ([0], 4), "the second and third are dropped after their first shard"
