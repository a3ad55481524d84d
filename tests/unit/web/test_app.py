"""The pages' requests: who may do what, and what is refused."""

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from advrisk.answers.records import Answer
from advrisk.risk.evasion import read_evasion
from advrisk.web import app as pages
from advrisk.web.app import Allowance, Service, make_app
from advrisk.web.guard import HEADERS, MOST_BYTES
from advrisk.web.labelling import Labelling, hash_of
from advrisk.web.trials import Asking

OPERATOR = "/o/" + "o" * 32
HERE = "http://here"  # what the service believes to be its address


@contextmanager
def client_of(labelling: Labelling, **options: Any) -> Iterator[httpx.Client]:
    """A client of a real server in a thread."""
    asking = options.pop("asking", Asking(labelling.settings.design))
    loopback, public = options.pop("loopback", True), options.pop("public", None)
    app = make_app(Service(labelling, asking, hash_of("o" * 32), HERE, **options), loopback=loopback, public=public)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        with httpx.Client(base_url=f"http://127.0.0.1:{listening.getsockname()[1]}", trust_env=False) as client:
            yield client
        server.should_exit = True
        thread.join()


@pytest.fixture
def client(labelling: Labelling) -> Iterator[httpx.Client]:
    with client_of(labelling) as opened:
        yield opened


def invited(client: httpx.Client, name: str = "Ann") -> str:
    reply = client.post(f"{OPERATOR}/invite", json={"name": name})
    assert reply.status_code == 200
    link: str = reply.json()["link"]
    assert link.startswith(f"{HERE}/l/")
    return link.removeprefix(HERE)


def look(client: httpx.Client, link: str) -> dict[str, Any]:
    """The open question, with its pictures looked at."""
    question: dict[str, Any] = client.get(f"{link}/question").json()
    for name in question["pictures"]:
        picture = client.get(f"{link}/picture/{question['nonce']}/{name}.png")
        assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
    return question


def answered(client: httpx.Client, link: str, said: str = "changed") -> dict[str, Any]:
    question = look(client, link)
    reply = client.post(f"{link}/answer", json={"nonce": question["nonce"], "said": said})
    assert reply.status_code == 200
    return question


def state_of(client: httpx.Client, *, n_answers: int) -> dict[str, Any]:
    """The operator's state once it has the summary of so many answers."""
    deadline = time.monotonic() + 60
    while (state := client.get(f"{OPERATOR}/state").json()).get("n_answers") != n_answers:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return dict(state)


def stored(labelling: Labelling) -> list[Answer]:
    return labelling.store.answers()


# Answers


def test_an_answer_is_stored_before_the_reply_and_brings_the_next_question(
    client: httpx.Client, labelling: Labelling
) -> None:
    link = invited(client)
    question = look(client, link)
    reply = client.post(f"{link}/answer", json={"nonce": question["nonce"], "said": "changed"})
    assert len(stored(labelling)) == 1
    assert reply.json()["n_answers"] == 1
    assert reply.json()["nonce"] != question["nonce"]


def test_a_question_stays_until_it_is_answered(client: httpx.Client) -> None:
    link = invited(client)
    assert look(client, link)["nonce"] == look(client, link)["nonce"]


def test_nothing_in_a_question_tells_its_answer(client: httpx.Client) -> None:
    question = look(client, invited(client))
    assert question.keys() == {"n_answers", "n_done", "goal", "can_undo", "done", "nonce", "pictures", "left_s"}
    assert len(question["nonce"]) >= 32


@pytest.mark.parametrize(
    "forge",
    [
        lambda question, _other: {"nonce": "x" * 32, "said": "changed"},
        lambda _question, other: {"nonce": other["nonce"], "said": "changed"},
        lambda question, _other: {"nonce": question["nonce"], "said": "perhaps"},
        lambda question, _other: {"nonce": question["nonce"]},
        lambda question, _other: {"nonce": [question["nonce"]], "said": {"a": 1}},
        lambda question, _other: {"nonce": "y" * 65, "said": "changed"},
        lambda question, _other: ["changed"],
    ],
)
def test_forged_and_foreign_answers_are_refused_and_change_nothing(
    client: httpx.Client, labelling: Labelling, forge: Callable[..., Any]
) -> None:
    link, other = invited(client), invited(client, "Bob")
    question, foreign = look(client, link), look(client, other)
    reply = client.post(f"{link}/answer", json=forge(question, foreign))
    assert 400 <= reply.status_code < 500
    assert stored(labelling) == []
    assert client.get(f"{link}/question").json()["nonce"] == question["nonce"]


