"""The table of clauses: complete, consistent, and never more than a run can give."""

import re

from advrisk.report.evidence.clauses import ANSWERS, CONTRIBUTES, OTHERS, TELLS, TEXTS, every_clause, given
from advrisk.report.evidence.headlines import BAD
from advrisk.report.evidence.topics import TOPICS
from advrisk.study.registered import BUILT_IN

NAMES = {topic.id for topic in TOPICS}


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
        assert set(clause.topics) <= NAMES, place
        assert len(set(clause.topics)) == len(clause.topics), place
        assert (clause.degree == OTHERS) == (not clause.topics) == (not clause.gives), place
        assert set(clause.wholly) <= set(clause.topics), place
        assert bool(clause.wholly) == (clause.degree == ANSWERS), place
        assert clause.degree in (ANSWERS, CONTRIBUTES, OTHERS), place


def test_every_number_speaks_to_some_clause() -> None:
    assert {name for _, clause in every_clause() for name in clause.topics} == NAMES


def test_every_quantity_of_a_built_in_question_stands_in_one_topic() -> None:
    placed = [name for topic in TOPICS for name in topic.quantities]
    sections = {topic.section for topic in TOPICS}  # a question that no topic is of has one of its own
    known = {name for question, traits in BUILT_IN.items() if question in sections for name in traits.quantities}
    assert len(set(placed)) == len(placed)
    assert known - set(placed) == {"certificate", "error_rows", "flagged"}  # which a gate counts, when it is asked
    assert known >= BAD.keys()


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


def test_what_a_clause_is_given_names_topics_that_the_run_holds_and_no_others() -> None:
    for _, clause in every_clause():
        assert ("{}" in clause.gives) == (len(clause.topics) > 1), clause.id
        assert not given(clause, (), "noise")
        for held in [(name,) for name in clause.topics] + [clause.topics]:
            said = given(clause, held, "noise")
            assert said.endswith(".") == bool(held)
            if len(clause.topics) > 1:
                told = {name for name, tells in TELLS.items() if tells.format(causes="noise") in said}
                assert told == set(held), clause.id


def test_only_causes_that_ran_are_named() -> None:
    clause = next(clause for _, clause in every_clause() if clause.id == "Art. 15(4)")
    assert "(noise)" in given(clause, ("corruptions",), "noise")
    said = " ".join(clause.gives for _, clause in every_clause()) + " ".join(TELLS.values())
    assert not re.search(r"\b(sensors?|weather|data entry)\b", said)
