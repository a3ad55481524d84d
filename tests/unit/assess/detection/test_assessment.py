"""The table of a ledger against loops over its rows written out in plain Python."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from sklearn.metrics import roc_auc_score

from advrisk.assess.detection.assessment import DetectionAssessment, DetectorTable, assess_detection
from advrisk.core.errors import RiskError
from advrisk.ledger import Ledger, table_from
from advrisk.risk.detection.arms import defeats
from advrisk.risk.detection.entries import Scored, Settings
from advrisk.risk.detection.groups import MULTI_ARMED, ScoredArm
from advrisk.risk.detection.table import detection_table
from advrisk.risk.monte_carlo import threshold_at

from .conftest import ARMS, EYE, Rows, random_rows

Write = Callable[..., Ledger]


def assessed(ledger: Ledger, **settings: Any) -> DetectionAssessment:
    return assess_detection(ledger, **{"resamples": 20} | settings)


def auroc_by_hand(rows: Rows, arms: list[str], *, model: str = "net", of: str = "score") -> tuple[float, float, int]:
    """AUROC, chance and successes over all samples, by loops."""
    score = getattr(rows, of)
    clean = [score[model, "clean", 0, sample] for sample in range(rows.n)]
    least, chances, n_successes = [], [], 0
    for sample in range(rows.n):
        hits = [
            score[place]
            for place in rows.places(model)
            if place[3] == sample and place[1] in arms and rows.outcome[place] == "success"
        ]
        n_successes += len(hits)
        if hits:
            least.append(min(hits))
            chances.append(1 / (len(hits) + 1))
    labels = [0] * len(clean) + [1] * len(least)
    return float(roc_auc_score(labels, clean + least)), float(np.mean(chances)), n_successes


def natural_errors(rows: Rows, *, model: str = "net") -> list[int]:
    """Samples that no arm attacked, as the clean input is classified wrongly."""
    own = [place for place in rows.places(model) if rows.arms[place[1]].get("kind") != "corruption"]
    return sorted({place[3] for place in own if rows.outcome[place] == "already_wrong"})


GROUPS = {
    "l2 carlini-wagner": {"ace": ["cw-l2"], "kl": ["cw-l2"], MULTI_ARMED: ["cw-l2"]},
    "l2 deepfool": {"ace": ["deepfool-l2"], "kl": ["deepfool-l2"], MULTI_ARMED: ["deepfool-l2"]},
    "linf 0.1": {
        "ace": ["pgd-linf-0.1-ace", "square-linf-0.1"],
        "kl": ["pgd-linf-0.1-kl", "square-linf-0.1"],
        MULTI_ARMED: ["pgd-linf-0.1-ace", "pgd-linf-0.1-kl", "square-linf-0.1"],
    },
    "linf 0.2": {
        "ace": ["pgd-linf-0.2-ace"],
        "kl": ["pgd-linf-0.2-kl"],
        MULTI_ARMED: ["pgd-linf-0.2-ace", "pgd-linf-0.2-kl"],
    },
    "no norm": {"ace": ["spatial"], "kl": ["spatial"], MULTI_ARMED: ["spatial"]},
}


@pytest.mark.parametrize("seed", range(3))
def test_every_entry_is_that_of_loops_over_the_rows(write: Write, seed: int) -> None:
    rows = random_rows(seed)
    table = assessed(write(rows)).of("net", "eye").table
    assert table.columns == ("ace", "kl", MULTI_ARMED)
    assert [row.label for row in table.rows] == [*GROUPS, "l2, average", "linf, average", "average"]
    expected: dict[tuple[str, str], float] = {}
    above: dict[tuple[str, str], float] = {}
    for label, of_column in GROUPS.items():
        for column, arms in of_column.items():
            entry = table.row(label).entries[column]
            if label == "l2 carlini-wagner":
                assert (entry.auroc, entry.fpr_at_tpr, entry.reason) == (None, None, "no arm succeeded")
                continue
            auroc, chance, n_successes = auroc_by_hand(rows, arms)
            assert entry.auroc is not None
            assert entry.auroc.value == pytest.approx(auroc)
            assert entry.chance_auroc == pytest.approx(chance)
            assert entry.n_arms == len(arms) + ("pgd-linf-0.1-kl" in arms)
            n_wrong = len(natural_errors(rows))
            assert entry.n_attackable == rows.n - n_wrong
            assert entry.successes == pytest.approx(n_successes / (rows.n - n_wrong))
            assert entry.successes_paper == pytest.approx((n_successes + entry.n_arms * n_wrong) / rows.n)
            expected[label, column] = auroc
            above[label, column] = auroc - chance
    for column in table.columns:
        linf = np.mean([expected["linf 0.1", column], expected["linf 0.2", column]])
        norms = [expected["l2 deepfool", column], linf, expected["no norm", column]]
        for label, value in (("l2, average", norms[0]), ("linf, average", linf), ("average", np.mean(norms))):
            entry = table.row(label).entries[column]
            assert entry.auroc is not None
            assert entry.auroc.value == pytest.approx(value), (label, column)
    assert table.row("average").left_out == {"l2 carlini-wagner": "no arm succeeded"}
    worst = min(("l2 deepfool", "linf 0.1", "linf 0.2", "no norm"), key=lambda label: above[label, MULTI_ARMED])
    assert table.worst_group == worst
    single = {column: table.average.entries[column].auroc for column in ("ace", "kl")}
    assert table.average.worst_single == (min(single, key=lambda column: single[column].value),)
    assert table.row("l2 deepfool").worst == (), "all columns are equal"


def test_averages_are_means_of_everything(write: Write) -> None:
    """Chance and successful arms over the groups that broke a sample; then over the norms."""
    rows = random_rows(1)
    table = assessed(write(rows)).of("net", "eye").table

    def rate(arms: list[str]) -> float:
        """The false-positive rate of random numbers: s with mean s^K = 0.95 over the broken samples."""
        hits = [place for place in rows.places("net") if place[1] in arms and rows.outcome[place] == "success"]
        counts = np.bincount([sample for *_, sample in hits])
        return float(brentq(lambda s: np.mean(s ** counts[counts > 0]) - 0.95, 0, 1, xtol=1e-13))

    for column in table.columns:
        arms = {label: of_column[column] for label, of_column in GROUPS.items()}
        broke = {label: names for label, names in arms.items() if label != "l2 carlini-wagner"}
        by_hand = {label: auroc_by_hand(rows, names) for label, names in broke.items()}
        rates = {label: rate(names) for label, names in broke.items()}
        n_attackable = rows.n - len(natural_errors(rows))
        successes = {label: n / n_attackable for label, (_, _, n) in by_hand.items()}
        expected = {
            norm: (
                np.mean([by_hand[label][1] for label in broke if label.startswith(norm)]),
                np.mean([rates[label] for label in broke if label.startswith(norm)]),
                np.mean([successes[label] for label in broke if label.startswith(norm)]),
            )
            for norm in ("l2", "linf", "no norm")
        }
        for label in broke:
            assert table.row(label).entries[column].chance_fpr == pytest.approx(rates[label])
        means = {"l2, average": expected["l2"], "linf, average": expected["linf"]}
        for label, values in (means | {"average": np.mean(list(expected.values()), axis=0)}).items():
            entry = table.row(label).entries[column]
            assert (entry.chance_auroc, entry.chance_fpr, entry.successes) == pytest.approx(tuple(values)), label


def scored(scores: dict[str, list[float]]) -> Scored:
    """Six clean inputs, and what an arm of each objective made of them; nan: it did not break the sample."""
    arms = tuple(ScoredArm(f"pgd-{name}", family="pgd", norm="linf", eps=0.1, objective=name) for name in scores)
    values = np.array(list(scores.values()))
    return Scored(arms, ~np.isnan(values), values, np.arange(6.0))


LOW, HIGH = [1.0] * 6, [9.0] * 6


@pytest.mark.parametrize(
    ("scores", "worst", "worst_single"),
    [
        ({"ace": LOW, "kl": HIGH}, ("ace", MULTI_ARMED), ("ace",)),
        ({"ace": LOW, "kl": HIGH, "gini": LOW}, ("ace", "gini", MULTI_ARMED), ("ace", "gini")),
        ({"ace": [1.0] * 3 + [9.0] * 3, "kl": [9.0] * 3 + [1.0] * 3}, (MULTI_ARMED,), ()),
        ({"ace": LOW, "kl": LOW}, (), ()),
    ],
)
def test_columns_that_are_equally_low_are_all_marked(
    scores: dict[str, list[float]], worst: tuple[str, ...], worst_single: tuple[str, ...]
) -> None:
    table = detection_table(scored(scores), EYE, Settings(0.95, 0.95, 5, 0))
    for row in table.rows:
        assert (row.worst, row.worst_single) == (worst, worst_single)
    defeat = defeats(scored(scores), [], np.zeros((0, 6)), np.zeros((0, 6), dtype=bool), threshold=1.0, level=0.95)
    one = DetectorTable("net", EYE, 6, table, defeat)
    assert tuple(one.worst_single) == worst_single
    lines = DetectionAssessment((one,), {}, 0.95, 0.95, 1.0, ()).rows()
    for mark, marked in (("worst_column", worst), ("worst_single", worst_single)):
        assert {line["column"] for line in lines if line[mark]} == set(marked)


def test_an_average_compares_columns_on_the_groups_that_all_of_them_have(write: Write) -> None:
    """Where kl breaks no sample of the hard small size, its average over the easy one alone would look better."""
    rows = random_rows(3)
    small = [place for place in rows.places("net") if place[1] == "pgd-linf-0.1-kl" or place[1] == "square-linf-0.1"]
    for place in small:
        if rows.outcome[place] == "success":
            rows.outcome[place] = "resisted"
            del rows.score[place]
    found = assessed(write(rows))
    table = found.of("net", "eye").table
    assert table.row("linf 0.1").entries["kl"].auroc is None
    assert table.row("linf, average").groups == ("linf 0.2",)
    assert table.row("linf, average").left_out == {"linf 0.1": "kl: no arm succeeded"}
    assert table.average.left_out == {"l2 carlini-wagner": "no arm succeeded", "linf 0.1": "kl: no arm succeeded"}
    for column in table.columns:
        parts = [auroc_by_hand(rows, GROUPS[label][column])[0] for label in ("l2 deepfool", "linf 0.2", "no norm")]
        average, norm = (table.row(label).entries[column].auroc for label in ("average", "linf, average"))
        assert average is not None
        assert norm is not None
        assert average.value == pytest.approx(np.mean(parts)), column
        assert norm.value == pytest.approx(parts[1]), column
    lines = [line for line in found.rows() if line["row"] == "average"]
    assert {(line["n_groups"], line["n_groups_left_out"]) for line in lines} == {(3, 2)}
    told = "l2 carlini-wagner (no arm succeeded); linf 0.1 (kl: no arm succeeded)"
    assert {line["groups_left_out"] for line in lines} == {told}


def groups_of(successes: dict[tuple[float, str], bool]) -> Scored:
    """An arm for each (eps, objective), which broke all six samples or none."""
    arms = tuple(
        ScoredArm(f"pgd-{eps}-{name}", family="pgd", norm="linf", eps=eps, objective=name) for eps, name in successes
    )
    success = np.array([[hit] * 6 for hit in successes.values()])
    return Scored(arms, success, np.arange(6.0)[None, :] + np.arange(len(arms))[:, None], np.arange(6.0))


def test_columns_that_share_no_group_are_not_compared_and_the_multi_armed_average_stays() -> None:
    given = groups_of({(0.1, "ace"): True, (0.1, "kl"): False, (0.2, "ace"): False, (0.2, "kl"): True})
    table = detection_table(given, EYE, Settings(0.95, 0.95, 5, 0))
    entries = table.average.entries
    assert [entries[name].auroc for name in ("ace", "kl")] == [None, None]
    assert {entries[name].reason for name in ("ace", "kl")} == {"no group that all columns share"}
    assert table.average.groups == ("linf 0.1", "linf 0.2")
    parts = [table.row(label).entries[MULTI_ARMED].auroc for label in table.average.groups]
    assert entries[MULTI_ARMED].auroc is not None
    assert entries[MULTI_ARMED].auroc.value == pytest.approx(np.mean([part.value for part in parts if part]))
    assert table.average.worst_single == ()


def test_an_objective_that_never_succeeds_takes_no_group_from_the_others() -> None:
    given = groups_of({(0.1, "ace"): True, (0.1, "kl"): False, (0.2, "ace"): True, (0.2, "kl"): False})
    table = detection_table(given, EYE, Settings(0.95, 0.95, 5, 0))
    assert (table.average.groups, table.average.left_out) == (("linf 0.1", "linf 0.2"), {})
    assert table.average.entries["kl"].reason == "no arm succeeded"
    assert table.average.entries["ace"].auroc is not None


def test_the_worst_group_is_the_one_least_above_its_chance() -> None:
    """Against five arms an AUROC of 0.5 is far above chance; against one, 0.6 is hardly."""
    n, clean = 100, np.arange(100.0)
    arms = [ScoredArm(f"pgd-{k}", family="pgd", norm="linf", eps=0.1) for k in range(5)]
    arms.append(ScoredArm("fgsm", family="fgsm", norm="linf", eps=0.2))
    score = np.vstack([np.full((5, n), 49.5), np.full((1, n), 59.5)])
    table = detection_table(Scored(tuple(arms), np.ones((6, n), bool), score, clean), EYE, Settings(0.95, 0.95, 5, 0))
    many, one = (table.row(label).entries[MULTI_ARMED] for label in ("linf 0.1", "linf 0.2"))
    assert many.auroc is not None
    assert one.auroc is not None
    assert (many.auroc.value, many.chance_auroc) == pytest.approx((0.5, 1 / 6))
    assert (one.auroc.value, one.chance_auroc) == pytest.approx((0.6, 0.5))
    assert table.worst_group == "linf 0.2"


def test_shares_are_of_samples_that_could_be_attacked(write: Write) -> None:
    """Every one of 37 correct samples is broken without an alarm; 23 natural errors are not attacked."""
    arms = {name: ARMS[name] for name in ("pgd-linf-0.1-ace", "square-linf-0.1")}
    rows = Rows(arms, 60)
    for place in rows.places("net", clean=True):
        _, arm, _, sample = place
        rows.outcome[place] = "resisted" if arm == "clean" else "already_wrong" if sample >= 37 else "success"
        if arm == "clean" or sample < 37:
            rows.score[place] = 9.0 if arm == "clean" and sample >= 50 else 0.0  # ten natural errors raise an alarm
    one = assessed(write(rows), threshold=1.0).of("net", "eye")
    assert (one.n, one.table.n_attackable, one.table.n_arms, len(one.defeat.arms)) == (60, 37, 2, 2)
    assert one.defeat.unseen is not None
    assert one.defeat.unseen_paper is not None
    assert (one.defeat.unseen.value, one.defeat.unseen.n) == (1.0, 37)
    assert (one.defeat.unseen_paper.value, one.defeat.unseen_paper.n) == (50 / 60, 60)
    for arm in one.defeat.arms:
        assert (arm.n_attacked, arm.unseen.value, arm.unseen_paper.value) == (37, 1.0, 50 / 60)
    entry = one.overall
    assert (entry.successes, entry.successes_paper, entry.n_attackable) == (2.0, 2.0, 37)


def test_a_model_that_is_always_wrong_has_no_share(write: Write) -> None:
    rows = Rows({"pgd-linf-0.1-ace": ARMS["pgd-linf-0.1-ace"]}, 5)
    for place in rows.places("net", clean=True):
        rows.outcome[place] = "resisted" if place[1] == "clean" else "already_wrong"
        if place[1] == "clean":
            rows.score[place] = 0.0
    found = assessed(write(rows), threshold=1.0)
    one = found.of("net", "eye")
    assert (one.defeat.unseen, one.defeat.arms, one.table.n_attackable) == (None, (), 0)
    json.dumps(found.as_dict(), allow_nan=False)


def test_the_cheapest_arm_needs_the_fewest_passes_for_a_success_that_goes_unseen() -> None:
    """Not for a sample: one that is quick and mostly seen is dear."""
    unseen_once, unseen_always = [0.0] + [9.0] * 5, [0.0] * 6
    given = scored({"ace": unseen_once, "kl": unseen_always})
    passes = np.array([[3.0] * 6, [10.0] * 6])
    found = defeats(given, [0, 1], passes, np.ones((2, 6), dtype=bool), threshold=1.0, level=0.95)
    spent = {arm.arm: (arm.passes, arm.passes_per_unseen) for arm in found.arms}
    assert spent == {"pgd-ace": (3.0, 18.0), "pgd-kl": (10.0, 10.0)}
    assert found.cheapest is not None
    assert found.cheapest.arm == "pgd-kl"


def test_the_roc_of_an_entry_is_that_of_its_arms(write: Write) -> None:
    rows = random_rows(1)
    table = assessed(write(rows)).of("net", "eye").table
    for column, arms in GROUPS["linf 0.1"].items():
        fpr, tpr, _ = table.roc("linf 0.1", column)
        assert np.trapezoid(tpr, fpr) == pytest.approx(auroc_by_hand(rows, arms)[0])
        fpr, tpr = table.chance_roc("linf 0.1", column)
        assert np.trapezoid(tpr, fpr) == pytest.approx(auroc_by_hand(rows, arms)[1], abs=1e-4)


@pytest.mark.parametrize(
    ("group", "column", "complaint"),
    [
        ("linf 0.3", MULTI_ARMED, "there is no row 'linf 0.3'; did you mean"),
        ("linf 0.1", "ce", "there is no column 'ce'; did you mean 'ace'"),
        ("linf, average", MULTI_ARMED, "linf, average, multi-armed: there is no ROC: it is an average"),
        ("l2 carlini-wagner", "ace", "l2 carlini-wagner, ace: there is no ROC: no arm succeeded"),
    ],
)
def test_an_entry_without_a_roc_says_why(write: Write, group: str, column: str, complaint: str) -> None:
    table = assessed(write(random_rows(1))).of("net", "eye").table
    for curve in (table.roc, table.chance_roc):
        with pytest.raises(RiskError, match=complaint):
            curve(group, column)


def test_samples_without_a_verdict_from_every_arm_are_left_out(write: Write) -> None:
    rows = random_rows(2)
    rows.outcome["net", "spatial", 0, 3] = "error"
    rows.outcome["net", "pgd-linf-0.1-kl", 1, 5] = "timeout"
    del rows.outcome["net", "deepfool-l2", 0, 7]
    found = assessed(write(rows))
    assert found.left_out == {"net": 3}
    assert found.of("net", "eye").n == rows.n - 3
    assert "net: not finished, and left out: 1 sample." in found.notes
    assert any("gave no verdict: 2 samples" in note for note in found.notes)
    kept = [sample for sample in range(rows.n) if sample not in (3, 5, 7)]
    fewer = random_rows(2)
    renumbered = Rows(rows.arms, len(kept))
    for part in ("outcome", "score"):
        for (model, arm, repeat, sample), value in getattr(fewer, part).items():
            if sample in kept:
                getattr(renumbered, part)[model, arm, repeat, kept.index(sample)] = value
    same = assessed(write(renumbered, folder="fewer"))
    assert same.of("net", "eye").overall == found.of("net", "eye").overall


def test_arms_are_named_by_pattern_and_corruptions_only_then(write: Write) -> None:
    rows = random_rows(3)
    ledger = write(rows)
    named = assessed(ledger, arms=["pgd-linf-0.2*", "noise"]).of("net", "eye").table
    assert [row.label for row in named.rows] == ["linf 0.2", "no norm", "average"]
    auroc, *_ = auroc_by_hand(rows, ["noise"])
    assert named.row("no norm").entries[MULTI_ARMED].auroc.value == pytest.approx(auroc)
    with pytest.raises(RiskError, match=r"no arm is called 'pgd-linf-0\.3'; did you mean"):
        assessed(ledger, arms=["pgd-linf-0.3"])
    with pytest.raises(RiskError, match="no model called 'nets' was attacked in this run; did you mean 'net'"):
        assessed(ledger, models=["nets"])
    with pytest.raises(RiskError, match="no detector called 'ear' has scored this run; known: eye"):
        assessed(ledger, detectors=["ear"])


@pytest.mark.parametrize("missing", ["clean", "deepfool-l2"])
def test_a_missing_score_is_refused(write: Write, missing: str) -> None:
    rows = random_rows(4)
    gone = next(place for place in rows.score if place[1] == missing)
    del rows.score[gone]
    with pytest.raises(RiskError, match=f"{EYE} has not scored 1 sample of 40 of net; finish the run with this"):
        assessed(write(rows))


def test_a_run_without_scores_attacks_or_verdicts_is_refused(write: Write) -> None:
    bare = random_rows(5)
    bare.score.clear()
    with pytest.raises(RiskError, match="no detector has scored this run; name one under `detectors`"):
        assessed(write(bare, folder="bare"))
    corrupted = random_rows(5, arms={"noise": ARMS["noise"]})
    with pytest.raises(RiskError, match="this run holds no attack, so there is nothing to detect"):
        assessed(write(corrupted, folder="corrupted"))
    failed = random_rows(5, arms={"spatial": ARMS["spatial"]})
    failed.outcome |= dict.fromkeys(failed.places("net"), "error")
    with pytest.raises(RiskError, match=r"no sample of net has a verdict from every arm \(0 unfinished, 40 with"):
        assessed(write(failed, folder="failed"))


def test_a_model_that_nothing_broke_says_so(write: Write) -> None:
    rows = random_rows(6, arms={"spatial": ARMS["spatial"]})
    for place in rows.places("net"):
        rows.outcome[place] = "resisted"
        rows.score.pop(place, None)
    found = assessed(write(rows))
    one = found.of("net", "eye")
    assert one.overall.auroc is None
    assert one.defeat.most_often is None
    assert one.defeat.cheapest is None
    assert "No arm succeeded against net: there is nothing to detect, and no AUROC." in found.notes
    json.dumps(found.as_dict(), allow_nan=False)


def test_which_arm_gets_past_a_detector(write: Write) -> None:
    rows = random_rows(7)
    rows.calibrate = {"net": [float(score) for score in range(20)]}
    found = assessed(write(rows), threshold={"false_alarms": 0.5}).of("net", "eye").defeat
    limit = threshold_at(rows.calibrate["net"], 0.5)
    assert found.threshold == limit
    by_arm = {arm.arm: arm for arm in found.arms}
    assert set(by_arm) == {"pgd-linf-0.1-kl #1", "pgd-linf-0.1-kl #2", *ARMS} - {"pgd-linf-0.1-kl", "noise"}
    least = {
        sample: min(
            (rows.score[place] for place in rows.places("net") if place[3] == sample and _counts(rows, place)),
            default=None,
        )
        for sample in range(rows.n)
    }
    for label, arm in by_arm.items():
        name, _, number = label.partition(" #")
        own = [place for place in rows.places("net") if place[1] == name and place[2] == int(number or 1) - 1]
        hits = [place for place in own if rows.outcome[place] == "success"]
        unseen = [place for place in hits if rows.score[place] <= limit]
        spent = [15 + place[3] for place in own if rows.outcome[place] != "already_wrong"]
        assert (arm.n_broken, arm.n_unseen) == (len(hits), len(unseen))
        wrong = natural_errors(rows)
        quiet = [sample for sample in wrong if rows.score["net", "clean", 0, sample] <= limit]
        assert arm.n_attacked == rows.n - len(wrong)
        assert arm.unseen.value == pytest.approx(len(unseen) / (rows.n - len(wrong)))
        assert arm.unseen_paper.value == pytest.approx((len(unseen) + len(quiet)) / rows.n)
        assert arm.n_least == sum(rows.score[place] == least[place[3]] for place in hits)
        assert arm.passes == pytest.approx(np.mean(spent))
        expected = sum(spent) / len(unseen) if unseen else None
        assert arm.passes_per_unseen == (expected if expected is None else pytest.approx(expected))
    assert found.most_often is not None
    assert found.most_often.n_unseen == max(arm.n_unseen for arm in found.arms)
    assert found.cheapest is not None
    known = [arm.passes_per_unseen for arm in found.arms if arm.passes_per_unseen is not None]
    assert found.cheapest.passes_per_unseen == min(known)


def _counts(rows: Rows, place: tuple[str, str, int, int]) -> bool:
    return rows.outcome[place] == "success" and place[1] != "noise"


def test_a_threshold_without_samples_to_calibrate_comes_with_a_warning(write: Write) -> None:
    rows = random_rows(8)
    ledger = write(rows)
    found = assessed(ledger)
    assert any("comes from the evaluation split itself" in note for note in found.notes)
    clean = [rows.score["net", "clean", 0, sample] for sample in range(rows.n)]
    assert found.of("net", "eye").defeat.threshold == threshold_at(clean, 0.05)
    assert assessed(ledger, threshold=2.5).of("net", "eye").defeat.threshold == 2.5
    assert assessed(ledger, threshold=2.5).notes == ()


def test_detectors_are_ranked_and_compared_on_the_same_samples(write: Write) -> None:
    rows = random_rows(9, n=120, models=("net", "other"))
    ledger = write(rows, second=True)
    found = assessed(ledger)
    for model in ("net", "other"):
        first, last = (one for one in found.tables if one.model == model)
        assert (first.name, last.name) == ("eye", "second")
        (pair,) = found.pairs[model]
        assert (pair.better, pair.worse) == (EYE, "second@2")
        assert pair.difference.value == pytest.approx(first.overall.auroc.value - last.overall.auroc.value)
        assert not pair.undecided
        auroc, *_ = auroc_by_hand(rows, GROUPS["linf 0.2"][MULTI_ARMED], model=model, of="second")
        assert last.table.row("linf 0.2").entries[MULTI_ARMED].auroc.value == pytest.approx(auroc)
    only = assessed(ledger, detectors=["second"], models=["other"])
    assert [(one.model, one.name) for one in only.tables] == [("other", "second")]
    assert only.tables[0].overall == found.of("other", "second").overall, "draws do not depend on what else is asked"


KNOWING = {"family": "adaptive", "norm": "linf", "eps": 0.2, "objective": "ace"}
WITH_ADAPTIVE = ARMS | {
    "adaptive-eye": KNOWING | {"params": json.dumps({"detector": EYE})},
    "adaptive-second": KNOWING | {"params": json.dumps({"detector": "second@2"})},
}


def survival_by_hand(rows: Rows, arms: list[str], broke: list[str], judged: str, *, of: str) -> tuple[float, int]:
    """AUROC of these arms on samples that some of `broke` broke and `judged` gave a verdict on, and their number."""
    score = getattr(rows, of)
    clean = [score["net", "clean", 0, sample] for sample in range(rows.n)]
    least = []
    for sample in range(rows.n):
        hits = {arm: rows.outcome["net", arm, 0, sample] == "success" for arm in arms + broke}
        if rows.outcome["net", judged, 0, sample] != "error" and any(hits[arm] for arm in broke):
            least.append(min(score["net", arm, 0, sample] for arm in arms if hits[arm]))
    return float(roc_auc_score([0] * len(clean) + [1] * len(least), clean + least)), len(least)


@pytest.mark.parametrize("n_failed", [0, 12])
def test_adaptive_arms_stand_apart_and_only_beside_their_detector(write: Write, n_failed: int) -> None:
    rows = random_rows(10, arms=WITH_ADAPTIVE)
    for sample in range(n_failed):
        rows.outcome["net", "adaptive-eye", 0, sample] = "error"
    found = assessed(write(rows, second=True))
    usual = GROUPS["linf 0.2"][MULTI_ARMED]
    for detector, of, knows in (("eye", "score", "adaptive-eye"), ("second", "second", "adaptive-second")):
        one = found.of("net", detector)
        (survival,) = one.table.adaptive
        assert (survival.label, survival.norm) == ("linf 0.2", "linf")
        assert survival.n_left_out == (n_failed if detector == "eye" else 0)
        for entry, names, broke in (
            (survival.without, usual, usual),
            (survival.alone, [knows], [knows]),
            (survival.together, [*usual, knows], usual),
        ):
            auroc, n = survival_by_hand(rows, names, broke, knows, of=of)
            assert entry.auroc.value == pytest.approx(auroc)
            assert entry.n_broken == n
        if not survival.n_left_out:
            assert survival.without == one.table.row("linf 0.2").entries[MULTI_ARMED]
        listed = {arm.arm for arm in one.defeat.arms}
        assert knows in listed
        assert not {"adaptive-eye", "adaptive-second"} - {knows} & listed


def test_an_adaptive_arm_that_fails_takes_no_sample_from_the_groups(write: Write) -> None:
    rows = random_rows(10, arms=WITH_ADAPTIVE)
    whole = assessed(write(rows, second=True))
    for sample in range(12):
        rows.outcome["net", "adaptive-eye", 0, sample] = "error"
    found = assessed(write(rows, second=True, folder="failed"))
    assert found.left_out == {"net": 0}
    for detector in ("eye", "second"):
        assert found.of("net", detector).n == rows.n
        assert found.of("net", detector).table.rows == whole.of("net", detector).table.rows
    assert found.of("net", "second").defeat == whole.of("net", "second").defeat
    assert sum("adaptive-eye gave no verdict on 12 of 40 samples. What survives of eye" in n for n in found.notes) == 1
    defeat = found.of("net", "eye").defeat
    assert {arm.arm: arm.unseen_paper.n for arm in defeat.arms} == {
        arm.arm: 28 if arm.arm == "adaptive-eye" else 40 for arm in defeat.arms
    }
    assert defeat.unseen is not None
    assert defeat.unseen_paper is not None
    attacked = [sample for sample in range(12, 40) if sample not in natural_errors(rows)]
    assert (defeat.unseen.n, defeat.unseen_paper.n) == (len(attacked), 28)


def test_an_adaptive_arm_that_always_fails_is_told_of_by_a_note_only(write: Write) -> None:
    rows = random_rows(10, arms=WITH_ADAPTIVE)
    for sample in range(rows.n):
        rows.outcome["net", "adaptive-eye", 0, sample] = "error"
    found = assessed(write(rows, second=True))
    one = found.of("net", "eye")
    assert one.n == rows.n
    assert "adaptive-eye" not in {arm.arm for arm in one.defeat.arms}
    (survival,) = one.table.adaptive
    assert (survival.together.auroc, survival.alone.auroc, survival.n_left_out) == (None, None, rows.n)
    assert any("adaptive-eye gave no verdict on 40 of 40 samples" in note for note in found.notes)
    json.dumps(found.as_dict(), allow_nan=False)


def test_where_all_arms_are_adaptive_samples_without_any_verdict_are_left_out(write: Write) -> None:
    arms = {name: WITH_ADAPTIVE[name] for name in ("adaptive-eye", "adaptive-second")}
    rows = random_rows(10, arms=arms)
    rows.outcome["net", "adaptive-eye", 0, 1] = "error"
    for name in arms:
        rows.outcome["net", name, 0, 2] = "error"
    found = assessed(write(rows, second=True))
    assert found.left_out == {"net": 1}
    assert [one.n for one in found.tables] == [rows.n - 1] * 2
    assert found.of("net", "eye").table.n_arms == 0
    assert [survival.n_left_out for survival in found.of("net", "eye").table.adaptive] == [1]


@pytest.mark.parametrize("missing", ["clean", "deepfool-l2"])
def test_a_detector_that_has_not_scored_everything_is_left_out_unless_it_was_named(write: Write, missing: str) -> None:
    rows = random_rows(4)
    del rows.second[next(place for place in rows.second if place[1] == missing)]
    ledger = write(rows, second=True)
    found = assessed(ledger)
    assert [one.name for one in found.tables] == ["eye"]
    assert found.pairs == {"net": ()}
    reason = "second@2 has not scored 1 sample of 40 of net; finish the run with this detector in its study"
    assert any(note.startswith(f"Left out: {reason}") for note in found.notes)
    assert found.of("net", "eye").overall == assessed(ledger, detectors=["eye"]).of("net", "eye").overall
    for named in (["second"], ["eye", "second"]):
        with pytest.raises(RiskError, match=reason):
            assessed(ledger, detectors=named)


def test_a_detector_is_left_out_for_the_models_alone_that_it_has_not_scored(write: Write) -> None:
    rows = random_rows(4, models=("net", "other"))
    for place in [place for place in rows.second if place[0] == "other"]:
        del rows.second[place]
    found = assessed(write(rows, second=True))
    tables = [(one.model, one.name) for one in found.tables]
    assert sorted(tables) == [("net", "eye"), ("net", "second"), ("other", "eye")]
    assert any("second@2 has not scored 40 samples of 40 of other" in note for note in found.notes)


def test_what_a_transfer_arm_cost_is_not_known(write: Write) -> None:
    arms = {
        "pgd-linf-0.1-ace": ARMS["pgd-linf-0.1-ace"],
        "transfer(pgd)": ARMS["pgd-linf-0.1-ace"] | {"family": "transfer"},
    }
    found = assessed(write(random_rows(3, arms=arms)), threshold=100.0).of("net", "eye").defeat
    by_arm = {arm.arm: arm for arm in found.arms}
    transferred = by_arm["transfer(pgd)"]
    assert transferred.n_unseen > 0
    assert (transferred.passes, transferred.passes_per_unseen) == (None, None)
    assert found.cheapest == by_arm["pgd-linf-0.1-ace"]


def test_weights_are_refused(write: Write) -> None:
    rows = random_rows(11)
    ledger = write(rows)
    weighted = {"sample": ["s000"], "split": ["evaluate"], "weight": [2.0], "label": [0]}
    ledger.append({"samples": table_from("samples", weighted)})
    with pytest.raises(RiskError, match="samples of different weight"):
        assessed(Ledger.open(ledger.path))


def test_everything_is_there_for_machines(write: Write) -> None:
    found = assessed(write(random_rows(12)))
    plain = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    (table,) = plain["tables"]
    assert table["detector"] == EYE
    assert table["rows"][-1]["entries"][MULTI_ARMED]["auroc"]["value"] == found.of("net", "eye").overall.auroc.value
    assert plain["threshold"] == {"false_alarms": 0.05}
    lines = found.rows()
    assert len(lines) == len(table["rows"]) * 3
    assert {line["row"] for line in lines} == {row["label"] for row in table["rows"]}
    none = next(line for line in lines if line["row"] == "l2 carlini-wagner")
    assert (none["auroc"], none["fpr_at_tpr"], none["reason"]) == (None, None, "no arm succeeded")


def test_no_table_of_that_name(write: Write) -> None:
    with pytest.raises(RiskError, match="no table of net, ear; did you mean 'net, eye'"):
        assessed(write(random_rows(13))).of("net", "ear")
