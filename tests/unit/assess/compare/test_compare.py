"""An old run against a new one, on small runs whose numbers are known."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from advrisk import Run
from advrisk.api.paired import doubt
from advrisk.assess.compare.sections import comparison_verdicts
from advrisk.assess.gate import GateEstimate
from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.ledger.layout import DATA_FILE
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
    row = found["robust accuracy at 0.1"]
    expected = share_difference(up, down, 40)
    assert (row.worse_by.value, row.worse_by.low, row.worse_by.high) == pytest.approx(
        (expected.value, expected.low, expected.high)
    )
    assert row.p == pytest.approx(at_least(up, down, 40, 0.02))
    held = proportion(34, 40)
    assert (row.old_value.value, row.old_value.low, row.old_value.high) == (held.value, held.low, held.high)
    assert found["clean accuracy"].worse_by.value == pytest.approx(-1 / 40)  # one more is right: better


def test_samples_are_promised_only_where_both_runs_may_have_them(make_run: MakeRun) -> None:
    """Both hold the same 40; the data set must have more for the old one and for the new one."""

    runs = [make_run({"m": {"pgd": own}}, name=name, study={}) for name, own in (("old", OLD), ("new", NEW))]

    def settle(*left: int | None) -> tuple[str, int]:
        for run, n in zip(runs, left, strict=True):
            (run.folder / DATA_FILE).write_text(json.dumps({"samples_left": n}))
        row = by_name(runs[0].compare(runs[1], margin=0.1, sizes=[0.1]))["robust accuracy at 0.1"]
        assert row.verdict == "undecided"
        return row.settle, row.more_samples

    said, n = settle(None, None)
    assert n > 3
    assert said == f"about {n:,} more samples would probably settle it"
    assert settle(n, n) == (said, n)
    assert settle(3, n) == ("the data set has 3 more samples, probably too few to settle it", n)
    assert settle(n, 0) == ("these samples do not settle it, and the data set has no more", n)


def test_verdicts(make_run: MakeRun) -> None:
    good, bad = [inf] * 100, [0.1] * 30 + [inf] * 70
    one, other = make_run({"m": {"pgd": good}}, name="one"), make_run({"m": {"pgd": bad}}, name="two")
    assert one.compare(other, sizes=[0.3], margin=0.05).word == "worse"
    better = other.compare(one, sizes=[0.3], margin=0)
    assert by_name(better)["robust accuracy at 0.3"].word == "better"
    assert by_name(better)["clean accuracy"].settle.startswith("the value is the limit itself")
    assert better.undecided  # equal clean accuracy, and no margin
    better = other.compare(one, sizes=[0.3], margin=0.05)
    assert (better.word, better.passed) == ("better", True)
    alike = make_run({"m": {"pgd": good}}, name="alike")
    same = one.compare(alike, margin=0.02)  # another model with the same answers
    assert same.undecided  # 100 samples without a difference leave 3.6 % open
    assert by_name(same)["clean accuracy"].more_samples == pytest.approx(np.log(0.025) / np.log(0.98) - 100, abs=2)
    assert json.loads(json.dumps(same.as_dict()))["verdict"] == "undecided"


def test_a_model_is_never_worse_than_itself(make_run: MakeRun) -> None:
    run = make_run({"m": {"pgd": [0.1] * 3 + [inf] * 7}}, name="run", digest="d")
    again = make_run({"m": {"pgd": [inf] * 5 + [0.1] * 5}}, name="again", digest="d")  # other draws of a random attack
    for other in (run, again):
        found = run.compare(other, sizes=[0.3, 0.9], margin=0)
        assert (found.word, found.passed) == ("identical", True)
        assert {row.word for row in found.results} == {"identical"}
        assert found.as_dict()["counts"] == {"identical": 3, "better": 0, "not worse": 0, "worse": 0, "undecided": 0}
    rows = by_name(found)
    assert rows["clean accuracy"].reason == "the same model"
    assert (
        "differ by the draws of random arms"
        in by_name(run.compare(Run.open(again.folder), evasion=0.2))["damage"].reason
    )
    assert rows["robust accuracy at 0.9"].reason.startswith("the same model; not compared: the largest eps")


def test_without_a_margin_it_is_2_per_cent_and_said(make_run: MakeRun) -> None:
    held = [inf] * 400
    old, new = make_run({"m": {"pgd": held}}, name="old"), make_run({"m": {"pgd": [0.1, *held[1:]]}}, name="new")
    found = old.compare(new, sizes=[0.3])
    assert (found.margin, found.margin_is_default, found.word) == (0.02, True, "not worse")
    words = comparison_verdicts(found)
    assert words.heading == "new against old: not worse by more than 2 % (default)"
    assert "margin 2 % (default), level 95 %" in words.notes[0]
    given = comparison_verdicts(old.compare(new, sizes=[0.3], margin=0.025))
    assert given.heading == "new against old: not worse by more than 2.5 %"


def test_better_in_one_of_several_numbers_needs_more_evidence(make_run: MakeRun) -> None:
    """Of two numbers each may err half as often; what is worse within the margin is no improvement either."""
    n = 200
    barely = next(k for k in range(1, 50) if share_difference(0, k, n).high < 0)
    assert share_difference(0, barely, n, level=0.975).high > 0
    enough = next(k for k in range(1, 50) if share_difference(0, k, n, level=0.975).high < 0)
    new = make_run({"m": {"pgd": [inf] * n}}, name="new")
    for k, word in ((barely, "not worse"), (enough, "better")):
        old = make_run({"m": {"pgd": [0.1] * k + [inf] * (n - k)}}, name=f"old{k}")
        found = old.compare(new, sizes=[0.3])
        assert by_name(found)["robust accuracy at 0.3"].word == "better"
        assert (found.word, found.passed) == (word, True)
    wrong = {"m": [False] * 20 + [True] * (n - 20)}
    worse = make_run({"m": {"pgd": [inf] * n}}, name="worse", clean=wrong)
    assert old.compare(worse, sizes=[0.3], margin=0.3).word == "not worse"


def test_damage_under_a_curve(runs: tuple[Run, Run]) -> None:
    found = by_name(runs[0].compare(runs[1], evasion=0.2, margin=0.02))
    broken = by_name(runs[0].compare(runs[1], sizes=[0.2], margin=0.02))["robust accuracy at 0.2"]
    assert found["damage"].worse_by.value == pytest.approx(broken.worse_by.value)
    assert found["damage"].worse_by.high == pytest.approx(broken.worse_by.high, abs=0.015)
    with pytest.raises(RiskError, match="relative damage"):
        runs[0].compare(runs[1], evasion="average")


def test_the_curve_of_both_studies(make_run: MakeRun) -> None:
    def study(evasion: float) -> dict[str, Any]:
        return {"assess": {"damage": {"evasion": evasion}}}

    old = make_run({"m": {"pgd": OLD}}, name="old", study=study(0.2))
    assert "damage" in by_name(old.compare(make_run({"m": {"pgd": NEW}}, name="same", study=study(0.2))))
    other = old.compare(make_run({"m": {"pgd": OLD}}, name="other", study=study(0.1)), margin=0.5)
    assert (other.verdict, by_name(other)["damage"].worse_by) == ("undecided", None)
    assert "different evasion curves" in by_name(other)["damage"].reason
    none = old.compare(make_run({"m": {"pgd": OLD}}, name="none", study={}), margin=0.5)
    assert by_name(none)["damage"].verdict == "undecided"


def test_samples_without_a_verdict_count_at_their_worst(make_run: MakeRun) -> None:
    old = make_run({"m": {"pgd": [inf] * 40}}, name="old")
    new = make_run({"m": {"pgd": [None] * 4 + [inf] * 36}}, name="new")
    row = by_name(old.compare(new, sizes=[0.3], margin=0.15))["robust accuracy at 0.3"]
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
    assert by_name(found)["robust accuracy at 0.1"].new_value.value > 0.5
    assert "nothing is compared by fgsm" in by_name(found)["attacks of the old run"].reason
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


def test_sizes_that_no_shared_attack_was_allowed_are_undecided(runs: tuple[Run, Run]) -> None:
    found = runs[0].compare(runs[1], sizes=[0.3, 0.9], margin=0.5)
    assert {name: row.verdict for name, row in by_name(found).items()} == {
        "clean accuracy": "pass",
        "robust accuracy at 0.3": "pass",
        "robust accuracy at 0.9": "undecided",
    }
    assert by_name(found)["robust accuracy at 0.9"].reason == "the largest eps of a shared attack is 0.3"
    assert found.undecided
    assert runs[0].compare(runs[1], sizes=[0.3], margin=0.5).passed


def test_transfers_from_another_surrogate_are_other_arms(make_run: MakeRun) -> None:
    facts = {"t": {"family": "transfer", "params": '{"arm": "pgd", "from": "s"}'}}
    old = make_run({"m": {"t": OLD}, "s": {"t": OLD}}, name="old", facts=facts)
    new = make_run({"m": {"t": OLD}}, name="new", facts=facts)  # knows no model s: another one was called so
    found = old.compare(new, margin=0.5)
    assert found.arms == {"m -> m": []}
    assert {name: row.verdict for name, row in by_name(found).items()} == {
        "clean accuracy": "pass",
        "attacks": "undecided",
    }
    assert found.undecided
    assert old.compare(old, margin=0.5).passed


HELD = [inf] * 40


@pytest.mark.parametrize(
    ("new", "given"),
    [
        ({"pgd": [None] * 40}, {}),
        ({"pgd": ["missing"] * 40}, {}),
        ({"mine": [0.1] * 40}, {}),
        ({"pgd": HELD}, {"sizes": [0.9]}),
        ({"pgd": HELD}, {"sizes": []}),
        ({"pgd": HELD}, {"norm": "l2"}),
        ({"pgd": HELD}, {"norm": "l2", "sizes": [0.3]}),
        ({"pgd": HELD}, {"norm": "l2", "sizes": [], "evasion": 0.2}),
        ({"pgd": [None] * 40}, {"sizes": [], "evasion": 0.2}),
    ],
)
def test_nothing_passes_by_clean_accuracy_alone(make_run: MakeRun, new: dict[str, Any], given: dict[str, Any]) -> None:
    clean = {"m": [True] * 40}
    old = make_run({"m": {"pgd": HELD}}, name="old", clean=clean)
    found = old.compare(make_run({"m": new}, name="new", clean=clean), margin=0.5, **given)
    rows = by_name(found)
    assert rows.pop("clean accuracy").verdict == "pass"
    assert rows
    assert all(row.verdict == "undecided" and row.reason for row in rows.values())
    assert found.undecided
    assert json.loads(json.dumps(found.as_dict()))["results"][1]["worse_by"] is None
    assert found.to_arrow().num_rows == len(found.results)


def test_attacks_without_an_eps_need_a_size_or_a_curve(make_run: MakeRun) -> None:
    run, new = (make_run({"m": {"pgd": HELD}}, eps=None, name=name) for name in ("old", "new"))
    found = run.compare(new, margin=0.5)
    assert by_name(found)["attacks"].settle == "a size (`--eps`), or a curve (`--evasion`)"
    assert found.undecided
    assert run.compare(new, margin=0.5, sizes=[0.1]).passed
    assert run.compare(new, margin=0.5, evasion=0.1).passed


def test_clean_answers_that_are_missing_are_undecided(make_run: MakeRun) -> None:
    old = make_run({"m": {"pgd": HELD}}, name="old")
    failed = make_run({"m": {"pgd": HELD}}, name="failed", clean={"m": [None] * 40})
    found = old.compare(failed, margin=0.5)
    assert by_name(found)["clean accuracy"].reason == "no sample has a verdict in both runs"
    assert found.undecided
    bare = make_run({"m": {"pgd": HELD}}, name="bare", clean={"m": []}, origin="import")
    assert old.compare(bare, margin=0.5).undecided
    both = bare.compare(bare, margin=0.5)  # nobody asks for clean answers here
    assert both.passed
    assert any("Clean accuracy is not compared" in note for note in both.notes)


def test_a_run_that_is_not_finished_decides_only_what_the_rest_cannot_change(make_run: MakeRun) -> None:
    old = make_run({"m": {"pgd": HELD}}, name="old")
    half = make_run({"m": {"pgd": [inf] * 30 + ["missing"] * 10}}, name="half")
    assert old.compare(half, margin=0.1).undecided
    assert old.compare(half, margin=0.5).passed  # were all ten broken, it would pass
    assert any("The new run is not finished" in note for note in old.compare(half).notes)
    broken = make_run({"m": {"pgd": [0.1] * 30 + ["missing"] * 10}}, name="broken")
    assert old.compare(broken, margin=0.1).failed


def test_an_attack_that_the_new_run_lacks_is_undecided_unless_arms_are_named(make_run: MakeRun) -> None:
    old = make_run({"m": {"pgd": HELD, "fgsm": HELD}}, name="old", facts={"fgsm": {"params": '{"steps": 1}'}})
    fewer = make_run({"m": {"pgd": HELD}}, name="fewer")
    weaker = make_run({"m": {"pgd": HELD, "fgsm": HELD}}, name="weaker", facts={"fgsm": {"params": '{"steps": 0}'}})
    for new in (fewer, weaker):
        found = old.compare(new, margin=0.5)
        assert found.undecided
        row = by_name(found)["attacks of the old run"]
        assert "nothing is compared by fgsm" in row.reason
        assert "--arm" in row.settle
        assert old.compare(new, margin=0.5, arms=["pg*"]).passed
        assert old.compare(new, margin=0.5, arms=["pgd", "fgsm"]).undecided
        assert old.compare(new, margin=0.5, arms=["fgsm"]).undecided
    assert fewer.compare(old, margin=0.5).passed  # what is new has nothing to be compared with
    with pytest.raises(RiskError, match="no arm is called 'pdg'; did you mean 'pgd'"):
        old.compare(fewer, arms=["pdg"])


def test_arms_that_count_in_the_old_study_only_are_missed(make_run: MakeRun) -> None:
    def study(*arms: str) -> dict[str, Any]:
        return {"assess": {"damage": {"arms": list(arms)}}}

    old = make_run({"m": {"pgd": HELD, "fgsm": HELD}}, name="old", study=study("pgd", "fgsm"))
    new = make_run({"m": {"pgd": [0.1] * 40, "fgsm": HELD}}, name="new", study=study("fgsm"))
    found = old.compare(new, margin=0.5)
    assert found.undecided
    assert "nothing is compared by pgd" in by_name(found)["attacks of the old run"].reason
    assert old.compare(new, margin=0.5, arms=["pgd"]).failed


def test_a_size_that_nobody_tried_is_not_passed(make_run: MakeRun) -> None:
    new = [0.3] * 40
    old = make_run({"m": {"pgd": HELD}}, name="old")
    found = old.compare(make_run({"m": {"pgd": new}}, name="new"), sizes=[0.1], margin=0.5)
    row = by_name(found)["robust accuracy at 0.1"]
    assert (row.verdict, row.worse_by.value) == ("undecided", 0)
    assert "little was tried there" in row.reason
    assert "keep: smallest" in row.settle
    facts = {"pgd": {"keep": "smallest"}}
    told = [make_run({"m": {"pgd": own}}, name=f"smallest {own[0]}", facts=facts) for own in (HELD, new)]
    assert by_name(told[0].compare(told[1], sizes=[0.1], margin=0.5))["robust accuracy at 0.1"].verdict == "pass"


def test_sizes_are_shown_as_they_are_written(make_run: MakeRun) -> None:
    eps = 8 / 255
    old = make_run({"m": {"pgd": [inf] * 40}}, name="old", eps=eps)
    new = make_run({"m": {"pgd": [eps] * 40}}, name="new", eps=eps)
    found = by_name(old.compare(new, sizes=[4 / 255, eps, 9 / 255]))
    assert list(found) == [
        "clean accuracy", "robust accuracy at 4/255", "robust accuracy at 8/255", "robust accuracy at 9/255",
    ]  # fmt: skip
    assert found["robust accuracy at 9/255"].reason == "the largest eps of a shared attack is 8/255"
    assert "no attack had an eps of 4/255" in found["robust accuracy at 4/255"].cautions[0]
    row = found["robust accuracy at 8/255"]
    assert (row.old_value.value, row.new_value.value, row.worse_by.value) == (1, 0, 1)
    assert (row.word, by_name(new.compare(old))["robust accuracy at 8/255"].word) == ("worse", "better")
    study = {"assess": {"damage": {"thresholds": ["2/6"]}}}
    thirds = make_run({"m": {"pgd": [inf] * 40}}, name="thirds", eps=eps, study=study)
    assert "robust accuracy at 2/6" in by_name(old.compare(thirds)), "the study's own way"


def test_sizes_may_be_written_and_all_shared_ones_are_compared(make_run: MakeRun) -> None:
    facts = {f"pgd{n}": {"eps": n / 255} for n in (1, 4, 8)}
    old, new = (make_run({"m": dict.fromkeys(facts, own)}, name=f"{own[0]}", facts=facts) for own in (HELD, [inf] * 40))
    shown = [f"robust accuracy at {n}/255" for n in (1, 4, 8)]
    assert [name for name in by_name(old.compare(new)) if name.startswith("robust")] == shown
    assert [name for name in by_name(old.compare(new, sizes=["4/255"])) if name.startswith("robust")] == shown[1:2]
    with pytest.raises(RiskError, match="is a number above 0, found 'eight'"):
        old.compare(new, sizes=["eight"])


def test_judged_by_the_prediction_what_is_incorrect_clean_is_not_robust(make_run: MakeRun) -> None:
    clean = {"m": [False] * 10 + [True] * 30}
    old = make_run({"m": {"pgd": [inf] * 40}}, name="old", criterion="prediction")
    new = make_run({"m": {"pgd": [inf] * 40}}, name="new", criterion="prediction", clean=clean)
    row = by_name(old.compare(new, sizes=[0.3]))["robust accuracy at 0.3"]
    assert (row.old_value.value, row.new_value.value, row.worse_by.value) == (1, 0.75, 0.25)


def test_of_a_target_the_attack_success_rate_is_compared(make_run: MakeRun) -> None:
    old = make_run({"m": {"pgd": [inf] * 40}}, name="old", criterion="target")
    new = make_run({"m": {"pgd": [0.1] * 40}}, name="new", criterion="target")
    row = by_name(old.compare(new, sizes=[0.3]))["attack success rate at 0.3"]
    assert (row.old_value.value, row.new_value.value, row.worse_by.value, row.word) == (0, 1, 1, "worse")


@pytest.mark.parametrize("size", [-1, 0, inf, float("nan")])
def test_sizes_are_numbers_above_0(runs: tuple[Run, Run], size: float) -> None:
    with pytest.raises(RiskError, match="is a number above 0"):
        runs[0].compare(runs[1], sizes=[size])


def test_detectors_that_the_studies_do_not_share(make_run: MakeRun) -> None:
    def study(alarms: float) -> dict[str, Any]:
        alarm = {"name": "confidence", "false_alarms": alarms}
        return {"detectors": ["confidence"], "assess": {"damage": {"detector": alarm}}}

    old = make_run({"m": {"pgd": HELD}}, name="old", study=study(0.1))
    for name, more in (("none", {}), ("other", study(0.2))):
        found = old.compare(make_run({"m": {"pgd": HELD}}, name=name, study=more), margin=0.5)
        assert found.undecided
        assert "do not name the same detector" in by_name(found)["damage"].reason
    unscored = old.compare(old, margin=0.5)
    assert unscored.undecided
    assert "no detector has scored this run" in by_name(unscored)["damage with confidence"].reason


def test_scenarios_and_losses_of_the_old_study_alone(make_run: MakeRun) -> None:
    def run(name: str, **more: Any) -> Run:
        return make_run({"m": {"pgd": HELD}}, name=name, study=more)

    day, night = {"pgd": 0.5}, {"pgd": 0.9}
    old = run("old", scenarios={"day": day})
    for name, more in (("none", {}), ("other", {"scenarios": {"day": night}})):
        found = old.compare(run(name, **more), margin=0.5)
        assert by_name(found)["risk, day"].verdict == "undecided"
        assert found.undecided
    later = run("later").compare(old, margin=0.5)
    assert later.passed
    assert "Scenarios of the new study only, and not compared: day." in later.notes
    lossy = run("lossy", scenarios={"day": day}, losses=["rejected"])
    found = lossy.compare(run("lossless", scenarios={"day": day}), margin=0.5)
    assert "does not state this loss" in by_name(found)["risk, day, rejected"].reason
    assert found.undecided
    assert old.compare(lossy, margin=0.5).undecided  # the usual loss is not stated any more


def test_a_pass_that_knows_nothing_of_some_samples_says_what_would_settle_it() -> None:
    left_out = GateEstimate(Estimate(0, -0.1, 0.1, 0.95, 40, "made up"), n_left_out=3)
    reason, settle = doubt(left_out, passes=True) or ("", "")
    assert reason == "3 samples without a verdict (error or timeout) could not be counted"
    assert "--retry-errors" in settle
    assert doubt(left_out, passes=False) is None
    pending = replace(left_out, pending="The new run is not finished: 1 of 2 cells are done.")
    for passes in (True, False):
        assert doubt(pending, passes=passes) == (
            "The new run is not finished: 1 of 2 cells are done",
            "finish the run: the same command resumes it",
        )


def test_runs_that_measured_distances_differently_are_compared_at_their_kept_points(make_run: MakeRun) -> None:
    """The new run walked its successes back from 0.2 to 0.05: at 0.1 that is no model that became worse."""
    old = make_run({"m": {"pgd": [0.2] * 40}}, name="old")
    new = make_run({"m": {"pgd": [0.2] * 40}}, name="new", near=0.05)
    found = old.compare(new, sizes=[0.1])
    assert any("old run did not measure distances" in note for note in found.notes)
    broken = next(one for one in found.results if "0.1" in one.label)
    assert broken.worse_by is not None
    assert broken.worse_by.value == 0
