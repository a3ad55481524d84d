"""A certificate of a model that refuses some inputs: what its document says, and that it holds."""

import copy

import pytest

from advrisk.assess.certificate.verification import verify_document
from tests.golden.make_certificate_v4 import document

from .conftest import Make


@pytest.mark.parametrize("method", ["exact", "betting"])
def test_a_document_tells_what_is_refused_and_counts_it_as_wrong_in_the_end(made: Make, method: str) -> None:
    ledger = made(
        {"m": {"clean": "jjjw" + "r" * 56, "pgd@linf:0.1": "srjwj" + "r" * 55}},
        samples=[{"label": place * place % 7 % 5} for place in range(60)],
    )
    content = document(ledger, "m", method=method)
    assert (content["clean_error"]["wrong"], content["clean_error"]["refused"]) == (1, 3)
    assert content["lists"][0]["union"]["failures"] == 1
    assert content["lists"][0]["wrong"]["failures"] == 5
    assert "refuses to answer 3 of these clean samples" in " ".join(content["not_claimed"])
    assert verify_document(content).holds
    forged = copy.deepcopy(content)
    forged["clean_error"]["refused"] = 2
    assert not verify_document(forged).holds
