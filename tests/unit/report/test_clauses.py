"""The table of clauses: complete, consistent, and never more than a run can give."""

import re

from advrisk.report.clauses import ANSWERS, CONTRIBUTES, NOTHING, TEXTS, every_clause
from advrisk.report.evidence_topics import TOPICS


def test_every_paragraph_is_there_once() -> None:
    by_text = {text.id: [clause.id for clause in text.clauses] for text in TEXTS}
    steps = [f"Art. 9(2)({letter})" for letter in "abcd"]
    assert by_text["eu-ai-act-9"] == ["Art. 9(1)", *steps, *(f"Art. 9({n})" for n in range(3, 11))]
    assert by_text["eu-ai-act-15"] == [f"Art. 15({n})" for n in range(1, 6)]
    assert by_text["nist-ai-rmf-measure-2"] == [f"MEASURE 2.{n}" for n in range(1, 14)]
    assert by_text["iso-iec-tr-24029-1"] == ["Clause 4", "Clause 5", "Clause 6", "Clause 7", "Annex A"]
    assert by_text["iso-iec-24029-2"] == ["5.2", "5.3", "5.4", "5.5", "5.6", "Clause 6", "Clause 7"]


def test_a_clause_gives_something_only_by_numbers() -> None:
    for text, clause in every_clause():
        place = f"{text.id} {clause.id}"
        assert set(clause.topics) <= TOPICS.keys(), place
        assert len(set(clause.topics)) == len(clause.topics), place
        assert (clause.degree == NOTHING) == (not clause.topics) == (not clause.gives), place
        assert set(clause.wholly) <= set(clause.topics), place
        assert bool(clause.wholly) == (clause.degree == ANSWERS), place
        assert clause.degree in (ANSWERS, CONTRIBUTES, NOTHING), place


def test_every_number_speaks_to_some_clause() -> None:
    assert {name for _, clause in every_clause() for name in clause.topics} == TOPICS.keys()


def test_lines_are_short_sentences_and_say_what_is_missing() -> None:
    for _, clause in every_clause():
        for line in (clause.asks, clause.lacks, *([clause.gives] if clause.gives else [])):
            assert line.endswith("."), line
            assert line[0].isupper(), line
            assert len(line) < 300, line
            assert not re.search(r"\bshall\b", line), "that is the words of the law, not ours"


def test_words_of_the_run_never_claim_compliance() -> None:
    said = " ".join(f"{clause.asks} {clause.gives}" for _, clause in every_clause()).lower()
    assert not re.search(r"complian|conform|certified to comply", said)