def test_repeated_and_late_answers_are_refused(client: httpx.Client, labelling: Labelling) -> None:
    link = invited(client)
    first = answered(client, link)
    again = client.post(f"{link}/answer", json={"nonce": first["nonce"], "said": "unchanged"})
    assert again.status_code == 409
    assert [one.undetected for one in stored(labelling)] == [False]


def test_an_answer_to_a_picture_that_was_not_fetched_is_refused(client: httpx.Client, labelling: Labelling) -> None:
    link = invited(client)
    nonce = client.get(f"{link}/question").json()["nonce"]
    assert client.post(f"{link}/answer", json={"nonce": nonce, "said": "changed"}).status_code == 409
    assert stored(labelling) == []


def test_undo_asks_the_same_again(client: httpx.Client, labelling: Labelling) -> None:
    link = invited(client)
    assert client.post(f"{link}/undo", json={}).status_code == 409
    first = answered(client, link)
    picture = labelling.store.trials_from(1, 0)[0].shown
    assert client.post(f"{link}/undo", json={}).status_code == 200
    assert stored(labelling) == []
    again = look(client, link)
    assert again["nonce"] != first["nonce"]
    assert not again["can_undo"]
    assert client.post(f"{link}/undo", json={}).status_code == 409
    answered(client, link, "unchanged")
    (one,) = stored(labelling)
    assert (one.sample, one.size, one.undetected) == (picture.sample, picture.size, True)


def test_pictures_are_shown_to_whom_they_are_asked_and_no_longer(client: httpx.Client) -> None:
    link, other = invited(client), invited(client, "Bob")
    question = look(client, link)
    path = f"picture/{question['nonce']}/question.png"
    assert client.get(f"{other}/{path}").status_code == 404
    assert client.get(f"{link}/picture/{question['nonce']}/original.png").status_code == 404
    client.post(f"{link}/answer", json={"nonce": question["nonce"], "said": "changed"})
    assert client.get(f"{link}/{path}").status_code == 404


# Designs


@pytest.mark.parametrize(
    ("design", "names", "words"),
    [
        ("yes-no", ["question"], ["unchanged", "changed"]),
        ("side-by-side", ["original", "question"], ["unchanged", "changed"]),
        ("forced-choice", ["first", "second"], ["first", "second"]),
    ],
)
def test_each_design_shows_its_pictures(
    make_run: Callable[..., Path], open_run: Callable[..., Labelling], design: Any, names: list[str], words: list[str]
) -> None:
    labelling = open_run(make_run(), design=design)
    with client_of(labelling) as client:
        link = invited(client)
        assert re.findall(r'data-said="(\w+)"', client.get(link).text) == words
        for said in words * 3:
            assert answered(client, link, said)["pictures"] == names
    assert len(stored(labelling)) == 6
    assert {one.design for one in stored(labelling)} == {design}


def test_a_picture_is_not_sent_again_when_its_time_is_over(
    make_run: Callable[..., Path], open_run: Callable[..., Labelling], monkeypatch: pytest.MonkeyPatch
) -> None:
    labelling = open_run(make_run(), seconds=2.0, design="side-by-side")
    with client_of(labelling) as client:
        link = invited(client)
        assert client.get(f"{link}/question").json()["left_s"] == 2.0
        question = look(client, link)
        seen = labelling.store.open_trial(1)
        assert seen is not None
        assert seen.seen is not None
        monkeypatch.setattr(pages.time, "time", lambda: (seen.seen or 0) + 1.5)
        assert client.get(f"{link}/question").json()["left_s"] == pytest.approx(0.5)
        monkeypatch.setattr(pages.time, "time", lambda: (seen.seen or 0) + 60)
        assert client.get(f"{link}/question").json()["left_s"] == 0
        assert client.get(f"{link}/picture/{question['nonce']}/question.png").status_code == 410
        assert client.get(f"{link}/picture/{question['nonce']}/original.png").status_code == 200
        monkeypatch.undo()
        assert client.post(f"{link}/answer", json={"nonce": question["nonce"], "said": "changed"}).status_code == 200


