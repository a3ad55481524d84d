"""Requirements held against small runs whose numbers are known."""

import json
from collections.abc import Callable
from types import MethodType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from advrisk import Run
from advrisk.assess.certificate.question import Certificates
from advrisk.assess.certificate.records import CertificateAssessment
from advrisk.assess.gate import GateResult
from advrisk.assess.gate.estimates import number_estimate
from advrisk.assess.gate.question import run_ground
from advrisk.assess.gate.reading import find_own_detector
from advrisk.assess.gate.verdict import settling
from advrisk.core.errors import RiskError, StudyError
from advrisk.ledger import Ledger, table_from
from advrisk.ledger.known_detectors import write_study_detectors
from advrisk.risk.paired_share import share_difference
from advrisk.risk.proportion import proportion

inf = float("inf")
MakeRun = Callable[..., Run]

# 40 samples: 4 wrong clean, 6 broken at 0.1, 10 at 0.3, 20 hold; the other model: 2, 2, 6, 30
WEAK = [0.0] * 4 + [0.1] * 6 + [0.3] * 10 + [inf] * 20
STRONG = [0.0] * 2 + [0.1] * 2 + [0.3] * 6 + [inf] * 30


DATA = {"source": "digits", "evaluate": 40, "calibrate": 40}


def one(found: GateResult) -> Any:
    (result,) = found.results
    return result


@pytest.fixture
def run(make_run: MakeRun) -> Run:
    return make_run({"weak": {"pgd": WEAK}, "strong": {"pgd": STRONG}})


@pytest.mark.parametrize(
    ("text", "hits"),
    [
        ("broken.weak at 0.1 <= 0.5", 10),
        ("broken.weak at 0.3 <= 0.5", 20),
        ("broken.weak at 0.2 <= 0.5", 10),
        ("robust_accuracy.weak at 0.1 >= 0.5", 30),
        ("clean_accuracy.weak >= 0.5", 36),
        ("clean_accuracy.strong >= 0.5", 38),
    ],
)
def test_shares(run: Run, text: str, hits: int) -> None:
    found = one(run.gate(text)).estimate
    expected = proportion(hits, 40)
    assert (found.value, found.low, found.high) == (expected.value, expected.low, expected.high)


@pytest.mark.parametrize(
    ("text", "up", "down"),
    [
        ("broken.weak at 0.1 <= broken.strong", 6, 0),
        ("robust_accuracy.strong at 0.3 >= robust_accuracy.weak - 0.1", 10, 0),
        ("clean_accuracy.weak >= clean_accuracy.strong", 0, 2),
    ],
)
def test_differences_are_paired(run: Run, text: str, up: int, down: int) -> None:
    found = one(run.gate(text)).estimate
    expected = share_difference(up, down, 40)
    assert (found.value, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high))


def test_the_level_is_that_of_the_intervals(run: Run) -> None:
    assert one(run.gate("broken.weak at 0.1 <= 0.5", level=0.8)).estimate.level == 0.8
    with pytest.raises(RiskError, match="level must lie between 0 and 1, found 95"):
        run.gate("broken.weak at 0.1 <= 0.5", level=95)


def test_damage_and_cost_under_a_curve(run: Run) -> None:
    found = run.gate(["damage.weak <= 0.9", "cost.weak <= 90", "cost.weak <= cost.strong + 50"], evasion=0.2, cost=100)
    assert [result.estimate.value for result in found.results] == pytest.approx([0.25, 25.0, 15.0])
    assert found.results[1].estimate.high == pytest.approx(100 * proportion(10, 40).high)
    assert found.verdict == "undecided", "no attack had an eps of 0.2"
    assert "no attack had an eps of 0.2" in found.results[0].reason
    assert run.gate("damage.weak <= 0.9", evasion=0.3).verdict == "pass"


