"""What a line of `search` may say; every mistake is refused with its place."""

from pathlib import Path
from typing import Any

import pytest

from advrisk.core.errors import StudyError
from advrisk.study import RangeSpec, StudySpec, load_study, study_from


def study(**search: Any) -> StudySpec:
    return study_from(
        {
            "name": "s",
            "data": {"source": "digits", "evaluate": 10, "tune": 10},
            "models": {"plain": {"source": "torch"}},
            "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.1}],
            "search": [{"attack": "nes", "norm": "linf", "eps": 0.1} | search],
        }
    )


def test_defaults_are_the_papers() -> None:
    (entry,) = study().search
    assert (entry.method, entry.rounds, entry.batch, entry.beta, entry.freeze) == ("gp-ucb", 50, 1, 0.1, 1)
    assert entry.arm_keys() == {"attack": ["nes"], "norm": ["linf"], "eps": [0.1]}


def test_ranges_are_pairs_mappings_or_names() -> None:
    (entry,) = study(over={"sigma": ["1/1000", 0.1], "step_size": {"low": 0, "high": 1, "log": False}}).search
    assert entry.over == {"sigma": RangeSpec(low=0.001, high=0.1), "step_size": RangeSpec(low=0, high=1, log=False)}
    (named,) = study(over=["sigma"], steps=7).search
    assert named.over == {"sigma": None}
    assert named.params == {"steps": 7}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "reversed": ({"over": {"sigma": [0.1, 0.001]}}, r"search\[0\].over.sigma: the first must be less than the second"),
    "one value": ({"over": {"sigma": [0.1, 0.1]}}, r"found 0.1 and 0.1"),
    "three values": ({"over": {"sigma": [0.1, 0.2, 0.3]}}, r"must be two numbers"),
    "a number": ({"over": {"sigma": 0.1}}, r"must be two numbers.*found 0.1"),
    "words": ({"over": {"sigma": ["low", "high"]}}, r"search\[0\].over.sigma"),
    "empty": ({"over": {}}, r"search\[0\].over: found an empty list or mapping"),
    "no mapping": ({"over": 3}, r"must be a mapping of parameters to ranges"),
    "log of zero": ({"over": {"sigma": {"low": 0, "high": 1, "log": True}}}, r"ratios need a positive range"),
    "a method": ({"method": "gp-ucp"}, r"search\[0\].method: found 'gp-ucp'; did you mean 'gp-ucb'"),
    "no round": ({"rounds": 0}, r"search\[0\].rounds"),
    "a negative beta": ({"beta": -1}, r"at least 0 or `theory`.*found -1"),
    "beta of a grid": ({"beta": 0.1, "method": "grid"}, r"found `beta`, which belongs to gp-ucb"),
    "nothing frozen": ({"freeze": 0}, r"search\[0\].freeze"),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_refused(name: str) -> None:
    changes, complaint = WRONG[name]
    with pytest.raises(StudyError, match=complaint):
        study(**changes)


def test_the_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(
        "name: s\ndata: {source: digits, evaluate: 5}\nmodels: {plain: {source: torch}}\n"
        "arms: [{attack: fgsm, norm: linf, eps: 0.1}]\nsearch:\n  - attack: nes\n    over:\n      sigma: [2, 1]\n"
    )
    with pytest.raises(StudyError, match=r"study.yaml:8: search\[0\].over.sigma"):
        load_study(path)


@pytest.mark.parametrize(("name", "value"), [("alpha", 0), ("alpha", 1), ("zeta", 0), ("zeta", 1.5), ("alpha", "x")])
def test_levels_of_a_certificate_lie_between_zero_and_one(name: str, value: object) -> None:
    content = study().model_dump(exclude_unset=True) | {"assess": {"certificate": {name: value}}}
    with pytest.raises(StudyError, match=rf"assess.certificate.{name}"):
        study_from(content)


@pytest.mark.parametrize(("value", "meant"), [("10 %", 0.1), ("2.5%", 0.025), ("1/10", 0.1), (0.05, 0.05)])
def test_levels_of_a_certificate_may_be_in_per_cent(value: object, meant: float) -> None:
    content = study().model_dump(exclude_unset=True) | {"assess": {"certificate": {"alpha": value, "zeta": value}}}
    asked = study_from(content).assess.certificate
    assert asked is not None
    assert (asked.alpha, asked.zeta) == (meant, meant)


@pytest.mark.parametrize(("value", "hint"), [(10, r"; did you mean 10 % \(0.1\)\?$"), ("110 %", "found '110 %'$")])
def test_a_level_of_a_certificate_beyond_one_may_be_meant_in_per_cent(value: object, hint: str) -> None:
    content = study().model_dump(exclude_unset=True) | {"assess": {"certificate": {"alpha": value}}}
    with pytest.raises(StudyError, match=hint):
        study_from(content)
