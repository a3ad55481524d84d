"""Algorithm 1 against a walk over rows written out in plain Python, and against cases with a known answer."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advrisk.assess.damage.distances import smallest_distances
from advrisk.assess.damage.monte_carlo import detector_answers, monte_carlo_damage
from advrisk.assess.damage.walk import detectors_of, find_detector, walks
from advrisk.core.errors import RiskError
from advrisk.ledger import Ledger, table_from
from advrisk.ledger.known_detectors import add_imported_detectors
from advrisk.risk.damage import compare_damage, samples_to_decide, success_ratio
from advrisk.risk.evasion import fit_bayesian, threshold
from advrisk.risk.monte_carlo import MonteCarloDamage, threshold_at
from advrisk.risk.proportion import proportion

MODELS, ARMS, N, REPEATS = ("one", "two"), ("bim", "pgd", "square"), 40, 2
FULL = "eye@00000001"


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@dataclass
class Rows:
    """What happened, row by row, as the test knows it."""

    outcomes: list[dict[str, Any]] = field(default_factory=list)
    scores: list[dict[str, Any]] = field(default_factory=list)

    def add(self, *, score: float | None, detector: str = FULL, **row: Any) -> None:
        self.outcomes.append({"cell": f"{row['model']}/{row['arm']}/{row['repeat']}", **row})
        if score is not None:
            self.scores.append(
                {"cell": self.outcomes[-1]["cell"], "sample": row["sample"], "detector": detector, "score": score}
            )


def random_rows(seed: int = 0) -> Rows:
    """Ties in distance and in score, samples that resist, samples that are wrong already."""
    draw = np.random.default_rng(seed)
    rows = Rows()
    for model in MODELS:
        for number in range(N):
            name = {"model": model, "sample": f"s{number}"}
            wrong = draw.random() < 0.15
            clean = {"arm": "clean", "kind": "clean", "repeat": 0, "prediction": 1 if wrong else 0}
            rows.add(**name, **clean, outcome="success" if wrong else "resisted", score=float(draw.integers(5)))
            for arm in ARMS:
                for repeat in range(REPEATS):
                    hit = draw.random() < 0.4
                    outcome = "already_wrong" if wrong else "success" if hit else "resisted"
                    rows.add(
                        **name,
                        arm=arm,
                        kind="attack",
                        repeat=repeat,
                        outcome=outcome,
                        norm="linf",
                        d_linf=float(draw.integers(1, 5)) / 8,
                        score=float(draw.integers(5)) if outcome == "success" else None,
                    )
    return rows


def ledger_of(folder: Path, rows: Rows, *, calibrate: dict[str, list[float]] | None = None) -> Ledger:
    """A ledger of these rows: first the cells, then, as in a run, the scores."""
    ledger = Ledger.open(folder, create=True)
    triples = dict.fromkeys((row["model"], row["arm"], row["repeat"]) for row in rows.outcomes)
    repeats: dict[tuple[str, str], int] = {}
    for model, arm, repeat in triples:
        repeats[model, arm] = max(repeats.get((model, arm), 0), repeat + 1)
    arms = [
        {"model": model, "arm": arm, "recipe": f"{model}/{arm}", "repeats": count, "origin": "study"}
        | ({"kind": "clean"} if arm == "clean" else {"kind": "attack", "norm": "linf"})
        for (model, arm), count in repeats.items()
    ]
    cells = [
        {"cell": f"{model}/{arm}/{repeat}", "model": model, "arm": arm, "recipe": f"{model}/{arm}", "repeat": repeat}
        for model, arm, repeat in triples
    ]
    samples = [
        {"sample": name, "label": 0, "split": "evaluate", "weight": 1.0}
        for name in dict.fromkeys(row["sample"] for row in rows.outcomes)
    ]
    scores = list(rows.scores)
    for model, aside in (calibrate or {}).items():
        for number, score in enumerate(aside):
            samples.append({"sample": f"c{number}", "label": 0, "split": "calibrate", "weight": 1.0})
            row = {"cell": f"{model}/clean", "sample": f"c{number}", "detector": FULL, "score": score}
            scores.append(row)
    ledger.append(
        {
            name: table_of(name, content)
            for name, content in {"outcomes": rows.outcomes, "cells": cells, "arms": arms, "samples": samples}.items()
        }
    )
    if scores:
        ledger.append({"scores": table_of("scores", scores)})
    return Ledger.open(folder)


def table_of(name: str, rows: list[dict[str, Any]]) -> Any:
    columns = dict.fromkeys(column for row in rows for column in row)
    return table_from(name, {column: [row.get(column) for row in rows] for column in columns})


def walked(ledger: Ledger, **settings: Any) -> MonteCarloDamage:
    distances = smallest_distances(ledger, norm="linf")
    return monte_carlo_damage(ledger, distances, "eye", **{"rng": rng(), "threshold": 2.0, **settings})


def by_hand(rows: Rows, model: str, limit: float, *, nearest_alone: bool = False) -> tuple[list[bool], list[bool]]:
    """For every sample: is damage done, and is it by a clean input? Plain loops over all rows."""
    score = {(row["cell"], row["sample"]): row["score"] for row in rows.scores}
    damaged, clean_error = [], []
    for number in range(N):
        own = [row for row in rows.outcomes if (row["model"], row["sample"]) == (model, f"s{number}")]
        attacks = [row for row in own if row["kind"] == "attack"]
        shown, clean = None, False
        if any(row["outcome"] == "already_wrong" for row in attacks):
            shown, clean = score[f"{model}/clean/0", f"s{number}"], True
        elif hits := [row for row in attacks if row["outcome"] == "success"]:
            nearest = min(row["d_linf"] for row in hits)
            near = [row for row in hits if row["d_linf"] == nearest or not nearest_alone]
            shown = min(score[row["cell"], f"s{number}"] for row in near)
        damaged.append(shown is not None and not shown > limit)
        clean_error.append(damaged[-1] and clean)
    return damaged, clean_error


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("limit", [0.0, 1.5, 2.0])
def test_every_number_is_that_of_a_walk_by_hand(tmp_path: Path, seed: int, limit: float) -> None:
    rows = random_rows(seed)
    found = walked(ledger_of(tmp_path, rows), threshold=limit, level=0.9)
    assert (found.models, found.n, found.level, found.detector) == (MODELS, N, 0.9, FULL)
    for model in MODELS:
        damaged, clean_error = by_hand(rows, model, limit)
        assert found.estimates[model] == proportion(sum(damaged), N, level=0.9)
        of_nearest, _ = by_hand(rows, model, limit, nearest_alone=True)
        assert found.nearest[model] == proportion(sum(of_nearest), N, level=0.9)
        assert found.clean_error[model] == pytest.approx(sum(clean_error) / N)
        assert found.thresholds[model] == limit
        of_clean = {row["sample"]: row for row in rows.outcomes if row["arm"] == "clean" and row["model"] == model}
        right = [
            row["score"]
            for row in rows.scores
            if row["cell"] == f"{model}/clean/0" and of_clean[row["sample"]]["prediction"] == 0
        ]
        assert found.false_alarms[model] == proportion(sum(score > limit for score in right), len(right), level=0.9)
    first, second = (np.mean(by_hand(rows, model, limit)[0]) for model in MODELS)
    assert found.difference("one", "two").value == pytest.approx(first - second)


def test_an_attacker_may_take_the_success_that_looks_most_innocent(tmp_path: Path) -> None:
    rows = random_rows(4)
    found = walked(ledger_of(tmp_path, rows), threshold=1.0)
    score = {(row["cell"], row["sample"]): row["score"] for row in rows.scores}
    for model in MODELS:
        damaged = 0
        for number in range(N):
            own = [row for row in rows.outcomes if (row["model"], row["sample"]) == (model, f"s{number}")]
            shown = [row["cell"] for row in own if row["kind"] == "attack" and row["outcome"] == "success"]
            if any(row["outcome"] == "already_wrong" for row in own):
                shown = [f"{model}/clean/0"]
            damaged += any(score[cell, f"s{number}"] <= 1.0 for cell in shown)
        assert found.estimates[model] == proportion(damaged, N)
        assert found.estimates[model].value > found.nearest[model].value


@pytest.mark.parametrize("seed", range(4))
def test_another_arm_never_lowers_the_damage(tmp_path: Path, seed: int) -> None:
    ledger = ledger_of(tmp_path, random_rows(seed))
    found = {}
    for n in (1, 2, 3):
        distances = smallest_distances(ledger, norm="linf", arms=list(ARMS[:n]))
        found[n] = monte_carlo_damage(ledger, distances, "eye", threshold=1.0, rng=rng())
    for model in MODELS:
        few, more, all_of_them = (found[n].damaged[model] for n in (1, 2, 3))
        assert (few <= more).all()
        assert (more <= all_of_them).all()


def test_an_arm_that_finds_a_random_model_wrong_clean_hides_no_unnoticed_success(tmp_path: Path) -> None:
    """Of a random model some draws are wrong clean, others are broken; the attacker takes what looks most innocent."""
    rows = Rows()
    common = {"model": "m", "sample": "a", "repeat": 0}
    rows.add(**common, arm="clean", kind="clean", outcome="resisted", prediction=0, score=3.0)
    rows.add(**common, arm="pgd", kind="attack", outcome="success", d_linf=0.1, score=0.0)
    rows.add(**common, arm="square", kind="attack", outcome="already_wrong", score=None)
    found = walked(ledger_of(tmp_path, rows), threshold=2.0)
    assert (found.estimates["m"].value, found.nearest["m"].value) == (1.0, 0.0)


def broken_by(folder: Path, arms: dict[str, tuple[float, float | None]]) -> Ledger:
    """One sample of one model: arm -> size and score of its success."""
    rows = Rows()
    common = {"model": "m", "sample": "a", "repeat": 0}
    rows.add(**common, arm="clean", kind="clean", outcome="resisted", prediction=0, score=0.0)
    for arm, (size, score) in arms.items():
        rows.add(**common, arm=arm, kind="attack", outcome="success", d_linf=size, score=score)
    return ledger_of(folder, rows)


@pytest.mark.parametrize("names", [("adaptive", "pgd"), ("pgd", "adaptive")])
@pytest.mark.parametrize("size", [0.1, 0.1 * (1 + 1e-8), 0.1 * (1 - 1e-8)])
def test_of_equally_near_successes_the_least_suspicious_counts_whatever_its_name(
    tmp_path: Path, names: tuple[str, str], size: float
) -> None:
    """Also where rounding sets them apart: all attacks that use up their eps end there."""
    innocent, suspicious = names
    ledger = broken_by(tmp_path, {innocent: (size, 0.5), suspicious: (0.1, 3.0), "further": (0.2, 0.0)})
    found = walked(ledger, threshold=2.0)
    assert found.estimates["m"].value == 1.0
    distances = smallest_distances(ledger, norm="linf")
    walk = walks(ledger, distances, FULL)["m"]
    assert (walk.score.tolist(), walk.arm, walk.least_score.tolist()) == ([0.5], (innocent,), [0.0])
    assert walk.size.tolist() == [min(size, 0.1)]


def test_a_success_that_is_further_away_does_damage_but_does_not_count_as_near(tmp_path: Path) -> None:
    found = walked(broken_by(tmp_path, {"near": (0.1, 3.0), "further": (0.1001, 0.0)}), threshold=2.0)
    assert (found.estimates["m"].value, found.nearest["m"].value) == (1.0, 0.0)


def test_a_success_without_a_score_is_refused_though_a_nearer_one_has_one(tmp_path: Path) -> None:
    """What the least suspicious attack does is not known then."""
    ledger = broken_by(tmp_path, {"near": (0.1, 3.0), "further": (0.2, None)})
    with pytest.raises(RiskError, match="eye@00000001 has not scored 1 sample of 1 of m"):
        walked(ledger)
    named = smallest_distances(ledger, norm="linf", arms=["near"])  # then the other one is nobody's
    assert monte_carlo_damage(ledger, named, "eye", threshold=2.0, rng=rng()).estimates["m"].value == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_a_detector_that_never_alarms_leaves_the_success_ratio(tmp_path: Path, seed: int) -> None:
    ledger = ledger_of(tmp_path, random_rows(seed))
    distances = smallest_distances(ledger, norm="linf")
    found = walked(ledger, threshold=np.inf)
    for model in MODELS:
        assert found.estimates[model].value == success_ratio(distances.by_model[model], np.inf)
        assert found.estimates[model] == found.success[model]
        alarms = found.false_alarms[model]
        assert alarms is not None
        assert alarms.value == 0


def test_a_detector_that_flags_everything_has_no_damage_and_is_seen_to_be_useless(tmp_path: Path) -> None:
    found = walked(ledger_of(tmp_path, random_rows()), threshold=-np.inf)
    for model in MODELS:
        assert found.estimates[model].value == 0
        assert found.estimates[model].high > 0
        alarms = found.false_alarms[model]
        assert alarms is not None
        assert alarms.value == 1


@pytest.mark.parametrize("tau", [0.0, 0.125, 0.2, 0.25, 0.5, 1.0])
def test_a_detector_of_the_size_itself_gives_the_damage_under_a_threshold_curve(tmp_path: Path, tau: float) -> None:
    """Also where a size equals the threshold: neither is an alarm."""
    rows = random_rows()
    size = {(row["cell"], row["sample"]): row.get("d_linf", 0.0) for row in rows.outcomes}
    rows.scores = [row | {"score": size[row["cell"], row["sample"]]} for row in rows.scores]
    ledger = ledger_of(tmp_path, rows)
    expected = compare_damage(smallest_distances(ledger, norm="linf").by_model, threshold(tau), rng=rng())
    found = walked(ledger, threshold=tau)
    assert found.estimates == expected.estimates
    assert found.clean_error == pytest.approx(expected.clean_error)
    one, other = found.difference("one", "two"), expected.difference("one", "two")
    assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high))
    assert found.probability_best == expected.probability_best
    assert found.undecided("one", "two") == expected.undecided("one", "two")
    assert found.probability_lower("one", "two") == expected.probability_lower("one", "two")
    assert samples_to_decide(found, "one", "two") == samples_to_decide(expected, "one", "two")


def test_arms_that_are_not_named_do_not_count(tmp_path: Path) -> None:
    rows = random_rows()
    ledger = ledger_of(tmp_path, rows)
    distances = smallest_distances(ledger, norm="linf", arms=["square"])
    found = monte_carlo_damage(ledger, distances, "eye", threshold=2.0, rng=rng())
    kept = [row for row in rows.outcomes if row["arm"] in ("square", "clean")]
    for model in MODELS:
        assert found.estimates[model].value == np.mean(by_hand(Rows(kept, rows.scores), model, 2.0)[0])


def small(tmp_path: Path, *, score: float | None = 1.0, clean: float | None = 0.0) -> Ledger:
    """Two samples of one model: one broken at 0.1, one that resisted."""
    rows = Rows()
    for sample, outcome in (("a", "success"), ("b", "resisted")):
        common = {"model": "m", "sample": sample, "repeat": 0}
        rows.add(**common, arm="clean", kind="clean", outcome="resisted", prediction=0, score=clean)
        hit = outcome == "success"
        rows.add(**common, arm="pgd", kind="attack", outcome=outcome, d_linf=0.1, score=score if hit else None)
    return ledger_of(tmp_path, rows)


@pytest.mark.parametrize("missing", [{"score": None}, {"clean": None}])
def test_a_missing_score_is_refused_with_what_to_do(tmp_path: Path, missing: dict[str, None]) -> None:
    ledger = small(tmp_path, **missing)
    with pytest.raises(RiskError, match=r"eye@00000001 has not scored \d samples? of 2 of m; finish the run"):
        walked(ledger)
    add_imported_detectors(tmp_path, [FULL])
    with pytest.raises(RiskError, match=r"of 2 of m; import its scores of all inputs in one file \(`advrisk export"):
        walked(ledger)


def test_no_detector_or_another_one(tmp_path: Path) -> None:
    with pytest.raises(RiskError, match="no detector has scored this run; name one under `detectors`"):
        walked(small(tmp_path / "none", score=None, clean=None))
    ledger = small(tmp_path / "some")
    with pytest.raises(RiskError, match="no detector called 'eyes' has scored this run; did you mean 'eye'"):
        monte_carlo_damage(ledger, smallest_distances(ledger, norm="linf"), "eyes", threshold=1, rng=rng())


def test_a_detector_is_found_by_name_and_the_one_that_scored_last_counts(tmp_path: Path) -> None:
    ledger = small(tmp_path)
    row = {"cell": ["m/pgd/0"], "sample": ["a"], "score": [1.0]}
    for name in ("eye@00000000", "eye,bits=3@00000009"):
        ledger.append({"scores": table_from("scores", row | {"detector": [name]})})
    ledger = Ledger.open(tmp_path)
    assert detectors_of(ledger) == [FULL, "eye@00000000", "eye,bits=3@00000009"]
    assert find_detector(ledger, "eye") == "eye@00000000"
    assert find_detector(ledger, FULL) == FULL
    assert find_detector(ledger, "eye,bits=3") == "eye,bits=3@00000009"


def test_distances_of_another_ledger_are_refused(tmp_path: Path) -> None:
    ledger = small(tmp_path / "one")
    distances = smallest_distances(ledger, norm="linf")
    distances.by_model["m"][0] = 0.2  # type: ignore[index]
    with pytest.raises(RiskError, match="are not those of this ledger"):
        walks(ledger, distances, FULL)


def test_a_model_that_is_never_right_has_no_rate_of_false_alarms(tmp_path: Path) -> None:
    rows = Rows()
    common = {"model": "m", "sample": "a", "repeat": 0}
    rows.add(**common, arm="clean", kind="clean", outcome="success", prediction=1, score=0.0)
    rows.add(**common, arm="pgd", kind="attack", outcome="already_wrong", d_linf=0.0, score=None)
    found = walked(ledger_of(tmp_path, rows), threshold=0.5)
    assert found.false_alarms == {"m": None}
    assert (found.estimates["m"].value, found.clean_error["m"]) == (1.0, 1.0)


# Thresholds


def test_the_threshold_comes_from_the_samples_set_aside(tmp_path: Path) -> None:
    aside = {"one": [float(score) for score in range(20)], "two": [0.5] * 20}
    found = walked(ledger_of(tmp_path, random_rows(), calibrate=aside), threshold={"false_alarms": 0.05})
    assert found.thresholds == {"one": 18.0, "two": 0.5}
    assert found.warnings == ()
    damaged, _ = by_hand(random_rows(), "two", 0.5)
    assert found.estimates["two"].value == np.mean(damaged)


def test_without_such_samples_the_evaluated_ones_serve_with_a_warning(tmp_path: Path) -> None:
    rows = random_rows()
    found = walked(ledger_of(tmp_path, rows), threshold={"false_alarms": 0.1})
    for model in MODELS:
        scores = [row["score"] for row in rows.scores if row["cell"] == f"{model}/clean/0"]
        assert found.thresholds[model] == threshold_at(scores, 0.1)
    (warning,) = found.warnings
    assert warning.startswith(f"{FULL} (one, two): the threshold for a rate of false alarms comes from the evaluation")
    assert warning.endswith("set `calibrate` under `data`, for example to 200.")


@pytest.mark.parametrize(
    "wrong",
    [float("nan"), True, "0.5", None, {}, {"false_alarm": 0.1}, {"false_alarms": "x"}, {"false_alarms": 0.1, "b": 1}],
)
def test_a_threshold_that_is_none_is_refused(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(RiskError, match=r"threshold must be a score or {'false_alarms': share}, found"):
        walked(small(tmp_path), threshold=wrong)


@pytest.mark.parametrize("rate", [-0.1, 1.0, 2.0])
def test_a_rate_that_is_no_share_is_refused(tmp_path: Path, rate: float) -> None:
    with pytest.raises(RiskError, match="at least 0 and less than 1"):
        walked(small(tmp_path), threshold={"false_alarms": rate})


# Answers


@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_about_clean_inputs_and_nearest_successes(tmp_path: Path, seed: int) -> None:
    rows = random_rows(seed)
    ledger = ledger_of(tmp_path, rows)
    distances = smallest_distances(ledger, norm="linf")
    found = detector_answers(ledger, distances, "eye", threshold=2.0)
    attacked = {model: (size > 0) & (size < np.inf) for model, size in distances.by_model.items()}
    assert found.sizes.size == len(MODELS) * N + sum(int(flags.sum()) for flags in attacked.values())
    assert len(found.models) == len(found.arms) == found.undetected.size == found.sizes.size
    for model in MODELS:
        own = np.array([name == model for name in found.models])
        clean = np.array([arm == "clean" for arm in found.arms]) & own
        assert clean.sum() == N
        assert not found.sizes[clean].any()
        scores = {row["sample"]: row["score"] for row in rows.scores if row["cell"] == f"{model}/clean/0"}
        assert found.undetected[clean].tolist() == [scores[name] <= 2 for name in distances.samples]
        assert found.sizes[own & ~clean].tolist() == distances.by_model[model][attacked[model]].tolist()
        of_nearest, _ = by_hand(rows, model, 2.0, nearest_alone=True)
        damaged = dict(zip([f"s{number}" for number in range(N)], of_nearest, strict=True))
        expected = [damaged[name] for name, flag in zip(distances.samples, attacked[model], strict=True) if flag]
        assert found.undetected[own & ~clean].tolist() == expected


def test_the_surrogate_estimate_comes_near_where_detection_depends_on_size_alone(tmp_path: Path) -> None:
    """Detected with probability Phi by size: the curve that is fitted to the answers tells the same damage."""
    draw = np.random.default_rng(3)
    rows = Rows()
    for number in range(1000):
        common = {"model": "m", "sample": f"s{number}", "repeat": 0}
        rows.add(**common, arm="clean", kind="clean", outcome="resisted", prediction=0, score=-5.0)
        size = float(draw.exponential(0.2))
        score = size + float(draw.logistic(0, 0.05))
        rows.add(**common, arm="pgd", kind="attack", outcome="success", d_linf=size, score=score)
    ledger = ledger_of(tmp_path, rows)
    distances = smallest_distances(ledger, norm="linf")
    sizes, undetected, _, _ = detector_answers(ledger, distances, "eye", threshold=0.2)
    curve = fit_bayesian(sizes, undetected, scale="linear")
    surrogate = compare_damage(distances.by_model, curve, rng=rng()).estimates["m"]
    direct = monte_carlo_damage(ledger, distances, "eye", threshold=0.2, rng=rng()).estimates["m"]
    assert surrogate.value == pytest.approx(direct.value, abs=0.02)
