"""Suggestions for mistyped names."""

import pytest

from advrisk.core.names import did_you_mean, few, nearest, one_or_many


@pytest.mark.parametrize(
    ("typed", "meant"), [("pdg", "pgd"), ("fgsmm", "fgsm"), ("gausian-noise", "gaussian-noise"), ("PGD ", None)]
)
def test_the_nearest_known_name_is_offered(typed: str, meant: str | None) -> None:
    known = ["pgd", "fgsm", "bim", "gaussian-noise"]
    offered = f"did you mean {meant!r}?" if meant else "known: bim, fgsm, gaussian-noise, pgd"
    assert did_you_mean(typed, known) == offered


def test_without_a_near_one_all_are_listed_in_order() -> None:
    assert did_you_mean("zebra", iter(["pgd", "bim"])) == "known: bim, pgd"


def test_without_any_it_says_so() -> None:
    assert did_you_mean("zebra", []) == "there is none yet"


def test_anything_may_be_mistyped() -> None:
    assert did_you_mean(3, ["l1", "l2"]) == "known: l1, l2"
    assert did_you_mean(None, ["None-such"]) == "did you mean 'None-such'?"


def test_the_nearest_name_is_none_where_none_is_near() -> None:
    assert nearest("nxt", iter(["next", "least-likely"])) == "next"
    assert nearest("zebra", ["next", "least-likely"]) is None
    assert nearest("zebra", []) is None


def test_of_many_sentences_the_first_are_said_and_how_many_more_there_are() -> None:
    assert few(["a.", "b."], "more.", most=2) == ["a.", "b."]
    assert few(["a.", "b.", "c."], "more is open.", most=2) == ["a.", "b.", "1 more is open."]


def test_a_name_alone_is_a_list_of_it_and_not_its_letters() -> None:
    assert one_or_many("pgd") == ["pgd"]
    assert one_or_many(("pgd", "bim")) == ("pgd", "bim")
    assert one_or_many(None) is None
