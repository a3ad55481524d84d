"""The order in which shards are run."""

from advrisk.assess.interim import shard_order


def test_shards_that_had_a_place_keep_it_and_others_follow_as_drawn() -> None:
    names = [f"s{number}" for number in range(9)]
    first = shard_order(names, (), seed=3)
    assert sorted(first) == names
    assert first == shard_order(reversed(names), (), seed=3) != shard_order(names, (), seed=4)
    more = shard_order([*names[1:], "t"], first, seed=3)
    assert more == (*(name for name in first if name != "s0"), "t")