def test_relative_damage_is_compared_and_never_held_against_a_number(run: Run) -> None:
    with pytest.raises(StudyError, match="no probability"):
        run.gate("damage.weak <= 0.9")
    with pytest.raises(StudyError, match="no probability"):
        run.gate("damage.weak <= 0.9", evasion="average")
    found = one(run.gate("damage.strong <= damage.weak"))
    assert found.estimate.value == pytest.approx(run.damage().comparison.difference("strong", "weak").value)  # type: ignore[union-attr]
    assert any("relative to strong, weak" in caution for caution in found.cautions)


def test_relative_damage_passes_nothing_that_robust_accuracy_contradicts(make_run: MakeRun) -> None:
    """One model broken everywhere at eps, one on half: equal distances make the first look better."""
    run = make_run(
        {"broken": {"pgd": [0.0] * 16 + [0.3] * 144}, "partly": {"pgd": [0.0] * 56 + [0.3] * 64 + [inf] * 40}}
    )
    found = run.gate(["damage.broken <= damage.partly", "damage.partly <= damage.broken"])
    assert [result.verdict for result in found.results] == ["undecided", "undecided"]
    for result in found.results:
        assert "robust accuracy at 0.3 favours partly (25.0 % against 0.0 %)" in result.reason
        assert "minimal-distance" in result.reason


def test_no_samples_are_promised_to_relative_damage_that_robust_accuracy_would_contradict(make_run: MakeRun) -> None:
    """Relative damage is not decided; once it were, robust accuracy at 0.3 would say the opposite."""
    run = make_run({"broken": {"pgd": [0.0] * 4 + [0.3] * 36}, "partly": {"pgd": [0.0] * 14 + [0.3] * 16 + [inf] * 10}})
    (pair,) = run.damage().pairs
    assert pair.undecided
    assert not pair.conflicts, "chance alone leaves it open"
    checked = one(run.gate("damage.broken <= damage.partly"))
    assert (checked.verdict, checked.more_samples) == ("undecided", None)
    assert checked.settle.startswith("more samples alone may not settle it: ")
    assert "robust accuracy at 0.3 favours partly (25.0 % against 0.0 %)" in checked.settle


def test_samples_promised_to_relative_damage_decide_robust_accuracy_too(make_run: MakeRun) -> None:
    """Every attack had a fixed eps, so robust accuracy must agree: 52 % against 50 % of 60 samples do not yet."""
    rng = np.random.default_rng(3)
    far = [(0.01, 30), (0.05, 31)]  # where distances begin, and how many samples hold
    m, n = (rng.permutation(np.append(np.linspace(d, 0.3, 60 - k), [inf] * k)).tolist() for d, k in far)
    run = make_run({"m": {"pgd": m}, "n": {"pgd": n}})
    (pair,) = run.damage().pairs
    assert (pair.lower, pair.undecided, pair.obstacles) == ("n", True, ())
    checked = one(run.gate("damage.n <= damage.m"))
    alone = number_estimate(run.damage().comparison.difference("n", "m"), n=60, unit=1.0)  # type: ignore[union-attr]
    assert checked.more_samples is not None
    assert checked.more_samples > (settling(alone, "<=", 0.0)[1] or 0)


def test_a_pass_of_attacks_is_told_with_its_doubts(make_run: MakeRun) -> None:
    run = make_run({"m": {"pgd": STRONG}}, flags={"pgd": ["zero-gradients"]})
    found = run.gate(["broken.m at 0.3 <= 0.9", "clean_accuracy.m >= 0.1"])
    assert any("a better one may" in caution for caution in found.results[0].cautions)
    assert any("flagged zero-gradients" in caution for caution in found.results[0].cautions)
    assert found.results[1].cautions == ()
    assert any(note.startswith("zero-gradients: ") for note in found.notes)
    assert run.gate("broken.m at 0.3 <= 0.9", strict_flags=True).verdict == "undecided"
    assert run.gate("clean_accuracy.m >= 0.1", strict_flags=True).verdict == "pass"
    assert one(run.gate("flagged[zero-gradients] == 0")).verdict == "fail"
    assert one(run.gate("flagged[still-gaining] == 0")).verdict == "pass"


