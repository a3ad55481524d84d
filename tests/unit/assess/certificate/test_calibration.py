"""Samples that no certificate can rest on are refused, and the rest is told."""

import re
from typing import Any

import pytest

from advrisk.assess.certificate.assessment import assess_certificates
from advrisk.assess.certificate.calibration import read_calibration
from advrisk.core.digest import digest
from advrisk.core.errors import RiskError
from advrisk.risk.certificate import calibration_order

from .conftest import Make

ARM = "pgd@linf:0.1"


def resisted(n: int) -> dict[str, dict[str, str]]:
    return {"m": {ARM: "r" * n}}


def uneven(n: int, **more: Any) -> list[dict[str, Any]]:
    return [{"label": 0 if place < 0.7 * n else 1, **more} for place in range(n)]


def test_classes_that_chance_hardly_makes_even_are_refused_unless_the_study_says_what_they_stand_for(
    made: Make,
) -> None:
    ledger = made(resisted(60), samples=[{"label": place % 6} for place in range(60)])
    with pytest.raises(RiskError, match=re.escape("every class has 10 samples to calibrate")):
        read_calibration(ledger)
    balanced = read_calibration(ledger, population="balanced")
    assert (balanced.population, balanced.evened, balanced.notes) == ("balanced", ("class",), ())
    drawn = read_calibration(ledger, population="as-sampled")
    assert (drawn.population, drawn.evened) == ("as-sampled", ())
    assert "equally frequent by class" in drawn.notes[0]


def test_few_samples_of_two_classes_may_be_even_by_chance(made: Make) -> None:
    ledger = made(resisted(8), samples=[{"label": place % 2} for place in range(8)])
    assert read_calibration(ledger).population == "as-sampled"
    with pytest.raises(
        RiskError, match=re.escape("says `population: balanced`, but neither the classes nor any stratum")
    ):
        read_calibration(ledger, population="balanced")


def test_strata_that_were_made_even_are_refused_too(made: Make) -> None:
    strata = [
        {"label": label["label"], "strata": f'{{"site": "{place % 5}"}}'} for place, label in enumerate(uneven(50))
    ]
    with pytest.raises(RiskError, match="every value of site has 10 samples"):
        read_calibration(made(resisted(50), samples=strata))


def test_a_stratum_that_names_every_sample_is_no_group(made: Make) -> None:
    strata = [row | {"strata": f'{{"frame": "{place}"}}'} for place, row in enumerate(uneven(50))]
    assert read_calibration(made(resisted(50), samples=strata)).population == "as-sampled"


def test_weights_are_refused(made: Make) -> None:
    samples = uneven(4)
    samples[2]["weight"] = 3.0
    with pytest.raises(RiskError, match="weights from 1 to 3"):
        read_calibration(made(resisted(4), samples=samples))


def test_no_sample_to_calibrate(made: Make) -> None:
    with pytest.raises(RiskError, match=re.escape("no sample to calibrate, and a certificate rests on those alone")):
        read_calibration(made(resisted(3), samples=uneven(3, split="evaluate")))


@pytest.mark.parametrize("split", ["train", "tune", "dropped-train", "dropped-tune"])
def test_a_copy_of_what_was_learned_from_or_tuned_on_is_refused(made: Make, split: str) -> None:
    samples = uneven(4)
    samples[1] |= {"hash": "same"}
    samples[3] |= {"hash": "same", "split": split}
    with pytest.raises(RiskError, match=re.escape(f"s1 (to {split}: s3)")):
        read_calibration(made(resisted(4), samples=samples))


def test_copies_within_the_set_are_a_caveat_of_every_model(made: Make) -> None:
    samples = uneven(4)
    samples[1]["hash"] = samples[2]["hash"] = "same"
    found = assess_certificates(made(resisted(4), samples=samples))
    (caveat,) = found.models[0].caveats
    assert caveat.startswith("Samples to calibrate with the same content as another one: 1.")
    assert not any("same content" in note for note in found.notes)


@pytest.mark.parametrize("split", ["evaluate", "dropped", "dropped-calibrate"])
def test_copies_of_samples_that_were_attacked_under_another_name_are_a_caveat(made: Make, split: str) -> None:
    samples: list[dict[str, Any]] = [{"label": place // 2} for place in range(4)]
    samples[3] |= {"split": split, "hash": "h1", "shard": "other"}
    found = assess_certificates(made(resisted(4), samples=samples))
    (caveat,) = found.models[0].caveats
    assert caveat.startswith("Samples to calibrate with the content of a sample that this run attacks, or attacked")
    assert "under another name: 1. What is asked may have been chosen after those results" in caveat


def test_the_fingerprint_is_of_ids_and_contents_and_the_order_of_analyses_of_contents_alone(made: Make) -> None:
    shards = [{"label": place // 3, "shard": f"shard {place // 2}", "place": place % 2} for place in range(10)]
    ledger = made(resisted(10), samples=shards)
    one = read_calibration(ledger)
    assert one.samples == calibration_order({f"s{place}": f"h{place}" for place in range(10)}), "also within a shard"
    assert one.fingerprint == digest(sorted([f"s{place}", f"h{place}"] for place in range(10)))
    assert one.classes == {0: 3, 1: 3, 2: 3, 3: 1}
