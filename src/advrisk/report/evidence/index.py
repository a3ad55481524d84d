"""The index of an evidence pack: which number of a run speaks to which clause, and who answers the others."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from advrisk.assess.findings import Findings
from advrisk.assess.selection.answer import leading
from advrisk.core.names import counted
from advrisk.core.version import VERSION as PROGRAM
from advrisk.ledger import Ledger
from advrisk.report.evidence.clauses import (
    ANSWERS,
    CONTRIBUTES,
    OTHERS,
    OWNERS,
    STUDY,
    TEXTS,
    Clause,
    Degree,
    LegalText,
    every_clause,
    given,
)
from advrisk.report.evidence.headlines import headline
from advrisk.report.evidence.topics import Topic, causes, evidence_topics
from advrisk.report.untested import FEW
from advrisk.study import StudySpec

KIND, VERSION = "evidence-index", 2
REPORT = "report.html"
NOTICE = (
    "This is no legal advice and no conformity assessment. The lines on clauses are a reading in our own words, made "
    "to find figures by; they replace neither the texts nor the judgement of people who know the system and its use. "
    "Nobody is said to comply with anything. Later amendments of the texts are not considered."
)
DEGREES: Mapping[Degree, str] = {
    ANSWERS: "the run gives what the clause asks for, of the models, samples and attacks that were tested",
    CONTRIBUTES: "the run gives figures towards it; what else is needed stands beside it",
    OTHERS: "a run cannot answer it, or this study does not ask for it; the index names who can",
}
_EVALUATED = """
    SELECT count(DISTINCT sample) AS n FROM outcomes JOIN samples USING (sample) WHERE split = 'evaluate'
"""


@dataclass(frozen=True)
class PackFile:
    """A file of a pack, and what it is."""

    path: str
    what: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class RunEvidence:
    """What a run holds for clauses: its topics, what corrupts its inputs, and whether it may wholly answer one."""

    topics: Mapping[str, Topic]
    causes: str
    whole: bool


def evidence_index(
    ledger: Ledger,
    study: StudySpec | None,
    found: Findings,
    *,
    name: str,
    made: datetime,
    rows: str,
    unfinished: str = "",
    files: Sequence[PackFile],
    sections: Collection[str],
) -> dict[str, Any]:
    """Everything the index says, for JSON.

    `rows` is the digest of the ledger's rows, `unfinished` says how far a run is that is not done, and `sections` are
    those of the report.
    """
    topics = evidence_topics(ledger, study, found)
    cautions, ship = _cautions(ledger, unfinished), leading(found).ship or ""
    held = RunEvidence({topic.id: topic for topic in topics}, causes(ledger), whole=not cautions)
    texts = [_text(text, held) for text in TEXTS]
    return {
        "advrisk": KIND,
        "version": VERSION,
        "run": name,
        "made": made.strftime("%Y-%m-%d %H:%M:%S UTC"),
        "program": PROGRAM,
        "notice": NOTICE,
        "unfinished": unfinished,
        "ship": ship,
        "cautions": cautions,
        "degrees": dict(DEGREES),
        "owners": dict(OWNERS),
        "summary": _summary(texts),
        "ledger": rows,
        "texts": texts,
        "numbers": [_topic(topic, sections, ship) for topic in topics],
        "files": [vars(one) for one in files],
    }


def _cautions(ledger: Ledger, unfinished: str) -> list[str]:
    """Why a run wholly answers no clause, whatever it holds."""
    n = ledger.query(_EVALUATED)["n"][0].as_py()
    told = [f"The run is not finished: {unfinished}. The numbers are those so far."] if unfinished else []
    if n < FEW:
        told.append(f"Only {counted(n, 'sample')} to evaluate: with fewer than {FEW}, a run wholly answers no clause.")
    return told


def _summary(texts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    degrees = [clause["degree"] for text in texts for clause in text["clauses"]]
    counts = {degree: degrees.count(degree) for degree in DEGREES}
    others = Counter(clause["owner"] for text in texts for clause in text["clauses"] if clause["degree"] == OTHERS)
    by_owner = ", ".join(f"{name} ({others[owner]})" for owner, name in OWNERS.items() if others[owner])
    answered = f"Of {len(degrees)} clauses, this run answers {counts[ANSWERS]} for what it tested"
    text = (
        f"{answered} and contributes figures to {counts[CONTRIBUTES]}. The other {counts[OTHERS]} are for {by_owner}."
    )
    return {"text": text, "clauses": len(degrees), "counts": counts}


def _text(text: LegalText, held: RunEvidence) -> dict[str, Any]:
    return {
        "id": text.id,
        "title": text.title,
        "edition": text.edition,
        "clauses": [_clause(clause, held) for clause in text.clauses],
    }


def _clause(clause: Clause, run: RunEvidence) -> dict[str, Any]:
    """What a run gives a clause; as long as it is not finished, or with few samples, it wholly answers none."""
    topics = run.topics
    held = [name for name in clause.topics if topics[name].numbers]
    absent = [name for name in clause.topics if not topics[name].numbers]
    degree = clause.degree if set(clause.wholly) <= set(held) and run.whole else CONTRIBUTES
    return {
        "id": clause.id,
        "asks": clause.asks,
        "degree": degree if held else OTHERS,
        "owner": clause.owner if held or not clause.topics else STUDY,
        "gives": given(clause, held, run.causes),
        "numbers": held,
        "not_in_this_run": [{"numbers": name, "why": topics[name].why_none} for name in absent],
        "needed": clause.lacks,
    }


def _topic(topic: Topic, sections: Collection[str], ship: str) -> dict[str, Any]:
    where = f"{REPORT}#{topic.section}" if topic.section in sections else REPORT
    numbers = [one.as_dict() for one in topic.numbers]
    spoken_to = [{"text": text.id, "clause": clause.id} for text, clause in every_clause() if topic.id in clause.topics]
    return {
        "id": topic.id,
        "title": topic.title,
        "how": topic.how,
        "where": where,
        "headline": headline(topic.id, numbers, ship),
        "numbers": numbers,
        "why_none": topic.why_none,
        "clauses": spoken_to,
    }
