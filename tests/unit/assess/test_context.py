"""Questions of a run: what a study says of each is followed, everywhere, and each can be asked by its name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advrisk.api import Run
from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.gate import GateResult
from advrisk.assess.protocol import Finding
from advrisk.core.errors import RegistryError, RiskError, StudyError
from advrisk.core.sections import Unanswered
from advrisk.ledger import Ledger
from advrisk.study import study_from
from advrisk.study.registered import BUILT_IN

inf = float("inf")
FoundBy = Callable[..., Ledger]
STUDY: dict[str, Any] = {
    "name": "x",
    "data": {"source": "digits", "evaluate": 8},
    "models": {"a": {"source": "demo"}, "b": {"source": "demo"}},
    "arms": [{"attack": "pgd", "norm": "linf", "eps": 0.3}],
    "gate": ["broken.a at 0.3 <= 90 %"],
}


@pytest.fixture
def make(found_by: FoundBy, tmp_path: Path) -> Callable[..., Run]:
    """A run of two models under one flagged attack, of a study that asks this."""

    def made(**assess: Any) -> Run:
        near, far = [0.0, 0.1, 0.1, 0.2, inf, inf, inf, inf], [0.0, 0.3, *[inf] * 6]
        arms = {"a": {"pgd": far, "fgsm": far}, "b": {"pgd": near, "fgsm": far}}
        facts = {"pgd": {"eps": 0.3}, "fgsm": {"eps": 0.3}}
        ledger = found_by(arms, facts, {"pgd": ["zero-gradients"]})
        return Run(tmp_path, ledger, study_from({**STUDY, "assess": assess}))

    return made


def gate_of(run: Run) -> list[str]:
    found = run.findings().answer("gate", GateResult)
    assert isinstance(found, GateResult)
    return [one.verdict for one in found.results]


def test_the_gate_counts_no_flags_by_default(make: Callable[..., Run]) -> None:
    assert gate_of(make()) == ["pass"]


def test_the_gate_counts_flags_if_the_study_says_so_and_the_command_need_not(make: Callable[..., Run]) -> None:
    run = make(gate={"strict_flags": True})
    assert gate_of(run) == [one.verdict for one in run.gate().results] == ["undecided"]


def test_each_question_has_the_options_of_the_study(make: Callable[..., Run]) -> None:
    run = make(convergence={"points": 3, "resamples": 7}, attacks={"arms": ["pgd"]})
    assert (len(run.convergence().n), run.convergence().resamples) == (3, 7)
    assert run.convergence(resamples=5).resamples == 5
    page = run.findings().answers["attacks"]
    assert isinstance(page, Finding)
    assert [row.name for row in run.attacks().overall] == [row.name for row in page.result.overall] == ["pgd"]
    assert {row.name for row in run.attacks(arms=["*"]).overall} == {"pgd", "fgsm"}


def test_methods_and_names_give_one_answer(make: Callable[..., Run]) -> None:
    run = make()
    assert run.assess("damage").result.as_dict() == run.damage().as_dict()
    assert run.assess("damage", thresholds=[0.2]).result.as_dict() == run.damage(thresholds=[0.2]).as_dict()
    assert run.assess("gate").result == run.gate()
    assert run.part(models=["b"]).assess("attacks").result.as_dict() == run.attacks(models=["b"]).as_dict()


def test_what_is_asked_stands_in_the_order_of_the_page(make: Callable[..., Run]) -> None:
    answers = make().findings().answers
    assert list(answers) == [name for name in BUILT_IN if name in answers]
    assert {"gate", "damage", "convergence", "attacks"} <= answers.keys()
    assert {"detection", "survival", "search", "certificate", "indicators"}.isdisjoint(answers), "nobody asked"


def test_findings_are_held_by_question_and_by_class(make: Callable[..., Run]) -> None:
    run = make(survival={})
    found = run.findings()
    assert found.result(DamageAssessment) is found.answers["damage"].result  # type: ignore[union-attr]
    assert isinstance(found.answers["survival"], Unanswered), "these rows hold no passes"
    assert found.why_not("survival") == str(found.answers["survival"]) == str(run.finding("survival"))
    assert found.why_not("damage") == found.why_not("detection") == ""
    with pytest.raises(RiskError) as refused:
        run.assess("survival")
    assert str(refused.value) == found.why_not("survival")


def test_mistakes_are_named(make: Callable[..., Run]) -> None:
    run = make()
    with pytest.raises(RegistryError, match="no assessment called 'damge'; did you mean 'damage'"):
        run.finding("damge")
    with pytest.raises(StudyError, match=r"survival\.mesure: unknown key; did you mean 'measure'"):
        run.finding("survival", mesure="forward")
    with pytest.raises(RiskError, match="level must lie between 0 and 1, found 2"):
        run.survival(level=2)
    with pytest.raises(StudyError, match=r"assess\.gate\.strict: unknown key; did you mean 'strict_flags'"):
        make(gate={"strict": True})


def test_the_gate_holds_for_the_whole_study(make: Callable[..., Run]) -> None:
    part = make().part(arms=["fgsm"])
    assert part.findings().why_not("gate").startswith("it holds for all models, samples and attacks of the study")
    assert part.gate().results == make().gate().results, "who asks for the gate itself has the study's answer"