def test_taking_an_answer_back_gives_no_more_time_to_look(
    make_run: Callable[..., Path], open_run: Callable[..., Labelling], monkeypatch: pytest.MonkeyPatch
) -> None:
    labelling = open_run(make_run(), seconds=2.0)
    now = [1_000_000.0]
    with client_of(labelling) as client:
        link = invited(client)
        monkeypatch.setattr(pages.time, "time", lambda: now[0])
        for left in (2.0, 0.7, 0.0, 0.0):
            question = client.get(f"{link}/question").json()
            assert question["left_s"] == pytest.approx(left)
            picture = client.get(f"{link}/picture/{question['nonce']}/question.png")
            assert picture.status_code == 200, "within the grace"
            now[0] += 1.3
            given = {"nonce": question["nonce"], "said": "changed"}
            assert client.post(f"{link}/answer", json=given).status_code == 200
            now[0] += 100
            client.post(f"{link}/undo", json={})
        question = client.get(f"{link}/question").json()
        assert client.get(f"{link}/picture/{question['nonce']}/question.png").status_code == 410
        monkeypatch.undo()


def test_the_progress_of_a_walk_leaves_catch_trials_out(labelling: Labelling) -> None:
    with client_of(labelling, asking=Asking("yes-no", "random", "plain", catch=0.5)) as client:
        link = invited(client)
        for place in range(12):
            answered(client, link, "changed" if place % 3 else "unchanged")
        question = client.get(f"{link}/question").json()
    assert (question["n_answers"], question["n_done"], question["goal"]) == (12, 6, 39)


def test_a_walk_ends(labelling: Labelling) -> None:
    with client_of(labelling, asking=Asking("yes-no", "random", "plain", catch=0.0)) as client:
        link = invited(client)
        for place in range(39):
            answered(client, link, "changed" if place % 3 else "unchanged")
        end = client.get(f"{link}/question").json()
        assert (end["done"], end["n_answers"], end["goal"]) == (True, 39, 39)
        found = labelling.current_summary().monte_carlo["plain"]
    assert (found.value, found.n) == (pytest.approx(13 / 40), 40)


def test_a_question_whose_picture_is_gone_is_replaced(client: httpx.Client, labelling: Labelling) -> None:
    from advrisk.ledger.inputs import shard_inputs
    from advrisk.web import stimuli

    link = invited(client)
    question = client.get(f"{link}/question").json()
    trial = labelling.store.open_trial(1)
    assert trial is not None
    inputs = stimuli.read_inputs(shard_inputs(labelling.pool.folder, "shard"))
    del inputs[trial.shown.sample]
    import numpy as np

    from advrisk.ledger.inputs import write_inputs

    write_inputs(shard_inputs(labelling.pool.folder, "shard"), list(inputs), np.stack(list(inputs.values())))
    stimuli._read.cache_clear()
    assert client.get(f"{link}/question").json()["nonce"] != question["nonce"]


# Links


@pytest.mark.parametrize("path", ["", "/question", "/curve", "/picture/n/question.png"])
def test_unknown_links_do_not_exist(client: httpx.Client, path: str) -> None:
    for token in ("x" * 32, "o" * 32, "..", "y" * 300):
        assert client.get(f"/l/{token}{path}").status_code in (404, 422)


def test_a_labellers_link_opens_nothing_else(client: httpx.Client) -> None:
    token = invited(client).removeprefix("/l/")
    for path in ("", "/state", "/evasion.json"):
        assert client.get(f"/o/{token}{path}").status_code == 404
    assert client.post(f"/o/{token}/invite", json={"name": "Eve"}).status_code == 404
    assert client.post(f"/l/{'o' * 32}/answer", json={"nonce": "n", "said": "changed"}).status_code == 404
    for path in ("/", "/docs", "/openapi.json", "/static/", "/static/../app.py", "/static/app.py"):
        assert client.get(path).status_code == 404