def test_errors_count_at_their_worst_and_never_pass_in_silence(make_run: MakeRun) -> None:
    few = [0.0] + [inf] * 99
    clean = make_run({"m": {"pgd": few}}, name="clean")
    assert one(clean.gate("broken.m at 0.3 <= 0.1")).verdict == "pass"
    broken = make_run({"m": {"pgd": [0.0, *[None] * 10, *[inf] * 89]}}, name="errors")
    found = one(broken.gate("broken.m at 0.3 <= 0.1"))
    assert found.verdict == "undecided"
    assert found.estimate.high == pytest.approx(proportion(11, 100).high)
    assert found.estimate.low == pytest.approx(proportion(1, 100).low)
    assert "10 samples without a verdict" in found.cautions[0]
    assert one(broken.gate("error_rows <= 9")).verdict == "fail"
    assert one(broken.gate("error_rows.m == 10")).verdict == "pass"


def test_a_run_that_is_not_finished_decides_only_what_the_rest_cannot_change(make_run: MakeRun) -> None:
    half = {"m": {"pgd": [0.1] * 50 + ["missing"] * 50}}
    run = make_run(half)
    assert one(run.gate("broken.m at 0.3 <= 0.3")).verdict == "fail"  # half of them are broken already
    assert one(run.gate("broken.m at 0.3 <= 0.7")).verdict == "undecided"
    assert one(run.gate("error_rows == 0")).verdict == "undecided"
    assert run.gate("error_rows == 0").notes[0].startswith("The run is not finished: 1 of 2 cells")
    all_held = make_run({"m": {"pgd": [inf] * 50 + ["missing"] * 50}}, name="held")
    found = one(all_held.gate("broken.m at 0.3 <= 0.3"))
    assert (found.verdict, found.more_samples) == ("undecided", None)


def test_a_clean_input_without_an_answer_counts_at_its_worst(make_run: MakeRun) -> None:
    run = make_run({"m": {"pgd": [inf] * 30}}, clean={"m": [True] * 27 + [None] * 3})
    found = one(run.gate("clean_accuracy.m >= 0.5")).estimate
    assert (found.value, found.low) == (1.0, proportion(27, 30).low)
    found = one(run.gate("robust_accuracy.m at 0.3 >= 0.5")).estimate
    assert found.low == proportion(27, 30).low


def test_what_is_wrong_clean_is_not_robust_even_where_no_attack_says_so(make_run: MakeRun) -> None:
    run = make_run({"m": {"pgd": [inf] * 20}}, clean={"m": [True] * 15 + [False] * 5}, criterion="prediction")
    assert one(run.gate("broken.m at 0.3 <= 0.5")).estimate.value == 0
    assert one(run.gate("robust_accuracy.m at 0.3 >= 0.5")).estimate.value == 0.75


def test_the_requirements_of_the_study_come_first_and_each_once(make_run: MakeRun) -> None:
    models = {"weak": {"pgd": WEAK}, "strong": {"pgd": STRONG}}
    run = make_run(models, study={"gate": ["broken.* at 0.1 <= 0.5"]}, facts={"pgd": {"keep": "smallest"}})
    found = run.gate(["broken.weak at 0.1 <= 0.5", "clean_accuracy.weak >= 0.5"])
    assert [(result.requirement, result.origin) for result in found.results] == [
        ("broken.strong at 0.1 <= 0.5", "study"),
        ("broken.weak at 0.1 <= 0.5", "study"),
        ("clean_accuracy.weak >= 0.5", "given"),
    ]
    assert json.loads(json.dumps(found.as_dict()))["verdict"] == "pass"
    assert run.gate().verdict == "pass"
    gate = run.findings().answer("gate", GateResult)
    assert isinstance(gate, GateResult)
    assert gate.passed


def test_nothing_is_required(run: Run) -> None:
    with pytest.raises(StudyError, match="nothing is required"):
        run.gate()


