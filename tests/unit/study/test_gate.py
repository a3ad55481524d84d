"""Requirements as text: what can be written, what is refused, and in which words."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advrisk.core.errors import StudyError
from advrisk.study import Ground, Requirement, expanded, parse_requirement
from advrisk.study.gate import quoted
from advrisk.study.registered import assessment_of, built_in_quantities

QUANTITIES = built_in_quantities()

GROUND = Ground(
    models=("old", "new", 'it\'s "one"'),
    sizes=(0.1, 8 / 255),
    relative=False,
    has_cost=True,
    detectors=("lid", "lid,neighbours=10"),
    scenarios=("town", "sea"),
    losses=("misclassified", "cost"),
    certified=True,
    certified_sizes=(0.1,),
)


@pytest.mark.parametrize(
    ("text", "limit", "canonical"),
    [
        ("damage.hardened <= 0.2", 0.2, "damage.hardened <= 0.2"),
        ("  damage.hardened<=20% ", 0.2, "damage.hardened <= 20 %"),
        ("broken.m at 8/255 < 1e-2", 0.01, "broken.m at 8/255 < 1e-2"),
        ("robust_accuracy.m at 8 / 255 ≥ 1/2", 0.5, "robust_accuracy.m at 8 / 255 >= 1/2"),
        ("damage.a.b-c_d <= .5", 0.5, "damage.a.b-c_d <= .5"),
        ("damage.'a b' <= 0.5", 0.5, 'damage."a b" <= 0.5'),
        ('damage."say ""no""" <= 0.5', 0.5, "damage.'say \"no\"' <= 0.5"),
        ("damage.'*' <= 0.5", 0.5, 'damage."*" <= 0.5'),
        ("damage.* <= 0.5", 0.5, "damage.* <= 0.5"),
        ("damage.new <= damage.old", 0.0, "damage.new <= damage.old"),
        ("damage.new <= damage.old + 0.02", 0.02, "damage.new <= damage.old + 0.02"),
        ("clean_accuracy.new >= clean_accuracy.old - 2 %", -0.02, "clean_accuracy.new >= clean_accuracy.old - 2 %"),
        ("broken.new at 0.1 <= broken.old + 1/50", 0.02, "broken.new at 0.1 <= broken.old at 0.1 + 1/50"),
        ("risk.m[town, cost] <= 12.5", 12.5, "risk.m[town, cost] <= 12.5"),
        ('auroc."lid,neighbours=10"[*] >= 0.9', 0.9, 'auroc."lid,neighbours=10"[*] >= 0.9'),
        ("fpr.lid[m] <= 0.1", 0.1, "fpr.lid[m] <= 0.1"),
        ("survival.m > 1000", 1000.0, "survival.m > 1000"),
        ("certificate.m", 0.0, "certificate.m"),
        ("certificate.m at 0.1", 0.0, "certificate.m at 0.1"),
        ("certificate.m at 0.1  with   caveats", 0.0, "certificate.m at 0.1 with caveats"),
        ("certificate.* with caveats", 0.0, "certificate.* with caveats"),
        ("certified_wrong.m <= 0.3", 0.3, "certified_wrong.m <= 0.3"),
        ("certified_broken.m at 0.1 <= 10 % with caveats", 0.1, "certified_broken.m at 0.1 <= 10 % with caveats"),
        ("error_rows == 0", 0.0, "error_rows == 0"),
        ("flagged.m[zero-gradients] <= 0", 0.0, "flagged.m[zero-gradients] <= 0"),
    ],
)
def test_what_can_be_written(text: str, limit: float, canonical: str) -> None:
    found = parse_requirement(text)
    assert found.limit == pytest.approx(limit)
    assert str(found) == canonical
    assert parse_requirement(canonical) == found


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("error_rows <= 50 %", "error_rows is a count; write a whole number of at least 0; found 50 %"),
        ("error_rows <= 100 %", "is a count"),
        ("error_rows.m <= -1", "is a count"),
        ("flagged <= 0.5", "is a count"),
        ("flagged[no-start] == 1/2", "is a count"),
        ("", "found its end"),
        ("damag.x <= 1", "did you mean 'damage'?"),
        ("damage <= 1", "write damage.NAME"),
        ("damage. <= 1", "a name is missing"),
        ("damage.'x <= 1", "a quote is not closed"),
        ("damage.x", "a limit is missing"),
        ("damage.x <=", "write a number, or the same quantity of another model"),
        ("damage.x <= nan", "unknown quantity"),
        ("damage.x <= 1e999", "a finite number"),
        ("damage.x <= 8/0", "divides by zero"),
        ("damage.x <= 20", "a share between 0 and 1; write 20 % or 0.2; found 20"),
        ("damage.x <= -0.1", "a share between 0 and 1"),
        ("damage.x = 0.2", "write one of <=, <, >=, >, or == for counts; found '= 0.2'"),
        ("damage.x == 0.2", "no estimate equals a number exactly"),
        ("damage.x <= 0.2 or so", "the requirement should end here; found 'or so'"),
        ("damage.x at 0.1 <= 0.2", "damage has no size"),
        ("broken.x <= 0.1", "needs a size: write `broken.x at 8/255 <= 0.1`"),
        ("broken.x at -1 <= 0.1", "a size, a number of at least 0"),
        ("broken.x <= broken.y", "needs a size"),
        ("broken.x at 0.1 <= broken.y at 0.2", "the same size"),
        ("damage.x <= broken.y", "both sides need the same quantity; found damage and broken"),
        ("damage.x <= damage.x + 0.1", "both sides name the same model"),
        ("damage.x <= damage.*", "on the left only"),
        ("damage.x <= damage.y +", "a margin is missing after `+`"),
        ("damage.x <= damage.y + -0.1", "one sign"),
        ("damage.x <= damage.y + 2", "write 2 % or 0.02"),
        ("survival.x <= survival.y", "cannot be compared"),
        ("certificate.x <= 1", "a yes or no"),
        ("certificate.x with doubts", "one of <=, <, >=, >"),
        ("certificate.x with caveats at 0.1", "the requirement should end here"),
        ("broken.x at 0.1 <= 0.1 with caveats", "only certificates have caveats, and broken is none"),
        ("certified_wrong.x", "a limit is missing"),
        ("certified_wrong.x <= 3", "is a share between 0 and 1"),
        ("certified_wrong.x <= certified_wrong.y", "cannot be compared"),
        ("auroc.*[m] >= 0.5", "name one"),
        ("risk.x[*] <= 1", "name the scenario"),
        ("risk.x[a, b, c] <= 1", "risk.NAME[scenario, loss]"),
        ("risk.x[a <= 1", "a `]` is missing"),
        ("x" * 5000, "at most 1000 characters"),
        ("__import__('os').system('true') <= 1", "unknown quantity"),
    ],
)
def test_what_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_requirement(text)
    assert complaint in str(caught.value)
    assert "found" in str(caught.value)
    assert len(str(caught.value)) < 500