def test_only_hashes_of_tokens_are_stored(client: httpx.Client, labelling: Labelling) -> None:
    token = invited(client).removeprefix("/l/")
    assert len(token) >= 22, "128 bits or more"
    content = b"".join(path.read_bytes() for path in labelling.pool.folder.glob("answers.sqlite*"))
    assert hash_of(token).encode() in content
    assert token.encode() not in content


def test_a_new_link_ends_the_old_one(client: httpx.Client) -> None:
    old, new = invited(client), invited(client)
    assert client.get(old).status_code == 404
    assert client.get(new).status_code == 200


def test_the_curve_is_for_labellers_only_if_allowed(client: httpx.Client, labelling: Labelling) -> None:
    link = invited(client)
    assert client.get(f"{link}/curve").status_code == 404
    assert 'id="curve"' not in client.get(link).text
    with client_of(labelling, show_curve=True) as shown:
        assert shown.get(f"{link}/curve").json()["sizes"]
        assert 'id="curve"' in shown.get(link).text


# What everybody gets


def test_every_reply_has_the_headers(client: httpx.Client) -> None:
    link = invited(client)
    for path in (link, OPERATOR, f"{link}/question", "/nothing", "/static/label.js", f"{OPERATOR}/evasion.json"):
        headers = client.get(path).headers
        assert {name: headers[name] for name in HEADERS} == HEADERS
    policy = HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'")


def test_pages_hold_no_inline_script_or_style_and_load_nothing_from_elsewhere(client: httpx.Client) -> None:
    for path in (invited(client), OPERATOR):
        text = client.get(path).text
        assert re.findall(r"<script(?! src=\"/static/\w+\.js\" defer></script>)", text) == []
        assert re.findall(r"<style|\son\w+=|\sstyle=|https?:", text) == []


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "\"'><img src=x>", "{{ 7 * 7 }}"])
def test_names_are_text(client: httpx.Client, name: str) -> None:
    page = client.get(invited(client, name)).text
    assert "<script>alert" not in page
    assert "<img src=x>" not in page
    assert "49" not in page
    assert "&lt;" in page or "{{ 7 * 7 }}" in page


def test_names_of_runs_and_models_are_text(make_run: Callable[..., Path], open_run: Callable[..., Labelling]) -> None:
    model = "<script>alert(1)</script>"
    labelling = open_run(make_run("<b>run<b>", models=(model,)))
    with client_of(labelling, asking=Asking("yes-no", "random", model)) as client:
        page = client.get(OPERATOR).text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "&lt;b&gt;run&lt;b&gt;" in page
    assert "<script>alert" not in page
    assert "<b>run" not in page


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "localhost.evil"])
def test_other_names_of_this_machine_are_refused(client: httpx.Client, host: str) -> None:
    assert client.get(OPERATOR, headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:9", "[::1]:8000", "LOCALHOST"])
def test_its_own_names_are_not(client: httpx.Client, host: str) -> None:
    assert client.get(OPERATOR, headers={"Host": host}).status_code == 200


def test_a_server_for_others_answers_to_any_name(labelling: Labelling) -> None:
    with client_of(labelling, loopback=False) as client:
        assert client.get(OPERATOR, headers={"Host": "lab.example"}).status_code == 200


def test_requests_from_other_pages_are_refused(client: httpx.Client, labelling: Labelling) -> None:
    for origin, status in (("https://evil.example", 403), ("null", 403), (str(client.base_url).rstrip("/"), 200)):
        reply = client.post(f"{OPERATOR}/invite", json={"name": "Eve"}, headers={"Origin": origin})
        assert reply.status_code == status
    assert len(labelling.store.labellers()) == 1


PUBLIC = "https://label.example.org"


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("label.example.org", PUBLIC, 200),
        ("label.example.org:443", PUBLIC, 200),
        ("Label.Example.org", PUBLIC, 200),
        ("127.0.0.1:8000", PUBLIC, 200),  # the server in front says its own
        ("127.0.0.1:8000", "http://127.0.0.1:8000", 200),
        ("127.0.0.1:8000", "https://evil.example", 403),
        ("label.example.org", "https://evil.example", 403),
        ("127.0.0.1:8000", "https://label.example.org.evil.example", 403),
        ("127.0.0.1:8000", "http://label.example.org:99", 403),
        ("label.example.org:99", PUBLIC, 421),
        ("evil.example", PUBLIC, 421),
    ],
)
def test_behind_a_server_with_tls_its_address_is_allowed_and_no_other(
    labelling: Labelling, host: str, origin: str, status: int
) -> None:
    with client_of(labelling, public=PUBLIC) as client:
        reply = client.post(f"{OPERATOR}/invite", json={"name": "Ann"}, headers={"Host": host, "Origin": origin})
    assert reply.status_code == status


