"""Which detectors are told of, and what to do about those of which nothing can be."""

from collections.abc import Callable

import pytest

from advrisk.assess.detection.assessment import assess_detection
from advrisk.core.errors import RiskError
from advrisk.ledger import Ledger, table_from
from advrisk.ledger.known_detectors import add_imported_detectors, write_study_detectors

from .conftest import EYE, random_rows

Write = Callable[..., Ledger]


def set_aside(ledger: Ledger) -> Ledger:
    """One sample to calibrate, which nobody has scored."""
    ledger.append({"samples": table_from("samples", {"sample": ["c0"], "split": ["calibrate"], "weight": [1.0]})})
    return Ledger.open(ledger.path.parent)


def test_one_name_is_no_list_of_letters(write: Write) -> None:
    ledger = write(random_rows(0, models=("net", "other")), second=True)
    listed = assess_detection(ledger, detectors=["eye"], models=["net"], arms=["pgd*"], resamples=20)
    alone = assess_detection(ledger, detectors="eye", models="net", arms="pgd*", resamples=20)
    assert alone.as_dict() == listed.as_dict()


def test_detectors_that_left_the_study_are_named(write: Write) -> None:
    ledger = write(random_rows(0), second=True)
    write_study_detectors(ledger.path.parent, [EYE])
    write_study_detectors(ledger.path.parent, [])
    with pytest.raises(RiskError, match="the study has no detector now; eye, second scored this run before: name one"):
        assess_detection(ledger, resamples=20)
    assert assess_detection(ledger, detectors=["eye"], resamples=20).tables[0].name == "eye"


@pytest.mark.parametrize(
    ("imported", "remedy"),
    [(True, "import its scores of all inputs in one file"), (False, "finish the run with this detector in its study")],
)
def test_what_to_do_about_a_missing_score_depends_on_where_scores_come_from(
    write: Write, imported: bool, remedy: str
) -> None:
    rows = random_rows(0)
    del rows.score["net", "clean", 0, 0]
    ledger = write(rows)
    folder = ledger.path.parent
    add_imported_detectors(folder, [EYE]) if imported else write_study_detectors(folder, [EYE])
    with pytest.raises(RiskError, match=f"has not scored 1 sample of 40 of net; {remedy}") as caught:
        assess_detection(ledger, resamples=20)
    assert (f"`advrisk export {folder} to-score.npz --to-score`" in str(caught.value)) == imported


def test_thresholds_without_samples_to_calibrate_are_one_note_for_all(write: Write) -> None:
    ledger = write(random_rows(0, models=("net", "other")), second=True)
    (note,) = assess_detection(ledger, resamples=20).notes
    assert note.startswith(f"{EYE} (net, other); second@2 (net, other): the threshold for a rate of false alarms")
    assert note.endswith("set `calibrate` under `data`, for example to 200.")


def test_samples_to_calibrate_that_nobody_scored_are_no_matter_of_the_study_of_an_import(write: Write) -> None:
    ledger = set_aside(write(random_rows(0)))
    (note,) = assess_detection(ledger, resamples=20).notes
    assert note.endswith("run the study again with these detectors, which then score the calibration split.")
    add_imported_detectors(ledger.path.parent, [EYE])
    (note,) = assess_detection(ledger, resamples=20).notes
    assert note.endswith("import the scores of the calibration split too (1 sample).")