SIGNS = "abdegkmnorst.*[]'\"<>=+-0123456789 /%≤≥,@\n\x00é\u202e"


@given(st.text(SIGNS, max_size=60))
def test_no_text_makes_it_stumble(text: str) -> None:
    try:
        found = parse_requirement(text)
    except StudyError:
        return
    assert parse_requirement(str(found)) == found


@given(st.text(SIGNS, min_size=1, max_size=40), st.sampled_from(sorted(QUANTITIES)))
def test_every_name_can_be_quoted(name: str, quantity: str) -> None:
    size = " at 1" if QUANTITIES[quantity].size == "needed" else ""
    limit = "" if quantity == "certificate" else " <= 1"
    found = parse_requirement(f"{quantity}.{quoted(name)}{size}{limit}")
    assert found.left.subject == name


def test_a_quantity_names_its_question() -> None:
    names = {quantity: assessment_of(quantity) for quantity in ("auroc", "certified_wrong", "flagged", "no-such")}
    assert names == {"auroc": "detection", "certified_wrong": "certificate", "flagged": "gate", "no-such": None}


def test_all_models_are_meant_one_by_one() -> None:
    found = expanded(parse_requirement("damage.* <= 0.2"), GROUND)
    assert [one.left.subject for one in found] == list(GROUND.models)
    against = expanded(parse_requirement("damage.* <= damage.old"), GROUND)
    assert [one.left.subject for one in against] == ["new", 'it\'s "one"']
    with_detector = expanded(parse_requirement("auroc.lid[*] >= 0.5"), GROUND)
    assert [one.left.inside for one in with_detector] == [(model,) for model in GROUND.models]


