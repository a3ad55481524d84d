"""A certificate as a page: it says what the document says, and strings from outside stay text."""

import json
import re
from pathlib import Path

import pytest

from advrisk.assess.certificate.signature import document_digest, new_key, signed
from advrisk.report.certificate_page import certificate_page

GOLDEN = Path(__file__).parents[2] / "golden" / "certificate-v4.json"


def test_the_page_says_what_the_document_says_and_names_stay_text(tmp_path: Path) -> None:
    document = json.loads(GOLDEN.read_text(encoding="utf-8"))
    document["lists"][0]["attacks"][0]["params"] = {"<b>x</b>": "<img src=x onerror=alert(1)>"}
    document["notes"] = ["<i>note</i>"]
    page = certificate_page(document)
    assert "<script" not in page
    assert (
        "plain &lt;script&gt; is certified in part, within l2 1 and linf 0.02: under these attacks it is wrong" in page
    )
    assert "a bound wrong at most 5 % of the time, by itself. Not certified within linf 0.05" in page
    assert not re.search("<(b|i|img)[ >]", page)
    for sentence in (*document["not_claimed"], *document["assumptions"]):
        assert sentence.replace("'", "&#39;").replace("<", "&lt;").replace(">", "&gt;") in page
    assert document_digest(document) in page
    assert "http" not in page.replace('http-equiv="Content-Security-Policy"', "")
    key, _ = new_key(tmp_path / "key.pem")
    assert "Ed25519, with the key <code>" in certificate_page(signed(document, key))
    named = certificate_page(signed(document, key, name="Ada <b>"))
    assert "in the name of Ada &lt;b&gt; (the signer&#39;s own word)" in named.replace("'", "&#39;")


@pytest.mark.parametrize(
    ("certified", "caveats", "word"),
    [
        (True, [], "Certified"),
        (True, ["alpha was chosen later"], "Certified, with caveats"),
        (False, [], "Not certified"),
        (None, [], "Certified in part"),
    ],
)
def test_the_verdict_stands_on_top_and_the_caveats_below_it(
    certified: bool | None, caveats: list[str], word: str
) -> None:
    document = json.loads(GOLDEN.read_text(encoding="utf-8"))
    document["claim"]["caveats"] = caveats
    for one in document["lists"]:
        one["certified"] = one["certified"] if certified is None else certified
    page = certificate_page(document)
    assert f">{word}<" in page
    assert ("Caveats: read these before you rely on it" in page) == bool(caveats)
    assert all(caveat in page for caveat in caveats)


def test_flags_are_explained_and_what_was_not_set_is_the_attacks_own_default() -> None:
    document = json.loads(GOLDEN.read_text(encoding="utf-8"))
    document["lists"][0]["attacks"][0] |= {"params": {"step_size": None}, "flags": ["still-gaining", "unheard-of"]}
    page = certificate_page(document)
    assert "Flagged still-gaining: the attack was still getting better when it ended: give it more steps." in page
    assert "step_size = the attack&#39;s own default" in page
    assert "= None" not in page
