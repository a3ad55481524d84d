"""Tensors from a ledger against the answers it was made of."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import xarray as xr

from advrisk.assess.indicators import reading as reading_module
from advrisk.assess.indicators.reading import read_tensor, read_tensors
from advrisk.core.errors import RiskError
from advrisk.ledger import Ledger
from advrisk.risk.indicators import RiskTensor, Scenario, risk
from advrisk.risk.indicators.tree import arm_risks
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
        if outcome == "already_wrong":
            return np.nan  # it was not attacked, so nobody knows whether its class can be changed
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
    with pytest.raises(RiskError, match=r"confidence-drop needs scores, but net returns labels only.*misclassified"):
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


# Class change


def test_what_attacks_left_alone_is_not_counted_as_unchanged(write: Write, given: Answered) -> None:
    ledger = write(given)
    found = read_tensor(ledger, "net", LOSSES)
    assert found.unasked == {"class-change": ("pgd",)}
    attacked = Scenario.from_mapping("evil", {"evil": {"weight": 1.0, "arms": ["pgd"]}})
    with pytest.raises(RiskError, match=r"class-change compares .* pgd did not attack .* with `success: prediction`"):
        risk(found, attacked, loss="class-change")
    assert risk(found, attacked, loss="misclassified").n == 11, "only the error is left out"
    rain = Scenario.from_mapping("wet", {"wet": {"weight": 1.0, "arms": ["rain-1"]}})
    assert risk(found, rain, loss="class-change").n == 11, "where no attack takes part, the loss is known"
    arms = arm_risks(found, loss="class-change")
    assert "pgd" not in arms
    assert "square" in arms


def test_an_attacker_leaves_alone_what_costs_more_as_it_is(write: Write) -> None:
    """Judged by the clean prediction, an attack moves wrong inputs, too, and may make them right."""
    given = Answered(models=("net",))
    clean_wrong = [n for n in range(given.n) if given.logits["net", "clean", 0, n].argmax() != given.label[n]]
    assert clean_wrong
    for place in given.places():
        given.more[place] = {"criterion": "prediction"}
    for n in clean_wrong:
        given.logits["net", "pgd", 0, n] = np.eye(3, dtype=np.float32)[given.label[n]]  # made right
    found = read_tensor(write(given), "net", ("misclassified", "class-change"))
    pgd, rain = (found.data.sel(arm=arm, repeat=0).values for arm in ("pgd", "rain-1"))
    assert pgd[0, clean_wrong].tolist() == [1.0] * len(clean_wrong)
    assert pgd[1, clean_wrong].tolist() == [1.0] * len(clean_wrong)
    for n in clean_wrong:  # nature does not choose
        assert rain[0, n] == expected(given, ("net", "rain-1", 0, n), "misclassified")


# Models that answer at random

DRAWN = 11


def drawn(given: Answered, seed: int = 1) -> None:
    """Draws for every row of `net`; the first of them stands in the row."""
    rng = np.random.default_rng(seed)
    for place in given.places():
        logits = given.logits[place] + rng.normal(scale=2, size=(DRAWN, given.classes)).astype(np.float32)
        given.draws[place] = logits
        given.more[place] = {"draws": logits.argmax(1).tolist(), "criterion": "label"}


def test_the_loss_of_a_random_model_is_the_mean_over_draws(write: Write, given: Answered) -> None:
    drawn(given)
    costs = {"name": "cost-matrix", "costs": [[0, 1, 5], [2, 0, 1], [9, 1, 0]]}
    own = custom_loss("own", lambda answers: answers.confidence + answers.prediction, needs="scores")
    found = read_tensor(write(given), "net", ["misclassified", costs, "confidence-drop", own])
    matrix, n = np.array(costs["costs"]), 0
    for place in given.places():
        model, arm, repeat, sample = place
        outcome = given.outcome.get(place, "resisted")
        if model != "net" or outcome in ("error", "timeout") or place in given.missing:
            continue
        of = (model, "clean", 0, sample) if outcome == "already_wrong" else place
        label, said = given.label[sample], given.draws[of].argmax(1)
        clean = softmax(given.draws[model, "clean", 0, sample]).mean(0)[label]
        chance = softmax(given.draws[of])
        wanted = [
            (said != label).mean(),
            matrix[label, said].mean(),
            np.maximum(clean - chance[:, label], 0).mean(),
            (chance.max(1) + said).mean(),
        ]
        values = found.data.sel(sample=f"s{sample:03d}", arm=arm, repeat=repeat).values
        assert values == pytest.approx(np.array(wanted), abs=1e-5), place
        n += 1
    assert n > 50
    early = found.data["early"].sel(loss="misclassified", arm="pgd", sample="s000", repeat=0)
    said = given.draws["net", "pgd", 0, 0].argmax(1)
    assert float(early) == pytest.approx((said[:5] != given.label[0]).mean())


def test_a_draw_that_is_refused_costs_nothing(write: Write) -> None:
    given = Answered(models=("net",))
    drawn(given)
    given.more["net", "fog-1", 0, 0]["draws"] = [-1] * 4 + [(int(given.label[0]) + 1) % 3] * 7
    found = read_tensor(write(given), "net", ("misclassified", "rejected"))
    assert found.data.sel(arm="fog-1", sample="s000", repeat=0).values == pytest.approx([7 / 11, 4 / 11])


def test_of_ledgers_without_draws_the_success_rate_is_the_loss(write: Write) -> None:
    given = Answered(models=("net",))
    for place in given.places():
        given.more[place] = {"criterion": "label", "success_rate": 4 / 11 if place[1] == "pgd" else 0.0}
    found = read_tensor(write(given), "net", ("misclassified", "class-change"))
    assert found.data.sel(loss="misclassified", arm="pgd", repeat=0).values == pytest.approx(4 / 11)
    assert set(found.data.sel(loss="class-change", arm="pgd", repeat=0).values.tolist()) <= {0.0, 1.0}


def test_drawn_tensors_merge_and_files_hold_their_halves(write: Write) -> None:
    given = Answered(models=("net",))
    drawn(given)
    ledger = write(given)
    whole = read_tensor(ledger, "net", ("misclassified",))
    evil = Scenario.from_mapping("evil", {"evil": {"weight": 1.0, "arms": ["pgd", "square"]}})
    wanted = risk(whole, evil)
    parts = [read_tensor(ledger, "net", ("misclassified",), arms=[name]) for name in ("pgd", "square")]
    again = parts[0].merge(parts[1])
    assert again.is_random
    assert risk(again, evil) == wanted
    stored = xr.load_dataset(whole.to_netcdf(ledger.path.parent / "t.nc"), engine="scipy")["risk"]
    np.testing.assert_array_equal(stored["early"].values, whole.data["early"].values)
    assert stored.attrs["early_share"] == whole.data.attrs["early_share"]
    table = pq.read_table(whole.to_parquet(ledger.path.parent / "t.parquet"))
    assert json.loads(table.schema.metadata[b"advrisk.tensor"])["early_share"] == whole.data.attrs["early_share"]
    for row in table.to_pylist():
        cell = whole.data.sel({dim: row[dim] for dim in whole.data.dims})
        assert np.array_equal(np.float64(row["early"]), cell["early"].values, equal_nan=True)


def test_the_worst_of_several_arms_is_not_chosen_by_the_draws_that_value_it() -> None:
    """All arms err in half of the queries: the largest of eight means over eleven draws is far above a half."""
    rng = np.random.default_rng(0)
    errs = rng.random((4000, 8, DRAWN)) < 0.5
    arms = [str(k) for k in range(8)]
    fields = {"arms": arms, "kind": ["attack"] * 8, "ranges": {"loss": (0, 1)}}
    found = RiskTensor.from_arrays(
        errs.mean(2), early=errs[:, :, :5].mean(2)[None, :, :, None], early_share=5 / DRAWN, **fields
    )
    evil = Scenario.from_mapping("evil", {"evil": {"weight": 1.0, "arms": arms}})
    assert errs.mean(2).max(1).mean() > 0.68, "so it would be"
    fair = risk(found, evil)
    assert fair.low <= 0.5 <= fair.high
    assert fair.high - fair.low < 0.02
    certain = RiskTensor.from_arrays(errs[:, :, 0], **fields)
    assert risk(certain, evil).value == pytest.approx(errs[:, :, 0].max(1).mean()), "without draws, the maximum"
