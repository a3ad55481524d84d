"""Verdicts: the interval decides, samples without a verdict count at their worst, and what would settle it is sound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advrisk.assess.gate import (
    GateEstimate,
    GateResult,
    RequirementResult,
    check_requirement,
    counted_rows,
    decide,
    pair_estimate,
    share_estimate,
)
from advrisk.assess.gate.estimates import damage_estimate, damage_pair_estimate, number_estimate
from advrisk.core.estimate import Estimate
from advrisk.risk.absolute import compare_damage
from advrisk.risk.evasion import threshold
from advrisk.risk.proportion import proportion
from advrisk.study import parse_requirement
from bench.gate_validity import share_passes, whole_gate


def estimate(low: float, high: float) -> Estimate:
    return Estimate((low + high) / 2, low, high, 0.95, 100, "made up")


@pytest.mark.parametrize(
    ("op", "limit", "verdict"),
    [
        ("<=", 0.3, "pass"),
        ("<=", 0.2, "pass"),
        ("<", 0.2, "undecided"),
        ("<", 0.21, "pass"),
        ("<=", 0.15, "undecided"),
        ("<=", 0.1, "undecided"),
        ("<", 0.1, "fail"),
        ("<=", 0.05, "fail"),
        (">=", 0.05, "pass"),
        (">=", 0.1, "pass"),
        (">", 0.1, "undecided"),
        (">=", 0.15, "undecided"),
        (">=", 0.2, "undecided"),
        (">", 0.2, "fail"),
        (">=", 0.3, "fail"),
    ],
)
def test_the_interval_decides(op: str, limit: float, verdict: str) -> None:
    assert decide(estimate(0.1, 0.2), op, limit) == verdict


def test_counts_are_exact() -> None:
    assert decide(counted_rows(0, level=0.95, of=9).estimate, "==", 0) == "pass"  # type: ignore[arg-type]
    assert decide(counted_rows(2, level=0.95, of=9).estimate, "==", 0) == "fail"  # type: ignore[arg-type]
    assert decide(counted_rows(2, level=0.95, of=9).estimate, "<=", 2) == "pass"  # type: ignore[arg-type]


@given(st.integers(1, 40), st.integers(0, 40), st.integers(0, 15), st.integers(0, 15))
def test_whatever_the_unknown_samples_are_the_interval_holds_that_of_all(n: int, hits: int, m: int, more: int) -> None:
    hits, more = min(hits, n), min(more, m)
    found = share_estimate(np.arange(n) < hits, level=0.95, n_unknown=m).estimate
    whole = proportion(hits + more, n + m)
    assert found is not None
    assert found.low <= whole.low
    assert found.high >= whole.high


def test_damage_counts_unknown_samples_at_their_worst_too() -> None:
    rng = np.random.default_rng(1)
    sizes = np.where(rng.random(60) < 0.3, 0.1, np.inf)
    found = compare_damage({"a": sizes, "b": np.roll(sizes, 7)}, threshold(0.2), rng=rng)
    hits = int((sizes < 1).sum())
    one = damage_estimate(found, "a", n_unknown=5, rng=rng).estimate
    assert one is not None
    assert (one.low, one.high) == pytest.approx((proportion(hits, 65).low, proportion(hits + 5, 65).high))
    pair = damage_pair_estimate(found, "a", "b", n_unknown=5, rng=rng)
    same = pair_estimate(sizes < 1, np.roll(sizes, 7) < 1, level=0.95, n_unknown=5)
    assert pair.estimate is not None
    assert same.estimate is not None
    assert (pair.estimate.low, pair.estimate.high) == pytest.approx((same.estimate.low, same.estimate.high), abs=0.012)


def settled(text: str, found: GateEstimate) -> RequirementResult:
    return check_requirement(parse_requirement(text), found, origin="given")


def test_the_samples_that_settle_a_share_do() -> None:
    """Drawn at the value that was seen, so many samples decide with a probability near 0.8, and half as many do not."""
    rng = np.random.default_rng(2)
    for hits, text, limit in ((5, "damage.m <= 0.1", 0.1), (14, "damage.m <= 0.1", 0.1), (0, "damage.m <= 0.02", 0.02)):
        found = settled(text, share_estimate(np.arange(100) < hits, level=0.95))
        assert found.verdict == "undecided"
        assert found.more_samples is not None
        n = 100 + found.more_samples
        wanted = "pass" if hits / 100 < limit else "fail"
        for size, least, most in ((n, 0.7, 1.0), (n // 2, 0.0, 0.69)):
            drawn = rng.binomial(size, hits / 100, 1000)
            share = np.mean([decide(proportion(int(k), size), "<=", limit) == wanted for k in drawn])
            assert least <= share <= most


def test_the_samples_that_settle_a_difference_do() -> None:
    rng = np.random.default_rng(3)
    first, second = np.arange(200) < 12, (np.arange(200) >= 6) & (np.arange(200) < 18)
    found = settled("damage.a <= damage.b + 0.02", pair_estimate(first, second, level=0.95))
    assert found.verdict == "undecided"
    assert found.more_samples is not None
    n, verdicts = 200 + found.more_samples, []
    for _ in range(60):
        drawn = rng.choice(200, n)
        pair = pair_estimate(first[drawn], second[drawn], level=0.95).estimate
        assert pair is not None
        verdicts.append(decide(pair, "<=", 0.02))
    assert 0.65 <= verdicts.count("pass") / 60 <= 0.95


def test_no_number_of_samples_settles_a_value_at_the_limit() -> None:
    found = settled("damage.m <= 0.1", share_estimate(np.arange(100) < 10, level=0.95))
    assert (found.verdict, found.more_samples) == ("undecided", None)
    assert "the value is the limit itself" in found.settle


def test_no_number_of_samples_settles_what_the_curve_leaves_open() -> None:
    wide = Estimate(0.15, 0.05, 0.25, 0.95, 100, "fitted")
    found = settled("damage.m <= 0.2", number_estimate(wide, n=100, floor=0.05, on_floor="ask the detector more"))
    assert found.more_samples is None
    assert "ask the detector more" in found.settle


def test_verdicts_on_the_others_settle_what_only_unknown_samples_leave_open() -> None:
    found = settled("damage.m <= 0.1", share_estimate(np.arange(200) < 4, level=0.95, n_unknown=30))
    assert found.verdict == "undecided"
    assert found.settle.startswith("a verdict on the samples that have none")
    assert any("30 samples without a verdict" in caution for caution in found.cautions)


def test_samples_that_were_left_out_never_pass() -> None:
    small = Estimate(0.01, 0.0, 0.02, 0.95, 100, "some")
    assert settled("damage.m <= 0.1", number_estimate(small, n=100)).verdict == "pass"
    found = settled("damage.m <= 0.1", number_estimate(small, n=100, n_left_out=1))
    assert found.verdict == "undecided"
    assert "1 sample without a verdict" in found.reason
    assert settled("damage.m >= 0.1", number_estimate(small, n=100, n_left_out=1)).verdict == "fail"


def test_caveats_stand_beside_a_pass_that_flags_withhold() -> None:
    found = GateEstimate(Estimate(0.01, 0.01, 0.01, 0.95, 100, "certified bound"), caveats=("zeta was chosen later.",))
    asked = parse_requirement("certified_wrong.m <= 0.1 with caveats")
    checked = check_requirement(asked, found, origin="given", cautions=("flagged",), strict="flags count")
    assert (checked.verdict, checked.reason) == ("undecided", "flags count")
    assert checked.cautions == ("flagged", "zeta was chosen later.")


def test_what_is_not_finished_or_cannot_be_told_is_undecided() -> None:
    small = Estimate(0.01, 0.0, 0.02, 0.95, 100, "some")
    assert settled("damage.m <= 0.1", number_estimate(small, n=9, pending="not finished")).verdict == "undecided"
    assert settled("damage.m >= 0.1", number_estimate(small, n=9, pending="not finished")).verdict == "undecided"
    assert settled("damage.m <= 0.1", GateEstimate(None, why_not="no arm succeeded")).reason == "no arm succeeded"


@pytest.mark.parametrize(
    ("verdicts", "whole"),
    [
        (("pass", "pass"), "pass"),
        (("pass", "undecided"), "undecided"),
        (("pass", "undecided", "fail"), "fail"),
    ],
)
def test_the_whole_gate(verdicts: tuple[str, ...], whole: str) -> None:
    made = GateResult("g", tuple(RequirementResult("r", one, "study", None, None, "") for one in verdicts))  # type: ignore[arg-type]
    assert made.verdict == whole
    assert [made.passed, made.failed, made.undecided].count(True) == 1
    assert made.as_dict()["counts"]["pass"] == verdicts.count("pass")


@pytest.mark.parametrize("n", [10, 60])
@pytest.mark.parametrize("limit", [0.02, 0.1, 0.3, 0.5])
def test_a_share_at_its_limit_passes_rarely_enough(n: int, limit: float) -> None:
    assert share_passes(n, limit) <= 0.025


def test_a_gate_needs_no_correction_for_passes_and_its_wrong_fails_add_up() -> None:
    found = whole_gate(60, 300, seed=7)
    assert found["one"] <= 0.04
    assert found["all"] <= found["one"]
    assert found["fails"] > 0.04