def test_sizes_that_nobody_tried_are_refused_or_undecided(make_run: MakeRun) -> None:
    run = make_run({"m": {"pgd": STRONG}}, facts={"pgd": {"keep": "last"}})
    with pytest.raises(StudyError, match=r"reaches the size 0\.4"):
        run.gate("broken.m at 0.4 <= 0.9")
    for text in ("broken.m at 0.2 <= 0.9", "robust_accuracy.m at 0.2 >= 0.1"):
        found = one(run.gate(text))
        assert found.verdict == "undecided"
        assert "little was tried there" in found.reason
        assert "keep: smallest" in found.settle
    assert one(run.gate("broken.m at 0.2 <= 0")).verdict == "fail"  # what was found there was found
    assert one(run.gate("broken.m at 0.3 <= 0.9")).verdict == "pass"
    near = make_run(
        {"m": {"pgd": STRONG, "pgd2": STRONG}}, name="near", facts={"pgd2": {"keep": "smallest", "eps": 0.1}}
    )
    assert one(near.gate("broken.m at 0.05 <= 0.9")).verdict == "pass"
    assert (
        one(near.gate("broken.m at 0.2 <= 0.9")).verdict == "undecided"
    )  # the one that looks goes no farther than 0.1
    endless = make_run({"m": {"pgd": STRONG}}, name="endless", eps=None)
    assert one(endless.gate("broken.m at 0.4 <= 0.9")).verdict == "pass"


def test_names_from_outside(make_run: MakeRun) -> None:
    name = 'a "b" | <script>'
    run = make_run({name: {"pgd": STRONG}})
    assert one(run.gate("broken.'a \"b\" | <script>' at 0.3 <= 0.9")).verdict == "pass"
    assert one(run.gate("broken.* at 0.3 <= 0.9")).requirement == "broken.'a \"b\" | <script>' at 0.3 <= 0.9"


def test_at_the_boundary_a_wrong_pass_is_rare_through_and_through(make_run: MakeRun) -> None:
    """The whole way, from rows to a verdict: 120 runs of a model of which exactly 20 % breaks."""
    rng = np.random.default_rng(11)
    flags = rng.random((120, 40)) < 0.2
    arms = {f"m{number:03}": {"pgd": np.where(own, 0.1, inf).tolist()} for number, own in enumerate(flags)}
    run = make_run(arms)
    verdicts = [result.verdict for result in run.gate("broken.* at 0.3 <= 0.2").results]
    assert verdicts.count("pass") / 120 <= 0.025 + 2 * (0.025 / 120) ** 0.5
    assert verdicts.count("undecided") > 100


def test_successes_at_the_eps_say_nothing_of_smaller_sizes(make_run: MakeRun) -> None:
    run = make_run({"m": {"pgd": [0.3] * 400}}, facts={"pgd": {"keep": "first"}})
    assert one(run.gate("broken.m at 0.1 <= 2 %")).verdict == "undecided"


def test_robust_accuracy_where_all_clean_rows_are_errors(make_run: MakeRun) -> None:
    failed = make_run({"m": {"pgd": [inf] * 40}}, name="failed", clean={"m": [None] * 40})
    assert one(failed.gate("robust_accuracy.m at 0.3 >= 0.5")).verdict == "undecided"
    never = make_run(
        {"m": {"pgd": [inf] * 40}}, name="never", clean={"m": []}
    )  # a study of which nothing clean is there
    assert one(never.gate("robust_accuracy.m at 0.3 >= 0.5")).verdict == "undecided"
    bare = make_run({"m": {"pgd": [0.0] * 4 + [inf] * 36}}, name="bare", clean={"m": []}, origin="import")
    assert one(bare.gate("robust_accuracy.m at 0.3 >= 0.5")).estimate.value == 0.9
    moved = make_run({"m": {"pgd": [inf] * 40}}, name="moved", clean={"m": []}, origin="import", criterion="prediction")
    assert one(moved.gate("robust_accuracy.m at 0.3 >= 0.5")).verdict == "undecided"


