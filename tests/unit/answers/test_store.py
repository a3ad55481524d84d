"""Answers are stored once, in full, and only where they belong: in SQLite and in a real PostgreSQL."""

import os
import pwd
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator
from dataclasses import replace
from glob import glob
from pathlib import Path

import pytest

from advrisk.answers.records import (
    AnswerRefusedError,
    Labeller,
    LabellingSettings,
    NameRefusedError,
    Shown,
    default_url,
    read_answers,
    undetected,
)
from advrisk.answers.store import AnswerStore, _put_setting
from advrisk.answers.tables import revoked
from advrisk.core.errors import LedgerError

SETTINGS = LabellingSettings(run="signs", norm="linf", design="yes-no", seconds=None)
CHANGED = Shown("s1", 0.1, model="plain", arm="pgd", cell="c1", factor=1.0)


# A PostgreSQL of our own


def _program(name: str) -> str | None:
    return shutil.which(name) or next(iter(sorted(glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True)), None)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a server, without the name of a database; it refuses to be run by root."""
    initdb, server = _program("initdb"), _program("pg_ctl")
    if initdb is None or server is None:
        pytest.skip("PostgreSQL is not installed: its tests did not run")
    who = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
    user = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []} if who else {}
    folder = Path(tempfile.mkdtemp(prefix="advrisk-pg-"))
    if who:
        os.chown(folder, who.pw_uid, who.pw_gid)

    def call(*words: str) -> None:
        subprocess.run(words, check=True, capture_output=True, cwd=folder, timeout=120, **user)

    data, log = str(folder / "data"), str(folder / "log")
    try:
        call(initdb, "-D", data, "-U", "postgres", "-A", "trust", "--no-locale", "-E", "UTF8", "--no-sync")
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        call(server, "-D", data, "-l", log, "-w", "-o", options, "start")
        yield f"postgresql+psycopg://postgres@/{{}}?host={folder}"
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            call(server, "-D", data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield default_url(tmp_path)
        return
    import psycopg

    server: str = request.getfixturevalue("postgres")
    name = f"t{uuid.uuid4().hex}"
    with psycopg.connect(server.format("postgres").replace("+psycopg", ""), autocommit=True) as connection:
        encoding = "ENCODING 'SQL_ASCII' TEMPLATE template0"  # the least that one can be given
        connection.execute(f"CREATE DATABASE {name} {encoding}")
        yield server.format(name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def store(url: str) -> Iterator[AnswerStore]:
    with AnswerStore.open(url) as opened:
        opened.settle(SETTINGS)
        yield opened


@pytest.fixture
def ann(store: AnswerStore) -> Labeller:
    return store.invite("Ann", "a" * 64)


def test_a_name_in_any_script_comes_back(store: AnswerStore) -> None:
    store.invite("Zoë 王 مرحبا", "f" * 64)
    assert [one.name for one in store.labellers()] == ["Zoë 王 مرحبا"]


def ask(store: AnswerStore, who: Labeller, nonce: str, shown: Shown = CHANGED, *, seen: bool = True) -> None:
    trial = store.put_trial(who.id, store.n_trials(who.id), nonce, shown)
    if seen:
        store.put_seen(trial.id)


def answer(store: AnswerStore, who: Labeller, nonce: str, said: str, shown: Shown = CHANGED) -> None:
    ask(store, who, nonce, shown)
    store.put_answer(who.id, nonce, said)


def test_an_answer_comes_back_as_it_was_given(store: AnswerStore, ann: Labeller, url: str) -> None:
    scaled = replace(CHANGED, factor=0.5, size=0.05, catch=True, trials="random")
    answer(store, ann, "n1", "changed")
    answer(store, ann, "n2", "unchanged", scaled)
    with AnswerStore.open(url, create=False) as again:
        first, second = again.answers()
    assert (first.labeller, first.model, first.arm, first.sample) == ("Ann", "plain", "pgd", "s1")
    assert (first.size, first.undetected, first.scaled, first.catch) == (0.1, False, False, False)
    assert (second.size, second.undetected, second.scaled, second.catch) == (0.05, True, True, True)
    assert (first.design, first.trials, second.trials) == ("yes-no", "adaptive", "random")
    assert first.seconds is not None
    assert 0 <= first.seconds < 60
    assert first.time <= second.time
    assert first.time.isoformat().endswith("+00:00")


@pytest.mark.parametrize("nonce", ["n1", "n2", "", "n3"])
def test_only_the_open_question_of_that_labeller_can_be_answered(store: AnswerStore, ann: Labeller, nonce: str) -> None:
    bob = store.invite("Bob", "b" * 64)
    answer(store, ann, "n1", "changed")  # answered
    ask(store, bob, "n2")  # somebody else's
    ask(store, ann, "n4")
    with pytest.raises(AnswerRefusedError, match="not the question that is open"):
        store.put_answer(ann.id, nonce, "changed")
    assert store.revision() == (1, 0)


def test_answers_of_other_words_or_before_the_picture_are_refused(store: AnswerStore, ann: Labeller) -> None:
    ask(store, ann, "n1", seen=False)
    with pytest.raises(AnswerRefusedError, match="not looked at"):
        store.put_answer(ann.id, "n1", "changed")
    opened = store.open_trial(ann.id)
    assert opened is not None
    store.put_seen(opened.id)
    with pytest.raises(AnswerRefusedError, match="no answer is called 'first'"):
        store.put_answer(ann.id, "n1", "first")
    assert store.answers() == []


def test_undo_marks_and_asks_the_same_again(store: AnswerStore, ann: Labeller) -> None:
    answer(store, ann, "n1", "changed")
    answer(store, ann, "n2", "changed", replace(CHANGED, sample="s2"))
    ask(store, ann, "n3", replace(CHANGED, sample="s3"))
    assert store.can_undo(ann.id)
    again = store.undo(ann.id, "n4")
    assert (again.shown.sample, again.nonce, again.again) == ("s2", "n4", True)
    assert [one.sample for one in store.answers()] == ["s1"]
    assert store.revision() == (2, 1), "the answer is still there"
    assert not store.can_undo(ann.id)
    with pytest.raises(AnswerRefusedError, match="only the last one"):
        store.undo(ann.id, "n5")
    with pytest.raises(AnswerRefusedError):
        store.put_answer(ann.id, "n3", "changed")  # the question that was open is withdrawn
    store.put_seen(again.id)
    store.put_answer(ann.id, "n4", "unchanged")
    assert [(one.sample, one.undetected) for one in store.answers()] == [("s1", False), ("s2", True)]
    assert store.can_undo(ann.id)


def test_there_is_nothing_to_undo_at_first(store: AnswerStore, ann: Labeller) -> None:
    assert not store.can_undo(ann.id)
    with pytest.raises(AnswerRefusedError):
        store.undo(ann.id, "n1")


def test_a_labeller_has_one_open_question(store: AnswerStore, ann: Labeller) -> None:
    ask(store, ann, "n1")
    second = store.put_trial(ann.id, store.n_trials(ann.id), "n2", replace(CHANGED, sample="s2"))
    assert second.nonce == "n1"
    store.withdraw(second.id)
    assert store.open_trial(ann.id) is None
    assert [row.state for row in store.trials_from(ann.id, 0)] == ["withdrawn"]


def test_what_became_of_trials_is_told_of_the_last_and_from_a_place_on(store: AnswerStore, ann: Labeller) -> None:
    bob, _nobody = store.invite("Bob", "b" * 64), store.invite("Nobody", "c" * 64)
    answer(store, ann, "n1", "changed")
    answer(store, ann, "n2", "changed", replace(CHANGED, sample="s2"))
    ask(store, bob, "m1")
    assert sorted(store.last_trials()) == [(ann.id, 1, "stands"), (bob.id, 0, "open")]
    ask(store, ann, "n3")
    store.undo(ann.id, "n4")
    assert [row.state for row in store.trials_from(ann.id, 0)] == ["stands", "undone", "withdrawn", "open"]
    assert [(row.place, row.shown.sample) for row in store.trials_from(ann.id, 3)] == [(3, "s2")]
    assert (ann.id, 3, "open") in store.last_trials()
    assert store.n_trials(ann.id) == 4
    assert store.n_trials(bob.id + 99) == 0


def test_when_a_picture_was_first_seen_does_not_move(store: AnswerStore, ann: Labeller) -> None:
    ask(store, ann, "n1", seen=False)
    trial = store.open_trial(ann.id)
    assert trial is not None
    assert store.put_seen(trial.id) == store.put_seen(trial.id)


def test_an_invitation_is_found_by_its_hash_and_renewed_by_name(store: AnswerStore, ann: Labeller) -> None:
    assert store.labeller("a" * 64) == ann
    assert store.labeller("c" * 64) is None
    assert store.invite(" Ann ", "d" * 64) == ann
    assert store.labeller("d" * 64) == ann
    assert store.labeller("a" * 64) is None, "the old link has ended"
    assert [one.name for one in store.labellers()] == ["Ann"]


def test_a_revoked_link_ends_at_once_for_every_process_and_can_be_renewed(
    store: AnswerStore, ann: Labeller, url: str
) -> None:
    answer(store, ann, "n1", "changed")
    with AnswerStore.open(url, create=False) as other:
        assert other.revoke(" Ann ", "e" * 64) == ann
    assert store.labeller("a" * 64) is None
    assert store.was_revoked("a" * 64)
    assert not store.was_revoked("b" * 64)
    assert len(store.answers()) == 1
    store.revoke("Ann", "f" * 64)  # again: nothing to end
    assert store.invite("Ann", "c" * 64) == ann
    assert store.labeller("c" * 64) == ann
    assert store.was_revoked("a" * 64), "the old link does not come back"
    with pytest.raises(NameRefusedError, match="no labeller is called 'Anne'; did you mean 'Ann'"):
        store.revoke("Anne", "g" * 64)


def test_databases_of_older_programs_get_the_table_of_revoked_links(url: str) -> None:
    with AnswerStore.open(url) as first:
        with first._writing() as connection:
            revoked.drop(connection)
        first.settle(SETTINGS)
        first.invite("Ann", "a" * 64)
        first.revoke("Ann", "b" * 64)
        assert first.was_revoked("a" * 64)


@pytest.mark.parametrize("name", ["", "  ", "x" * 81, "a\x1b[31m", "a\u202eb"])
def test_names_are_short_and_printable(store: AnswerStore, name: str) -> None:
    with pytest.raises(NameRefusedError, match="1 to 80 printable"):
        store.invite(name, "e" * 64)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"run": "other"}, "run"),
        ({"norm": "l2"}, "norm"),
        ({"design": "forced-choice"}, "design"),
        ({"seconds": 2.0}, "time limit"),
    ],
)
def test_answers_of_another_kind_are_not_mixed_in(
    store: AnswerStore, ann: Labeller, change: dict[str, object], word: str
) -> None:
    ask(store, ann, "n1")
    with pytest.raises(LedgerError, match=f"holds answers of the {word}"):
        store.settle(replace(SETTINGS, **change))
    store.settle(SETTINGS)


def test_what_is_asked_may_change_until_it_was_asked(store: AnswerStore, ann: Labeller, url: str) -> None:
    other = replace(SETTINGS, design="forced-choice", run="other")
    with AnswerStore.open(url) as later:
        later.settle(other)
        assert store.settings() == other
        with pytest.raises(LedgerError, match="changed what is asked meanwhile"):
            ask(store, ann, "n1")
        assert not store.has_trials()
        ask(later, ann, "n2", replace(CHANGED, sample="s7"))
    assert store.has_trials()
    assert store.samples() == {"s7"}
    with pytest.raises(LedgerError, match="holds answers of the"):
        store.settle(SETTINGS)


def test_links_begin_with_the_address_by_which_others_reach_it(store: AnswerStore) -> None:
    assert store.link_base() is None
    store.put_address("http://127.0.0.1:8123", "https://label.example.org")
    assert (store.address(), store.link_base()) == ("http://127.0.0.1:8123", "https://label.example.org")
    store.put_address("http://127.0.0.1:8124")
    assert store.link_base() == "http://127.0.0.1:8124"


def test_answers_given_at_once_are_all_kept_and_none_twice(store: AnswerStore, url: str) -> None:
    """Eight labellers in eight threads, each answer sent three times at once, from two stores."""
    people = [store.invite(f"labeller {n}", f"{n:064d}") for n in range(8)]
    refused: list[str] = []

    def label(other: AnswerStore, who: Labeller) -> None:
        for n in range(5):
            nonce = f"{who.id}-{n}"
            ask(other, who, nonce)
            for place in (store, other, store):
                try:
                    place.put_answer(who.id, nonce, "changed")
                except AnswerRefusedError:
                    refused.append(nonce)

    with AnswerStore.open(url) as other:
        threads = [threading.Thread(target=label, args=(other, who)) for who in people]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(store.answers()) == 40
    assert len(refused) == 80


def test_the_same_question_raced_for_is_answered_once(store: AnswerStore, ann: Labeller) -> None:
    ask(store, ann, "n1")
    gate, outcomes = threading.Barrier(6), []

    def race() -> None:
        gate.wait()
        try:
            store.put_answer(ann.id, "n1", "changed")
            outcomes.append("stored")
        except AnswerRefusedError:
            outcomes.append("refused")

    threads = [threading.Thread(target=race) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["refused"] * 5 + ["stored"]


def test_an_answer_outlives_the_process(store: AnswerStore, ann: Labeller, url: str) -> None:
    ask(store, ann, "n1")
    code = (
        "import os, sys; from advrisk.answers.store import AnswerStore; "
        "AnswerStore.open(sys.argv[1]).put_answer(int(sys.argv[2]), 'n1', 'changed'); os.kill(os.getpid(), 9)"
    )
    ended = subprocess.run([sys.executable, "-c", code, url, str(ann.id)], check=False, capture_output=True)
    assert ended.returncode == -9, ended.stderr
    assert len(store.answers()) == 1


def test_a_newer_version_is_refused(store: AnswerStore, url: str) -> None:
    with store._writing() as connection:
        from advrisk.answers.tables import settings

        connection.execute(settings.update().where(settings.c.name == "version").values(value="99"))
    with pytest.raises(LedgerError, match="version 99, and this program knows version 1"):
        AnswerStore.open(url)


@pytest.mark.parametrize(
    "value", ["{", "[]", '{"run": 3}', '{"run": "r", "norm": "l7", "design": "same", "seconds": -1}']
)
def test_settings_that_no_server_wrote_are_refused(store: AnswerStore, url: str, value: str) -> None:
    with store._writing() as connection:
        _put_setting(connection, "settings", value)
    with pytest.raises(LedgerError, match="the settings of its answers cannot be read"):
        store.settings()


# SQLite only


def test_wal_and_full_synchronisation(tmp_path: Path) -> None:
    with AnswerStore.open(default_url(tmp_path)) as store, store._reading() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_a_file_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    for make in (lambda: path.write_text("no database at all " * 100), lambda: _foreign(path)):
        path.unlink(missing_ok=True)
        make()
        before = path.read_bytes()
        with pytest.raises(LedgerError, match=r"answers\.sqlite: is (not )?a database of"):
            AnswerStore.open(default_url(tmp_path))
        assert path.read_bytes() == before
        assert [one.name for one in tmp_path.iterdir()] == ["answers.sqlite"]


def _foreign(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.commit()
    connection.close()


def test_reading_makes_nothing(tmp_path: Path) -> None:
    assert read_answers(tmp_path) == []
    with pytest.raises(LedgerError, match="holds no answers yet"):
        AnswerStore.open(default_url(tmp_path), create=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nonsense", "no address of a database"),
        ("mysql://me:hunter2@host/db", "SQLite files and PostgreSQL"),
        ("sqlite://", "SQLite files and PostgreSQL"),
        ("sqlite:///:memory:", "SQLite files and PostgreSQL"),
        ("sqlite:///file:a?mode=memory&uri=true", "SQLite files and PostgreSQL"),
        ("sqlite:////no/such/folder/a.sqlite", "no folder of that name"),
        ("postgresql+psycopg://me:hunter2@127.0.0.1:1/db", "cannot be read or written"),
        ("postgresql+nodriver://me:hunter2@127.0.0.1:1/db", "no driver"),
        ("postgresql+psycopg://me:hunter2@127.0.0.1:port/db", "no address of a database"),
    ],
)
def test_bad_addresses_are_refused_without_their_password(text: str, complaint: str) -> None:
    with pytest.raises(LedgerError, match=complaint) as caught:
        AnswerStore.open(text)
    assert "hunter2" not in str(caught.value)


def test_a_choice_is_undetected_when_it_is_wrong() -> None:
    first = replace(CHANGED, changed_first=True)
    assert not undetected("forced-choice", first, "first")
    assert undetected("forced-choice", first, "second")
    assert undetected("forced-choice", CHANGED, "first")
    assert not undetected("forced-choice", CHANGED, "second")
