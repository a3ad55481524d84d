"""Claims about one attack each, beside those about whole lists."""

import pytest
from scipy.stats import binom

from advrisk.assess.certificate.assessment import assess_certificates
from advrisk.assess.certificate.records import AttackClaim, CertificateAssessment
from advrisk.assess.certificate.sections import sections
from advrisk.core.sections import Table

from .conftest import Make

N = 100


def broken(failures: int) -> str:
    return "s" * failures + "r" * (N - failures)


@pytest.fixture
def found(made: Make) -> CertificateAssessment:
    """PGD breaks too much at 0.12; Square, which needs no gradients, is weak up to 0.125 and fails at 0.2."""
    rows = {
        "m": {
            "pgd@linf:0.12": broken(30),
            "square@linf:0.12": broken(1),
            "square@linf:0.125": broken(4),
            "square@linf:0.2": broken(60),
        }
    }
    return assess_certificates(made(rows, samples=[{"label": place % 7 % 3} for place in range(N)]))


def claims(found: CertificateAssessment) -> dict[str, AttackClaim]:
    return {claim.attack.partition(",")[0]: claim for claim in found.claims}


def test_an_attack_is_certified_although_another_of_its_list_is_not(found: CertificateAssessment) -> None:
    assert [one.certified for one in found.lists] == [False, False, False], "0.12 fails, and no size is skipped"
    square, pgd = claims(found)["square"], claims(found)["pgd"]
    assert square.eps == (0.12, 0.125, 0.2)
    assert square.p == pytest.approx([binom.cdf(k, N, 0.1) for k in (1, 4, 60)], rel=1e-9)
    assert (square.largest, pgd.largest) == (0.125, None)
    assert (pgd.eps, pgd.together) == ((0.12,), None)


def test_all_attacks_together_share_zeta(found: CertificateAssessment) -> None:
    """Of two sequences each has half of zeta: 0.0237 of Square at 0.125 is below that; of three it is not."""
    assert 0.05 / 3 < claims(found)["square"].p[1] < 0.05 / 2
    assert claims(found)["square"].together == 0.125


def test_with_a_third_attack_less_is_left_for_each(made: Make) -> None:
    rows = {"m": {f"{name}@linf:0.1": broken(k) for name, k in (("pgd", 30), ("nes", 30), ("square", 4))}}
    square = claims(assess_certificates(made(rows, samples=[{"label": n % 7 % 3} for n in range(N)])))["square"]
    assert (square.largest, square.together) == (0.1, None)


def test_what_is_not_finished_is_not_certified(made: Make) -> None:
    rows = {"m": {"square@linf:0.1": "r" * 60 + "." * 40}}
    found = assess_certificates(made(rows, samples=[{"label": n % 7 % 3} for n in range(N)]))
    assert (found.claims[0].largest, found.claims[0].p) == (None, (1.0,))


def test_the_table_says_what_several_claims_cost(found: CertificateAssessment) -> None:
    (table,) = [one for one in sections(found) if isinstance(one, Table) and one.title == "Each attack by itself"]
    assert [row[:4] for row in table.rows] == [
        ("m", "pgd, steps=10", "linf", "0.12"),
        ("m", "square, steps=10", "linf", "0.12, 0.125, 0.2"),
    ]
    assert [row[4:] for row in table.rows] == [("none", "none"), (0.125, 0.125)]
    assert "Of 2 such claims, one or more are wrong at most 10 % of the time." in table.notes[0]
