"""Attacks without gradients that do better than those with gradients: when that says something, and when not."""

from collections.abc import Callable
from typing import Any

from advrisk.assess.attacks.black_box import Lead, black_box_leads, has_black_box
from advrisk.assess.attacks.envelope import arm_optimality
from advrisk.assess.damage.distances import arm_distances
from advrisk.core.flags import BLACK_BOX
from advrisk.ledger import Ledger

INF = float("inf")
MakeLedger = Callable[..., Ledger]


def white(**more: Any) -> dict[str, Any]:
    return {"n_forward": 10, "n_backward": 10, **more}


def black(**more: Any) -> dict[str, Any]:
    return {"n_forward": 100, "n_backward": 0, **more}


def leads_of(ledger: Ledger) -> tuple[Lead, ...]:
    return black_box_leads(ledger, arm_distances(ledger, norm="linf"))


def test_a_black_box_that_breaks_what_gradients_miss_is_named(found_by: MakeLedger) -> None:
    hidden, open_ = {"pgd": [INF, INF, 0, 0.1], "square": [0.1, 0.1, 0, INF]}, {"pgd": [0.1] * 4, "square": [0.1] * 4}
    ledger = found_by({"hidden": hidden, "open": open_}, {"pgd": white(eps=0.1), "square": black(eps=0.1)})
    assert leads_of(ledger) == (Lead("hidden", "square", 0.5),)
    rows = arm_optimality(ledger, norm="linf").by_model
    assert {row.name: row.flags for row in rows["hidden"]} == {"pgd": (), "square": (BLACK_BOX,)}
    assert all(row.flags == () for row in rows["open"])


def test_fewer_than_one_sample_in_twenty_say_nothing(found_by: MakeLedger) -> None:
    facts = {"pgd": white(eps=0.1), "square": black(eps=0.1)}
    few = {"pgd": [INF] + [0.1] * 20, "square": [0.1] * 21}
    assert leads_of(found_by({"m": few}, facts)) == ()


def test_one_sample_in_twenty_is_enough(found_by: MakeLedger) -> None:
    facts = {"pgd": white(eps=0.1), "square": black(eps=0.1)}
    assert leads_of(found_by({"m": {"pgd": [INF] + [0.1] * 19, "square": [0.1] * 20}}, facts))


def test_an_arm_of_another_norm_is_not_asked_in_this_one(found_by: MakeLedger) -> None:
    facts = {"pgd": white(eps=5.0, norm="l2"), "square": black(eps=0.1)}
    assert leads_of(found_by({"m": {"pgd": [INF], "square": [0.1]}}, facts)) == ()


def test_rows_that_do_not_say_what_they_took_are_no_black_box(found_by: MakeLedger) -> None:
    ledger = found_by({"m": {"theirs": [0.1], "pgd": [INF]}}, {"pgd": white(eps=0.1)})
    assert not has_black_box(ledger)
    assert leads_of(ledger) == ()


def test_corruptions_are_no_black_box_attacks(found_by: MakeLedger) -> None:
    ledger = found_by({"m": {"rain": [0.1], "pgd": [INF]}}, {"pgd": white(), "rain": black(kind="corruption")})
    assert not has_black_box(ledger)


def test_a_transfer_is_a_black_box_but_where_it_was_crafted(found_by: MakeLedger) -> None:
    moved = {"family": "transfer", "n_forward": 0, "n_backward": 0, "eps": 0.1, "params": '{"from": "theirs"}'}
    same: dict[str, list[float | None]] = {"pgd": [INF, INF], "moved": [0.1, INF]}
    ledger = found_by({"ours": same, "theirs": same}, {"pgd": white(eps=0.1), "moved": moved})
    assert has_black_box(ledger)
    assert leads_of(ledger) == (Lead("ours", "moved", 0.5),)


def test_an_imported_transfer_need_not_say_where_it_comes_from(found_by: MakeLedger) -> None:
    moved = {"family": "transfer", "n_forward": None, "n_backward": None}
    assert leads_of(found_by({"ours": {"pgd": [INF], "moved": [0.1]}}, {"pgd": white(), "moved": moved})) == ()
