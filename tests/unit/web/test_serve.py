"""Addresses: where the pages are served, and what links begin with."""

import pytest

from advrisk.core.errors import RunError
from advrisk.web.labelling import Labelling
from advrisk.web.serve import Place, checked_public, serve
from advrisk.web.trials import Asking


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://label.example.org", "https://label.example.org"),
        ("https://Label.Example.org/", "https://label.example.org"),
        ("https://label.example.org:443", "https://label.example.org"),
        ("https://label.example.org:8443", "https://label.example.org:8443"),
        ("http://[::1]:80", "http://[::1]"),
    ],
)
def test_public_addresses_are_kept_as_browsers_write_them(given: str, kept: str) -> None:
    assert checked_public(given) == kept


@pytest.mark.parametrize(
    "given",
    [
        "",
        "label.example.org",
        "ftp://a.example",
        "https://",
        "https://a.example/label",
        "https://me:pw@a.example",
        "https://a.example?x=1",
        "https://a.example#x",
        "https://a.example:port",
        "https://münchen.example",
    ],
)
def test_other_public_addresses_are_refused(given: str) -> None:
    with pytest.raises(RunError, match="--public-url"):
        checked_public(given)


def test_a_port_of_last_time_is_taken_if_it_is_free() -> None:
    with Place().listen(None) as first:
        port = first.getsockname()[1]
        with Place().listen(f"http://127.0.0.1:{port}") as other:
            assert other.getsockname()[1] != port
        with pytest.raises(RunError, match="cannot be served on"):
            Place(port=port).listen(None)
    with Place().listen(f"http://127.0.0.1:{port}") as again:
        assert again.getsockname()[1] == port


def test_an_interrupt_while_the_link_is_said_ends_it_in_order(labelling: Labelling) -> None:
    def interrupted(_link: str) -> None:
        raise KeyboardInterrupt

    place = Place()
    with place.listen(None) as listening:
        serve(labelling, Asking("yes-no"), place, listening, say=interrupted)
        port = listening.getsockname()[1]
    assert labelling.store.link_base() == f"http://127.0.0.1:{port}"
