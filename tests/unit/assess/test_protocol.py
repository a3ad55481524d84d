"""Registered assessments: what is refused at registration, and what becomes an answer or none."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from advrisk.assess import context, protocol
from advrisk.assess.context import Context
from advrisk.assess.protocol import Assessment, ask, check_assessments
from advrisk.core.errors import RegistryError, RiskError, StudyError
from advrisk.core.estimate import Estimate, NamedEstimate
from advrisk.core.sections import Column, Group, Headline, Section, Table, Unanswered
from advrisk.study import registered, study_from
from advrisk.study.assess import AssessSpec
from advrisk.study.fields import Strict
from advrisk.study.questions import Assessments, AssessmentTraits, Quantity
from advrisk.study.registered import BUILT_IN, check_questions
from advrisk.study.source import Source

RATE = Estimate(0.2, 0.1, 0.3, 0.95, 50, "Clopper-Pearson")
AUTHORS = "report this to its authors"


def run() -> Context:
    """A run whose ledger these questions never open."""
    return Context(ledger=SimpleNamespace())  # type: ignore[arg-type]


class LeakSpec(Strict):
    largest: float = 1.0


class Leak(Assessment):
    """How much leaks."""

    found: Any = RATE
    parts: tuple[Section, ...] = (Headline("It leaks."),)
    named = "leak.plain"

    def check(self, study: Any, spec: LeakSpec) -> None:
        if spec.largest == 0:
            raise StudyError("found `largest: 0`, so nothing could be counted")

    def assess(self, context: Context, spec: LeakSpec) -> Any:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    def sections(self, result: Any, models: Sequence[str]) -> Iterator[Section]:
        yield from self.parts

    def quantities(self, result: Any) -> Iterator[NamedEstimate]:
        quantity, _, model = self.named.partition(".")
        yield NamedEstimate(quantity, model, result)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Assessments:
    made = Assessments("assessments", BUILT_IN)
    for module in (context, protocol, registered):
        monkeypatch.setattr(module, "assessments", made)
    return made


def traits(**given: Any) -> AssessmentTraits:
    usual: dict[str, Any] = {"spec": LeakSpec, "quantities": {"leak": Quantity("share that leaks", "share")}}
    return AssessmentTraits("Leaks", **usual | given)


def leaking(registry: Assessments, **own: Any) -> None:
    registry.register("leak", traits=traits())(type("Leak", (Leak,), own))


def test_an_answer_has_sections_and_quantities(registry: Assessments) -> None:
    leaking(registry)
    found = ask(run(), "leak")
    assert not isinstance(found, Unanswered)
    assert (found.title, found.headline) == ("Leaks", "It leaks.")
    assert found.rows() == [{"quantity": "leak", "model": "plain", "of": None, "eps": None, **vars_of(RATE)}]


def vars_of(estimate: Estimate) -> dict[str, Any]:
    return {name: getattr(estimate, name) for name in ("value", "low", "high", "level", "n", "method")}


@pytest.mark.parametrize(
    ("own", "why"),
    [
        ({"found": Unanswered("nothing was counted", "run more")}, "nothing was counted; run more"),
        ({"found": RiskError("no rows")}, "no rows"),
        ({"found": ZeroDivisionError("by 0")}, "leak failed with ZeroDivisionError: by 0; " + AUTHORS),
        ({"found": 0.5}, "leak gave float for the quantity 'leak.plain', where an Estimate is needed; " + AUTHORS),
        ({"parts": ("text",)}, "leak gave str for a section; " + AUTHORS),
        ({"parts": None}, "leak failed with TypeError: 'NoneType' object is not iterable; " + AUTHORS),
        ({"named": "drip.plain"}, "leak gave the quantity 'drip.plain', which its traits do not name; " + AUTHORS),
        (
            {"named": "leak"},
            "leak gave the quantity 'leak' without a model; its Quantity needs `of=\"anything\"` for that; " + AUTHORS,
        ),
        ({"parts": (Group("g", ("text",)),)}, "leak gave str for a section; " + AUTHORS),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_answered_says_why(registry: Assessments, own: dict[str, Any], why: str) -> None:
    leaking(registry, **own)
    assert str(ask(run(), "leak")) == why


@pytest.mark.parametrize("method", ["assess", "sections", "quantities"])
def test_a_package_that_exits_costs_its_own_answer_alone(registry: Assessments, method: str) -> None:
    leaking(registry, **{method: lambda *_: sys.exit(0)})
    assert "code of leak called sys.exit(0)" in str(ask(run(), "leak"))


@pytest.mark.parametrize("level", [0, 1, 7])
def test_a_level_is_a_share(registry: Assessments, level: float) -> None:
    leaking(registry)
    with pytest.raises(RiskError, match="level must lie between 0 and 1"):
        ask(run(), "leak", level=level)


def test_options_are_checked(registry: Assessments) -> None:
    leaking(registry)
    with pytest.raises(StudyError, match=r"leak\.largst: unknown key; did you mean 'largest'\?"):
        ask(run(), "leak", largst=1)


def test_a_study_is_refused_with_its_place(registry: Assessments) -> None:
    leaking(registry)
    study = study_from(
        {
            "name": "x",
            "data": {"source": "digits", "evaluate": 5},
            "models": {"a": {"source": "demo"}},
            "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.1}],
            "assess": {"leak": {"largest": 0}},
        }
    )
    with pytest.raises(StudyError, match=r"<study>: assess\.leak: found `largest: 0`"):
        check_assessments(study)
    registry.get("leak").function.check = lambda *_: sys.exit(0)  # type: ignore[attr-defined]
    with pytest.raises(StudyError, match=r"<study>: assess\.leak: code of leak called sys.exit\(0\)"):
        check_assessments(study)


def test_a_run_may_ask_what_only_a_missing_package_answers(registry: Assessments) -> None:
    asked = {"leak": {}}
    with pytest.raises(StudyError, match=r"assess\.leak: unknown key"):
        check_questions(asked, Source())
    check_questions(asked, Source(), installed=False)


@pytest.mark.parametrize("name", ["damage", "arms", "summary", "numbers"])
def test_names_of_advrisk_itself_are_taken(registry: Assessments, name: str) -> None:
    with pytest.raises(RegistryError, match="advrisk itself uses the name"):
        registry.register(name, traits=traits())


def test_two_assessments_have_no_quantity_in_common(registry: Assessments) -> None:
    leaking(registry)
    with pytest.raises(RegistryError, match="leak already has the quantity 'leak'"):
        registry.register("drip", traits=traits())


def test_quantities_of_advrisk_itself_are_taken(registry: Assessments) -> None:
    with pytest.raises(RegistryError, match="damage already has the quantity 'damage'"):
        registry.register("leak", traits=traits(quantities={"damage": Quantity("damage", "share")}))


@pytest.mark.parametrize("given", [{"compared": True}, {"size": "needed"}, {"inside": ("loss",)}, {"of": "detector"}])
def test_a_quantity_promises_nothing_that_a_gate_could_not_decide(registry: Assessments, given: dict[str, Any]) -> None:
    with pytest.raises(RegistryError, match="a registered quantity is of a model or of the run"):
        registry.register("leak", traits=traits(quantities={"leak": Quantity("share that leaks", "share", **given)}))


def test_options_that_every_question_has_cannot_be_fields(registry: Assessments) -> None:
    spec = type("LevelSpec", (Strict,), {"__annotations__": {"level": float}, "level": 0.9})
    for given in ({"spec": spec}, {"options": spec}):
        with pytest.raises(RegistryError, match="every assessment already has level"):
            registry.register("leak", traits=traits(**given))


def test_a_package_must_bring_traits(registry: Assessments) -> None:
    with pytest.raises(RegistryError, match="leak: an assessment needs traits"):
        registry.register("leak")


def test_every_built_in_question_is_a_key_of_a_study() -> None:
    assert list(AssessSpec.model_fields) == list(BUILT_IN)
    for name, asked in BUILT_IN.items():
        stated = getattr(AssessSpec(), name)
        assert stated is None or type(stated) is asked.spec, name


def test_built_in_questions_come_first_in_the_order_of_the_page(registry: Assessments) -> None:
    leaking(registry)
    registry.register("damage")(Leak)
    registry.register("gate")(Leak)
    assert [part.name for part in registry] == ["gate", "damage", "leak"]
    assert [part.name for part in registry.from_packages()] == ["leak"]


def test_an_assessment_asks_another_one_once(registry: Assessments) -> None:
    counted: list[float] = []

    class Counting(Leak):
        def assess(self, context: Context, spec: LeakSpec) -> Any:
            counted.append(context.level)
            return RATE

    class Doubting(Leak):
        def assess(self, context: Context, spec: LeakSpec) -> Any:
            return [context.result("leak", level=0.9), context.result("leak", level=0.9), context.rng.random()]

    registry.register("leak", traits=traits())(Counting)
    registry.register("doubt", traits=traits(quantities={}))(Doubting)
    first, second, drawn = run().result("doubt")
    assert (first, second, counted) == (RATE, RATE, [0.9])
    assert drawn == run().result("doubt")[2], "random numbers are those of the question"


def test_given_options_come_before_those_of_a_part_and_of_the_study(registry: Assessments) -> None:
    class Telling(Leak):
        def assess(self, context: Context, spec: LeakSpec) -> Any:
            return spec.largest

    registry.register("leak", traits=replace(traits(), follows=("largest",)))(Telling)
    content = {
        "name": "x",
        "data": {"source": "digits", "evaluate": 5},
        "models": {"a": {"source": "demo"}},
        "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.1}],
        "assess": {"leak": {"largest": 3}},
    }
    whole = replace(run(), study=study_from(content), memory={})
    part = replace(whole, asked={"largest": 4.0, "norm": "l2"}, memory={})
    assert (whole.result("leak"), part.result("leak"), part.result("leak", largest=5.0)) == (3.0, 4.0, 5.0)
    assert part.as_study_asks.result("leak") == 3.0


def test_a_column_must_not_look_like_the_end_of_an_interval() -> None:
    with pytest.raises(RiskError, match="risk_low is the end of an interval"):
        Table("x", (Column("risk", "share"), Column("risk low", "share")), ())


def test_tables_of_one_title_are_numbered(registry: Assessments) -> None:
    leaking(registry, parts=(Headline("It leaks."), Table("a b", (), ()), Table("a-b", (), ())))
    found = ask(run(), "leak")
    assert not isinstance(found, Unanswered)
    assert [one.key for one in found.sections if isinstance(one, Table)] == ["a_b", "a_b_2"]
