"""What searches promise about settings that they did not try, wherever a certificate is told."""

import copy
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from advrisk.assess.certificate.assessment import assess_certificates
from advrisk.assess.certificate.document import certificate_document
from advrisk.assess.certificate.promises import promise, promised_level, with_searches
from advrisk.assess.certificate.records import CertificateAssessment, Premise, SearchFacts
from advrisk.assess.certificate.sections import certificate_words
from advrisk.assess.certificate.verification import verify_document
from advrisk.core.errors import StudyError
from advrisk.ledger import Ledger
from advrisk.ledger.searches import Course, Round, write_course, write_current
from advrisk.report.certificate_page import certificate_page
from advrisk.risk.certificate import p_value, search_guarantee
from advrisk.study import CertificateSpec, Source, validated

from .conftest import write_rows

N = 60
STATED = {"norm_bound": 1e-4, "noise": 1e-6, "kernel": "squared-exponential", "length_scale": 0.5, "delta": 0.01}
PREMISE = Premise(**STATED)  # type: ignore[arg-type]
SEARCH = SearchFacts("nes-linf-0.1", "gp-ucb", 50, ("sigma", "eta"), 1.0)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """Two settings of a search: 3 and 9 of 60 samples to tune broken; the second is frozen and tested on 60 others."""
    folder = tmp_path_factory.mktemp("run")
    samples = [{"label": 0, "split": "tune" if place < N else "calibrate"} for place in range(2 * N)]
    found = {"m": {"one@linf:0.1": "sss".ljust(2 * N, "r"), "two@linf:0.1": "sssssssss".ljust(2 * N, "r")}}
    facts = {"one@linf:0.1": {"origin": "search"}, "two@linf:0.1": {"origin": "frozen"}}
    made = write_rows(folder, found, facts=facts, samples=samples, rows={"clean_prediction": 0, "prediction": 0})
    axes = [{"name": "sigma", "low": 0.1, "high": 1.0, "log": True}]
    about = {"model": "m", "name": "nes-linf-0.1", "norm": "linf", "eps": 0.1, "method": "gp-ucb"}
    rounds = (
        Round("design", ({"sigma": 0.5},), ("one@linf:0.1",)),
        Round("gp-ucb", ({"sigma": 0.2},), ("two@linf:0.1",), 0.1),
    )
    write_course(folder, Course("a", about | {"n_rounds": 1, "freeze": 1, "axes": axes}, rounds, ("two@linf:0.1",)))
    write_current(folder, ["a"])
    return made


def assessed(ledger: Ledger, premise: Premise | None = None) -> CertificateAssessment:
    return with_searches(assess_certificates(ledger), ledger, premise)


def document(ledger: Ledger, premise: Premise | None = None) -> dict[str, Any]:
    found, made = assessed(ledger, premise), datetime(2026, 1, 2, tzinfo=UTC)
    return certificate_document(ledger, found, found.of("m"), every=found.lists, study="s", seed=0, made=made)


def test_without_a_premise_there_is_no_guarantee_and_everything_says_so(ledger: Ledger) -> None:
    (one,) = assessed(ledger).lists
    assert (one.searches[0].rounds, one.searches[0].beta, one.searches[0].parameters) == (1, 0.1, ("sigma",))
    (words,) = [text for text in certificate_words(assessed(ledger)) if "guarantee" in text]
    assert words.startswith("No guarantee from the search: the study does not state what the theorem rests on")
    content = document(ledger)
    assert content["search_guarantee"] is None
    assert content["lists"][0]["searches"][0]["level"] is None
    assert "no guarantee from the search: the study does not state" in certificate_page(content)
    assert verify_document(content).problems == ()


def test_with_a_premise_the_reason_is_told(ledger: Ledger) -> None:
    content = document(ledger, Premise(**STATED | {"norm_bound": 0.1}))  # type: ignore[arg-type]
    (search,) = content["lists"][0]["searches"]
    assert search["level"] is None
    assert search["text"].startswith("no guarantee from the search: untried settings may have a p larger by")
    assert content["search_guarantee"] == STATED | {"norm_bound": 0.1}
    assert verify_document(content).problems == ()
    for name, value in (("norm_bound", 0.2), ("length_scale", 1e-300), ("kernel", "rbf")):
        other = copy.deepcopy(content)
        other["search_guarantee"][name] = value
        assert not verify_document(other).holds, name
    other = copy.deepcopy(content)
    other["lists"][0]["searches"][0]["level"] = 0.04
    assert "searches[0].level" in verify_document(other).problems[0]


def test_a_level_is_that_of_the_theorem_on_a_grid_and_says_what_it_stands_on() -> None:
    grid = np.array([(x, y) for x in np.linspace(0, 1, 32) for y in np.linspace(0, 1, 32)])
    said = search_guarantee(0.05, rounds=50, settings=grid, beta=1.0, **STATED)  # type: ignore[arg-type]
    assert said.level is not None
    assert promised_level(SEARCH, 0.05, PREMISE) == pytest.approx(said.level, rel=1e-12)
    text = promise(SEARCH, 0.05, PREMISE)
    assert text.startswith(f"zeta' = {said.level:.3g}: all settings searched are certified if")
    assert "at most 6 % of the time" in text
    assert "nobody checked" in text
    assert "kernel that was fitted anew" in text


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"method": "grid", "beta": None}, "the theorem is about GP-UCB, and this was method grid"),
        ({"rounds": 0, "beta": None}, "a first design alone"),
        ({"parameters": tuple("abcdefghijk")}, "more than 10 parameters, found 11"),
        ({"beta": 1e-12}, "it used beta = 1e-06, and the theorem asks for"),
    ],
)
def test_searches_that_are_not_the_theorems(changes: dict[str, Any], says: str) -> None:
    other = SearchFacts(**vars(SEARCH) | changes)
    assert promised_level(other, 0.05, PREMISE) is None
    assert promise(other, 0.05, PREMISE).startswith("no guarantee from the search: ")
    assert says in promise(other, 0.05, PREMISE)


def test_the_papers_mean_is_there_on_request_and_called_no_p_value(ledger: Ledger) -> None:
    told = assessed(ledger).as_dict()["models"][0]["lists"][0]["searches"][0]
    p = [p_value(count, N, 0.1, method="hoeffding-bentkus") for count in (3, 9)]
    assert told["mean_p_as_printed"] == pytest.approx(np.mean(p), rel=1e-12)
    assert "no valid p-value" in told["mean_p_is"]
    assert "mean_p" not in str(document(ledger))


@pytest.mark.parametrize(
    "wrong", [{"norm_bound": -1}, {"noise": "much"}, {"kernel": "rbf"}, {"length_scale": 0}, {"delta": 1}, {"more": 1}]
)
def test_a_premise_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    assert validated(CertificateSpec, {"search_guarantee": STATED}, Source()).search_guarantee is not None
    with pytest.raises(StudyError, match="search_guarantee"):
        validated(CertificateSpec, {"search_guarantee": STATED | wrong}, Source())
    with pytest.raises(StudyError, match="search_guarantee"):
        validated(CertificateSpec, {"search_guarantee": {"norm_bound": 1}}, Source())
