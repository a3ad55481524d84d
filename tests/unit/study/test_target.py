"""Targets as people write them."""

import pytest

from advrisk.core.errors import StudyError
from advrisk.study import Ground, parse_requirement, parse_target
from advrisk.study.target import refuse_decision, target_terms

GROUND = Ground(models=["plain", "hardened"], sizes=[0.1, 0.2], scenarios=["rain"], losses=["misclassified"])


@pytest.mark.parametrize(
    ("text", "names", "margin"),
    [
        ("damage ±0.02", ["damage.plain", "damage.hardened"], 0.02),
        ("damage.hardened +-2 %", ["damage.hardened"], 0.02),
        ("damage.* +/- 0.02", ["damage.plain", "damage.hardened"], 0.02),
        ("broken at 0.1 ±1e-2", ["broken.plain at 0.1", "broken.hardened at 0.1"], 0.01),
        ('broken."plain" at 1/10 ± 3%', ["broken.plain at 1/10"], 0.03),
        ("risk[rain] ±0.05", ["risk.plain[rain]", "risk.hardened[rain]"], 0.05),
        ("risk.plain ±0.05", ["risk.plain"], 0.05),
    ],
)
def test_a_margin_of_one_model_or_of_all(text: str, names: list[str], margin: float) -> None:
    target = parse_target(text)
    assert not target.decides
    assert target.margin == pytest.approx(margin)
    assert [str(term) for term in target_terms(target, GROUND)] == names


def test_the_same_target_has_the_same_name_however_it_is_spaced() -> None:
    assert parse_target("damage  ± 0.02").text == parse_target("damage +-0.02").text == "damage ±0.02"


@pytest.mark.parametrize("word", ["decided", " gate "])
def test_decisions_are_one_word(word: str) -> None:
    target = parse_target(word)
    assert target.decides
    assert target.text == word.strip()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "has no margin"),
        ("decidd", "did you mean 'decided'?"),
        ("gates", "did you mean 'gate'?"),
        ("damage 0.1", "has no margin"),
        ("broken.plain at 0.1 <= 0.2", "write it under `gate` in the study"),
        ("broken ±0.1", "broken needs a size, as in `broken at 8/255 ±0.02`"),
        ("damage.a b ±0.1", "write `damage ±0.02`"),
        ("±0.1", "a margin is possible for"),
        ("damage ±", "cannot be read"),
        ("damage ±0", "a margin is above 0"),
        ("damage ±-0.1", "cannot be read"),
        ("damage ±2", "a share between 0 and 1"),
        ("damage ±0.1 ±0.2", "cannot be read"),
        ("dammage ±0.1", "did you mean 'damage'"),
        ("damage.a ±damage.b", "a margin is possible for"),
        ("certificate.plain ±0.1", "a margin is possible for"),
        ("flagged ±1", "a margin is possible for"),
        ("fpr.lid[plain] ±0.1", "detectors score once the cells are done"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, complaint: str) -> None:
    with pytest.raises(StudyError, match="target") as raised:
        parse_target(text)
    assert complaint in str(raised.value)
    assert ("<=" in str(raised.value)) == ("<=" in text)  # what nobody wrote is not shown
    assert ".*" not in str(raised.value)


def test_a_target_is_text() -> None:
    with pytest.raises(StudyError, match=r"found 0\.02"):
        parse_target(0.02)  # type: ignore[arg-type]


def test_terms_that_nobody_can_answer_are_refused() -> None:
    for text, complaint in (
        ("damage.plian ±0.1", "did you mean 'plain'"),
        ("broken at 0.3 ±0.1", "found 0.2 as the largest eps"),
        ("cost ±5", "found no cost"),
        ("risk[fog] ±0.1", "unknown scenario 'fog'"),
    ):
        with pytest.raises(StudyError, match="the target") as raised:
            target_terms(parse_target(text), GROUND)
        assert complaint in str(raised.value)
        assert "<=" not in str(raised.value)


def test_a_gate_must_hold_something_that_samples_decide() -> None:
    counts = [parse_requirement("error_rows == 0")]
    shares = [parse_requirement("broken.plain at 0.1 <= 0.2")]
    scores = [parse_requirement("auroc.lid[plain] >= 0.9")]
    refuse_decision(parse_target("gate"), GROUND, counts + shares)
    with pytest.raises(StudyError, match="no requirement that more samples decide"):
        refuse_decision(parse_target("gate"), GROUND, counts)
    with pytest.raises(StudyError, match="needs scores"):
        refuse_decision(parse_target("gate"), GROUND, shares + scores)
    with pytest.raises(StudyError, match="plain is the only model"):
        refuse_decision(parse_target("decided"), Ground(models=["plain"]), [])
