"""Certificates on a page: strings from outside stay text, and figures say what the numbers say."""

import json
import re
from pathlib import Path

import pytest

from advrisk.assess.certificate.assessment import assess_certificates
from advrisk.assess.certificate.records import CertificateAssessment
from advrisk.assess.certificate.signature import document_digest, new_key, signed
from advrisk.cli.certificates import print_certificates
from advrisk.core.numbers import size_text
from advrisk.report.certificate_figures import SMALLEST_P, p_curves, p_text, risk_bars
from advrisk.report.certificate_page import certificate_page
from advrisk.report.certificates import certificate_content, certificate_headlines
from tests.golden.make_certificate_v1 import MODEL, golden_ledger
from tests.unit.assess.certificate.conftest import write_rows

GOLDEN = Path(__file__).parents[2] / "golden" / "certificate-v1.json"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> CertificateAssessment:
    return assess_certificates(golden_ledger(tmp_path_factory.mktemp("run")))


def test_the_page_says_what_the_document_says_and_names_stay_text(tmp_path: Path) -> None:
    document = json.loads(GOLDEN.read_text(encoding="utf-8"))
    document["lists"][0]["attacks"][0]["params"] = {"<b>x</b>": "<img src=x onerror=alert(1)>"}
    document["notes"] = ["<i>note</i>"]
    page = certificate_page(document)
    assert "<script" not in page
    assert "plain &lt;script&gt; is certified in part" in page
    assert not re.search("<(b|i|img)[ >]", page)
    for sentence in (*document["not_claimed"], *document["assumptions"]):
        assert sentence.replace("'", "&#39;").replace("<", "&lt;").replace(">", "&gt;") in page
    assert document_digest(document) in page
    assert "http" not in page.replace('http-equiv="Content-Security-Policy"', "")
    key, _ = new_key(tmp_path / "key.pem")
    assert "by the key <code>" in certificate_page(signed(document, key))


@pytest.mark.parametrize(("certified", "sizes", "word"), [(True, 0.1, "Certified<"), (False, None, "Not certified<")])
def test_the_verdict_stands_on_top(certified: bool, sizes: float | None, word: str) -> None:
    document = json.loads(GOLDEN.read_text(encoding="utf-8"))
    document["claim"] |= {"certified": certified, "largest_eps": {"linf": sizes}}
    assert f">{word}" in certificate_page(document)


def test_curves_hold_every_list_and_what_it_is_held_against(found: CertificateAssessment) -> None:
    figure = p_curves(found, "linf")
    lines = {line["name"]: line for line in figure["data"]}
    plain = found.of(MODEL)
    levels = {line["y"][0] for line in figure["data"] if line["mode"] == "lines"}
    assert levels == {one.level for one in found.lists if one.norm == "linf"}
    assert {"hardened", "plain &lt;script&gt;"} <= set(lines)
    assert lines["plain &lt;script&gt;"]["y"] == [plain.of("linf", eps).p for eps in (0.02, 0.05)]
    assert [symbol.endswith("-open") for symbol in lines["plain &lt;script&gt;"]["marker"]["symbol"]] == [False, True]


def test_bars_end_at_what_is_certified(found: CertificateAssessment) -> None:
    clean, risk, wrong = risk_bars(found, "linf", 0.02)["data"]
    own = found.of(MODEL).of("linf", 0.02).certificate
    assert own is not None
    assert own.wrong is not None
    place = clean["y"].index(MODEL)
    assert clean["x"][place] == 9 / 80
    assert risk["x"][place] + risk["error_x"]["array"][place] == pytest.approx(own.certified_risk)
    assert wrong["x"][place] + wrong["error_x"]["array"][place] == pytest.approx(own.wrong.certified_risk)


def test_the_section_is_there_where_something_was_asked(found: CertificateAssessment) -> None:
    content = certificate_content(found)
    assert [view.norm for view in content["certificate_views"]] == ["l2", "linf"]
    assert len(content["certificate_figures"]) == 2 + 3, "curves by norm, bars by size"
    assert certificate_content(None, "no samples")["uncertified"] == "no samples"
    assert len(certificate_headlines(found)) == 2


def test_numbers_as_people_write_them() -> None:
    assert [p_text(p) for p in (0.5, 0.0123, 1e-5, 0.0)] == ["0.5000", "0.0123", "1.0e-05", f"< {SMALLEST_P:.0e}"]
    assert [size_text(eps) for eps in (8 / 255, 0.1, 0.5, 1.0, 0.031)] == ["8/255", "0.1", "0.5", "1", "0.031"]


def test_the_terminal_says_what_p_is_held_against_and_why_a_small_p_is_not_enough(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    few, many = "s" * 2 + "r" * 98, "s" * 30 + "r" * 70
    rows = {"a": {"pgd@linf:0.1": many, "pgd@linf:0.2": few}, "b": {"pgd@linf:0.1": many}}
    ledger = write_rows(tmp_path, rows, samples=[{"label": n % 7 % 3} for n in range(100)])
    print_certificates(assess_certificates(ledger))
    said = " ".join(capsys.readouterr().out.split())
    assert "held against" in said
    assert "0.0250" in said
    assert "So linf 0.2 cannot be certified, whatever p is there: no smaller eps is skipped." in said


def test_flags_are_explained_and_what_was_not_set_is_the_attacks_own_default() -> None:
    document = json.loads(GOLDEN.read_text(encoding="utf-8"))
    document["lists"][0]["attacks"][0] |= {"params": {"step_size": None}, "flags": ["still-gaining", "unheard-of"]}
    page = certificate_page(document)
    assert "Flagged still-gaining: the attack was still getting better when it ended: give it more steps." in page
    assert "step_size = the attack&#39;s own default" in page
    assert "= None" not in page