def test_the_only_model_of_a_detector_need_not_be_named() -> None:
    (found,) = expanded(parse_requirement("auroc.lid >= 0.5"), Ground(models=("m",), detectors=("lid",)))
    assert found.left.inside == ("m",)


@pytest.mark.parametrize(
    ("text", "ground", "complaint"),
    [
        ("damage.nwe <= 0.2", {}, "unknown model 'nwe'; did you mean 'new'?"),
        ("damage.new <= damage.odl", {}, "did you mean 'old'?"),
        ("damage.new <= 0.2", {"relative": True}, "relative to the compared models here, no probability"),
        ("damage.new <= damage.old + 0.1", {"relative": True}, "found the margin 0.1"),
        ("cost.new <= 5", {"has_cost": False}, "the cost of one damage"),
        ("broken.new at 0.2 <= 0.1", {}, "no attack in linf reaches the size 0.2: found 0.1"),
        ("broken.new at 9/255 <= 0.1", {"sizes": (8 / 255,)}, "the size 9/255: found 8/255 as the largest eps"),
        ("certificate.new at 0.2", {"certified_sizes": {8 / 255}}, "found no certificate at 0.2; certified: 8/255"),
        ("broken.new at 0.1 <= 0.1", {"sizes": ()}, "found no attack in linf"),
        ("clean_rejection.new <= 0.1", {"refuses": False}, "found no model that refuses"),
        ("risk.new <= 1", {}, "found several scenarios: name one, as in risk.new[town, misclassified]"),
        ("risk.new[town] <= 1", {}, "found several losses"),
        ("risk.new[twon, cost] <= 1", {}, "unknown scenario 'twon'; did you mean 'town'?"),
        ("risk.new[town, cots] <= 1", {}, "unknown loss 'cots'; did you mean 'cost'?"),
        ("risk.new <= 1", {"scenarios": ()}, "found no scenario"),
        ("auroc.ild[new] >= 0.5", {}, "unknown detector 'ild'; did you mean 'lid'?"),
        ("auroc.lid >= 0.5", {}, "found several models: name one, as in auroc.lid[old]"),
        ("auroc.lid[nwe] >= 0.5", {}, "did you mean 'new'?"),
        ("certificate.new", {"certified": False}, "found no certificate"),
        ("certified_wrong.new <= 0.3", {"certified": False}, "found no certificate"),
        ("certified_broken.nwe <= 0.3", {}, "did you mean 'new'?"),
        ("certificate.new at 0.2", {}, "found no certificate at 0.2; certified: 0.1"),
        ("flagged[zero-gradient] <= 0", {}, "did you mean 'zero-gradients'?"),
        ("damage.* <= damage.only", {"models": ("only",)}, "there is no other model"),
    ],
)
def test_what_nobody_can_answer_is_refused(text: str, ground: dict[str, object], complaint: str) -> None:
    with pytest.raises(StudyError) as caught:
        expanded(parse_requirement(text), Ground(**(vars(GROUND) | ground)))
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "damage.new <= damage.old",
        "broken.new at 0.1 <= 0.1",
        "risk.new[sea, cost] <= risk.old",
        "certificate.new at 0.1",
        "error_rows.new <= 3",
    ],
)
def test_what_can_be_answered(text: str) -> None:
    found = expanded(parse_requirement(text), Ground(**(vars(GROUND) | {"relative": True})))
    assert all(isinstance(one, Requirement) for one in found)


def test_what_is_right_is_not_asked_where_success_is_a_target() -> None:
    requirement = parse_requirement("robust_accuracy.old at 0.1 >= 0.5")
    assert expanded(requirement, GROUND)
    with pytest.raises(StudyError, match="do not show which samples stay correct"):
        expanded(requirement, replace(GROUND, criterion="target"))
    assert expanded(parse_requirement("broken.old at 0.1 <= 0.5"), replace(GROUND, criterion="target"))
