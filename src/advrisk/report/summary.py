"""Two pages for readers without a background in machine learning: tested, result, meaning, next steps.

All results come from the first screen and the executive summary; what stands here knows no assessment.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from advrisk.assess.findings import Findings
from advrisk.assess.selection.answer import RunAnswer, leading
from advrisk.core.clock import time_of_making
from advrisk.core.names import counted, cut_words
from advrisk.core.version import VERSION
from advrisk.ledger import Ledger
from advrisk.report.executive import ExecutiveSummary, executive_summary
from advrisk.report.front import FirstScreen, first_screen
from advrisk.report.glossary import Term, terms_in
from advrisk.report.html import health_sentence, with_pictures
from advrisk.study import StudySpec

MODELS, FACTS, PICTURES, TERMS, SENTENCES = 6, 3, 6, 4, 3  # at most, for two pages
_NAME, _SENTENCE = 30, 200  # characters
BESIDE = 2  # sentences below the answer
_TESTED = """
    SELECT count(DISTINCT sample) AS samples, count(DISTINCT model) AS models,
           count(DISTINCT arm) FILTER (kind = 'attack') AS attacks,
           count(DISTINCT arm) FILTER (kind = 'corruption') AS disturbances
    FROM outcomes JOIN samples USING (sample) WHERE split = 'evaluate'
"""


def summary_page(folder: Path, ledger: Ledger, study: StudySpec | None, found: Findings) -> str:
    """The two pages as HTML, to be printed."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("advrisk.report", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters |= {"short": _short, "name": _short_name}
    found = with_pictures(folder, ledger, found)
    executive = executive_summary(ledger, study, found)
    first, answer, noun = first_screen(found, executive), leading(found), _noun(ledger)
    return environment.get_template("summary.html").render(
        name=study.name if study else folder.name,
        made=f"{time_of_making():%Y-%m-%d}",
        version=VERSION,
        headline=plain_answer(answer, found.unfinished),
        tested=list(_tested(ledger, noun)),
        beside=executive.ship[1 : 1 + BESIDE],
        compared=answer.n_models > 1,
        models=[_in_words(tile, noun) for tile in first.tiles[:MODELS]],
        n_more=max(0, len(first.tiles) - MODELS) + first.n_more,
        pictures=_pictures(first),
        terms=_terms(first),
        untested=executive.untested[:SENTENCES],
        n_untested=max(0, len(executive.untested) - SENTENCES),
        next_steps=next_steps(answer, executive, health_sentence(ledger, found.flags)),
    )


def plain_answer(answer: RunAnswer, unfinished: str = "") -> str:
    """Which model came out best, if the evidence names one, and whether it meets the requirements."""
    best, models = answer.least_bad, counted(answer.n_models, "model")
    if best is None:
        told = f"This test does not show which of {models} is best."
        told = "This test is about one model and compares it with no other." if answer.n_models == 1 else told
    else:
        role = f"did best among the {models} in this test" if answer.n_models > 1 else "is the only model in this test"
        ends = {
            None: "",
            "met": " and meets every requirement of the study",
            "not met": " and fails a requirement of the study",
        }
        end = ends.get(answer.requirements, "; whether it meets the requirements is not decided")
        told = f"{_short_name(best)} {role}{end}."
    return f"{told} The test is not finished." if unfinished or answer.unfinished else told


def of_hundred(share: Mapping[str, float], noun: str) -> str:
    """Per cent with an interval, in words: `about 95 of 100 images (93 to 98)`; the interval is rounded outwards."""
    value, low, high = share["value"], math.floor(share["low"]), math.ceil(share["high"])
    if value in (0, 100):
        edge = f"at most {high}" if value == 0 else f"at least {low}"
        return f"{'none' if value == 0 else 'all'} of the {noun} tested (in general {edge} of 100)"
    number = "fewer than 1" if value < 1 else "more than 99" if value > 99 else f"about {value:.0f}"
    return f"{number} of 100 {noun} ({low} to {high})"


def next_steps(answer: RunAnswer, executive: ExecutiveSummary, health: str) -> list[tuple[str, str]]:
    """Who should look at what, by what this run leaves open."""
    required = {
        None: "State what is good enough: this study has no requirement, so the test cannot pass or fail.",
        "met": "Decide whether the requirements in the study are the right ones for your use.",
        "not met": "Do not rely on this model as it is: it fails a requirement. The report's gate shows which.",
    }
    steps = [("You, who decide on its use", required.get(answer.requirements, "Wait: a requirement is not decided."))]
    steps += [
        ("Those who run the system", "Say how often such inputs occur in use, and what a mistake costs there."),
        ("Those who own the data", "Confirm that the test inputs look like the inputs in use, and are labelled well."),
    ]
    if executive.open_points:
        steps.append(("The developers of the model", f"Settle what is undecided: {_lowered(executive.undecided[0])}"))
    else:
        steps.append(("The developers of the model", f"Look at what drives the risk: {_lowered(executive.drivers[0])}"))
    return [*steps, ("An auditor", f"Check the run and its evidence pack. {health}")]


def _tested(ledger: Ledger, noun: str) -> Iterator[str]:
    """Which models met which inputs."""
    (row,) = ledger.query(_TESTED).to_pylist()
    models, attacks = counted(row["models"], "model"), counted(row["attacks"], "attack")
    yield f"As they are: {models} answered {row['samples']:,} test {noun}, and their correct answers are known."
    if row["attacks"]:
        yield f"Changed on purpose: {attacks} altered these {noun} slightly, to make the models answer incorrectly."
    if row["disturbances"]:
        ways = counted(row["disturbances"], "disturbance")
        yield f"Changed by chance: {ways}, as from noise, weather or a bad sensor."


def _noun(ledger: Ledger) -> str:
    shapes = ledger.query("SELECT input_shape FROM models")["input_shape"].to_pylist()
    return "images" if any(len(shape or ()) == 3 for shape in shapes) else "inputs"


def _in_words(tile: Mapping[str, Any], noun: str) -> dict[str, Any]:
    facts = [
        {**fact, "words": of_hundred(fact["bar"], noun) if fact["bar"] else " ".join(fact["lines"])}
        for fact in tile["facts"][:FACTS]
    ]
    return {**tile, "facts": facts}


def _pictures(first: FirstScreen) -> list[Mapping[str, Any]]:
    return [picture for part in first.examples for picture in part.get("pictures", ())][:PICTURES]


def _terms(first: FirstScreen) -> list[Term]:
    """What the headings of the numbers, and the norm of a stated size, mean."""
    headings = {fact["name"] for tile in first.tiles for fact in tile["facts"][:FACTS]}
    badges = {badge.text for tile in first.tiles for badge in tile["badges"]}
    return terms_in("; ".join(sorted(headings | badges) + ([first.size[0]] if first.size else [])))[:TERMS]


def _lowered(sentence: str) -> str:
    """A sentence after a colon; a name keeps its capitals."""
    first = sentence.split(" ", 1)[0]
    return f"{sentence[0].lower()}{sentence[1:]}" if first.istitle() and first.isalpha() else sentence


def _short(sentence: object) -> str:
    words = cut_words(str(sentence), _NAME)
    return words if len(words) <= _SENTENCE else f"{words[: _SENTENCE - 1].rsplit(' ', 1)[0]} …"


def _short_name(name: object) -> str:
    return cut_words(str(name), _NAME)
