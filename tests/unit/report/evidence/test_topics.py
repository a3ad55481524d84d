"""Topics of evidence: every question with quantities has one."""

import pytest

from advrisk.assess.findings import Findings
from advrisk.core.sections import Unanswered
from advrisk.report.evidence import topics


def test_a_question_that_no_topic_is_about_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {name: Unanswered("nothing was counted") for name in ("damage", "attacks")}
    assert not list(topics._others(Findings(answers=answers)))
    monkeypatch.setattr(topics, "TOPICS", ())
    (one,) = topics._others(Findings(answers=answers))  # attacks have no quantities
    assert (one.id, one.title, one.section) == ("damage", "Damage", "damage")
