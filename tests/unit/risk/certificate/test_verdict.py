"""Certificates: what is tested, what is claimed, and which counts do not go together."""

import json
from pathlib import Path

import numpy as np
import pytest

import advrisk
from advrisk.assess.certificate.words import fallible_test, tolerated
from advrisk.core.errors import RiskError
from advrisk.core.plain import json_text, plain_fields
from advrisk.risk.certificate import (
    Count,
    betting_certified_risk,
    betting_p_values,
    certified_risk,
    certify,
    certify_in_order,
    p_value,
)

SOURCE = Path(advrisk.__file__).parent


def count(failures: int, n: int = 1000, calibration: str = "ab12") -> Count:
    return Count(failures, n, calibration)


ARMS = {"pgd": count(60), "nes": count(84), "square": count(3)}


def test_the_worst_arm_decides() -> None:
    found = certify(ARMS, alpha=0.1, union=count(90), clean=count(20))
    assert [arm.name for arm in found.arms] == ["nes", "pgd", "square"]
    assert found.verdict == "certified"
    assert found.p == found.worst.p == p_value(84, 1000, 0.1)
    assert found.certified_risk == certified_risk(84, 1000, 0.05)
    assert (found.worst.risk.value, found.worst.risk.low) == (0.084, 0.0)
    assert (found.worst.risk.high, found.worst.risk.level) == (found.certified_risk, 0.95)
    assert not found.union.certified
    assert found.union.p == p_value(90, 1000, 0.1)
    assert found.wrong is not None
    assert found.wrong.count.failures == 110
    assert found.clean is not None
    assert (found.clean.value, found.clean.method) == (0.02, "Clopper-Pearson")


def test_one_failure_more_is_one_too_many() -> None:
    found = certify({"nes": count(85)}, alpha=0.1)
    assert found.verdict == "not certified"
    assert found.union.count == count(85)
    assert found.wrong is None
    assert certify({"nes": count(81)}, alpha=0.1, method="hoeffding-bentkus").verdict == "not certified"
    assert certify({"nes": count(80)}, alpha=0.1, method="hoeffding-bentkus").verdict == "certified"


def test_what_it_means_is_said_in_one_place_for_numbers_and_documents() -> None:
    """A certificate of counts knows neither tries nor the population, so it makes no claim in words."""
    found = certify(ARMS, alpha=0.1, union=count(84), clean=count(20))
    assert not {"claim", "further_claims", "population", "tries"} & set(plain_fields(found))
    assert (tolerated(0.1), fallible_test(0.05)) == (
        "10 % (alpha, the tolerated share)",
        "a test that certifies a model with a larger share at most 5 % of the time (zeta, its error rate)",
    )
    sources = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*") if path.suffix in (".py", ".html")]
    assert [sum(text.count(words) for text in sources) for words in ("(alpha, the", "(zeta, its")] == [1, 1]


def test_a_certificate_as_json() -> None:
    found = json.loads(json_text(certify(ARMS, alpha=0.1, union=count(90), clean=count(20))))
    assert found["verdict"] == "certified"
    assert found["arms"][0]["failures"] == 84
    assert found["union"]["certified"] is False
    assert found["wrong"]["failures"] == 110
    assert found["clean"]["value"] == 0.02
    assert (found["alpha"], found["zeta"], found["n"], found["calibration"]) == (0.1, 0.05, 1000, "ab12")
    assert json.loads(json_text(certify({"a": count(1)}, alpha=0.1)))["wrong"] is None


def test_in_order_everything_is_betted_on() -> None:
    rng = np.random.default_rng(0)
    one, other = (rng.random((2, 600)) < 0.03).astype(int)
    clean = (one + other == 0) & (rng.random(600) < 0.02)
    found = certify_in_order({"a": one, "b": other}, alpha=0.1, calibration="ab12", clean=clean)
    p = np.maximum(betting_p_values(one, 0.1), betting_p_values(other, 0.1))
    assert found.verdict == "certified"
    assert found.decided_at == (p <= 0.05).argmax() + 1
    assert found.p == p[-1]
    assert found.method == "betting"
    assert found.union.count.failures == int((one | other).sum())
    assert found.union.p == betting_p_values(one | other, 0.1)[-1]
    assert found.union.certified_risk == betting_certified_risk(one | other, 0.05)[-1]
    assert found.wrong is not None
    assert found.wrong.count.failures == int((one | other | clean).sum())
    assert found.clean is not None
    json.dumps(plain_fields(found))


def test_an_early_bound_below_the_final_share_is_kept() -> None:
    failed = np.array([0] * 100 + [1] * 30)
    found = certify_in_order({"a": failed}, alpha=0.1, calibration="ab12")
    assert found.verdict == "certified"
    assert found.decided_at == 46
    assert found.certified_risk < 0.1 < found.worst.risk.value <= found.worst.risk.high


def test_undecided_in_order() -> None:
    found = certify_in_order({"a": [0] * 60 + [1] * 6, "b": [1, 1] * 33}, alpha=0.1, calibration="ab12")
    assert found.decided_at is None
    assert (found.worst.name, found.worst.count.failures, found.p) == ("b", 66, 1.0)


@pytest.mark.parametrize(
    ("arms", "others", "says"),
    [
        ({}, {}, "no arm"),
        (ARMS, {}, "found several arms without `union`"),
        (ARMS, {"union": count(83)}, "cannot have 83"),
        (ARMS, {"union": count(148)}, "cannot have 148"),
        (ARMS, {"union": count(90, calibration="cd34")}, "different calibration sets.*1,000 samples of cd34"),
        (ARMS, {"union": count(90), "clean": count(5, 900)}, "different calibration sets.*clean: 900"),
        ({"a": count(1), "b": count(1, calibration="x")}, {"union": count(2)}, "run all arms on the same samples"),
        ({"a": count(600)}, {"clean": count(401)}, "at most 599 of 1000 can be broken, found 600"),
        ({"a": count(1)}, {"alpha": 0.0}, "alpha must lie"),
        ({"a": count(1)}, {"zeta": 1.0}, "zeta must lie"),
        ({"a": count(1)}, {"method": "betting"}, "unknown method 'betting'"),
    ],
)
def test_counts_that_do_not_go_together_are_refused(
    arms: dict[str, Count], others: dict[str, object], says: str
) -> None:
    with pytest.raises(RiskError, match=says):
        certify(arms, **({"alpha": 0.1} | others))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("failed", "clean", "says"),
    [
        ({}, None, "no arm"),
        ({"a": []}, None, "a: must be one answer"),
        ({"a": [0.5]}, None, "must be 0 or 1 for each sample"),
        ({"a": [0, 1], "b": [0]}, None, "same samples in the same order, found a: 2, b: 1"),
        ({"a": [0, 1]}, [0], "clean: 1"),
        ({"a": [0, 1]}, [0, 1], "a: a sample that is wrong without an attack cannot fail"),
    ],
)
def test_answers_that_do_not_go_together_are_refused(failed: dict[str, object], clean: object, says: str) -> None:
    with pytest.raises(RiskError, match=says):
        certify_in_order(failed, alpha=0.1, calibration="x", clean=clean)  # type: ignore[arg-type]
