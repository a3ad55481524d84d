"""Lists of attacks that do nothing have a caveat; ordinary attacks have none. By hand-made rows."""

from typing import Any

import pytest

from advrisk.assess.certificate.assessment import assess_certificates

from .conftest import Make

PGD, FGSM = "pgd@linf:0.4", "fgsm@linf:0.4"
ON_PGD = {"objective": "ace", "keep": "first"}
DRAWN = [{"label": place % 7 % 3} for place in range(60)]


def caveats(made: Make, moved: float, passes: int, **facts: Any) -> tuple[str, ...]:
    rows = {"d_linf": moved, "n_forward": passes - passes // 2, "n_backward": passes // 2}
    ledger = made({"m": {PGD: "r" * 60}}, rows=rows, samples=DRAWN, facts={PGD: ON_PGD | facts})
    return assess_certificates(ledger).of("m").caveats


def test_an_attack_that_hardly_moves_is_a_caveat_that_names_it_and_its_size(made: Make) -> None:
    (text,) = caveats(made, 1e-5, 80)
    assert text.startswith(
        "These attacks are weak: within linf 0.4, pgd@linf:0.4 moves unbroken samples by 1e-05 on average. That they"
    )


def test_an_attack_of_few_passes_is_a_caveat(made: Make) -> None:
    (text,) = caveats(made, 0.4, 3)
    assert "pgd@linf:0.4 spends 3 passes on an unbroken sample" in text


@pytest.mark.parametrize(
    ("moved", "passes", "facts"),
    [
        (0.4, 20, {}),
        (0.21, 8, {}),
        (0.0, 50, {"objective": None, "keep": "smallest"}),  # looks beyond eps, keeps nothing there
        (0.4, 0, {"family": "transfer"}),  # another model was asked
    ],
)
def test_ordinary_attacks_have_no_caveat(made: Make, moved: float, passes: int, facts: dict[str, Any]) -> None:
    assert caveats(made, moved, passes, **facts) == ()


def test_the_strongest_attack_of_a_list_decides_and_each_size_by_itself(made: Make) -> None:
    other = "pgd@linf:0.8"
    rows = {"d_linf": 0.3, "n_forward": 10, "n_backward": 10}
    lists = {PGD: "r" * 60, FGSM: "r" * 60, other: "r" * 60}
    facts = dict.fromkeys(lists, ON_PGD)
    found = assess_certificates(made({"m": lists}, rows=rows, samples=DRAWN, facts=facts))
    (text,) = found.of("m").caveats
    assert "within linf 0.8, " in text
    assert "linf 0.4" not in text
    assert (found.of("m").verdict, found.of("m").certified) == ("certified, with caveats", False)


def test_what_broke_every_sample_is_not_called_weak(made: Make) -> None:
    rows = {"d_linf": 0.0, "n_forward": 2, "n_backward": 1}
    assert assess_certificates(made({"m": {PGD: "s" * 60}}, rows=rows, samples=DRAWN)).of("m").caveats == ()
