"""How many requests a link may make."""

import math

from advrisk.web.app import AT_ONCE, PER_S, Allowance


def test_a_link_has_many_requests_at_once_and_some_more_each_second() -> None:
    now = [0.0]
    allowance = Allowance(per_s=2.0, at_once=5.0, clock=lambda: now[0])
    assert [allowance.wait_s("a") for _ in range(5)] == [0.0] * 5
    assert allowance.wait_s("a") == 0.5
    assert allowance.wait_s("a") == 0.5, "a refused request costs nothing"
    assert allowance.wait_s("b") == 0.0, "links do not share"
    now[0] = 0.5
    assert allowance.wait_s("a") == 0.0
    assert allowance.wait_s("a") > 0
    now[0] = 1000.0
    assert [allowance.wait_s("a") for _ in range(6)] == [0.0] * 5 + [0.5]


def test_a_person_who_answers_three_times_a_second_is_never_stopped() -> None:
    now = [0.0]
    allowance = Allowance(clock=lambda: now[0])
    for _ in range(2000):
        now[0] += 1 / 3
        assert [allowance.wait_s("a") for _ in range(4)] == [0.0] * 4, "the answer, two pictures, the curve"


def test_a_program_is_held_to_what_it_may() -> None:
    now, n = [0.0], 0
    allowance = Allowance(clock=lambda: now[0])
    while now[0] < 10:
        now[0] += 0.001
        n += allowance.wait_s("a") == 0
    assert math.isclose(n, AT_ONCE + 10 * PER_S, abs_tol=2)
