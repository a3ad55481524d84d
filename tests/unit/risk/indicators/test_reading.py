"""Tensors from a ledger against the answers it was made of."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from advrisk.core.errors import RiskError
from advrisk.ledger import Ledger
from advrisk.risk.indicators import RiskTensor
from advrisk.risk.indicators import reading as reading_module
from advrisk.risk.indicators.reading import read_tensor, read_tensors
from advrisk.risk.losses import custom_loss

from .conftest import Answered, softmax

Write = Callable[..., Ledger]


def expected(given: Answered, place: tuple[str, str, int, int], loss: str) -> float:
    """One cell, from the answers."""
    model, _, _, sample = place
    outcome = given.outcome.get(place, "resisted")
    if outcome in ("error", "timeout") or place in given.missing:
        return np.nan
    clean = given.logits[model, "clean", 0, sample]
    logits = clean if outcome in ("already_wrong", "rejected") else given.logits[place]
    label = given.label[sample]
    if loss == "misclassified":
        return float(logits.argmax() != label)
    if loss == "class-change":
        return float(logits.argmax() != clean.argmax())
    return float(max(0.0, softmax(clean)[label] - softmax(logits)[label]))


def assert_is(found: RiskTensor, given: Answered, losses: tuple[str, ...]) -> None:
    for place in given.places():
        if place[0] != found.model:
            continue
        for loss in losses:
            cell = found.data.sel(loss=loss, sample=f"s{place[3]:03d}", arm=place[1], repeat=place[2])
            assert float(cell) == pytest.approx(expected(given, place, loss), abs=1e-6, nan_ok=True), (place, loss)


LOSSES = ("misclassified", "class-change", "confidence-drop")


@pytest.fixture
def given() -> Answered:
    made = Answered()
    made.outcome["net", "pgd", 0, 2] = "already_wrong"
    made.outcome["net", "pgd", 0, 3] = "error"
    made.outcome["net", "rain-1", 1, 4] = "timeout"
    made.outcome["net", "square", 0, 5] = "rejected"
    made.outcome["net", "square", 0, 6] = "success"
    made.missing.add(("net", "fog-1", 0, 7))
    return made


def test_every_cell_is_the_loss_of_its_answer(write: Write, given: Answered) -> None:
    for model in ("net", "other"):
        assert_is(read_tensor(write(given, model), model, LOSSES), given, LOSSES)


def test_what_is_known_of_samples_and_arms(write: Write, given: Answered) -> None:
    found = read_tensor(write(given), "net")
    assert found.losses == ("misclassified",)
    assert found.range_of("misclassified") == (0, 1)
    assert found.arms == ("clean", "fog-1", "pgd", "rain-1", "square")
    assert found.repeats.tolist() == [1, 1, 1, 3, 1]
    assert found.label.tolist() == given.label.tolist()
    assert found.strata["light"].tolist() == ["night" if n % 3 == 0 else "day" for n in range(12)]
    assert found.failed.sum() == 2
    assert found.failed[3, 2]
    assert found.failed[4, 3]
    assert "t1" not in found.samples, "only samples to be evaluated"


def test_some_arms_at_a_time_give_the_same(write: Write, given: Answered, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_module, "_MOST_LOGITS", 1)
    assert_is(read_tensor(write(given), "net", LOSSES), given, LOSSES)


def test_the_largest_logits_will_do_where_the_label_is_among_them(write: Write) -> None:
    given = Answered(classes=6, top=5)
    found = read_tensor(write(given), "net", ["confidence-drop"])
    for place in given.places():
        logits = given.logits[place]
        if place[0] == "net" and logits.argmin() != given.label[place[3]]:
            clean = given.logits["net", "clean", 0, place[3]]
            if clean.argmin() != given.label[place[3]]:
                cell = found.data.sel(loss="confidence-drop", sample=f"s{place[3]:03d}", arm=place[1], repeat=place[2])
                assert float(cell) == pytest.approx(expected(given, place, "confidence-drop"), abs=1e-6)


def test_of_the_largest_logits_too_the_clean_ones_stand_where_an_attack_had_nothing_to_do(write: Write) -> None:
    """Both the logits and the classes that they belong to: the drop is 0, whatever the row itself holds."""
    given = Answered(classes=6, top=3)
    for sample in range(12):
        given.outcome["net", "pgd", 0, sample] = "already_wrong"
        given.logits["net", "pgd", 0, sample] = given.logits["net", "clean", 0, sample][::-1].copy()
    found = read_tensor(write(given), "net", ["confidence-drop", custom_loss("first", first, needs="scores")])
    assert found.data.sel(loss="confidence-drop", arm="pgd", repeat=0).values.tolist() == [0.0] * 12
    expect = [given.logits["net", "clean", 0, sample].argmax() for sample in range(12)]
    assert found.data.sel(loss="first", arm="pgd", repeat=0).values.tolist() == expect


def first(answers: Any) -> Any:
    return np.float64(answers.classes[:, 0])


def test_arms_by_name(write: Write, given: Answered) -> None:
    ledger = write(given)
    assert read_tensor(ledger, "net", arms=["rain-*"]).arms == ("clean", "rain-1")
    with pytest.raises(RiskError, match="no arm is called 'rian'"):
        read_tensor(ledger, "net", arms=["rian"])
    given.arms["rain-1"]["origin"] = "search"
    assert "rain-1" not in read_tensor(write(given, "searched"), "net").arms


def test_models_are_read_when_they_are_asked_for(write: Write, given: Answered) -> None:
    ledger = write(given)
    found = read_tensors(ledger, LOSSES)
    assert list(found) == ["net", "other"]
    assert found._read == {}
    assert found["net"] is found["net"]
    assert list(found._read) == ["net"]
    assert list(read_tensors(ledger, models=["other"])) == ["other"]
    with pytest.raises(RiskError, match="no model called 'nte' in this run; did you mean 'net'"):
        read_tensors(ledger, models=["nte"])
    with pytest.raises(RiskError, match="no model called 'nte'"):
        read_tensor(ledger, "nte")
    with pytest.raises(KeyError):
        found["nte"]


def test_surrogates_are_no_models_of_the_run(write: Write) -> None:
    given = Answered()
    ledger = write(given)
    from advrisk.ledger import table_from

    rows = {"model": ["help"] * 2, "arm": ["clean", "pgd"], "kind": ["clean", "attack"], "recipe": ["x", "y"]}
    ledger.append({"arms": table_from("arms", rows | {"origin": ["surrogate"] * 2, "repeats": [1, 1]})})
    assert list(read_tensors(Ledger.open(ledger.path.parent))) == ["net", "other"]


def test_models_that_say_their_class_only(write: Write) -> None:
    given = Answered(capability="labels")
    ledger = write(given)
    assert_is(read_tensor(ledger, "net", LOSSES[:2]), given, LOSSES[:2])
    with pytest.raises(RiskError, match=r"confidence-drop needs scores, but net says its class only.*misclassified"):
        read_tensor(ledger, "net", ["confidence-drop"])


def test_what_cannot_be_read(write: Write) -> None:
    bare = Answered(arms={"pgd": {"kind": "attack", "family": "pgd"}, "clean": {"kind": "clean", "family": "clean"}})
    for place in bare.places():
        if place[1] == "clean":
            bare.missing.add(place)
    with pytest.raises(RiskError, match="holds no scores of some arm, or of the clean inputs"):
        read_tensor(write(bare), "net", ["confidence-drop"])
    only = Answered(arms={"clean": {"kind": "clean", "family": "clean"}})
    with pytest.raises(RiskError, match="holds no corruption and no attack"):
        read_tensors(write(only, "only"))


def test_a_run_without_clean_rows(write: Write) -> None:
    given: Any = Answered()
    clean = given.arms.pop("clean")
    ledger = write(given)
    assert clean["kind"] == "clean"
    assert_is(read_tensor(ledger, "net", LOSSES[:2]), given, LOSSES[:2])
    with pytest.raises(RiskError, match="needs the scores of clean inputs, but this run holds none of net"):
        read_tensor(ledger, "net", ["confidence-drop"])
