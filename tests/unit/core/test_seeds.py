"""Keys and generators made of names."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advrisk.core.seeds import generator, key

# Control characters are the rule, so that a key made by joining parts is found out.
PARTS = st.lists(st.integers(-2, 11) | st.text("\x1d\x1e\x1f.:1intsr", max_size=6), max_size=4)


def test_the_key_of_names_stays_the_same_for_ever() -> None:
    # printf 'str:order\x1fint:7\x1fstr:s1' | b2sum -l 64, read as a little-endian number
    assert key("order", 7, "s1") == int.from_bytes(bytes.fromhex("281dcce241343179"), "little")


@given(PARTS, PARTS)
def test_different_parts_have_different_keys(one: list[str | int], other: list[str | int]) -> None:
    assert (key(*one) == key(*other)) == (one == other)


def test_a_separator_inside_a_name_does_not_make_two_parts_of_it() -> None:
    assert key("a\x1fstr:b") != key("a", "b")
    assert key("a\x1e", "b") != key("a\x1e.str:b") != key("a\x1fstr:b")


def test_a_number_is_not_its_digits() -> None:
    assert key(1) != key("1")


def test_a_generator_depends_on_its_parts_alone() -> None:
    global_state = repr(np.random.get_state())
    first = generator(7, "pgd", "s1", 0).random(4)
    generator(7, "pgd", "s2", 0).random(100)
    assert (generator(7, "pgd", "s1", 0).random(4) == first).all()
    assert repr(np.random.get_state()) == global_state


def test_each_part_gives_another_stream() -> None:
    streams = {
        tuple(generator(*parts).integers(2**63, size=2))
        for parts in [(7, "pgd", "s1", 0), (8, "pgd", "s1", 0), (7, "bim", "s1", 0), (7, "pgd", "s2", 0)]
    }
    streams.add(tuple(generator(7, "pgd", "s1", 1).integers(2**63, size=2)))
    assert len(streams) == 5
