"""The executive summary: each sentence is true of the run it is made from, and silence is named."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advrisk.assess.attacks.envelope import ArmComparison
from advrisk.assess.damage.assessment import DamageAssessment, assess_distances
from advrisk.assess.damage.distances import Distances
from advrisk.assess.gate.records import GateResult, RequirementResult
from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.indicators.words import risk_headline
from advrisk.core.plain import json_text
from advrisk.core.sections import Unanswered
from advrisk.ledger import Ledger
from advrisk.ledger.tables import table_from
from advrisk.report.executive import ExecutiveSummary, brief, executive_summary
from advrisk.report.untested import arm_facts, not_tested
from advrisk.risk.envelope import ArmOptimality
from advrisk.risk.evasion import threshold
from advrisk.risk.indicators import RiskTensor, Scenario
from advrisk.risk.indicators.comparison import compare_models
from advrisk.risk.indicators.tree import uniform_scenario
from advrisk.study import DamageSpec
from tests.findings import findings_of

PGD = {"arm": "pgd-linf-0.1", "kind": "attack", "family": "pgd", "norm": "linf", "eps": 0.1}
STARTS = json.dumps({"random_start": True, "restarts": 1})


def columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    rows = list(rows)
    return {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}


def ledger(
    folder: Path,
    arms: Iterable[Mapping[str, Any]] = (PGD,),
    *,
    labels: Iterable[int] = (0,) * 40,
    strata: Iterable[Mapping[str, str]] = (),
    splits: Mapping[str, int] | None = None,
    shape: tuple[int, ...] = (1, 8, 8),
    failed: int = 0,
    scored: bool = False,
) -> Ledger:
    """A ledger of one model; `failed` of its rows ended in errors."""
    labels = list(labels)
    told = [dict(one) for one in strata] or [{} for _ in labels]
    samples = [
        {
            "sample": f"s{n}",
            "hash": f"h{n}",
            "label": label,
            "split": "evaluate",
            "weight": 1.0,
            "strata": json.dumps(own),
        }
        for n, (label, own) in enumerate(zip(labels, told, strict=True))
    ]
    for split, n in (splits or {}).items():
        samples += [{"sample": f"{split}{k}", "hash": "h", "label": 0, "split": split, "weight": 1.0, "strata": "{}"}
                    for k in range(n)]  # fmt: skip
    common = {"model": "m", "recipe": "r", "origin": "study", "repeats": 1, "params": "{}"}
    rows = []
    for arm in arms:
        passes = {"n_forward": arm.get("forward", 10), "n_backward": arm.get("backward", 10)}
        for n in range(len(labels)):
            outcome = "error" if n < failed else "resisted"
            rows.append(
                {"cell": arm["arm"], "model": "m", "sample": f"s{n}", "arm": arm["arm"], "outcome": outcome, **passes}
            )
    held = Ledger.open(folder, create=True)
    known = [{name: value for name, value in arm.items() if name not in ("forward", "backward")} for arm in arms]
    tables = {
        "models": [{"model": "m", "digest": "d", "input_shape": list(shape)}],
        "samples": samples,
        "arms": [common | arm for arm in known],
        "cells": [{"cell": arm["arm"], "recipe": "r", "model": "m", "arm": arm["arm"], "repeat": 0} for arm in known],
        "outcomes": rows,
        "scores": [{"cell": PGD["arm"], "sample": "s0", "detector": "lid", "score": 0.5}] if scored else [],
    }
    held.append({name: table_from(name, columns(found)) for name, found in tables.items() if found})
    return Ledger.open(folder)


def damage(by_model: Mapping[str, Iterable[float]], *, unfinished: int = 0, **more: Any) -> DamageAssessment:
    found = {model: np.array(list(distances)) for model, distances in by_model.items()}
    n = len(next(iter(found.values())))
    distances = Distances("linf", ("pgd-linf-0.1",), tuple(map(str, range(n))), n + unfinished, found, unfinished, 0)
    return assess_distances(distances, DamageSpec(), thresholds=(0.2,), rng=np.random.default_rng(0), **more)


STRONG = [0.5 + i / 1000 for i in range(60)]
WEAK = [0.1 + i / 1000 for i in range(60)]


def told(tmp_path: Path, found: Any, **more: Any) -> ExecutiveSummary:
    return executive_summary(ledger(tmp_path, **more), None, found)


def test_a_clear_winner_is_to_be_shipped_and_nothing_is_undecided(tmp_path: Path) -> None:
    found = damage({"strong": STRONG, "weak": WEAK})
    summary = told(tmp_path, findings_of(damage=found))
    assert summary.answer == "strong is the least bad of 2 models: robust accuracy 100.0 % at 0.2."
    assert "no requirement (gate)" in summary.ship[1]
    assert summary.undecided == ("Nothing: every comparison that was asked for is decided.",)
    assert str(found.models[0].relative_damage) in summary.sure[0]
    assert str(found.pairs[0].difference) in summary.sure[1]
    assert any("60 samples and 1 attack configuration" in one and "upper bound" in one for one in summary.sure)


def gate(*verdicts: str) -> GateResult:
    return GateResult(
        "run",
        tuple(RequirementResult(f"r{n}", one, "study", None, 0.1, "why", "do this") for n, one in enumerate(verdicts)),
    )


@pytest.mark.parametrize(
    ("verdicts", "answer"),
    [
        (("pass", "fail"), "strong fails r1."),
        (("undecided",), "undecided whether strong meets r0."),
        (("pass",), "strong meets every stated requirement."),
    ],
)
def test_what_is_required_stands_in_the_first_sentence(tmp_path: Path, verdicts: tuple[str, ...], answer: str) -> None:
    found = findings_of(damage=damage({"strong": STRONG, "weak": WEAK}), gate=gate(*verdicts))
    summary = told(tmp_path, found)
    assert summary.answer == f"strong is the least bad of 2 models: robust accuracy 100.0 % at 0.2; {answer}"
    state = {"pass": "passes (1 pass)", "fail": "fails (1 pass, 1 fail)", "undecided": "is undecided (1 undecided)"}
    assert summary.ship[1] == f"The study's gate {state[verdicts[-1]]}."
    open_ones = [f"Required, r{n}: why; do this." for n, one in enumerate(verdicts) if one == "undecided"]
    assert list(summary.undecided) == (open_ones or ["Nothing: every comparison that was asked for is decided."])


def test_a_run_that_is_not_done_comes_first(tmp_path: Path) -> None:
    found = findings_of(damage=damage({"strong": STRONG, "weak": WEAK}), unfinished="4 of 15 cells")
    assert told(tmp_path, found).ship[:2] == (
        "Decide nothing yet: the run is not finished (4 of 15 cells are done).",
        "strong is the least bad of 2 models: robust accuracy 100.0 % at 0.2.",
    )


def test_what_could_not_be_assessed_is_not_called_unbroken(tmp_path: Path) -> None:
    summary = told(tmp_path, findings_of(damage=Unanswered("no attack has a norm")))
    assert summary.drivers == ("Not known: no attack has a norm.",)


def test_what_would_decide_is_said_of_every_pair_that_is_open(tmp_path: Path) -> None:
    draws = np.random.default_rng(3).random((2, 60))
    found = damage({"a": draws[0], "b": draws[1]})
    summary = told(tmp_path, findings_of(damage=found))
    assert summary.answer.startswith("Undecided between ")
    assert found.pairs[0].more_samples is not None
    assert summary.undecided == (
        f"{found.pairs[0].lower} or {found.pairs[0].higher}: about {found.pairs[0].more_samples:,} more samples would "
        "probably decide.",
    )


def test_none_is_next_best_where_none_is_best(tmp_path: Path) -> None:
    found = damage({"strong": STRONG, "middle": [0.3 + i / 1000 for i in range(60)], "weak": WEAK})
    first, second, third = found.pairs
    rows = tuple(replace(row, verdict="undecided against weak") for row in found.models)
    disputed = replace(found, pairs=(first, replace(second, undecided=True), third), models=rows)
    assert not disputed.decided
    assert "The next best, middle, suffers " in " ".join(told(tmp_path / "decided", findings_of(damage=found)).sure)
    sure = " ".join(told(tmp_path / "disputed", findings_of(damage=disputed)).sure)
    assert "next best" not in sure
    assert f"middle suffers {first.difference} more than strong on the same samples." in sure


def test_one_model_leaves_open_whether_another_is_better(tmp_path: Path) -> None:
    summary = told(tmp_path, findings_of(damage=damage({"only": WEAK})))
    assert summary.undecided == ("Whether another model would be better: only one was assessed.",)
    assert any("there is no damage" in one for one in summary.untested)


def test_parts_of_damage_and_the_attacks_that_made_it(tmp_path: Path) -> None:
    distances = {"strong": [0.0] * 6 + STRONG[6:], "weak": [0.0] * 12 + WEAK[12:]}
    found = damage(distances, evasion=threshold(0.3), cost=100.0)
    rows = tuple(ArmOptimality(name, 1.0, None, 1.0, n, 0, None) for name, n in (("fgsm", 12), ("pgd", 90)))
    attacks = ArmComparison(found.distances, {}, rows, rows, (), (), None, None)
    summary = told(tmp_path, findings_of(damage=found, attacks=attacks))
    best = found.models[0]
    assert best.clean_error_part == pytest.approx(0.1)
    assert summary.drivers[0] == "Of the damage of strong, 10.0 % is clean error and 0.0 % is attack."
    # 60 - 6 and 60 - 12 samples were broken by attack, of all models together
    assert summary.drivers[1].endswith(": pgd 88 %, fgsm 12 %.")
    assert any(one.startswith("An attacked input of strong costs 10 [") for one in summary.sure)
    assert not any("relative" in one for one in summary.sure)


def hurt_by_rain() -> dict[str, RiskTensor]:
    """Losses of two models, of which the one that attacks hurt less is hurt more by rain."""
    rng = np.random.default_rng(0)
    return {
        model: RiskTensor.from_arrays(
            (rng.random((400, 2)) < harm).astype(float), arms=["clean", "rain"], kind=["clean", "corruption"],
            label=np.zeros(400, int), model=model, ranges={"loss": (0, 1)},
        )
        for model, harm in (("strong", 0.6), ("weak", 0.05))
    }  # fmt: skip


def test_answers_that_name_different_models_are_called_different(tmp_path: Path) -> None:
    tensors = hurt_by_rain()
    scenario = Scenario.from_mapping("town", {"wet": {"weight": 0.5, "arms": ["rain"]}})
    result = compare_models(tensors, scenario)
    assert result.least_bad == "weak"
    indicators = IndicatorAssessment((result,), {}, (), {}, 0.95)
    summary = told(tmp_path, findings_of(damage=damage({"strong": STRONG, "weak": WEAK}), indicators=indicators))
    assert summary.answer.startswith("In the scenario town (loss: loss), weak has the least risk of 2 models: ")
    assert summary.answer.endswith("; robust accuracy 0.0 % at 0.2."), "the damage of the model that is named"
    assert summary.ship[1] == "By damage: strong is the least bad of 2 models: robust accuracy 100.0 % at 0.2."
    assert any("different models (strong, weak)" in one for one in summary.ship)
    assert any("In the scenario town, the risk of weak comes from" in one for one in summary.drivers)


def test_without_damage_the_reason_is_the_answer(tmp_path: Path) -> None:
    summary = told(tmp_path, findings_of(damage=Unanswered("no attack has a norm")))
    assert summary.answer == "The evidence names no model: no attack has a norm."
    assert "Nothing can be said of damage: no attack has a norm." in summary.undecided


def test_the_record_is_plain_lists(tmp_path: Path) -> None:
    summary = told(tmp_path, findings_of(damage=damage({"strong": STRONG, "weak": WEAK})))
    plain = json.loads(json_text(summary))
    assert list(plain) == ["ship", "sure", "drivers", "undecided", "untested", "further"]
    assert plain["further"] == [], "no package's assessment was asked"
    assert [list(sentences) for _, sentences in summary.parts()] == list(plain.values())[:-1]


class TestWhatWasNotTested:
    """Each sentence goes once what it names is there."""

    def said(self, held: Ledger, **more: Any) -> str:
        return "\n".join(not_tested(held, None, findings_of(damage=Unanswered("none"), **more)))

    def test_norms(self, tmp_path: Path) -> None:
        arms = [PGD, PGD | {"arm": "pgd-l2-1", "norm": "l2", "eps": 1.0}]
        assert "Attacks were in l2 up to 1, in linf up to 0.1; none was in l0 or l1." in self.said(
            ledger(tmp_path, arms)
        )

    def test_an_attack_without_a_limit_is_told_without_one(self, tmp_path: Path) -> None:
        held = ledger(tmp_path, [PGD, PGD | {"arm": "fmn-linf", "family": "fmn", "eps": None}])
        assert "Attacks were in linf without a limit; none was in" in self.said(held)

    def test_kinds_of_attack(self, tmp_path: Path) -> None:
        missing = self.said(ledger(tmp_path / "a", scored=True))
        assert "missing: black-box (without gradients), transfer" in missing
        assert "adaptive (one that knows a detector)" in missing
        arms = [
            PGD | {"params": json.dumps({"detector": "lid"})},
            PGD | {"arm": "square", "family": "square", "backward": 0},
            PGD | {"arm": "transfer", "family": "transfer", "backward": 0, "forward": 0},
        ]
        assert "missing" not in self.said(ledger(tmp_path / "b", arms, scored=True))

    def test_a_transfer_alone_is_no_white_box(self, tmp_path: Path) -> None:
        held = ledger(tmp_path, [PGD | {"family": "transfer", "backward": 3}])
        assert "missing: white-box (with gradients), black-box" in self.said(held)

    def test_uncounted_passes_say_so(self, tmp_path: Path) -> None:
        held = ledger(tmp_path, [PGD | {"forward": None, "backward": None}])
        said = self.said(held)
        assert "is not known, as nobody counted passes: pgd-linf-0.1." in said
        assert "Kinds of attack" not in said

    def test_one_uncounted_arm_and_one_that_has_not_run_hide_nothing(self, tmp_path: Path) -> None:
        theirs = PGD | {"arm": "theirs", "forward": None, "backward": None}
        held = ledger(tmp_path, [PGD, theirs])
        held.append({"arms": table_from("arms", columns([PGD | {"arm": "later", "model": "m", "origin": "study"}]))})
        said = self.said(Ledger.open(tmp_path))
        assert "Attacks that have not run yet: later." in said
        assert "as nobody counted passes: theirs." in said
        assert "missing: black-box (without gradients), transfer (crafted on another model), unless those" in said

    def test_draws_of_random_starts(self, tmp_path: Path) -> None:
        arms = [PGD | {"params": STARTS}, PGD | {"arm": "twice", "params": STARTS, "repeats": 2}]
        held = ledger(tmp_path, arms)
        assert [arm.at_random for arm in arm_facts(held)] == [True, False]
        assert "Of 2 attacks, 1 began at one random point for each sample (pgd)" in self.said(held)

    def test_corruptions_by_cause(self, tmp_path: Path) -> None:
        rain = {"arm": "rain-1", "kind": "corruption", "family": "rain", "cause": "weather"}
        noise = {"arm": "noise-1", "kind": "corruption", "family": "noise", "cause": "noise"}
        assert "No corruption was run (sensor, noise or weather)" in self.said(ledger(tmp_path / "a"))
        assert "No corruption was run (table)" in self.said(ledger(tmp_path / "b", shape=(4,)))
        assert "were noise, rain only; none of sensor." in self.said(ledger(tmp_path / "c", [rain, noise]))
        assert "No attack was run" in self.said(ledger(tmp_path / "d", [rain]))

    def test_samples_to_calibrate(self, tmp_path: Path) -> None:
        assert "no samples were set aside to calibrate" in self.said(ledger(tmp_path / "a"))
        assert "no certificate was asked for" in self.said(ledger(tmp_path / "b", splits={"calibrate": 3}))
        assert "Nothing is certified: not begun." in self.said(
            ledger(tmp_path / "c"), certificate=Unanswered("not begun")
        )

    def test_questions_without_an_answer(self, tmp_path: Path) -> None:
        held = ledger(tmp_path)
        unasked, failed = self.said(held), self.said(held, detection=Unanswered("not scored yet"))
        assert "No detector was assessed." in unasked
        assert "No detector" not in failed, "why it has no answer stands among what is undecided"
        assert "No search looked for stronger settings of the attacks" in unasked
        found = findings_of(damage=damage({"a": WEAK, "b": STRONG}))
        assert any(one.startswith("Without an evasion curve or a detector") for one in not_tested(held, None, found))

    def test_rows_that_failed_and_flags(self, tmp_path: Path) -> None:
        flags = [{"flag": "zero-gradients", "model": "m", "arm": f"pgd{n}", "n_flagged": 2} for n in range(4)]
        said = self.said(ledger(tmp_path, failed=7), flags=flags)
        assert "7 rows ended in an error or a timeout, and say nothing (pgd-linf-0.1 against m: 7)." in said
        assert "zero-gradients: gradients were zero" in said
        assert "(8 flagged cells, 4 attack-model pairs: pgd0 against m, pgd1 against m, 2 more)." in said

    def test_few_samples_of_a_class_or_stratum(self, tmp_path: Path) -> None:
        strata = [{"light": "night"}] * 5 + [{"light": "day"}] * 65
        held = ledger(tmp_path, labels=[0] * 30 + [1] * 29 + [2] * 11, strata=strata)
        assert "little can be said of them: class 1 (29), class 2 (11), light = night (5)." in self.said(held)

    def test_samples_left_out(self, tmp_path: Path) -> None:
        found = damage({"a": WEAK, "b": STRONG}, unfinished=9)
        held = ledger(tmp_path)
        assert "Left out of 69 samples: 9 samples not finished." in not_tested(held, None, findings_of(damage=found))


def test_names_of_any_length_make_short_sentences() -> None:
    assert brief("short enough") == "short enough"
    assert len(brief("x" * 10_000 + " and " + "y" * 10_000)) < 140
    assert len(brief("many words " * 1000)) == 600
    assert "\u202e" not in brief("left\u202eright")
    assert "\n" not in brief("two\nlines")


def test_another_answer_against_corruptions_is_not_hidden(tmp_path: Path) -> None:
    tensors = hurt_by_rain()
    result = compare_models(tensors, uniform_scenario(tensors["strong"]))
    indicators = IndicatorAssessment((result,), {}, (), {}, 0.95)
    summary = told(tmp_path, findings_of(damage=damage({"strong": STRONG, "weak": WEAK}), indicators=indicators))
    assert summary.answer.startswith("strong is the least bad")
    equally = "With all corruptions equally weighted, "
    assert any(one.startswith(f"That is under attack. {equally}weak has the least risk (") for one in summary.ship)
    assert any(f"{equally}the risk of strong comes from" in one for one in summary.drivers)
    assert risk_headline(result).startswith(f"{equally}weak has the least risk of 2 models: ")
