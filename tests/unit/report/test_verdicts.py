"""Verdicts for pipelines: JUnit XML in the usual shape, Markdown in which names mean nothing."""

import re
from xml.etree import ElementTree

import pytest

from advrisk.assess.compare import Compared, RunComparison
from advrisk.assess.compare.sections import comparison_verdicts
from advrisk.assess.gate import GateResult, RequirementResult
from advrisk.assess.gate.cases import Verdicts
from advrisk.assess.gate.sections import gate_verdicts
from advrisk.core.estimate import Estimate
from advrisk.report.verdicts import junit_xml, verdicts_markdown

NASTY = 'a|b `c` ``d`` <script>alert("1")</script> @everyone\n## *x* _y_ [z](javascript:0) \x00\x1b[31m\ud800 ‮ & "q"'


def estimate(value: float) -> Estimate:
    return Estimate(value, value - 0.1, value + 0.1, 0.95, 100, "made up")


@pytest.fixture
def gate() -> Verdicts:
    results = (
        RequirementResult(
            "damage.a <= 0.5", "pass", "study", estimate(0.2), 0.5, "all of it", cautions=("a better one may",)
        ),
        RequirementResult("damage.b <= 0.5", "fail", "given", estimate(0.8), 0.5, "none of it"),
        RequirementResult(
            f'damage."{NASTY}" <= 0.5', "undecided", "given", None, 0.5, "no verdict", "about 7 more samples", 7
        ),
    )
    return gate_verdicts(GateResult(f"run {NASTY}", results, ("a note",)))


def test_junit_has_the_usual_shape(gate: Verdicts) -> None:
    root = ElementTree.fromstring(junit_xml(gate))
    assert root.tag == "testsuites"
    (suite,) = root
    assert suite.tag == "testsuite"
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "errors": "1",
        "skipped": "0",
    }
    cases = suite.findall("testcase")
    assert [child.tag for child in suite] == ["testcase"] * 3 + ["system-out"]
    assert [[child.tag for child in case] for case in cases] == [["system-out"], ["failure"], ["error"]]
    for case in cases:
        assert case.get("classname") == "advrisk.gate"
        assert case.get("name")
        assert float(case.get("time", "nan")) == 0
    (failure,) = cases[1]
    assert failure.get("type") == "fail"
    assert "none of it" in str(failure.get("message"))
    (error,) = cases[2]
    assert "about 7 more samples" in str(error.text)


def test_junit_holds_no_sign_that_xml_cannot(gate: Verdicts) -> None:
    text = junit_xml(gate)
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]", text)
    text.encode("utf-8")
    assert "<script>" not in text


def test_markdown_shows_names_and_lets_them_mean_nothing(gate: Verdicts) -> None:
    text = verdicts_markdown(gate)
    text.encode("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 5  # the heading, its line, and one for each requirement
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 4 for row in rows)
    heading = text.splitlines()[0]
    assert heading.startswith("### ❌ Gate of run a\\|b")
    assert "<script>" not in heading
    assert "@everyone" not in heading
    assert "fail (1 pass, 1 fail, 1 undecided)" in heading
    assert "Requirements: 1 of the study, 2 given in addition." in text
    assert "about 7 more samples" in text
    assert "Beside what passes: a better one may." in text
    assert not any(line.startswith("## ") for line in text.splitlines())


def test_a_comparison_as_junit_and_markdown() -> None:
    row = Compared("a", "b", "clean accuracy", estimate(0.8), estimate(0.7), estimate(0.1), 0.02, "fail", "worse", 0.9)
    found = comparison_verdicts(RunComparison("old", "new", 0.02, 0.95, 1, {}, (row,), ("a note",)))
    text = verdicts_markdown(found)
    assert text.startswith("### ❌ new against old: worse by more than 2 %")
    assert "`a -> b: clean accuracy`" in text
    assert "p 0.9" in text
    (case,) = ElementTree.fromstring(junit_xml(found)).iter("failure")
    assert case.get("type") == "worse"