def test_robust_accuracy_means_nothing_towards_a_target(make_run: MakeRun) -> None:
    rows = {"m": {"pgd": STRONG}}
    imported = make_run(rows, criterion="target")
    study = {"success": {"target": 3}, "gate": ["broken.m at 0.3 <= 1"]}
    asked = make_run(rows, name="asked", criterion="target", study=study)
    for run in (imported, asked):
        with pytest.raises(StudyError, match="do not show which samples stay correct"):
            run.gate("robust_accuracy.m at 0.3 >= 0.5")
        assert run.gate("broken.m at 0.3 <= 1").passed


def test_samples_of_different_weight_are_refused(make_run: MakeRun) -> None:
    run = make_run({"m": {"pgd": [inf] * 40}}, weights=[1.0] * 39 + [2.0])
    for text in ("clean_accuracy.m >= 0.5", "clean_accuracy.m >= 0", "broken.m at 0.3 <= 0.5"):
        found = one(run.gate(text))
        assert (found.verdict, found.estimate) == ("undecided", None)
        assert "samples of different weight" in found.reason


def test_the_detectors_of_the_run_are_meant_not_those_of_an_earlier_study(make_run: MakeRun) -> None:
    run = make_run({"m": {"pgd": STRONG}}, study={"detectors": ["confidence"]})
    scores = {"cell": "m/pgd", "sample": "s000", "score": 0.5}
    names = ["lid,neighbours=10@11111111", "lid,neighbours=20@22222222", "confidence@33333333"]
    run.ledger.append(
        {"scores": table_from("scores", {key: [value] * 3 for key, value in scores.items()} | {"detector": names})}
    )
    write_study_detectors(run.folder, names[1:])
    now = Run(run.folder, Ledger.open(run.folder), run.study)
    assert run_ground(now).detectors == [
        "lid,neighbours=20",
        "lid,neighbours=20@22222222",
        "confidence",
        "confidence@33333333",
        "lid",
    ]
    assert find_own_detector(now.ledger, "lid") == names[1]
    with pytest.raises(StudyError, match="unknown detector 'lid,neighbours=10'"):
        now.gate("auroc.'lid,neighbours=10' >= 0.5")


