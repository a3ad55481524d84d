"""An old run against a new one, on small runs whose numbers are known."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from advrisk import Run
from advrisk.core.errors import RiskError
from advrisk.risk.paired_share import at_least, share_difference
from advrisk.risk.proportion import proportion

inf = float("inf")
MakeRun = Callable[..., Run]

OLD = [0.0] * 2 + [0.1] * 4 + [inf] * 34
NEW = [0.0] * 1 + [inf] * 3 + [0.1] * 6 + [inf] * 30  # 1 wrong clean, 7 broken: 4 of the old ones hold, 5 others break


@pytest.fixture
def runs(make_run: MakeRun) -> tuple[Run, Run]:
    return make_run({"m": {"pgd": OLD}}, name="old"), make_run({"m": {"pgd": NEW}}, name="new")


def by_name(found: Any) -> dict[str, Any]:
    return {row.quantity: row for row in found.results}


def test_numbers_are_paired_on_samples_of_the_same_content(make_run: MakeRun) -> None:
    old = make_run({"m": {"pgd": OLD}}, name="old")
    order = np.random.default_rng(0).permutation(40)
    new = make_run(
        {"m": {"pgd": [NEW[place] for place in order]}}, name="new", hashes=[f"content {place}" for place in order]
    )
    found = by_name(old.compare(new, margin=0.02, sizes=[0.1]))
    was, now = np.array(OLD) <= 0.1, np.array(NEW) <= 0.1
    up, down = int((now & ~was).sum()), int((was & ~now).sum())
    row = found["broken within 0.1"]
    expected = share_difference(up, down, 40)
    assert (row.worse_by.value, row.worse_by.low, row.worse_by.high) == pytest.approx(
        (expected.value, expected.low, expected.high)
    )
    assert row.p == pytest.approx(at_least(up, down, 40, 0.02))
    assert row.old_value.value == proportion(6, 40).value
    assert found["clean accuracy"].worse_by.value == pytest.approx(-1 / 40)  # one more is right: better


def test_verdicts(make_run: MakeRun) -> None:
    good, bad = [inf] * 100, [0.1] * 30 + [inf] * 70
    one, other = make_run({"m": {"pgd": good}}, name="one"), make_run({"m": {"pgd": bad}}, name="two")
    assert one.compare(other, sizes=[0.3], margin=0.05).failed
    better = other.compare(one, sizes=[0.3])
    assert by_name(better)["broken within 0.3"].word == "not worse"
    assert by_name(better)["clean accuracy"].settle.startswith("the value is the limit itself")
    assert better.undecided  # equal clean accuracy, and no margin
    assert other.compare(one, sizes=[0.3], margin=0.05).passed
    same = one.compare(one, margin=0.02)
    assert same.undecided  # 100 samples without a difference leave 3.6 % open
    assert by_name(same)["clean accuracy"].more_samples == pytest.approx(np.log(0.025) / np.log(0.98) - 100, abs=2)
    assert json.loads(json.dumps(same.as_dict()))["verdict"] == "undecided"


def test_damage_under_a_curve(runs: tuple[Run, Run]) -> None:
    found = by_name(runs[0].compare(runs[1], evasion=0.2, margin=0.02))
    broken = by_name(runs[0].compare(runs[1], sizes=[0.2], margin=0.02))["broken within 0.2"]
    assert found["damage"].worse_by.value == pytest.approx(broken.worse_by.value)
    assert found["damage"].worse_by.high == pytest.approx(broken.worse_by.high, abs=0.015)
    with pytest.raises(RiskError, match="relative damage"):
        runs[0].compare(runs[1], evasion="average")


def test_the_curve_of_both_studies(make_run: MakeRun) -> None:
    def study(evasion: float) -> dict[str, Any]:
        return {"assess": {"damage": {"evasion": evasion}}}

    old = make_run({"m": {"pgd": OLD}}, name="old", study=study(0.2))
    assert "damage" in by_name(old.compare(make_run({"m": {"pgd": NEW}}, name="same", study=study(0.2))))
    other = old.compare(make_run({"m": {"pgd": NEW}}, name="other", study=study(0.1)))
    assert "damage" not in by_name(other)
    assert any("different evasion curves" in note for note in other.notes)


def test_samples_without_a_verdict_count_at_their_worst(make_run: MakeRun) -> None:
    old = make_run({"m": {"pgd": [inf] * 40}}, name="old")
    new = make_run({"m": {"pgd": [None] * 4 + [inf] * 36}}, name="new")
    row = by_name(old.compare(new, sizes=[0.3], margin=0.15))["broken within 0.3"]
    assert row.worse_by.high == pytest.approx(share_difference(0, 0, 36, unknown=4).high)
    assert row.p == pytest.approx(at_least(4, 0, 40, 0.15))
    assert "4 samples without a verdict" in row.cautions[0]
    assert row.verdict == "undecided"
    assert row.settle.startswith("a verdict on")


def test_arms_and_samples_of_one_run_only_are_named_and_left_out(make_run: MakeRun) -> None:
    old = make_run({"m": {"pgd": OLD, "fgsm": OLD}}, name="old", facts={"fgsm": {"params": '{"steps": 1}'}})
    new = make_run(
        {"m": {"pgd": NEW, "fgsm": [0.1] * 40, "bim": [0.1] * 40}},
        name="new",
        facts={"fgsm": {"params": '{"steps": 2}'}},
        hashes=[f"content {place}" for place in range(5, 45)],
    )
    found = old.compare(new, sizes=[0.1])
    assert found.n_samples == 35
    assert found.arms == {"m -> m": ["pgd"]}
    assert by_name(found)["broken within 0.1"].new_value.value < 0.5
    told = " ".join(found.notes)
    assert "Samples in one run only, and left out: 5 of the old one, 5 of the new one." in told
    assert "configured otherwise in the new run, and left out: fgsm" in told
    assert "Arms in the new run only, and left out: bim" in told


def test_models_that_belong_together(make_run: MakeRun) -> None:
    old = make_run({"a": {"pgd": OLD}}, name="old")
    new = make_run({"b": {"pgd": NEW}}, name="new")
    assert {(row.old, row.new) for row in old.compare(new).results} == {("a", "b")}
    two = make_run({"b": {"pgd": NEW}, "c": {"pgd": OLD}}, name="two")
    with pytest.raises(RiskError, match="--model OLD=NEW"):
        old.compare(two)
    found = by_name(old.compare(two, models={"a": "c"}, margin=0.1))
    assert found["clean accuracy"].worse_by.value == 0
    with pytest.raises(RiskError, match="no model of the new run is called 'd'"):
        old.compare(two, models={"a": "d"})
    both = make_run({"a": {"pgd": NEW}, "z": {"pgd": OLD}}, name="both")
    assert any("Models in one run only, and left out: z" in note for note in old.compare(both).notes)


def test_what_cannot_be_compared_is_refused(make_run: MakeRun, runs: tuple[Run, Run]) -> None:
    others = make_run({"m": {"pgd": OLD}}, name="others", hashes=[f"other {place}" for place in range(40)])
    with pytest.raises(RiskError, match="share no sample: 40 in the old one"):
        runs[0].compare(others)
    targeted = make_run({"m": {"pgd": OLD}}, name="targeted", criterion="target")
    with pytest.raises(RiskError, match="success means something else"):
        runs[0].compare(targeted)
    for margin in (-0.1, 1.0, float("nan")):
        with pytest.raises(RiskError, match="a margin is a share"):
            runs[0].compare(runs[1], margin=margin)
    with pytest.raises(RiskError, match="level must lie between"):
        runs[0].compare(runs[1], level=2)


def test_samples_of_equal_content_are_paired_one_by_one(make_run: MakeRun) -> None:
    same = ["twin"] * 40
    old = make_run({"m": {"pgd": OLD}}, name="old", hashes=same)
    found = old.compare(make_run({"m": {"pgd": NEW}}, name="new", hashes=same))
    assert found.n_samples == 40


def test_sizes_that_no_shared_attack_was_allowed_are_left_out(runs: tuple[Run, Run]) -> None:
    found = runs[0].compare(runs[1], sizes=[0.1, 0.9])
    assert set(by_name(found)) == {"clean accuracy", "broken within 0.1"}
    assert any(
        "Broken within 0.9 is not compared: the largest eps of a shared attack is 0.3" in one for one in found.notes
    )


def test_transfers_from_another_surrogate_are_other_arms(make_run: MakeRun) -> None:
    facts = {"t": {"family": "transfer", "params": '{"arm": "pgd", "from": "s"}'}}
    old = make_run({"m": {"t": OLD}, "s": {"t": OLD}}, name="old", facts=facts)
    new = make_run({"m": {"t": NEW}}, name="new", facts=facts)  # knows no model s: another one was called so
    found = old.compare(new)
    assert found.arms == {"m -> m": []}
    assert "broken" not in " ".join(by_name(found))