def test_without_a_public_address_a_server_with_tls_cannot_be_used(client: httpx.Client) -> None:
    assert client.get(OPERATOR, headers={"Host": "label.example.org"}).status_code == 421
    reply = client.post(f"{OPERATOR}/invite", json={"name": "Ann"}, headers={"Origin": PUBLIC})
    assert reply.status_code == 403


def test_large_bodies_are_refused(client: httpx.Client, labelling: Labelling) -> None:
    large = {"name": "x" * MOST_BYTES}
    assert client.post(f"{OPERATOR}/invite", json=large).status_code == 413

    def pieces() -> Iterator[bytes]:  # of a length that is not announced
        for _ in range(100):
            yield b"x" * 1000

    assert client.post(f"{OPERATOR}/invite", content=pieces()).status_code == 413
    assert labelling.store.labellers() == []


def test_a_defect_shows_no_traceback(
    client: httpx.Client, labelling: Labelling, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = invited(client)

    def broken(*_: Any) -> None:
        raise ZeroDivisionError("a secret of the machine")

    monkeypatch.setattr(labelling, "question", broken)
    reply = client.get(f"{link}/question")
    assert reply.status_code == 500
    assert "secret" not in reply.text
    assert "Traceback" not in reply.text


def test_a_database_that_is_away_is_not_named_to_labellers(
    client: httpx.Client, labelling: Labelling, monkeypatch: pytest.MonkeyPatch
) -> None:
    from advrisk.core.errors import LedgerError

    link = invited(client)

    def away(*_: Any) -> None:
        raise LedgerError("postgresql://db.internal: away")

    monkeypatch.setattr(labelling.store, "open_trial", away)
    reply = client.get(f"{link}/question")
    assert (reply.status_code, "internal" in reply.text) == (503, False)


@pytest.mark.parametrize("name", ["", " ", "x" * 81, "a\u0000b", 7, None])
def test_bad_names_are_refused(client: httpx.Client, labelling: Labelling, name: Any) -> None:
    reply = client.post(f"{OPERATOR}/invite", json={"name": name})
    assert reply.status_code == 422
    assert labelling.store.labellers() == []


# The operator


def test_the_state_follows_the_answers(client: httpx.Client) -> None:
    link, other = invited(client), invited(client, "Bob")
    before = state_of(client, n_answers=0)
    assert not before["fitted"]
    assert before["damage"] == before["extrapolated"] == {}, "no numbers of the prior alone"
    assert before["half_size"] is None
    for said in ("changed", "unchanged", "changed"):
        answered(client, link, said)
    answered(client, other)
    state = state_of(client, n_answers=4)
    assert [(one["name"], one["n_answers"]) for one in state["labellers"]] == [("Ann", 3), ("Bob", 1)]
    assert set(state["damage"]) == {"plain", "hard"}
    for found in state["damage"].values():
        assert 0 <= found["low"] <= found["value"] <= found["high"] <= 1
    assert len(state["figure"]["marks"]) == 4
    assert len(state["figure"]["sizes"]) == len(state["figure"]["low"]) == len(state["figure"]["high"])
    json.dumps(state, allow_nan=False)


def test_the_curve_is_downloaded_as_an_evasion_file(client: httpx.Client, labelling: Labelling, tmp_path: Path) -> None:
    refused = client.get(f"{OPERATOR}/evasion.json")
    assert refused.status_code == 422
    assert "two or more" in refused.json()["error"]
    link = invited(client)
    for said in ("changed", "unchanged") * 4:
        answered(client, link, said)
    reply = client.get(f"{OPERATOR}/evasion.json")
    assert "attachment" in reply.headers["content-disposition"]
    (tmp_path / "evasion.json").write_text(reply.text)
    curve = read_evasion(tmp_path / "evasion.json", norm="linf")
    assert labelling.write_curve(tmp_path / "same.json").n_answers == 8
    assert (tmp_path / "same.json").read_text() == reply.text
    assert 0 < curve([0.1])[0] < curve([0.05])[0] < 1


def test_that_numbers_are_not_up_to_date_is_shown(
    labelling: Labelling, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also after something that nobody thought of."""
    import sqlalchemy as sa

    from advrisk.web import labelling as module

    real, broken = module.summarise, [True]

    def fails(*words: Any) -> Any:
        if broken[0]:
            raise sa.exc.TimeoutError("the pool is empty")
        return real(*words)

    monkeypatch.setattr(module, "summarise", fails)
    with client_of(labelling) as client:

        def until_behind(behind: bool) -> dict[str, Any]:
            deadline = time.monotonic() + 60
            while (state := client.get(f"{OPERATOR}/state").json())["behind"] != behind or (
                "pending" in state
            ) != behind:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            return dict(state)

        for _ in range(3):
            until_behind(True)
        broken[0] = False
        assert until_behind(False)["n_answers"] == 0
    said = capfd.readouterr().err
    assert said.count("not up to date") == 1
    assert "the pool is empty" in said


# Links that end, and too many requests


def test_a_revoked_link_says_so_at_once_and_keeps_the_answers(client: httpx.Client, labelling: Labelling) -> None:
    link, other = invited(client), invited(client, "Bob")
    question = answered(client, link)
    labelling.revoke("Ann")
    page = client.get(link, headers={"Accept": "text/html"})
    assert page.status_code == 403
    assert page.headers["content-type"].startswith("text/html")
    assert "This link was revoked. Your answers are kept." in page.text
    for reply in (
        client.get(f"{link}/question"),
        client.post(f"{link}/answer", json={"nonce": question["nonce"], "said": "changed"}),
        client.post(f"{link}/undo", json={}),
        client.get(f"{link}/picture/{question['nonce']}/question.png"),
    ):
        assert reply.status_code == 403
        assert reply.json()["error"].startswith("This link was revoked.")
    assert len(stored(labelling)) == 1
    answered(client, other)
    renewed = invited(client)
    assert client.get(f"{renewed}/question").json()["n_answers"] == 1
    assert client.get(f"{link}/question").status_code == 403


def test_too_many_requests_of_a_link_are_refused_with_a_time_to_wait(labelling: Labelling) -> None:
    now = [0.0]
    allowance = Allowance(per_s=2.0, at_once=10.0, clock=lambda: now[0])
    with client_of(labelling, allowance=allowance) as client:
        link, other = invited(client), invited(client, "Bob")
        replies = [client.get(f"{link}/question") for _ in range(11)]
        assert [reply.status_code for reply in replies] == [200] * 10 + [429]
        assert replies[-1].headers["retry-after"] == "1"
        assert replies[-1].json() == {"error": "there were too many requests; wait a moment"}
        assert client.get(f"{other}/question").status_code == 200
        assert client.get("/static/label.js").status_code == 200
        now[0] = 1.0
        assert client.get(f"{link}/question").status_code == 200
        assert [client.get(f"{OPERATOR}/state").status_code for _ in range(15)][-1] == 429


def test_a_request_that_was_cut_off_leads_to_nothing(labelling: Labelling, capfd: pytest.CaptureFixture[str]) -> None:
    with client_of(labelling) as client:
        link = invited(client)
        with socket.create_connection((client.base_url.host, client.base_url.port or 80)) as cut:
            cut.sendall(f"POST {link}/undo HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{{".encode())
        assert client.get(f"{link}/question").status_code == 200
    assert "Traceback" not in capfd.readouterr().err