def test_strict_flags_are_those_of_samples_to_calibrate_too(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate rests on other cells than the rest: those on samples to calibrate."""
    study = {"assess": {"certificate": {"alpha": 0.1, "zeta": 0.05}}, "data": DATA}
    run = make_run({"m": {"pgd": STRONG}}, study=study)

    def a_list(eps: float, *flags: str) -> SimpleNamespace:
        attacks = [SimpleNamespace(flags=()), SimpleNamespace(flags=flags)]
        return SimpleNamespace(
            eps=eps, norm="linf", certified=True, verdict="certified", pending=False, attacks=attacks
        )

    clean = SimpleNamespace(value=0.1)
    lists = SimpleNamespace(lists=[a_list(0.1), a_list(0.3, "zero-gradients")], caveats=(), clean_error=clean)
    told = SimpleNamespace(alpha=0.1, zeta=0.05, of=lambda model: lists, notes=())
    monkeypatch.setattr(Certificates, "assess", lambda self, context, given: told)
    loose, strict = (one(run.gate("certificate.m", strict_flags=given)) for given in (False, True))
    assert (loose.verdict, strict.verdict) == ("pass", "undecided")
    assert "some of its attacks are flagged zero-gradients on samples to calibrate" in loose.cautions
    assert "flags count" in strict.reason
    assert one(run.gate("certificate.m at 0.1", strict_flags=True)).verdict == "pass"
    assert one(run.gate("certificate.m at 0.3", strict_flags=True)).verdict == "undecided"


def test_a_caveat_of_a_certificate_lets_nothing_pass_that_does_not_allow_it(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = {"assess": {"certificate": {"alpha": 0.1, "zeta": 0.05}}, "data": DATA}
    run = make_run({"m": {"pgd": STRONG}}, study=study)

    def a_list(eps: float, bound: float, *, certified: bool = True, pending: bool = False) -> SimpleNamespace:
        union = SimpleNamespace(certified_risk=bound)
        certificate = SimpleNamespace(wrong=SimpleNamespace(certified_risk=bound + 0.5), union=union)
        verdict = "certified" if certified else "not certified"
        named = {"norm": "linf", "verdict": verdict, "pending": pending, "attacks": ()}
        return SimpleNamespace(eps=eps, certified=certified, certificate=certificate, **named)

    def told(*lists: SimpleNamespace, caveats: tuple[str, ...] = ()) -> None:
        model = SimpleNamespace(lists=lists, caveats=caveats, clean_error=SimpleNamespace(value=0.9))
        calibration = SimpleNamespace(n=200)
        notes = ("Some attacks are flagged.",)
        found = SimpleNamespace(alpha=0.1, zeta=0.05, of=lambda name: model, calibration=calibration, notes=notes)
        found.bound = MethodType(CertificateAssessment.bound, found)
        monkeypatch.setattr(Certificates, "assess", lambda self, context, given: found)

    told(a_list(0.1, 0.05), a_list(0.3, 0.08), caveats=("zeta was chosen later.", "A second one."))
    for text in ("certificate.m", "certified_broken.m <= 0.1", "certified_wrong.m at 0.1 <= 0.6"):
        found = one(run.gate(text))
        assert (found.verdict, found.reason, found.cautions[0]) == (
            "undecided",
            "zeta was chosen later",
            "A second one.",
        )
        assert "`with caveats` behind the requirement" in found.settle
        allowed = one(run.gate(f"{text} with caveats"))
        assert allowed.verdict == "pass"
        assert allowed.cautions[0] == "these attacks did no more; a better one may"
        assert allowed.cautions[1:3] == ("zeta was chosen later.", "A second one.")
        assert any("clean error 90 %" in caution for caution in allowed.cautions)
        for one_gate in (found, allowed):
            assert one_gate.cautions[-1] == "Some attacks are flagged."
    assert one(run.gate("certified_wrong.m <= 0.5 with caveats")).verdict == "fail", "a useless model"
    assert one(run.gate("certified_broken.m <= 0.07")).verdict == "fail", "of all sizes the worst"
    bound = one(run.gate("certified_broken.m at 0.1 <= 0.07 with caveats")).estimate
    assert bound is not None
    assert (bound.value, bound.low, bound.high, bound.level, bound.n) == (0.05, 0.05, 0.05, 0.95, 200)
    told(a_list(0.1, 0.05), a_list(0.3, 0.08, certified=False, pending=True))
    assert one(run.gate("certified_broken.m <= 0.1")).reason == "not finished (1 of 2 lists are)"
    told(a_list(0.1, 0.05), a_list(0.3, 0.2, certified=False))
    assert one(run.gate("certificate.m with caveats")).verdict == "fail"


def test_sizes_are_shown_as_they_are_written(make_run: MakeRun) -> None:
    run = make_run({"m": {"pgd": [inf] * 40}}, eps=8 / 255)
    assert "no attack had an eps of 4/255" in one(run.gate("broken.m at 4/255 <= 90 %")).reason
    with pytest.raises(StudyError, match="found 8/255 as the largest eps"):
        run.gate("robust_accuracy.m at 0.1 >= 10 %")


def test_a_part_answers_as_it_was_asked(run: Run) -> None:
    assert run.damage().relative
    part = run.part(evasion=0.1, thresholds=[0.2], cost=100)
    assert not part.damage().relative
    assert (part.damage().thresholds, part.damage().cost) == ((0.2,), 100)
    assert part.damage(thresholds=[0.1]).thresholds == (0.1,), "what is given goes before what the part was asked with"
    assert part.findings().answers["damage"].result.thresholds == (0.2,)  # type: ignore[union-attr]
