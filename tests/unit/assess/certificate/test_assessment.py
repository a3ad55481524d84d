"""Lists of every model, norm and eps, and what all of them together certify; p-values from scipy."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, binom

from advrisk.assess.certificate.assessment import assess_certificates
from advrisk.assess.certificate.sections import certificate_words
from advrisk.assess.certificate.statements import claim, headline, would_take
from advrisk.assess.certificate.words import rate
from advrisk.core.errors import RiskError
from advrisk.risk.certificate import betting_p_values, calibration_order

from .conftest import Make, write_rows

N = 100


def broken(failures: int, wrong: int = 0, n: int = N) -> str:
    """So many samples that fail, then so many that were wrong before; the rest resisted."""
    return "s" * failures + "w" * wrong + "r" * (n - failures - wrong)


def in_looks(text: str) -> str:
    """Letters for the samples in the order of looks, as letters for s0, s1, …."""
    order = calibration_order({f"s{place}": f"h{place}" for place in range(len(text))})
    letters = dict(zip(order, text, strict=True))
    return "".join(letters[f"s{place}"] for place in range(len(text)))


def drawn(n: int = N) -> list[dict[str, Any]]:
    return [{"label": place % 7 % 3} for place in range(n)]


def test_one_list_is_the_binomial_tail_of_its_worst_attack(made: Make) -> None:
    ledger = made(
        {"m": {"pgd@linf:0.1": "sss" + broken(0, 0, 87) + "w" * 10, "fgsm@linf:0.1": "rrss" + broken(0, 0, 96)}},
        samples=drawn(),
    )
    found = assess_certificates(ledger, alpha=0.1, zeta=0.05)
    (one,) = found.lists
    assert one.certificate is not None
    assert [attack.arm for attack in one.attacks] == ["pgd@linf:0.1", "fgsm@linf:0.1"]
    assert one.p == pytest.approx(binom.cdf(3, N, 0.1), rel=1e-12)
    assert one.certificate.certified_risk == pytest.approx(beta.ppf(0.95, 4, 97), rel=1e-9)
    assert one.certificate.union.count.failures == 4, "of the first three and the third and fourth"
    assert one.certificate.wrong is not None
    assert one.certificate.wrong.count.failures == 14
    assert found.of("m").clean_error.value == 0.1
    assert (one.verdict, found.of("m").certified, one.level) == ("certified", True, 0.05)
    assert found.most_failures == max(k for k in range(N) if binom.cdf(k, N, 0.1) <= 0.05)
    assert found.smallest_n == min(n for n in range(1, N) if 0.9**n <= 0.05)


def test_sizes_are_tested_in_ascending_order_and_none_is_skipped(made: Make) -> None:
    ledger = made(
        {"m": {"pgd@linf:0.4": broken(2), "pgd@linf:0.1": broken(2), "pgd@linf:0.2": broken(30)}}, samples=drawn()
    )
    found = assess_certificates(ledger)
    assert [(one.eps, one.verdict) for one in found.lists] == [
        (0.1, "certified"),
        (0.2, "not certified"),
        (0.4, "not certified"),
    ]
    assert found.of("m").sizes["linf"].largest == 0.1
    assert found.of("m").of("linf", 0.4).p == pytest.approx(binom.cdf(2, N, 0.1))
    with pytest.raises(RiskError, match=re.escape("m was not attacked within l2 1; known: linf 0.1")):
        found.of("m").of("l2", 1)


def test_models_and_norms_share_zeta_also_those_that_are_not_told_of(made: Make) -> None:
    k = max(k for k in range(N) if binom.cdf(k, N, 0.1) <= 0.05)
    assert 0.05 / 3 < binom.cdf(k, N, 0.1) < 0.05 / 2
    lists = {"pgd@linf:0.1": broken(k), "pgd@l2:1": broken(60)}
    ledger = made({"a": lists, "b": {"pgd@linf:0.1": broken(k)}}, samples=drawn())
    found = assess_certificates(ledger, models=["b"])
    (one,) = found.lists
    assert one.level == pytest.approx(0.05 / 3)
    assert not one.certified
    alone = assess_certificates(ledger, arms=["pgd@linf*"], models=["b"])
    assert alone.lists[0].level == pytest.approx(0.05 / 2)
    assert alone.lists[0].certified


def test_what_is_certified_hands_its_share_on(made: Make) -> None:
    k = max(k for k in range(N) if binom.cdf(k, N, 0.1) <= 0.05)
    ledger = made({"a": {"pgd@linf:0.1": broken(0)}, "b": {"pgd@linf:0.1": broken(k)}}, samples=drawn())
    assert all(one.certified for one in assess_certificates(ledger).lists)


def test_an_unfinished_list_has_no_p_of_counts_but_a_look_and_its_share_is_not_given_away(made: Make) -> None:
    ledger = made({"m": {"pgd@linf:0.1": in_looks("r" * 60 + "." * 40), "pgd@linf:0.2": broken(0)}}, samples=drawn())
    found = assess_certificates(ledger)
    first, second = found.lists
    assert (first.certificate, first.verdict, first.certified) == (None, "not finished", False)
    assert (second.verdict, second.certified) == ("not finished", False), "a smaller eps is not certified yet"
    assert first.look.n == 60
    assert first.look.decided_at is not None
    assert first.look.p <= 0.05
    assert not found.finished
    assert any("not finished" in note for note in found.notes)
    betting = assess_certificates(ledger, method="betting")
    assert betting.lists[0].certificate is not None
    assert betting.lists[0].certificate.n == 60
    assert betting.lists[0].certified


def test_a_look_covers_the_first_samples_of_the_preset_order_alone(made: Make) -> None:
    samples = [{"label": place % 3, "shard": f"{place // 10}", "place": place % 10} for place in range(60)]
    text = list("r" * 60)
    text[25] = "."
    ledger = made({"m": {"pgd@linf:0.1": "".join(text)}}, samples=samples)
    found = assess_certificates(ledger, population="as-sampled")
    assert found.lists[0].look.n == found.calibration.samples.index("s25")


def test_errors_count_as_failures_and_are_told(made: Make) -> None:
    ledger = made({"m": {"pgd@linf:0.1": "ett" + broken(1, 0, 97)}}, samples=drawn())
    found = assess_certificates(ledger)
    assert (found.lists[0].attacks[0].failures, found.lists[0].attacks[0].untold) == (4, 3)
    assert "no finite number: 2: timeout; 1: error. 3 count as failures" in " ".join(found.notes)


def test_errors_of_further_tries_are_no_further_failures(made: Make) -> None:
    text = "e" + broken(0, 0, 99)
    facts = {"fgsm@linf:0.1": {"origin": "surrogate"}}
    ledger = made(
        {"m": {"pgd@linf:0.1": [text, text]}, "s": {"fgsm@linf:0.1": "e" * 100}}, samples=drawn(), facts=facts
    )
    (note,) = [text for text in assess_certificates(ledger).notes if text.startswith("Rows of attacks")]
    assert "2: error. 1 count as failures; the rest are further tries, or were incorrect" in note


def test_tries_count_together_and_the_first_one_is_told(made: Make) -> None:
    ledger = made({"m": {"nes@linf:0.1": ["s" + broken(0, 0, 99), "rss" + broken(0, 0, 97)]}}, samples=drawn())
    attack = assess_certificates(ledger).lists[0].attacks[0]
    assert (attack.tries, attack.failures, attack.first_try) == (2, 3, 1)


def test_too_few_samples_are_told_from_too_many_failures(made: Make) -> None:
    ledger = made({"m": {"pgd@linf:0.1": broken(0, 0, 20)}}, samples=drawn(20))
    found = assess_certificates(ledger)
    assert found.smallest_n == 29
    assert "can never certify" in " ".join(found.notes)
    assert found.lists[0].verdict == "not certified"


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"alpha": 0.0}, "alpha must lie between 0 and 1"),
        ({"alpha": 1.0}, "alpha must lie between 0 and 1"),
        ({"zeta": 1.5}, "zeta must lie between 0 and 1"),
        ({"zeta": float("nan")}, "zeta must lie between 0 and 1"),
        ({"method": "exakt"}, "no method is called 'exakt'; did you mean 'exact'?"),
        ({"models": ["n"]}, "no certificate of 'n'; known: m"),
    ],
)
def test_questions_without_an_answer(made: Make, given: dict[str, Any], complaint: str) -> None:
    ledger = made({"m": {"pgd@linf:0.1": "rr"}})
    with pytest.raises(RiskError, match=re.escape(complaint)):
        assess_certificates(ledger, **given)


def test_everything_is_plain_values_for_json_and_csv(made: Make) -> None:
    ledger = made({"m": {"pgd@linf:0.1": broken(3, 10), "pgd@linf:0.2": "." * N}}, samples=drawn())
    found = assess_certificates(ledger)
    again = json.loads(json.dumps(found.as_dict()))
    assert again["models"][0]["lists"][0]["by_itself"]["p"] == found.lists[0].p
    assert "claim" not in again["models"][0]["lists"][0]["by_itself"]
    lines = found.rows()
    assert [(line["attack"], line["failures"]) for line in lines] == [
        ("pgd@linf:0.1", 3),
        ("any of them", 3),
        ("wrong, clean or attacked", 13),
        ("pgd@linf:0.2", None),
    ]
    assert [line["n"] for line in lines] == [N, N, N, None]
    partial = again["models"][0]["lists"][1]
    assert (partial["n"], partial["attacks"][0]["failures"]) == (None, None)
    assert len({tuple(line) for line in lines}) == 1, "one header for all"


def test_a_balanced_set_is_named_and_not_bet_on(made: Make) -> None:
    ledger = made({"m": {"pgd@linf:0.1": broken(3)}}, samples=[{"label": place % 10} for place in range(N)])
    found = assess_certificates(ledger, population="balanced")
    assert found.calibration.evened == ("class",)
    assert found.lists[0].look.p == 1.0
    with pytest.raises(RiskError, match="do not go together"):
        assess_certificates(ledger, population="balanced", method="betting")


def test_few_failures_of_a_balanced_set_are_no_more_likely_than_the_binomial_says() -> None:
    """Hoeffding (1956), by convolution: classes of unlike risk, each with as many samples."""
    for risks in ((0.0, 0.2), (0.05, 0.15), (0.0, 0.0, 0.3), (0.3, 0.02, 0.0, 0.1)):
        each, alpha = 60 // len(risks), sum(risks) / len(risks)
        counts = np.array([1.0])
        for risk in risks:
            counts = np.convolve(counts, binom.pmf(np.arange(each + 1), each, risk))
        n = each * len(risks)
        few = np.arange(int(n * alpha - 1) + 1)
        assert (np.cumsum(counts)[few] <= binom.cdf(few, n, alpha) + 1e-12).all()


@pytest.mark.parametrize("method", ["exact", "betting"])
def test_a_model_that_refuses_everything_is_wrong_in_the_end_and_that_is_told(made: Make, method: Any) -> None:
    ledger = made({"m": {"clean": "j" * N, "pgd@linf:0.1": "s" + "j" * (N - 1)}}, samples=drawn())
    found = assess_certificates(ledger, method=method)
    (one,) = found.lists
    assert one.certificate is not None
    assert one.certificate.wrong is not None
    assert (one.certificate.union.count.failures, one.certificate.wrong.count.failures) == (1, N)
    assert not one.certificate.wrong.certified
    assert (found.of("m").n_wrong, found.of("m").n_refused) == (0, N)
    assert f"Clean inputs that are refused: m {N} of {N}." in " ".join(found.notes)


def test_what_is_refused_under_attack_only_is_wrong_in_the_end(made: Make) -> None:
    ledger = made({"m": {"pgd@linf:0.1": "sjjw" + "r" * (N - 4)}}, samples=drawn())
    (one,) = assess_certificates(ledger).lists
    assert one.certificate is not None
    assert one.certificate.wrong is not None
    assert one.certificate.wrong.count.failures == 4
    assert one.wrong_at == tuple(sorted(one.wrong_at))
    assert len(one.wrong_at) == 4


def test_failures_of_bets_stand_beside_the_samples_they_were_counted_on(made: Make) -> None:
    ledger = made({"m": {"pgd@linf:0.1": in_looks("s" * 5 + "r" * 35 + "." * 59 + "s")}}, samples=drawn())
    found = assess_certificates(ledger, method="betting")
    assert {(line["failures"], line["n"]) for line in found.rows()} == {(5, 40)}
    assert found.as_dict()["models"][0]["lists"][0]["n"] == 40


def test_what_is_not_finished_is_told_as_neither(made: Make) -> None:
    letters = {"pgd@linf:0.1": broken(0), "pgd@linf:0.2": in_looks("r" * 5 + "." * 95), "pgd@linf:0.4": broken(90)}
    ledger = made({"m": letters, "n": {"pgd@linf:0.1": "." * N}, "o": {"pgd@linf:0.1": broken(90)}}, samples=drawn())
    for method in ("exact", "betting"):
        found = assess_certificates(ledger, method=method)  # type: ignore[arg-type]
        heads = [headline(found, model, model.lists) for model in found.models]
        end = rate(found.of("m").of("linf", 0.1).certificate.wrong.certified_risk)  # type: ignore[union-attr]
        fails = "the worst attack breaks 90 of 100 samples (p = 1.0000, above its share of zeta, 0.0167)"
        clean = "Clean error: 0 % on the 100 calibration samples"
        assert heads == [
            f"m is certified in part, within linf 0.1: under these attacks it is wrong on at most {end} of inputs, a "
            f"bound wrong at most 5 % of the time, by itself. Not certified within linf 0.4: {fails}. Not "
            f"finished within linf 0.2. {clean}",
            "n is not decided yet: not finished within linf 0.1",
            f"o is not certified within linf 0.1: {fails}. {clean}",
        ]
        assert len(heads[0].split(". ")[0].split()) < 35
        assert "It is not decided yet whether" in claim(found, found.of("n"), found.of("n").lists)
        assert "It is not decided yet within linf 0.2" in claim(found, found.of("m"), found.of("m").lists)
        assert would_take(found, found.of("m").of("linf", 0.2)) is None


def test_a_model_that_is_not_certified_is_said_so_first_with_the_sizes_that_fail_and_why(made: Make) -> None:
    letters = {"pgd@linf:0.1": broken(9), "pgd@linf:0.2": broken(40), "pgd@linf:0.4": broken(100)}
    found = assess_certificates(made({"m": letters}, samples=drawn()))
    assert headline(found, found.models[0], found.lists) == (
        f"m is not certified within linf 0.1, 0.2, 0.4: the worst attack breaks 9 of 100 samples at 0.1 (p = "
        f"{binom.cdf(9, N, 0.1):.4f}, above its share of zeta, 0.0500) and 100 of 100 at 0.4. Clean error: 0 % on the "
        "100 calibration samples"
    )


def test_a_look_decides_at_the_share_of_its_list(made: Make) -> None:
    ledger = made({"m": {"pgd@linf:0.1": broken(0)}, "n": {"pgd@linf:0.1": broken(50)}}, samples=drawn())
    first = assess_certificates(ledger, method="betting").lists[0]
    p = betting_p_values([0.0] * N, 0.1)
    assert first.look.decided_at == int(np.argmax(p <= 0.025)) + 1 > int(np.argmax(p <= 0.05)) + 1


def test_how_many_claims_share_zeta_does_not_depend_on_the_models_that_are_told_of(made: Make) -> None:
    ledger = made({"a": {"pgd@linf:0.1": broken(90)}, "b": {"pgd@linf:0.1": broken(0)}}, samples=drawn())
    for models in (None, ["b"]):
        found = assess_certificates(ledger, models=models)
        assert (found.n_claims, found.n_sequences) == (2, 2)
        assert any("All 2 claims of this run together" in words for words in certificate_words(found))


def test_the_samples_that_bets_would_take_are_said_to_be_the_exact_test_s(made: Make) -> None:
    ledger = made({"m": {"pgd@linf:0.1": "r" * 45 + "s" * 8 + "r" * 47}}, samples=drawn())
    told = {}
    for method in ("exact", "betting"):
        found = assess_certificates(ledger, method=method)  # type: ignore[arg-type]
        told[method] = would_take(found, found.lists[0]) or ""
    assert "would certify it nine times out of ten." in told["exact"]
    assert "would certify it nine times out of ten by the exact test; bets take more." in told["betting"]


@pytest.mark.parametrize("method", ["exact", "hoeffding-bentkus", "betting"])
def test_an_alpha_that_no_set_can_certify_is_not_certified(tmp_path: Path, method: Any) -> None:
    ledger = write_rows(tmp_path, {"m": {"pgd@linf:0.1": "r" * 20}})
    found = assess_certificates(ledger, alpha=1e-9, method=method)
    assert not found.lists[0].certified
    assert "20 samples to calibrate can never certify a risk of 1e-09" in found.notes[0]
